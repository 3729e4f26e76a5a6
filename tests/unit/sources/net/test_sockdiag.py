"""Connections as this kernel tells them, and messages it would never send."""

from __future__ import annotations

import socket

import pytest

from plumbline.errors import ParseError
from plumbline.sources.net.netlink import Message, attribute
from plumbline.sources.net.sockdiag import parse_connection, read_connections


def message(payload: bytes) -> Message:
    return Message(20, 2, 1, payload, 0, len(payload))


def test_a_connection_of_this_process_is_found_by_its_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        client.sendall(b"x")
        port = server.getsockname()[1]
        (found,) = read_connections(range(port, port + 1))
        assert (str(found.address), found.port, found.retransmits) == ("127.0.0.1", port, 0)
        assert 0 < found.rtt_us < 10_000_000
        assert found.idle_ms < 60_000
        assert found.cookie
        assert not list(read_connections(range(port + 1, port + 2)))
        assert not list(read_connections(range(port - 1, port)))


def test_an_address_of_version_4_in_version_6_is_one_of_version_4() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        port = server.getsockname()[1]
        with socket.socket(socket.AF_INET6) as client:
            client.connect(("::ffff:127.0.0.1", port))
            (found,) = read_connections(range(port, port + 1))
    assert str(found.address) == "127.0.0.1"


@pytest.mark.parametrize("payload", [b"", bytes(71), bytes([2]) + bytes(71) + attribute(2, bytes(103))])
def test_what_is_cut_off_is_told(payload: bytes) -> None:
    with pytest.raises(ParseError, match="expected"):
        parse_connection(message(payload), source="x")


@pytest.mark.parametrize("payload", [bytes([2]) + bytes(71), bytes([1]) + bytes(71) + attribute(2, bytes(104))])
def test_a_socket_without_figures_or_of_another_family_is_left_out(payload: bytes) -> None:
    assert parse_connection(message(payload), source="x") is None
