"""The parsers of bonds, InfiniBand ports, Lustre and Ceph's networks are total."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.collectors import bond as bond_metrics
from plumbline.collectors import fileservers as lustre_metrics
from plumbline.errors import ParseError
from plumbline.sources.ceph.ceph_conf import parse_ceph_conf
from plumbline.sources.ceph.ceph_sockets import parse_sockets
from plumbline.sources.ceph.keyring import key_types
from plumbline.sources.kernel import lustre
from plumbline.sources.net import infiniband
from plumbline.sources.net.bonding import Bond, BondsReading, Slave, parse_bond, parse_bonding, parse_slave
from plumbline.sources.net.links import Link, parse_link, relations
from plumbline.sources.net.netlink import Message, attribute
from plumbline.sources.net.routes import Address, parse_address
from plumbline.sources.net.sockdiag import TcpConnection, parse_connection
from support.bond_messages import NO_MAC, aggregator, bond_info, churn, lacp, slave_info

FIXTURES = Path(__file__).parents[1] / "fixtures"

soup = st.recursive(
    st.binary(max_size=12),
    lambda inner: st.lists(st.builds(attribute, st.integers(0, 40), inner), max_size=8).map(b"".join),
    max_leaves=20,
)
bonds = soup | st.builds(bond_info, st.integers(0, 255), soup)
slaves = soup | st.builds(slave_info, st.integers(0, 255), st.integers(0, 255), st.integers(0, 99), soup)


@given(bonds, slaves)
@example(bond_info(4, aggregator(2, 1, NO_MAC)), slave_info(0, 0, 1, lacp(1, 69, 1), churn(1, 9)))
def test_bonds_and_slaves_and_their_samples(bond_bytes: bytes, slave_bytes: bytes) -> None:
    with contextlib.suppress(ParseError):
        slave = parse_slave(slave_bytes, "eth0")
        bond = parse_bond(bond_bytes, "bond0", (slave,))
        assert isinstance(bond, Bond)
        assert isinstance(slave, Slave)
        for _spec, labels, value in bond_metrics.samples(BondsReading((bond,))):
            assert all(isinstance(label, str) for label in labels)
            assert isinstance(value, int)


@given(st.binary(max_size=40) | st.builds(lambda head, more: head + more, st.binary(min_size=8, max_size=8), soup))
@example(struct.pack("=BBBBI", 2, 24, 0, 0, 3) + attribute(2, b"\n\0\0\1"))
def test_addresses(payload: bytes) -> None:
    with contextlib.suppress(ParseError):
        address = parse_address(Message(20, 2, 1, payload, 0, len(payload)))
        assert address is None or isinstance(address, Address)


@given(st.binary(max_size=90) | st.builds(lambda head, more: head + more, st.binary(min_size=72, max_size=72), soup))
@example(bytes([2]) + bytes(71) + attribute(2, bytes(104)) + attribute(21, bytes(8)))
def test_connections(payload: bytes) -> None:
    with contextlib.suppress(ParseError):
        connection = parse_connection(Message(20, 2, 1, payload, 0, len(payload)), source="x")
        assert connection is None or isinstance(connection, TcpConnection)


keys = st.builds("\tkey = {}".format, st.text("AQgB+/=", max_size=24) | st.text(max_size=9))


@given(st.lists(keys | st.builds("[{}]".format, st.text(max_size=9)) | st.text(max_size=9)).map("\n".join))
@example("[client.a]\n\tkey = AgAXPQ==")
def test_keyrings(text: str) -> None:
    for user, kind in key_types(text).items():
        assert user
        assert kind in {"aes", "aes256k"} or kind.isdecimal()


lines = st.lists(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(("Slave Interface", "Actor Churn State", "Partner Churned Count", "MII Status", "")),
        st.sampled_from((": ", ":", "")),
        st.sampled_from(("churned", "none", "monitoring", "unknown", "3", "eth0", "")) | st.text(max_size=8),
    ),
    max_size=12,
).map("\n".join)


@given(st.text(max_size=120) | lines)
def test_proc_net_bonding(text: str) -> None:
    with contextlib.suppress(ParseError):
        for slave, seen in parse_bonding(text, source="fuzz").items():
            assert slave
            assert seen.actor_times is None or seen.actor_times >= 0


@pytest.mark.parametrize("parse", [infiniband.parse_state, infiniband.parse_rate, infiniband.parse_counter])
@given(text=st.text(max_size=30) | st.from_regex(r"[0-9]{0,22}(: [A-Z]+|(\.5)? Gb/sec \(4X [EHN]DR\)|)"))
@example(text="٣: ACTIVE")
@example(text="9" * 5000)
def test_infiniband_values(parse: Callable[..., int | None], text: str) -> None:
    with contextlib.suppress(ParseError):
        number = parse(text, source="fuzz")
        assert number is None or number >= 0


IMPORT = next(FIXTURES.glob("lustre/proc/fs/lustre/osc/*OST0001*/import")).read_text()
import_lines = st.lists(st.sampled_from(IMPORT.splitlines()) | st.from_regex(r" *[a-z_]+: .*"), max_size=20).map(
    "\n".join
)


@given(st.text(max_size=80) | import_lines, st.text(max_size=40) | st.from_regex(r"([0-9]{1,21} ){10}[0-9]{1,21}"))
@example(IMPORT, "0 28 0 1 1 0 0 2 5 0 0")
@example(IMPORT.replace("21", "٣"), "healthy\n")
def test_lustre(text: str, attribute: str) -> None:
    with contextlib.suppress(ParseError):
        connection = lustre.parse_import(text, source="fuzz")
        assert all(value >= 0 for _, _, value in lustre_metrics.lustre_samples(lustre.LustreReading((connection,))))
    for parse in (lustre.parse_health, lustre.parse_lnet):
        with contextlib.suppress(ParseError):
            parse(attribute, source="fuzz")


conf = st.lists(
    st.sampled_from(("[global]", "[osd]", "[osd.1]", "public network = ", "cluster_addr=", "#", ";", "\\", "\n", " "))
    | st.sampled_from(("10.0.0.0/8", "fd00::/64", "v2:[fd00::1]:3300/0", "10.0.0.1:6789/0", ",", "node1"))
    | st.text(max_size=6),
    max_size=20,
).map("".join)


@given(st.text(max_size=120) | conf)
@example((FIXTURES / "ceph-nodes" / "classic.conf").read_text())
def test_ceph_conf(text: str) -> None:
    with contextlib.suppress(ParseError):
        found = parse_ceph_conf(text, source="fuzz")
        assert len(set(found.public_addresses)) == len(found.public_addresses)


word = st.text("0123456789ABCDEFG", min_size=2, max_size=33)
rows = st.lists(
    st.builds(
        "0: {}:{} {}:{} {} x".format,
        word,
        st.sampled_from(("1A90", "0CE4", "ZZZZ", "1")),
        word,
        st.sampled_from(("0CE4", "0000", "-001")),
        st.sampled_from(("0A", "01", "06")),
    ),
    max_size=5,
)


@given(st.text(max_size=120) | rows.map(lambda each: "\n".join(["header", *each])))
def test_socket_tables(text: str) -> None:
    with contextlib.suppress(ParseError):
        found = parse_sockets(text, source="fuzz")
        assert not any(address.is_loopback for address in found.daemons | found.monitors)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from(("", "bond", "veth"))), max_size=6))
def test_relations_of_any_graph(graph: list[tuple[int, int, str]]) -> None:
    links = {
        index: Link(index, f"l{index}", b"l", kind, 1, None, 6, None, None, master, "", "", "", None, lower, kind)
        for index, (master, lower, kind) in enumerate(graph, start=1)
    }
    names = {link.name for link in links.values()}
    for each in relations(links):
        assert {each.device, each.lower} <= names


@given(soup)
def test_a_links_info(info: bytes) -> None:
    name = attribute(3, b"eth0\0")
    payload = bytes(16) + name + attribute(18, attribute(4, b"bond\0") + info)
    with contextlib.suppress(ParseError):
        link, _ = parse_link(Message(16, 2, 1, payload, 0, len(payload)))
        assert isinstance(link.bond_info, bytes)
