"""Every window over scraped series holds as many samples as its function needs, at each scrape interval that is in use.

A window holds ``floor(window / interval)`` samples at least, whatever the phase of the scrapes. ``rate`` and its like
say nothing of one sample, and the rules above them then judge nothing, without an error anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from support import promql
from support.paces import Paces, seconds
from support.promql import Call, Selector
from support.rules import ALERTS, RULES, rules_of

OF_TWO = {"rate", "irate", "increase", "delta", "idelta", "deriv", "predict_linear", "changes", "resets"}
JUDGED = "plumbline:degradation_fast:ratio"
"""What PlumblineCanaryUnjudged misses."""
SLOW = {
    "plumbline:canary_latency_fast:seconds": 60,
    "plumbline:degradation_fast:ratio": 60,
    "plumbline:canary_attempts_fast:ops_per_second": 60,
    "plumbline:canary_slow_operations:ratio": 60,
    "plumbline:canary_failed_operations:ratio": 60,
    "plumbline:canary_load:figure": 60,
}
"""Rules that say nothing at scrapes of 60 s, with the seconds of their window."""


@pytest.fixture(scope="module")
def rules() -> list[Mapping[str, Any]]:
    return [*rules_of(RULES), *rules_of(ALERTS)]


def windows(expr: str, recorded: Mapping[str, float]) -> Iterator[tuple[str, float, int]]:
    """(metric, seconds, samples that its function needs) of each window over a scraped series."""
    for node, above in promql.walk(promql.parse(expr)):
        if not isinstance(node, Selector) or not node.window or node.metric in recorded:
            continue
        call = next((each for each in reversed(above) if isinstance(each, Call)), None)
        assert call is not None, expr
        yield node.metric, seconds(node.window), 2 if call.function in OF_TWO else 1


def blind(rules: list[Mapping[str, Any]], recorded: Mapping[str, float], interval_s: float) -> dict[str, float]:
    """Rules with a window that may hold too few samples: the shortest such window of each, in seconds."""
    found: dict[str, float] = {}
    for rule in rules:
        for _, window_s, needed in windows(rule["expr"], recorded):
            if window_s // interval_s < needed:
                name = rule.get("record") or rule["alert"]
                found[name] = min(found.get(name, window_s), window_s)
    return found


@pytest.mark.parametrize("interval_s", [15, 30])
def test_every_rule_works_at_this_scrape_interval(rules: list[Mapping[str, Any]], interval_s: int) -> None:
    assert blind(rules, Paces.read().recorded, interval_s) == {}


def test_only_known_rules_need_faster_scrapes_than_every_minute(rules: list[Mapping[str, Any]]) -> None:
    assert blind(rules, Paces.read().recorded, 60) == SLOW


def test_an_alert_tells_of_each_scrape_interval_that_blinds_a_rule(rules: list[Mapping[str, Any]]) -> None:
    """What the alert waits for goes blind no later than any other rule."""
    recorded = Paces.read().recorded
    (alert,) = (rule for rule in rules if rule.get("alert") == "PlumblineCanaryUnjudged")
    assert JUDGED in {each.metric for each in promql.selectors(promql.parse(alert["expr"]))}
    needs = [
        (rule.get("record") or rule["alert"], window_s / needed)
        for rule in rules
        for _, window_s, needed in windows(rule["expr"], recorded)
    ]
    assert min(each for name, each in needs if name == JUDGED) == min(each for _, each in needs)


def test_the_alert_itself_sees_scrapes_of_every_two_minutes(rules: list[Mapping[str, Any]]) -> None:
    (alert,) = (rule for rule in rules if rule.get("alert") == "PlumblineCanaryUnjudged")
    assert blind([alert], Paces.read().recorded, 120) == {}


@pytest.mark.parametrize(
    ("expr", "interval_s", "found"),
    [
        ("rate(x[60s])", 30, {}),
        ("rate(x[60s])", 45, {"A": 60}),
        ("sum by (a) (rate(x[60s])) / rate(y[5m])", 60, {"A": 60}),
        ("max_over_time(x[60s])", 60, {}),
        ("max_over_time(x[50s])", 60, {"A": 50}),
        ("rate(plumbline:x[60s])", 60, {}),
        ("max_over_time(rate(x[60s])[1h:1m])", 60, {"A": 60}),
        ("x offset 1h", 60, {}),
    ],
)
def test_a_window_that_is_too_short_is_noticed(expr: str, interval_s: float, found: dict[str, float]) -> None:
    assert blind([{"alert": "A", "expr": expr}], {"plumbline:x": 60}, interval_s) == found
