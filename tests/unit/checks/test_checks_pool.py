"""Monitors: three and odd. Pools: three copies, none served from the last, neither few nor many placement groups."""

from __future__ import annotations

import pytest

from plumbline.checks.model import Finding, Severity, judge
from plumbline.checks.pool import CHECKS, copies, monitors, placement_groups
from plumbline.sources.ceph.cephmap import MIXED, CephMap, OsdInMap, Place, Pool, Rule, parse_cephmap
from support.ceph_map import answers

RULE, HDD = Rule("default", "", "host"), Rule("default", "hdd", "host")


def osds(number: int, device_class: str = "hdd", reweight: float = 1.0, weight: float = 1.0) -> tuple[OsdInMap, ...]:
    place = Place(device_class, "default", "", "h", weight)
    return tuple(OsdInMap(f"osd.{osd}", reweight, place, True) for osd in range(number))


def pool(pgs: int, *, rule: Rule = HDD, size: int = 3, autoscaled: bool = False, name: str = "vms") -> Pool:
    return Pool(4, name, "replicated", rule, size, 2, 3.0, pgs=pgs, autoscaled=autoscaled)


def cephmap(*pools: Pool, here: tuple[OsdInMap, ...] = (), number: int | None = None) -> CephMap:
    return CephMap(0.0, here, pools, {}, monitors=number)


@pytest.mark.parametrize(
    ("size", "minimum", "now"),
    [
        (3, 2, None),
        (4, 2, None),
        (3, 1, "ceph osd pool set 'my vms' min_size 2"),
        (2, 2, "ceph osd pool set 'my vms' size 3"),
        (2, 1, "ceph osd pool set 'my vms' size 3 && ceph osd pool set 'my vms' min_size 2"),
        (1, 1, "ceph osd pool set 'my vms' size 3 && ceph osd pool set 'my vms' min_size 2"),
    ],
)
def test_a_replicated_pool(size: int, minimum: int, now: str | None) -> None:
    (finding,) = judge((copies,), cephmap(Pool(4, "my vms", "replicated", RULE, size, minimum, 3.0)))
    assert (finding.subject, finding.actual) == ("pool my vms", f"size {size}, min_size {minimum}")
    assert (finding.fix.now if finding.fix else None) == now
    assert finding.met is (now is None)


def test_erasure_coded_pools_have_other_rules() -> None:
    assert judge((copies,), cephmap(Pool(4, "archive", "erasure", RULE, 3, 2, 1.5))) == ()


@pytest.mark.parametrize(
    ("number", "severity", "actual"),
    [
        (1, Severity.WARNING, "1 monitor"),
        (2, Severity.WARNING, "2 monitors"),
        (3, None, "3 monitors"),
        (4, Severity.INFO, "4 monitors"),
        (5, None, "5 monitors"),
    ],
)
def test_monitors_are_three_and_odd(number: int, severity: Severity | None, actual: str) -> None:
    (finding,) = judge((monitors,), cephmap(number=number))
    assert (finding.actual, finding.met) == (actual, severity is None)
    assert finding.severity is (severity or Severity.WARNING)


def test_the_monitors_of_an_answer() -> None:
    assert parse_cephmap(answers(), read_ts=1.0).monitors == 3


def groups(*pools: Pool, here: tuple[OsdInMap, ...]) -> list[tuple[str, str, bool, Severity]]:
    findings: tuple[Finding, ...] = judge((placement_groups,), cephmap(*pools, here=here))
    return [(each.subject, each.actual, each.met, each.severity) for each in findings]


@pytest.mark.parametrize(
    ("pgs", "autoscaled", "actual", "met", "severity"),
    [
        (64, False, "19 on an OSD", False, Severity.INFO),
        (64, True, "19 on an OSD", True, Severity.WARNING),
        (166, False, "50 on an OSD", False, Severity.INFO),  # 49.8
        (167, False, "50 on an OSD", True, Severity.WARNING),  # 50.1
        (833, True, "250 on an OSD", True, Severity.WARNING),  # 249.9
        (834, True, "250 on an OSD", False, Severity.WARNING),  # 250.2
    ],
)
def test_few_and_many_groups(pgs: int, autoscaled: bool, actual: str, met: bool, severity: Severity) -> None:
    """On ten OSDs, each group with three copies."""
    assert groups(pool(pgs, autoscaled=autoscaled), here=osds(10)) == [("class hdd", actual, met, severity)]


def test_osds_that_are_out_or_without_weight_hold_none() -> None:
    here = (*osds(5), *osds(5, reweight=0.0), *osds(5, weight=0.0))
    assert groups(pool(100), here=here) == [("class hdd", "60 on an OSD", True, Severity.WARNING)]


def test_a_pool_without_a_class_is_spread_by_weight() -> None:
    """Of 100 copies, the three hdd get 75 by their weight, the one ssd 25 beside 40 of its own pool."""
    own = pool(20, rule=Rule("default", "ssd", "host"), size=2, name="fast")
    found = groups(pool(50, rule=RULE, size=2), own, here=(*osds(3), *osds(1, "ssd")))
    assert [row[:2] for row in found] == [("class hdd", "25 on an OSD"), ("class ssd", "65 on an OSD")]


def test_a_rule_of_several_classes_is_not_judged() -> None:
    assert groups(pool(8, rule=Rule("default", MIXED, "host")), here=osds(3)) == []


def test_the_groups_of_a_real_answer() -> None:
    """Ceph 16.2: pools of 8 groups, not autoscaled."""
    findings = judge((placement_groups,), parse_cephmap(answers(), read_ts=1.0))
    assert {each.met for each in findings} == {False}


def test_without_a_map_nothing_is_judged() -> None:
    assert judge(CHECKS, None) == ()
