"""Alerts about Ceph on pages that a real cluster served: each state held for a while, and exactly what must fire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.ceph_pages import Page, captured, held, scraped, served
from support.promtool import run_tests
from support.rulefiles import RuleSet, name_of
from support.rules import ALERTS, RULES

QUIET: dict[str, float] = {}
TARGETS = ({"instance": "mgr-x:9283", "job": "ceph"}, {"instance": "stor01:9926", "job": "ceph-exporter"})
"""Of the manager, of the ceph-exporter."""
FIRING = {
    # state → minutes it is held → what fires
    "healthy": {75: QUIET},
    "load-1": {75: QUIET},
    "read": {75: QUIET},
    # something is being copied
    "recovery": {75: QUIET},
    # redundancy covers it at first
    "osd-stopped": {
        14: QUIET,
        20: {'PlumblineCephOsdDown{ceph_daemon="osd.2"}': 1},
        75: {'PlumblineCephOsdDown{ceph_daemon="osd.2"}': 1, "PlumblineCephRecoveryStalled": 1},
    },
    # caught while all 16 placement groups peered, before Ceph found that one of them stays so (60 s)
    "degraded": {5: QUIET},
    # the other manager's first page: nothing is known yet
    "failover-early": {10: QUIET, 20: {"PlumblineCephPerfCountersMissing": 1}},
    "failover-after": {75: QUIET},
    "nearfull": {
        55: QUIET,
        75: {
            'PlumblineCephNearlyFull{name="OSD_NEARFULL"}': 1,
            'PlumblineCephNearlyFull{name="POOL_NEARFULL"}': 1,
        },
    },
    "full": {
        0: QUIET,
        5: {'PlumblineCephFull{name="OSD_FULL"}': 1, 'PlumblineCephFull{name="POOL_FULL"}': 1},
    },
    # the flag that was set for it is no news within the hour
    "slow-operations": {
        1: QUIET,
        75: {
            'PlumblineCephSlowOperations{ceph_daemon="osd.0"}': 1,
            'PlumblineCephSlowOperations{ceph_daemon="osd.1"}': 1,
        },
    },
    "inconsistent": {4: QUIET, 75: {'PlumblineCephDataDamaged{pool="rbd",state="inconsistent"}': 1}},
    # one copy is left and its placement groups still take operations: nobody's writes hang
    "two-osds-down": {
        75: {
            'PlumblineCephOsdDown{ceph_daemon="osd.1"}': 1,
            'PlumblineCephOsdDown{ceph_daemon="osd.2"}': 1,
            'PlumblineCephDataDamaged{pool="rbd",state="inconsistent"}': 1,
            "PlumblineCephRecoveryStalled": 1,
        }
    },
}
NAMED = ("healthy", "failover-early", "nearfull", "full", "slow-operations", "two-osds-down")
"""States that are held with a label ``cluster`` as well: every alert above, and one that is quiet."""


def fires(expected: dict[str, float], at_min: int) -> list[dict[str, Any]]:
    """These alerts and no other."""
    firing = 'ALERTS{alertstate="firing"}'
    cases = [{"expr": f"count({firing}) or vector(0)", "eval_time": f"{at_min}m",
              "exp_samples": [{"labels": "{}", "value": len(expected)}]}]  # fmt: skip
    for alert, count in expected.items():
        name, _, rest = alert.partition("{")
        matchers = f'alertname="{name}",alertstate="firing"' + (f",{rest[:-1]}" if rest else "")
        cases.append({"expr": f"count(ALERTS{{{matchers}}})", "eval_time": f"{at_min}m",
                      "exp_samples": [{"labels": "{}", "value": count}]})  # fmt: skip
    return cases


def run(folder, tests) -> str:
    # what no series of these pages feeds can't fire, and nobody asks for a text
    rules = RuleSet.read(RULES, ALERTS)
    fed = rules.fed(series["series"] for test in tests for series in test["input_series"])
    kept = rules.only(
        lambda rule: [rule | {"annotations": {}} if "alert" in rule else rule] if name_of(rule) in fed else []
    )
    groups = [each for each in kept["groups"] if each["name"].startswith(("plumbline-osd", "plumbline-ceph"))]
    (folder / "rules.yaml").write_text(json.dumps({"groups": groups}), "utf-8")
    order = [each["name"] for each in groups]
    assert {"plumbline-ceph-data", "plumbline-ceph-health", "plumbline-ceph-guard"} <= set(order)
    file = folder / "test.yaml"
    file.write_text(
        json.dumps(
            {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "group_eval_order": order, "tests": tests}
        ),
        "utf-8",
    )
    return run_tests(file)


def lasting(state: str, page: Page, expected: dict[int, dict[str, float]]) -> dict[str, Any]:
    series = held(page, 60, max(expected) + 1)
    cases = [case for at_min, what in expected.items() for case in fires(what, at_min)]
    return {"name": state, "interval": "1m", "input_series": series, "promql_expr_test": cases}


STUCK = {"name": "PG_AVAILABILITY", "severity": "HEALTH_WARN"}
"""The check that Ceph adds to a page once a placement group stayed inactive for 60 s."""
FIRING_ONCE_STUCK = {
    "degraded": {0: QUIET, 5: {'PlumblineCephPgUnavailable{pool="bench"}': 1}},
    "failover-early": {0: QUIET, 10: {'PlumblineCephPgUnavailable{pool="bench"}': 1}},
    # every group is active: the check alone is of what the counts do not have yet
    "healthy": {10: QUIET},
}
NEWER: dict[tuple[int, tuple[str, ...]], dict[int, dict[str, float]]] = {
    # the manager as it comes leaves the OSDs' counters to a ceph-exporter, and there is none
    (18, ("mgr-metrics",)): {14: QUIET, 20: {"PlumblineCephPerfCountersMissing": 1}},
    (18, ("mgr-metrics-counters",)): {30: QUIET},
    # caught while pools were being made, whose placement groups peered
    (20, ("mgr-metrics",)): {1: QUIET, 20: {"PlumblineCephPerfCountersMissing": 1}},
    (20, ("mgr-metrics", "exporter-metrics-load")): {20: QUIET},
    (20, ("mgr-metrics-counters",)): {30: QUIET},
    (20, ("mgr-metrics-counters", "exporter-metrics-load")): {30: QUIET},
}
"""Release, pages that are scraped together → minutes they are held → what fires."""


@pytest.mark.parametrize("cluster", ["", "north"])
def test_pages_of_newer_releases_fire_what_they_must_and_nothing_else(tmp_path, cluster):
    tests = []
    for (release, names), expected in NEWER.items():
        page: Page = {}
        for name in names:
            target = TARGETS[name.startswith("exporter")] | ({"cluster": cluster} if cluster else {})
            page |= _needed(scraped(served(release, name), **target))
        tests.append(lasting(f"{release} {' '.join(names)}", page, expected))
    assert not run(tmp_path, tests)


@pytest.mark.parametrize("cluster", ["", "north"])
def test_each_state_fires_what_it_must_and_nothing_else(tmp_path, cluster):
    labels = {"instance": "mgr-x:9283", "job": "ceph"} | ({"cluster": cluster} if cluster else {})
    states = NAMED if cluster else FIRING
    tests = [lasting(state, _needed(scraped(captured(state), **labels)), FIRING[state]) for state in states]
    assert not run(tmp_path, tests)


@pytest.mark.parametrize("cluster", ["", "north"])
def test_groups_that_peer_are_unavailable_once_ceph_says_that_one_stays_so(tmp_path, cluster):
    labels = {"instance": "mgr-x:9283", "job": "ceph"} | ({"cluster": cluster} if cluster else {})
    tests = []
    for state, what in FIRING_ONCE_STUCK.items():
        page = _needed(scraped(captured(state), **labels))
        check = tuple(sorted((labels | STUCK).items()))
        tests.append(lasting(state, page | {("ceph_health_detail", check): 1.0}, what))
    assert not run(tmp_path, tests)


def test_every_alert_is_held_with_a_cluster_too():
    named, everywhere = (
        {alert.partition("{")[0] for state in states for what in FIRING[state].values() for alert in what}
        for states in (NAMED, FIRING)
    )
    assert named == everywhere


def test_a_missing_and_a_needless_alert_are_noticed(tmp_path):
    labels = {"instance": "mgr-x:9283", "job": "ceph"}
    page = _needed(scraped(captured("full"), **labels))
    assert "OSD_FULL" not in run(tmp_path, [lasting("full", page, {5: FIRING["full"][5]})])
    assert "exp: {} 0" in run(tmp_path, [lasting("full", page, {5: QUIET})])
    calm = _needed(scraped(captured("healthy"), **labels))
    assert 'name=\\"OSD_FULL\\"' in run(tmp_path, [lasting("calm", calm, {5: FIRING["full"][5]})])


def _needed(page: Page) -> Page:
    """Without what no rule here reads: a third of the time."""
    keep = ("ceph_health", "ceph_pg_", "ceph_pool_", "ceph_osd_", "ceph_mon_q", "ceph_daemon_", "ceph_prometheus_",
            "ceph_exporter_")  # fmt: skip
    return {key: value for key, value in page.items() if key[0].startswith(keep)}
