"""Bonds."""

from __future__ import annotations

import pytest

from plumbline.checks.facts import Bond, BondMember, NetworkFacts
from plumbline.checks.model import Keep, Severity
from plumbline.checks.network.bond import DEGRADED, NOT_AGGREGATED, UNMONITORED
from support.facts import only

A, B = BondMember("ens1f0", True, 1, True, False), BondMember("ens1f1", True, 1, True, False)


def host(*members: BondMember, mode: str = "802.3ad", monitored: bool | None = True) -> NetworkFacts:
    return NetworkFacts(bonds=(Bond("bond0", mode, monitored, members),))


@pytest.mark.parametrize("check", [DEGRADED, NOT_AGGREGATED])
def test_nothing_known_says_nothing(check) -> None:
    assert only(check, NetworkFacts()) is None
    assert only(check, host()) is None
    assert only(check, host(BondMember("ens1f0"), BondMember("ens1f1"))) is None


@pytest.mark.parametrize("check", [DEGRADED, NOT_AGGREGATED, UNMONITORED])
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
    found = only(DEGRADED, host(BondMember("ens1f0", up[0]), BondMember("ens1f1", up[1]), mode="active-backup"))
    assert found is not None
    assert (found.met, found.severity) == (False, severity)
    assert found.fix is not None
    assert found.fix.now == command


@pytest.mark.parametrize(
    ("members", "is_"),
    [
        ((A, BondMember("ens1f1", True, 2, True)), "2 aggregators, of which one carries all the traffic"),
        (
            (BondMember("ens1f0", True, 1, False), BondMember("ens1f1", True, 1, False)),
            "no LACP partner on ens1f0, ens1f1",
        ),
        ((A, BondMember("ens1f1", True, 1, True, True)), "churned: ens1f1"),
    ],
)
def test_not_aggregated(members: tuple[BondMember, ...], is_: str) -> None:
    found = only(NOT_AGGREGATED, host(*members))
    assert found is not None
    assert (found.met, found.severity, found.is_) == (False, Severity.WARNING, is_)
    assert found.fix is not None
    assert found.fix.now == "cat /proc/net/bonding/bond0"


def test_a_member_that_is_down_is_in_no_aggregator_and_that_is_said_elsewhere() -> None:
    found = only(NOT_AGGREGATED, host(A, BondMember("ens1f1", False, 2, False, True)))
    assert found is not None
    assert found.met


def test_other_modes_do_not_aggregate() -> None:
    assert only(NOT_AGGREGATED, host(A, BondMember("ens1f1", True, 2, False), mode="active-backup")) is None


def test_unmonitored() -> None:
    assert only(UNMONITORED, host(A, B, monitored=None)) is None
    found = only(UNMONITORED, host(A, B, monitored=False))
    assert found is not None
    assert found.fix is not None
    assert found.fix.now == "ip link set dev bond0 type bond miimon 100"
    assert found.fix.keep == Keep("/etc/network/interfaces", "bond-miimon 100", "in the stanza of bond0")
