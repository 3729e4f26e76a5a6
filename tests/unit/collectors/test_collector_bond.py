"""Bonds as samples: an aggregator mismatch and a partner of zeros can be decided from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.collectors import bond as metrics
from plumbline.core.roots import Roots
from plumbline.sources.net.bonding import (
    Aggregator,
    Bond,
    BondsReading,
    Churn,
    LacpState,
    Slave,
    SlaveChurn,
    read_bonds,
    read_churns,
)
from plumbline.sources.net.links import RTM_GETLINK, read_links
from plumbline.sources.net.netlink import Netlink
from support.bond_messages import NO_PARTNER
from support.replay_network import ReplayNetlink

FIXTURES = Path(__file__).parents[2] / "fixtures"


def test_netlink_and_proc_of_one_bond_become_its_samples() -> None:
    links = read_links(Netlink(ReplayNetlink({RTM_GETLINK: NO_PARTNER}), source="replay"))
    churns = read_churns(Roots.under(FIXTURES / "bond-lacp-no-partner"), on_skip=pytest.fail)
    got = list(metrics.samples(BondsReading(read_bonds(links, on_skip=pytest.fail), churns)))
    plain = [(spec.name.removeprefix("plumbline_bond_"), *labels, value) for spec, labels, value in got]
    assert [row for row in plain if row[0] != "slave_lacp_flag"] == [
        ("info", "bond0", "802.3ad", "layer2", "slow", "stable", 1),
        ("slaves", "bond0", 2),
        ("link_monitoring_enabled", "bond0", 1),
        ("min_links", "bond0", 0),
        ("aggregator_id", "bond0", 2),
        ("aggregator_ports", "bond0", 1),
        ("partner_mac_valid", "bond0", 0),
        ("slave_up", "bond0", "enp145s0f0", 1),
        ("slave_active", "bond0", "enp145s0f0", 1),
        ("slave_link_failures_total", "bond0", "enp145s0f0", 1),
        ("slave_aggregator_id", "bond0", "enp145s0f0", 1),
        ("slave_partner_mac_valid", "bond0", "enp145s0f0", 0),
        ("slave_churned", "bond0", "enp145s0f0", "actor", 1),
        ("slave_churns_total", "bond0", "enp145s0f0", "actor", 1),
        ("slave_churned", "bond0", "enp145s0f0", "partner", 1),
        ("slave_churns_total", "bond0", "enp145s0f0", "partner", 2),
        ("slave_up", "bond0", "enp145s0f1", 1),
        ("slave_active", "bond0", "enp145s0f1", 1),
        ("slave_link_failures_total", "bond0", "enp145s0f1", 0),
        ("slave_aggregator_id", "bond0", "enp145s0f1", 2),
        ("slave_partner_mac_valid", "bond0", "enp145s0f1", 0),
        ("slave_churned", "bond0", "enp145s0f1", "actor", 0),
        ("slave_churns_total", "bond0", "enp145s0f1", "actor", 0),
        ("slave_churned", "bond0", "enp145s0f1", "partner", 1),
        ("slave_churns_total", "bond0", "enp145s0f1", "partner", 1),
    ]
    flags = [row for row in plain if row[0] == "slave_lacp_flag"]
    assert len(flags) == 2 * 2 * 8
    assert [row[4:] for row in flags[:8]] == [  # actor state 69 = 1 + 4 + 64
        ("activity", 1),
        ("timeout", 0),
        ("aggregation", 1),
        ("synchronization", 0),
        ("collecting", 0),
        ("distributing", 0),
        ("defaulted", 1),
        ("expired", 0),
    ]


def test_a_backup_that_is_down_and_a_bond_that_nobody_watches() -> None:
    bond = Bond("bond1", "active-backup", "", "", "", 0, 0, 0, None, (Slave("eth1", False, False, 3),))
    assert list(metrics.samples(BondsReading((bond,)))) == [
        (metrics.INFO, ("bond1", "active-backup", "", "", ""), 1),
        (metrics.SLAVES, ("bond1",), 1),
        (metrics.MONITORED, ("bond1",), 0),
        (metrics.MIN_LINKS, ("bond1",), 0),
        (metrics.SLAVE_UP, ("bond1", "eth1"), 0),
        (metrics.SLAVE_ACTIVE, ("bond1", "eth1"), 0),
        (metrics.SLAVE_LINK_FAILURES, ("bond1", "eth1"), 3),
    ]


def test_what_netlink_says_of_churn_now_stands_before_what_proc_said_minutes_ago() -> None:
    state = LacpState.ACTIVITY
    slave = Slave("eth0", None, None, None, 1, state, None, Churn.NONE, None)
    bond = Bond("bond0", "802.3ad", "", "", "", None, None, None, Aggregator(1, None, ""), (slave,))
    known = {("bond0", "eth0"): SlaveChurn(Churn.CHURNED, Churn.CHURNED, None, None)}
    got = [
        (labels, value)
        for spec, labels, value in metrics.samples(BondsReading((bond,), known))
        if spec is metrics.SLAVE_CHURNED
    ]
    assert got == [(("bond0", "eth0", "actor"), 0), (("bond0", "eth0", "partner"), 1)]
