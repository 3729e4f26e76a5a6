"""The receive path: which of its three settings, and when."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from plumbline.checks.growth import Count
from plumbline.checks.model import Keep, Severity
from plumbline.checks.network.facts import NetworkFacts, SoftnetCpu
from plumbline.checks.network.receive import backlog_overflow, squeeze_by_budget, squeeze_by_time
from support.facts import NIC, only, sysctls
from support.metrics import ROOT

SYSCTLS = {
    "net.core.netdev_budget": (300,),
    "net.core.netdev_budget_usecs": (8000,),
    "net.core.netdev_max_backlog": (1000,),
}
FILE = "/etc/sysctl.d/90-storage-network.conf"


def host(*cpus: SoftnetCpu, **changed: int) -> NetworkFacts:
    settings = {**SYSCTLS, **{f"net.core.{name}": (value,) for name, value in changed.items()}}
    return NetworkFacts(window_s=2.0, softnet=cpus, sysctl=sysctls(settings), nics=(NIC,))


def squeezed(total: int, grew: int | None, **more: Count) -> SoftnetCpu:
    return SoftnetCpu(3, Count(10**9, 10**6), Count(0, 0), Count(total, grew), **more)


@pytest.mark.parametrize("check", [squeeze_by_budget, squeeze_by_time])
def test_a_squeeze_seen_once_says_nothing(check) -> None:
    assert only(check, host(squeezed(2_651_334, None))) is None


@pytest.mark.parametrize("check", [squeeze_by_budget, squeeze_by_time, backlog_overflow])
def test_a_setting_that_is_not_known_is_not_changed(check) -> None:
    cpu = SoftnetCpu(0, Count(9, 9), Count(5, 5), Count(5, 5), Count(3, 3), Count(2, 2))
    assert only(check, replace(host(cpu), sysctl=sysctls({}))) is None


@pytest.mark.parametrize("check", [squeeze_by_budget, squeeze_by_time, backlog_overflow])
def test_quiet_is_met(check) -> None:
    found = only(check, host(squeezed(0, 0)))
    assert found is not None
    assert found.met


def test_old_squeezes_are_no_reason() -> None:
    found = only(squeeze_by_budget, host(squeezed(2_651_334, 0)))
    assert found is not None
    assert found.met


def test_squeezed_by_budget() -> None:
    facts = host(squeezed(90, 50, squeezed_by_budget=Count(40, 40), squeezed_by_time=Count(0, 0)))
    found = only(squeeze_by_budget, facts)
    assert found is not None
    assert (found.met, found.severity) == (False, Severity.INFO)
    assert found.subject == "net.core.netdev_budget"
    assert found.actual == "300, 40 turns recently cut short by it on CPU 3"
    assert found.fix is not None
    assert found.fix.now == "sysctl -w net.core.netdev_budget=600"
    assert found.fix.keep == Keep(FILE, "net.core.netdev_budget = 600")
    other = only(squeeze_by_time, facts)
    assert other is not None
    assert other.met


def test_squeezed_by_time_asks_for_the_other_setting() -> None:
    facts = host(squeezed(90, 50, squeezed_by_budget=Count(0, 0), squeezed_by_time=Count(40, 40)))
    found = only(squeeze_by_time, facts)
    assert found is not None
    assert found.actual == "8000 µs, 40 turns recently cut short by it on CPU 3"
    assert found.fix is not None
    assert found.fix.now == "sysctl -w net.core.netdev_budget_usecs=16000"
    assert found.fix.keep == Keep(FILE, "net.core.netdev_budget_usecs = 16000")
    other = only(squeeze_by_budget, facts)
    assert other is not None
    assert other.met


def test_a_loss_beside_it_makes_it_a_warning() -> None:
    facts = host(squeezed(90, 50, squeezed_by_budget=Count(40, 40)))
    found = only(squeeze_by_budget, replace(facts, nics=(replace(NIC, ring_drops=Count(9, 9)),)))
    assert found is not None
    assert found.severity is Severity.WARNING


def test_who_can_not_tell_the_limits_apart_gets_the_documented_one_and_is_told() -> None:
    found = only(squeeze_by_budget, host(squeezed(90, 50)))
    assert found is not None
    assert found.actual == "300, 50 turns recently cut short on CPU 3"
    assert "netdev_budget_usecs may be the cause instead" in found.why
    assert only(squeeze_by_time, host(squeezed(90, 50))) is None


def test_too_few_packets_for_the_budget_to_have_been_used_up() -> None:
    # 50 turns of 300 packets are 15,000; this CPU has processed 3,000
    cpu = SoftnetCpu(0, Count(10**6, 3000), Count(0, 0), Count(90, 50))
    budget, time = only(squeeze_by_budget, host(cpu)), only(squeeze_by_time, host(cpu))
    assert budget is not None
    assert time is not None
    assert (budget.met, time.met) == (True, False)


def test_a_budget_is_not_doubled_for_ever() -> None:
    facts = host(squeezed(90, 50, squeezed_by_budget=Count(40, 40)), netdev_budget=2400)
    found = only(squeeze_by_budget, facts)
    assert found is not None
    assert found.fix is not None
    assert "irqbalance" in found.fix.now
    assert found.fix.keep is None


def dropped(total: int, grew: int | None) -> SoftnetCpu:
    return SoftnetCpu(1, Count(10**6, 100), Count(total, grew), Count(0, 0))


@pytest.mark.parametrize(
    ("cpu", "backlog", "met", "severity", "actual"),
    [
        (dropped(213, 17), 1000, False, Severity.WARNING, "1,000, 17 packets dropped recently on CPU 1"),
        (dropped(213, 17), 4000, False, Severity.WARNING, "4,000, 17 packets dropped recently on CPU 1"),
        (dropped(213, 0), 1000, False, Severity.INFO, "1,000, 213 packets dropped since boot on CPU 1"),
        (dropped(213, None), 4000, False, Severity.INFO, "4,000, 213 packets dropped since boot on CPU 1"),
        (dropped(213, 0), 4000, True, Severity.WARNING, "4,000, 213 packets dropped since boot, none recently"),
        (dropped(0, 0), 1000, True, Severity.WARNING, "1,000, nothing dropped since boot"),
    ],
)
def test_backlog(cpu: SoftnetCpu, backlog: int, met: bool, severity: Severity, actual: str) -> None:
    found = only(backlog_overflow, host(cpu, netdev_max_backlog=backlog))
    assert found is not None
    assert (found.met, found.severity, found.actual) == (met, severity, actual)
    if not met:
        assert found.fix is not None
        assert found.fix.now == f"sysctl -w net.core.netdev_max_backlog={backlog * 2}"
        assert found.fix.keep == Keep(FILE, f"net.core.netdev_max_backlog = {backlog * 2}")


def test_the_runbook_doubles_the_queue_like_the_check() -> None:
    runbook = (ROOT / "alerts/runbooks/PlumblineSoftnetBacklogOverflow.md").read_text()
    assert re.findall(r"sysctl -w net.core.netdev_max_backlog=(.+)'", runbook) == [
        "$((2 * $(sysctl -n net.core.netdev_max_backlog)))"
    ]
    assert "NAPI bypass it" in backlog_overflow.why


def test_a_host_of_many_cpus_is_told_of_in_one_line() -> None:
    cpus = [SoftnetCpu(cpu, Count(9, 9), Count(2, 2), Count(0, 0)) for cpu in range(256)]
    found = only(backlog_overflow, host(*cpus))
    assert found is not None
    assert found.actual == "1,000, 512 packets dropped recently on CPU 0, 1, 2, 3 and 252 more"


def test_a_turn_cut_off_now_and_then_is_no_finding() -> None:
    cpu = squeezed(900, 300, squeezed_by_budget=Count(300, 300), squeezed_by_time=Count(0, 0))
    found = only(squeeze_by_budget, replace(host(cpu), window_s=3600.0))
    assert found is not None
    assert (found.met, found.actual) == (True, "300, 300 turns recently cut short by it")
    found = only(squeeze_by_budget, replace(host(cpu), window_s=600.0))
    assert found is not None
    assert not found.met


def test_what_somebody_made_smaller_than_the_default_goes_back_to_it() -> None:
    facts = host(
        SoftnetCpu(0, Count(10**6, 10**5), Count(9, 9), Count(90, 50), Count(50, 50)),
        netdev_budget=1,
        netdev_max_backlog=10,
    )
    fixes = [only(check, facts) for check in (squeeze_by_budget, backlog_overflow)]
    assert [each.fix.now for each in fixes if each and each.fix] == [
        "sysctl -w net.core.netdev_budget=300",
        "sysctl -w net.core.netdev_max_backlog=1000",
    ]
