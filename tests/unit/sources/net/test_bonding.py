"""Bonds and slaves as netlink gives them."""

from __future__ import annotations

import msgspec
import pytest
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from plumbline.errors import ParseError
from plumbline.sources.net.bonding import Aggregator, Bond, Churn, LacpState, Slave, parse_bond, parse_slave, read_bonds
from plumbline.sources.net.links import RTM_GETLINK, Link, read_links
from plumbline.sources.net.netlink import Netlink, attribute
from support.bond_messages import (
    NO_MAC,
    NO_PARTNER,
    SWITCH,
    aggregator,
    bond_info,
    churn,
    lacp,
    link,
    slave_info,
    u8,
)
from support.replay_network import ReplayNetlink, done


def bonds_of(*messages: bytes, skipped: list[tuple[str, str]] | None = None) -> tuple[Bond, ...]:
    route = Netlink(ReplayNetlink({RTM_GETLINK: b"".join(messages)}), source="replay")
    left_out = [] if skipped is None else skipped
    return read_bonds(read_links(route), on_skip=lambda item, reason: left_out.append((item, reason)))


def test_a_bond_whose_switch_does_not_speak_lacp() -> None:
    (bond,) = bonds_of(NO_PARTNER)
    activity_defaulted = LacpState.ACTIVITY | LacpState.AGGREGATION | LacpState.DEFAULTED
    assert bond == Bond(
        device="bond0",
        mode="802.3ad",
        xmit_hash_policy="layer2",
        lacp_rate="slow",
        ad_select="stable",
        miimon_ms=100,
        arp_interval_ms=0,
        min_links=0,
        aggregator=Aggregator(2, 1, "00:00:00:00:00:00"),
        slaves=(
            Slave("enp145s0f0", True, True, 1, 1, activity_defaulted, LacpState.ACTIVITY),
            Slave("enp145s0f1", True, True, 0, 2, activity_defaulted | LacpState.SYNCHRONIZATION, LacpState.ACTIVITY),
        ),
    )
    assert [bond.partner_valid(slave) for slave in bond.slaves] == [False, False]


def test_a_healthy_slave_beside_one_in_another_aggregator() -> None:
    (bond,) = bonds_of(
        link(4, "bond0", info=bond_info(4, aggregator(1, 1, SWITCH))),
        link(2, "eth0", info=slave_info(0, 0, 0, lacp(1, 63, 63), churn(2, 2)), master=4),
        link(3, "eth1", info=slave_info(1, 0, 17, lacp(2, 7, 69), churn(1, 0)), master=4),
        done(),
    )
    good, apart = bond.slaves
    assert bond.aggregator == Aggregator(1, 1, "00:00:5e:00:01:01")
    assert (good.aggregator_id, good.actor_churn, good.partner_churn) == (1, Churn.NONE, Churn.NONE)
    assert (apart.aggregator_id, apart.active, apart.link_failures) == (2, False, 17)
    assert (apart.actor_churn, apart.partner_churn) == (Churn.CHURNED, Churn.MONITORING)
    assert bond.partner_valid(good) is True
    assert bond.partner_valid(apart) is True  # it hears LACPDUs: the partner thinks that it hears none


def test_a_partner_of_zeros_in_the_active_aggregator_counts_even_before_the_slave_has_given_up() -> None:
    bond = parse_bond(bond_info(4, aggregator(1, 1, NO_MAC)), "bond0")
    assert bond.partner_valid(parse_slave(slave_info(0, 0, 0, lacp(1, 5, 1)), "eth0")) is False
    assert bond.partner_valid(parse_slave(slave_info(0, 0, 0, lacp(2, 5, 1)), "eth0")) is True


def test_active_backup_knows_nothing_of_lacp() -> None:
    bond = parse_bond(bond_info(1, miimon_ms=0), "bond1")
    assert (bond.mode, bond.xmit_hash_policy, bond.lacp_rate, bond.ad_select) == ("active-backup", "", "", "")
    assert (bond.miimon_ms, bond.aggregator) == (0, None)
    slave = parse_slave(slave_info(1, 2, 3), "eth1")
    assert slave == Slave("eth1", active=False, up=False, link_failures=3)
    assert bond.partner_valid(slave) is None


