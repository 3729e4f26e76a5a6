"""Which interfaces carry Ceph's traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network

import pytest

from plumbline.collectors import topology
from plumbline.sources.ceph.ceph_conf import CephConf
from plumbline.sources.ceph.ceph_sockets import CephSockets
from plumbline.sources.net.links import Link, Relation, relations
from plumbline.sources.net.roles import CLUSTER, PUBLIC, Role, TopologyReading, assign
from plumbline.sources.net.routes import Address


def make_link(index: int, name: str, kind: str = "", *, master: int = 0, lower: int = 0, slave_kind: str = "") -> Link:
    return Link(
        index, name, name.encode(), kind, 1, 1500, 6, True, 0, master, "", "", "", None, lower, slave_kind
    )  # fmt: skip


LINKS = {
    each.ifindex: each
    for each in (
        make_link(1, "lo"),
        make_link(2, "eth0", master=4, slave_kind="bond"),
        make_link(3, "eth1", master=4, slave_kind="bond"),
        make_link(4, "bond0", "bond", master=7, slave_kind="bridge"),
        make_link(5, "eth2"),
        make_link(6, "tap0", "tun", master=7, slave_kind="bridge"),
        make_link(7, "br0", "bridge"),
        make_link(8, "eth2.50", "vlan", lower=5),
    )
}
ADDRESSES = (
    Address(7, ip_address("192.168.1.11")),
    Address(8, ip_address("192.168.122.11")),
    Address(5, ip_address("10.0.0.11")),
    Address(99, ip_address("192.168.1.12")),
    Address(1, ip_address("127.0.0.1")),
)
PUBLIC_SIDE = ("bond0", "br0", "eth0", "eth1")
CLUSTER_SIDE = ("eth2", "eth2.50")
BOTH = CephConf((ip_network("192.168.1.0/24"),), (ip_network("192.168.122.0/24"),))


def never() -> CephSockets:
    raise AssertionError("sockets are asked although they need not be")


def found(
    conf: CephConf | None,
    configured: Mapping[str, tuple[str, ...]] = {},
    *,
    sockets: Callable[[], CephSockets] = never,
) -> dict[str, tuple[str, ...]]:
    roles = assign(LINKS, ADDRESSES, configured=configured, conf=conf, sockets=sockets)
    assert list(roles) == sorted(roles)
    return {
        role: tuple(each.device for each in roles if each.role == role)
        for role in (PUBLIC, CLUSTER)
        if any(each.role == role for each in roles)
    }


def test_networks_reach_down_to_the_ports_and_not_to_guests() -> None:
    assert found(BOTH) == {PUBLIC: PUBLIC_SIDE, CLUSTER: CLUSTER_SIDE}


def test_addresses_of_daemons_do_as_well_as_networks() -> None:
    conf = CephConf(
        public_addresses=(ip_address("192.168.1.11"), ip_address("192.168.1.99")),
        cluster_addresses=(ip_address("192.168.122.11"),),
    )
    assert found(conf) == {PUBLIC: PUBLIC_SIDE, CLUSTER: CLUSTER_SIDE}


def test_without_a_cluster_network_the_public_one_carries_both() -> None:
    assert found(CephConf(BOTH.public_networks)) == {PUBLIC: PUBLIC_SIDE, CLUSTER: PUBLIC_SIDE}


def test_a_network_of_everything_is_not_the_loopback() -> None:
    assert "lo" not in found(CephConf((ip_network("0.0.0.0/0"),)))[PUBLIC]


def test_a_host_that_is_not_in_the_cluster_network() -> None:
    assert found(CephConf(BOTH.public_networks, (ip_network("10.9.0.0/16"),))) == {PUBLIC: PUBLIC_SIDE}


def test_sockets_where_the_file_has_no_networks() -> None:
    sockets = CephSockets(
        frozenset({ip_address("192.168.1.11"), ip_address("192.168.122.11")}), frozenset({ip_address("192.168.1.11")})
    )
    assert found(CephConf(), sockets=lambda: sockets) == {PUBLIC: PUBLIC_SIDE, CLUSTER: CLUSTER_SIDE}


def test_the_configuration_stands_before_everything_for_its_role() -> None:
    assert found(BOTH, {PUBLIC: ("eth2",)}) == {PUBLIC: ("eth2",), CLUSTER: CLUSTER_SIDE}
    assert found(CephConf(), {PUBLIC: ("bond0",), CLUSTER: ("eth2",)}) == {
        PUBLIC: ("bond0", "eth0", "eth1"),
        CLUSTER: ("eth2",),
    }
    assert found(None, {PUBLIC: ("eth9",)}) == {}  # no such interface, or not yet


def test_no_ceph_on_this_host() -> None:
    assert found(None) == {}


def test_a_loop_of_relations_ends() -> None:
    links = {1: make_link(1, "a", "vlan", lower=2), 2: make_link(2, "b", "vlan", lower=1)}
    address = (Address(1, ip_address("192.168.1.11")),)
    roles = assign(
        links, address, configured={}, conf=CephConf(BOTH.public_networks, BOTH.cluster_networks), sockets=never
    )
    assert roles == (Role("a", PUBLIC), Role("b", PUBLIC))


def test_samples() -> None:
    reading = (Relation("br0", "bond0", "bridge"),)
    assert relations({4: LINKS[4], 7: LINKS[7]}) == reading
    assert list(topology.samples(TopologyReading(reading, (Role("br0", PUBLIC),)))) == [
        (topology.RELATION, ("br0", "bond0", "bridge"), 1),
        (topology.ROLE, ("br0", "ceph_public"), 1),
    ]


@pytest.mark.parametrize("role", [PUBLIC, CLUSTER])
def test_both_sides_configured_need_no_look_at_sockets(role: str) -> None:
    other = CLUSTER if role == PUBLIC else PUBLIC
    assert found(CephConf(), {role: ("eth2",), other: ("br0",)})[role] == ("eth2",)
