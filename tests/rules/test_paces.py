"""An alert's inputs are as fast as the alert: promtool ignores the ``interval`` of groups, so these tests read them."""

from __future__ import annotations

from typing import Any

import pytest

from support import promql
from support.paces import EVALUATION, Paces, metrics_of, seconds

REFERENCES = {
    "plumbline:osd_home:info": "where an OSD was on the last day, for when its host is silent",
    "plumbline:osd:info": "an OSD's class, host and networks, which an alert takes its labels from",
    "plumbline:canary_limit:ratio": "follows hours and days; what is compared with it is fast",
    "plumbline:canary_near:ratio": "half of the way to that limit",
    "plumbline:canary_slow_usual:ratio": "the slowest hours of a week",
    "plumbline:canary_usual_peak:ratio": "the highest minutes of a week at this hour",
    "plumbline:canary_job:ratio": "what jobs made of this hour in the weeks before",
    "plumbline:fleet_outgrown:ratio": "whether a baseline describes the load: it follows days, on the first one hours",
    "plumbline:canary_load:ratio": "its own pace is a minute; only where an OSD's disks are is known more slowly",
}
"""What an alert compares with, not what it waits for: it may be older than the alert is fast. With the reason."""
AT_ONCE = {
    "PlumblineLatencyExplained": "holds back what begins with the very figures that it reads",
    "PlumblineCanaryReplicaSlow": "holds back what begins with the very verdicts that it reads",
    "PlumblineCanaryLatencyHigh": "what it reads has lasted for 9 minutes at least",
    "PlumblineDiskMediaErrors": "a counter over a day: no later evaluation knows more",
}
"""Alerts without ``for`` on slow figures, with the reason why one evaluation is enough."""


@pytest.fixture(scope="module")
def paces() -> Paces:
    return Paces.read()


def faults(paces: Paces) -> list[str]:
    """Every alert that needs faster inputs than it has."""
    return [
        f"{rule['alert']}: {fault}"
        for group in paces.groups
        for rule in group["rules"]
        if "alert" in rule
        for fault in _faults(paces, rule, paces.of_group(group))
    ] + [
        f"{rule.get('record') or rule['alert']}: {fault}"
        for group in paces.groups
        for rule in group["rules"]
        for fault in _windows(paces, rule["expr"])
    ]


def _faults(paces: Paces, rule: dict[str, Any], own: float) -> list[str]:
    slow = paces.slow_inputs(rule["expr"], EVALUATION, REFERENCES)
    slowest = max([own, *(paces.recorded[name] for name in slow)])
    wait = seconds(rule.get("for", ""))
    found = []
    if rule["labels"]["severity"] == "critical" and slowest > EVALUATION:
        found.append(f"a page reads what comes every {slowest:g} s: {sorted(slow)}")
    if 0 < wait < slowest:
        found.append(f"`for` of {wait:g} s is one evaluation of what comes every {slowest:g} s: {sorted(slow)}")
    if not wait and slowest > EVALUATION and rule["alert"] not in AT_ONCE:
        found.append(f"no `for`, and what it reads comes every {slowest:g} s: {sorted(slow)}")
    return found


def _windows(paces: Paces, expr: str) -> list[str]:
    """Ranges that hold fewer than two samples; changes of a series that is not recorded at each of them."""
    found = []
    for node, above in promql.walk(promql.parse(expr)):
        if isinstance(node, promql.Call) and node.function in {"changes", "resets"}:
            read = {selector.metric for selector in promql.selectors(node)}
            found += [
                f"{node.function}() sees no change between two samples of {metric}"
                for metric in sorted(read)
                if paces.pace(metric) > EVALUATION
            ]
        latest = bool(above) and isinstance(above[-1], promql.Call) and above[-1].function == "last_over_time"
        if (
            isinstance(node, promql.Selector)
            and not latest
            and node.metric in paces.recorded
            and 0 < seconds(node.window) < 2 * paces.pace(node.metric)
        ):
            found.append(f"{node.metric}[{node.window}] may hold one sample")
    return found


def test_every_alert_is_as_fast_as_its_inputs(paces: Paces) -> None:
    assert faults(paces) == []


def test_every_exception_is_needed(paces: Paces) -> None:
    read = {metric for group in paces.groups for rule in group["rules"] for metric in metrics_of(rule["expr"])}
    slow = {name for name in REFERENCES if paces.recorded[name] > EVALUATION} | {"plumbline:canary_load:ratio"}
    assert REFERENCES.keys() - (slow & read) == set()
    patient = {rule["alert"] for group in paces.groups for rule in group["rules"] if "alert" in rule and "for" in rule}
    assert AT_ONCE.keys() & patient == set()


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (
            {"expr": "changes(slow:x[1h]) > 5", "labels": {"severity": "warning"}, "for": "5m"},
            "changes() sees no change between two samples of slow:x",
        ),
        (
            {"expr": "above:x > 0", "labels": {"severity": "critical"}, "for": "5m"},
            "a page reads what comes every 120 s: ['slow:x']",
        ),
        (
            {"expr": "above:x > 0", "labels": {"severity": "warning"}, "for": "90s"},
            "`for` of 90 s is one evaluation of what comes every 120 s: ['slow:x']",
        ),
        (
            {"expr": "above:x > 0", "labels": {"severity": "warning"}},
            "no `for`, and what it reads comes every 120 s: ['slow:x']",
        ),
        (
            {"expr": "min_over_time(slow:x[3m]) > 0", "labels": {"severity": "warning"}, "for": "5m"},
            "slow:x[3m] may hold one sample",
        ),
        ({"expr": "above:x > 0", "labels": {"severity": "warning"}, "for": "2m"}, None),
    ],
)
def test_a_slow_input_is_noticed(rule: dict[str, Any], fault: str | None) -> None:
    groups: tuple[dict[str, Any], ...] = (
        {"name": "slow", "interval": "2m", "rules": [{"record": "slow:x", "expr": "x"}]},
        {"name": "above", "rules": [{"record": "above:x", "expr": "slow:x * 2"}, rule | {"alert": "A"}]},
    )
    assert faults(Paces(groups)) == ([] if fault is None else [f"A: {fault}"])


def test_durations():
    assert seconds("1h30m") == 5400
    assert seconds("90s") == 90
    assert seconds("500ms") == 0.5
    assert seconds("") == 0