def test_no_active_aggregator_is_an_empty_nest() -> None:
    assert parse_bond(bond_info(4, attribute(23, b"")), "bond0").aggregator is None


def test_what_a_newer_kernel_has_added_is_shown_by_its_number() -> None:
    assert parse_bond(bond_info(9), "bond0").mode == "9"
    assert parse_slave(slave_info(0, 0, 0, lacp(1, 63, 0xFF3F), churn(3, 2)), "eth0").actor_churn is None


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (attribute(1, b"bond\0"), "netlink route: bond bond0: no mode"),
        (bond_info(4, aggregator(1, 1, b"\1\2\3")), "netlink route: bond bond0: partner MAC of 3 bytes, expected 6"),
        (
            attribute(2, attribute(1, b"abc")),
            "netlink route: bond bond0: number of 3 bytes at byte 8, expected 1, 2, 4 or 8",
        ),
    ],
)
def test_malformed(info: bytes, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_bond(info, "bond0")
    assert str(caught.value) == message


def test_a_malformed_slave_or_bond_is_left_out_and_the_rest_stays() -> None:
    skipped: list[tuple[str, str]] = []
    (bond,) = bonds_of(
        link(1, "bad0", info=attribute(1, b"bond\0")),
        link(4, "bond0", info=bond_info(1)),
        link(2, "eth0", info=attribute(4, b"bond\0") + attribute(5, attribute(1, b"abc")), master=4),
        link(3, "eth1", info=slave_info(0, 0, 0), master=4),
        done(),
        skipped=skipped,
    )
    assert (bond.device, [slave.device for slave in bond.slaves]) == ("bond0", ["eth1"])
    assert skipped == [("eth0", "malformed"), ("bad0", "malformed")]


def test_another_library_reads_the_same_out_of_these_bytes() -> None:
    """Numbers and widths of the attributes by pyroute2's tables, which are not ours: these bytes are constructed."""

    bond_link = link(4, "bond0", info=bond_info(4, aggregator(2, 1, SWITCH)))
    slave_link = link(3, "eth1", info=slave_info(1, 2, 17, lacp(2, 77, 1)), master=4)
    infos = []
    for raw in (bond_link, slave_link):
        decoded = ifinfmsg(raw)
        decoded.decode()
        infos.append(decoded.get_attr("IFLA_LINKINFO"))
    bond, slave = infos[0].get_attr("IFLA_INFO_DATA"), infos[1].get_attr("IFLA_INFO_SLAVE_DATA")

    def read(attributes: ifinfmsg, prefix: str, names: str) -> list[object]:
        return [attributes.get_attr(f"IFLA_BOND_{prefix}{name}") for name in names.split()]

    settings = "MODE MIIMON ARP_INTERVAL XMIT_HASH_POLICY MIN_LINKS AD_LACP_RATE AD_SELECT"
    assert read(bond, "", settings) == [4, 100, 0, 0, 0, 0, 0]
    active = bond.get_attr("IFLA_BOND_AD_INFO")
    assert read(active, "AD_INFO_", "AGGREGATOR NUM_PORTS PARTNER_MAC") == [2, 1, "00:00:5e:00:01:01"]
    # the LACP states (7, 8, 11, 12) it does not know yet
    assert read(slave, "SLAVE_", "STATE MII_STATUS LINK_FAILURE_COUNT AD_AGGREGATOR_ID") == [1, 2, 17, 2]


def test_links_keep_the_bytes_of_bonds_only() -> None:
    route = Netlink(
        ReplayNetlink(
            {
                RTM_GETLINK: link(2, "eth0", info=slave_info(0, 0, 0), master=4)
                + link(4, "bond0", info=bond_info(1))
                + link(5, "tap0", info=attribute(1, b"tun\0") + attribute(4, b"bridge\0") + u8(5, 1), master=6)
                + done()
            }
        ),
        source="replay",
    )
    found = {each.name: (each.kind, each.slave_kind, bool(each.bond_info)) for each in read_links(route).values()}
    assert found == {"eth0": ("", "bond", True), "bond0": ("bond", "", True), "tap0": ("tun", "bridge", False)}
    defaults = {each.name: each.default for each in msgspec.structs.fields(Link) if not each.required}
    assert defaults == {"lower_index": 0, "slave_kind": "", "bond_info": b""}
