"""What stands on what."""

from __future__ import annotations

from pathlib import Path

from plumbline.sources.net.links import RTM_GETLINK, Link, Relation, read_links, relations
from plumbline.sources.net.netlink import Netlink, attribute
from support.bond_messages import bond_info, link, slave_info, u32
from support.replay_network import ReplayNetlink, done

FIXTURES = Path(__file__).parents[3] / "fixtures"


def links_of(*messages: bytes) -> dict[int, Link]:
    return read_links(Netlink(ReplayNetlink({RTM_GETLINK: b"".join((*messages, done()))}), source="replay"))


def kind(name: str) -> bytes:
    return attribute(1, name.encode() + b"\0")


def test_a_vlan_on_a_bond_in_a_bridge() -> None:
    links = links_of(
        link(2, "eth0", info=slave_info(0, 0, 0), master=4),
        link(3, "eth1", info=slave_info(0, 0, 0), master=4),
        link(4, "bond0", info=bond_info(4)),
        link(5, "bond0.100", u32(5, 4), info=kind("vlan") + attribute(4, b"bridge\0"), master=6),
        link(6, "br0", info=kind("bridge")),
    )
    assert relations(links) == (
        Relation("bond0", "eth0", "bond"),
        Relation("bond0", "eth1", "bond"),
        Relation("bond0.100", "bond0", "vlan"),
        Relation("br0", "bond0.100", "bridge"),
    )


def test_a_veths_other_end_is_beside_it_and_an_index_of_another_namespace_is_nothing_here() -> None:
    links = links_of(
        link(2, "va", u32(5, 3), info=kind("veth")),
        link(3, "vb", u32(5, 2), info=kind("veth")),
        link(4, "vlan7", u32(5, 2), attribute(37, b"\0\0\0\0"), info=kind("vlan")),
        link(5, "gre0", u32(5, 0), info=kind("gre")),
        link(6, "odd0", u32(5, 6), info=kind("vlan")),
        link(7, "lost", u32(5, 99), info=kind("vlan"), master=98),
    )
    assert relations(links) == ()


def test_a_master_whose_slave_does_not_name_it_is_named_by_its_own_kind() -> None:
    links = links_of(link(2, "eth0", master=3), link(3, "team0", info=kind("team")))
    assert relations(links) == (Relation("team0", "eth0", "team"),)


def test_recorded_links() -> None:
    links = read_links(Netlink(ReplayNetlink.load(FIXTURES / "net-software-links"), source="replay"))
    assert set(relations(links)) == {Relation("br0", "vb0", "bridge"), Relation("mv0", "va0", "macvlan")}
