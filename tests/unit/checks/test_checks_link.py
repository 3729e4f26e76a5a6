"""Speed, duplex, MTU, offloads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plumbline.checks.model import Severity
from plumbline.checks.network.facts import Nic
from plumbline.checks.network.link import (
    OFFLOADS,
    below_capability,
    half_duplex,
    mtu_differs,
    networks_apart,
    offloads_off,
)
from plumbline.sources.net import features
from plumbline.sources.net.linkmodes import LinkModes
from support.facts import LOOPBACK, NIC, VIRTUAL, on, only

SLOW = replace(NIC, speed_mbps=1_000)
HALF = LinkModes(full_duplex=False)
CLUSTER = frozenset({"ceph_cluster"})


@pytest.mark.parametrize(
    "nic",
    [
        LOOPBACK,
        VIRTUAL,
        replace(VIRTUAL, speed_mbps=1_000, modes=LinkModes(max_speed_mbps=10_000)),
        replace(SLOW, up=False),
        replace(SLOW, modes=LinkModes()),
        replace(SLOW, speed_mbps=None),
    ],
)
def test_speed_does_not_apply(nic: Nic) -> None:
    assert only(below_capability, on(nic)) is None


@pytest.mark.parametrize(
    ("nic", "met", "severity"),
    [
        (NIC, True, Severity.WARNING),
        (SLOW, False, Severity.WARNING),
        (replace(SLOW, storage=None), False, Severity.WARNING),
        (replace(SLOW, storage=False), False, Severity.INFO),
    ],
)
def test_speed(nic: Nic, met: bool, severity: Severity) -> None:
    found = only(below_capability, on(nic))
    assert found is not None
    assert (found.met, found.severity) == (met, severity)
    if not met:
        assert (found.actual, found.expected) == ("1 Gb/s", "10 Gb/s, the fastest the port can do")
        assert found.fix is not None
        assert found.fix.now == "ethtool -s ens2f0 autoneg on"


@pytest.mark.parametrize("nic", [LOOPBACK, VIRTUAL, replace(NIC, modes=LinkModes()), replace(NIC, up=False)])
def test_duplex_does_not_apply(nic: Nic) -> None:
    assert only(half_duplex, on(nic)) is None


@pytest.mark.parametrize(
    ("nic", "met", "severity"),
    [
        (NIC, True, Severity.CRITICAL),
        (replace(NIC, modes=HALF), False, Severity.CRITICAL),
        (replace(NIC, modes=HALF, storage=None), False, Severity.CRITICAL),
        (replace(NIC, modes=HALF, storage=False), False, Severity.WARNING),
    ],
)
def test_duplex(nic: Nic, met: bool, severity: Severity) -> None:
    found = only(half_duplex, on(nic))
    assert found is not None
    assert (found.met, found.severity) == (met, severity)
    if not met:
        assert found.actual == "half duplex"
        assert found.fix is not None
        assert found.fix.now == "ethtool -s ens2f0 autoneg on"


def test_no_mtu_is_wrong_by_itself() -> None:
    assert only(mtu_differs, on(VIRTUAL, LOOPBACK)) is None
    assert only(mtu_differs, on(NIC, replace(NIC, device="ens2f1", mtu_bytes=9000))) is None, (
        "nobody knows the networks"
    )
    assert only(mtu_differs, on(replace(NIC, roles=CLUSTER))) is None, "one interface has nobody to differ from"


def test_two_networks_may_differ() -> None:
    one = replace(NIC, roles=CLUSTER, mtu_bytes=9000)
    other = replace(NIC, device="ens2f1", roles=frozenset({"ceph_public"}))
    assert only(mtu_differs, on(one, other)) is None


def test_the_same_mtu_is_met() -> None:
    one = replace(NIC, roles=CLUSTER)
    found = list(mtu_differs.findings(on(one, replace(one, device="ens2f1"))))
    assert [(each.subject, each.met) for each in found] == [("ens2f0", True), ("ens2f1", True)]


def test_one_without_jumbo_frames_among_those_with_them() -> None:
    one = replace(NIC, roles=CLUSTER, mtu_bytes=9000)
    bad, good = mtu_differs.findings(on(one, replace(one, device="ens2f1", mtu_bytes=1500)))
    assert (good.subject, good.met) == ("ens2f0", True)
    assert (bad.subject, bad.actual, bad.expected) == ("ens2f1", "1500 (ceph_cluster)", "9000, as on ens2f0")
    assert bad.fix is not None
    assert bad.fix.now == "ip link set dev ens2f1 mtu 9000"
    assert bad.fix.keep is not None
    assert (bad.fix.keep.content, bad.fix.keep.place) == (
        "up ip link set dev ens2f1 mtu 9000",
        "in the stanza of ens2f1",
    )
    assert "ping -M do -c 3 -s 8972 -I ens2f0 <peer>" in bad.fix.caution


def test_vlans_of_two_networks_on_one_bond_may_differ() -> None:
    public, both = frozenset({"ceph_public"}), CLUSTER | {"ceph_public"}
    vlans = (
        replace(NIC, device="bond0.10", roles=public, mtu_bytes=1500),
        replace(NIC, device="bond0.20", roles=CLUSTER, mtu_bytes=9000),
    )
    bond = replace(NIC, device="bond0", roles=both, carries=frozenset({"bond0.10", "bond0.20"}), mtu_bytes=9000)
    port = replace(bond, device="ens1", carries=bond.carries | {"bond0"})
    assert [each for each in mtu_differs.findings(on(*vlans, bond, port)) if not each.met] == []
    short = replace(port, mtu_bytes=1500)
    (found,) = (each for each in mtu_differs.findings(on(*vlans, bond, short)) if not each.met)
    assert (found.subject, found.expected) == ("ens1", "9000, as on bond0.20")


@pytest.mark.parametrize(
    "nic", [LOOPBACK, replace(VIRTUAL, offloads={"scatter-gather": False}), replace(NIC, offloads={})]
)
def test_offloads_do_not_apply(nic: Nic) -> None:
    assert only(offloads_off, on(nic)) is None


def test_offloads() -> None:
    met = only(offloads_off, on(NIC))
    assert met is not None
    assert met.met
    off = {"tcp-segmentation-offload": False, "generic-receive-offload": False, "scatter-gather": True}
    found = only(offloads_off, on(replace(NIC, offloads=off)))
    assert found is not None
    assert (found.met, found.severity) == (False, Severity.INFO)
    assert found.actual == "off: tcp-segmentation-offload, generic-receive-offload"
    assert found.fix is not None
    assert found.fix.now == "ethtool -K ens2f0 tso on gro on"


def test_what_is_off_by_default_may_stay_off() -> None:
    off = {"large-receive-offload": False, "ntuple-filters": False, "udp-fragmentation-offload": False}
    assert only(offloads_off, on(replace(NIC, offloads=off))) is None


def test_every_offload_that_is_judged_is_one_that_is_read() -> None:
    assert OFFLOADS.keys() <= features.OFFLOADS.keys()


@pytest.mark.parametrize(
    ("roles", "speed_mbps", "met", "actual"),
    [
        ({"ceph_public", "ceph_cluster"}, 10_000, False, "10 Gb/s for both"),
        ({"ceph_public", "ceph_cluster"}, 25_000, None, ""),
        ({"ceph_public", "ceph_cluster"}, None, None, ""),
        ({"ceph_cluster"}, 10_000, True, "ceph_cluster"),
        (set(), 10_000, None, ""),
    ],
)
def test_two_networks_on_one_port(roles: set[str], speed_mbps: int | None, met: bool | None, actual: str) -> None:
    found = only(networks_apart, on(replace(NIC, roles=frozenset(roles), speed_mbps=speed_mbps)))
    assert (found and (found.met, found.actual)) == (None if met is None else (met, actual))
