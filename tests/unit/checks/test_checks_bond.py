"""Bonds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from plumbline.checks.model import Keep, Severity
from plumbline.checks.network.bonds import degraded, not_aggregated, one_card, speed_unknown, unmonitored
from plumbline.checks.network.facts import NetworkFacts, Nic
from plumbline.sources.net.bonding import Bond, Churn, LacpState, Slave
from support.facts import only


def slave(
    device: str,
    up: bool | None = None,
    aggregator: int | None = None,
    partner: bool | None = None,
    churned: bool = False,
) -> Slave:
    return Slave(
        device,
        active=None,
        up=up,
        link_failures=None,
        aggregator_id=aggregator,
        actor=None if partner is None else LacpState(0) if partner else LacpState.DEFAULTED,
        partner_churn=Churn.CHURNED if churned else None,
    )


A, B = slave("ens1f0", True, 1, True), slave("ens1f1", True, 1, True)


def host(*slaves: Slave, mode: str = "802.3ad", miimon_ms: int | None = 100) -> NetworkFacts:
    return NetworkFacts(bonds=(Bond("bond0", mode, "", "", "", miimon_ms, None, None, None, slaves),))


@pytest.mark.parametrize("check", [degraded, not_aggregated])
def test_nothing_known_says_nothing(check) -> None:
    assert only(check, NetworkFacts()) is None
    assert only(check, host()) is None
    assert only(check, host(slave("ens1f0"), slave("ens1f1"))) is None


@pytest.mark.parametrize("check", [degraded, not_aggregated, unmonitored])
def test_met(check) -> None:
    found = only(check, host(A, B))
    assert found is not None
    assert (found.met, found.subject) == (True, "bond0")


@pytest.mark.parametrize(
    ("up", "severity", "command"),
    [
        ((True, False), Severity.WARNING, "ip link set dev ens1f1 up"),
        ((False, False), Severity.CRITICAL, "ip link set dev ens1f0 up; ip link set dev ens1f1 up"),
    ],
)
def test_degraded(up: tuple[bool, bool], severity: Severity, command: str) -> None:
    found = only(degraded, host(slave("ens1f0", up[0]), slave("ens1f1", up[1]), mode="active-backup"))
    assert found is not None
    assert (found.met, found.severity) == (False, severity)
    assert found.fix is not None
    assert found.fix.now == command


@pytest.mark.parametrize(
    ("slaves", "actual"),
    [
        ((A, slave("ens1f1", True, 2, True)), "2 aggregators, of which one carries all the traffic"),
        (
            (slave("ens1f0", True, 1, False), slave("ens1f1", True, 1, False)),
            "no LACP partner on ens1f0, ens1f1",
        ),
        ((A, slave("ens1f1", True, 1, True, True)), "churned: ens1f1"),
    ],
)
def test_not_aggregated(slaves: tuple[Slave, ...], actual: str) -> None:
    found = only(not_aggregated, host(*slaves))
    assert found is not None
    assert (found.met, found.severity, found.actual) == (False, Severity.WARNING, actual)
    assert found.fix is not None
    assert found.fix.now == "cat /proc/net/bonding/bond0"


def test_a_member_that_is_down_is_in_no_aggregator_and_that_is_said_elsewhere() -> None:
    found = only(not_aggregated, host(A, slave("ens1f1", False, 2, False, True)))
    assert found is not None
    assert found.met


def test_other_modes_do_not_aggregate() -> None:
    assert only(not_aggregated, host(A, slave("ens1f1", True, 2, False), mode="active-backup")) is None


def test_unmonitored() -> None:
    assert only(unmonitored, host(A, B, miimon_ms=None)) is None
    found = only(unmonitored, host(A, B, miimon_ms=0))
    assert found is not None
    assert found.fix is not None
    assert found.fix.now == "ip link set dev bond0 type bond miimon 100"
    assert found.fix.keep == Keep("/etc/network/interfaces", f"up {found.fix.now}", "in the stanza of bond0")


def test_a_member_that_is_up_without_a_speed() -> None:
    """In active-backup nothing else shows it; what a hypervisor emulates has none."""
    bond = host(
        slave("ens1f0", True), slave("ens1f1", True), slave("ens1f2", False), slave("tap0", True), mode="active-backup"
    )
    nics = (
        Nic("ens1f0", "ixgbe", "0000:3b:00.0", up=True, speed_mbps=10_000),
        Nic("ens1f1", "ixgbe", "0000:3b:00.1", up=True),
        Nic("ens1f2", "ixgbe", "0000:3b:00.2"),
        Nic("tap0", "virtio_net", "virtio0", up=True),
    )
    verdicts = list(speed_unknown.findings(replace(bond, nics=nics)))
    assert [(found.subject, found.met) for found in verdicts] == [("ens1f0", True), ("ens1f1", False)]
    assert verdicts[1].actual == "up in bond0, with unknown speed"


@pytest.mark.parametrize(
    ("second", "met", "actual"),
    [
        ("0000:3b:00.1", False, "all 2 members on card 0000:3b:00"),
        ("0000:3c:00.0", True, "members on two cards"),
        ("", None, ""),
    ],
)
def test_members_on_one_card(second: str, met: bool | None, actual: str) -> None:
    nics = (
        Nic("ens1f0", driver="ice", bus="0000:3b:00.0", up=True),
        Nic("ens1f1", driver="ice", bus=second, up=True),
    )
    found = only(one_card, NetworkFacts(nics=nics, bonds=host(A, B).bonds))
    assert (found and found.met) is met
    if found:
        assert (found.subject, found.actual) == ("bond0", actual)
        assert (found.fix.now if found.fix else None) == (None if met else "lspci -s 0000:3b:00")


def test_a_bond_of_one_port_is_on_one_card_by_nature() -> None:
    nics = (Nic("ens1f0", driver="ice", bus="0000:3b:00.0", up=True),)
    assert only(one_card, NetworkFacts(nics=nics, bonds=host(A).bonds)) is None
