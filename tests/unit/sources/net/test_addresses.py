"""Addresses from the kernel's dump."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest

from plumbline.errors import ParseError
from plumbline.sources.net.netlink import Netlink, Refused, attribute
from plumbline.sources.net.routes import RTM_GETADDR, RTM_NEWADDR, Address, read_addresses
from support.replay_network import ReplayNetlink, done, error, message


def ifaddr(family: int, index: int, *attributes: bytes) -> bytes:
    return message(RTM_NEWADDR, struct.pack("=BBBBI", family, 24, 0, 0, index) + b"".join(attributes))


def read(*messages: bytes) -> tuple[Address, ...]:
    return read_addresses(Netlink(ReplayNetlink({RTM_GETADDR: b"".join(messages)}), source="replay"))


def test_a_host_with_ipv4_ipv6_and_a_point_to_point_link() -> None:
    four, peer = (attribute(kind, bytes((10, 0, 0, last))) for kind, last in ((2, 1), (1, 2)))
    six = attribute(1, ip_address("2001:db8::7").packed)
    assert read(ifaddr(2, 3, peer, four), ifaddr(10, 4, six), ifaddr(7, 5, six), ifaddr(2, 6), done()) == (
        Address(3, ip_address("10.0.0.1")),
        Address(4, ip_address("2001:db8::7")),
    )


def test_malformed() -> None:
    with pytest.raises(ParseError, match="interface 3: address of 3 bytes in family 2"):
        read(ifaddr(2, 3, attribute(2, b"abc")), done())
    with pytest.raises(ParseError, match="address message of 2 bytes"):
        read(message(RTM_NEWADDR, b"\2\0"), done())


def test_refused() -> None:
    with pytest.raises(Refused):
        read(error(1))
