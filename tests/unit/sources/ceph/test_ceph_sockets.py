"""Ceph's addresses from /proc/net/tcp."""

from __future__ import annotations

import shutil
import socket
from ipaddress import ip_address
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.ceph.ceph_sockets import CephSockets, parse_sockets, read_sockets

NODES = Path(__file__).parents[3] / "fixtures" / "ceph-nodes"
PUBLIC, CLUSTER, CLUSTER6 = (ip_address(text) for text in ("192.168.1.11", "192.168.122.11", "2001:db8:2::11"))


def test_an_osd_node() -> None:
    found = parse_sockets((NODES / "tcp").read_text(), source="tcp")
    assert found == CephSockets(daemons=frozenset({PUBLIC, CLUSTER}), monitors=frozenset({PUBLIC}))
    assert (found.public, found.cluster) == (frozenset({PUBLIC}), frozenset({CLUSTER}))


def test_ipv6_and_ipv4_in_ipv6_clothes() -> None:
    assert parse_sockets((NODES / "tcp6").read_text(), source="tcp6") == CephSockets(
        daemons=frozenset({CLUSTER6}), monitors=frozenset({PUBLIC})
    )


def test_both_tables_of_one_host(tmp_path: Path) -> None:
    net = tmp_path / "proc" / "net"
    net.mkdir(parents=True)
    for name in ("tcp", "tcp6"):
        shutil.copy(NODES / name, net / name)
    assert read_sockets(Roots.under(tmp_path)).cluster == frozenset({CLUSTER, CLUSTER6})
    assert read_sockets(Roots.under(Path("/nowhere"))) == CephSockets()


def test_one_address_carries_both_and_two_of_unknown_side_carry_nothing() -> None:
    one = CephSockets(daemons=frozenset({PUBLIC}))
    assert (one.public, one.cluster) == (frozenset({PUBLIC}), frozenset({PUBLIC}))
    two = CephSockets(daemons=frozenset({PUBLIC, CLUSTER}))
    assert (two.public, two.cluster) == (frozenset(), frozenset())


def test_no_ceph_here() -> None:
    assert (CephSockets().public, CephSockets().cluster) == (frozenset(), frozenset())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0: 0100007F:1A90", "tcp:2: 2 columns"),
        ("0: 0100007F 00000000:0000 0A 0", "tcp:2: not an address: '0100007F'"),
        ("0: 0100007F:XXXX 00000000:0000 0A 0", "tcp:2: not an address: '0100007F:XXXX'"),
        ("0: 01007F:1A90 00000000:0000 0A 0", "tcp:2: not an address: '01007F'"),
    ],
)
def test_malformed(row: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_sockets("  sl  local_address\n" + row + "\n", source="tcp")
    assert str(caught.value) == message


def test_the_running_kernels_table() -> None:
    """The row of a listener of ours, moved to an address and port of an OSD."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        text = Path("/proc/net/tcp").read_text()
        port = sock.getsockname()[1]
        row = next(each for each in text.splitlines() if f":{port:04X} " in each)
        moved = row.replace(f"0100007F:{port:04X}", "0B01A8C0:1A90")
    assert parse_sockets(f"header\n{moved}\n", source="tcp") == CephSockets(daemons=frozenset({PUBLIC}))
