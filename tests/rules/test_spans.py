"""What is said of a whole span is said of one that was seen: a gap is no span.

The lowest, the median or the mean of a range holds with one sample before a gap and one after it. So a rule that judges
by one of these also counts the samples of the same range, or stands below with the reason why not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from support import promql
from support.paces import seconds
from support.promql import Call, Node, Selector, Subquery
from support.rules import ALERTS, RULES, rules_of

OVER_A_SPAN = {"min_over_time", "max_over_time", "avg_over_time", "sum_over_time", "quantile_over_time"}
SLACK = 15
"""Seconds that a range may be longer than the span that is counted (``canary.slackSeconds``)."""
SHARE = 0.7
"""``seen.share`` in the configuration."""
ONCE = "holds if it was so at any moment"
REFERENCE = "what is usual, from the values that there are; the figure compared with it is counted"
WEEKS = "the busiest of weeks, as long as there are any"
RESET = "the window in which a counter began at zero"
FORGOTTEN = "a flag that was never seen unset: whoever errs here announces less"
WITHOUT_A_COUNT = {
    ("plumbline:canary_spread:ratio", "plumbline:canary_residual:ratio"): REFERENCE,
    ("plumbline:fleet_spread:ratio", "plumbline:fleet_residual:ratio"): REFERENCE,
    ("plumbline:canary_expected:ratio", "plumbline:canary_hour:ratio"): REFERENCE,
    ("plumbline:canary_expected:ratio", "plumbline:canary_season:ratio"): REFERENCE,
    ("plumbline:canary_drift:ratio", "plumbline:canary_expected:ratio"): REFERENCE,
    ("plumbline:canary_drift_limit:ratio", "plumbline:canary_drift:ratio"): REFERENCE,
    ("plumbline:canary_upper:ratio", "plumbline:degradation_fast:ratio"): REFERENCE,
    ("plumbline:canary_job:ratio", "plumbline:canary_upper:ratio"): REFERENCE,
    ("plumbline:canary_job:ratio", "plumbline:canary_season:ratio"): REFERENCE,
    ("plumbline:canary_slow:info", "plumbline:canary_hour:ratio"): REFERENCE,
    ("plumbline:canary_slow_usual:ratio", "plumbline:canary_slow_level:ratio"): REFERENCE,
    ("plumbline:canary_queueing:info", "plumbline:disk_latency:mean_seconds"): REFERENCE,
    ("PlumblineGatewayErrors", "plumbline:gateway_hour:figure"): REFERENCE,
    ("plumbline:capacity_asked_busiest:iops", "plumbline:capacity_asked:iops"): WEEKS,
    ("plumbline:capacity_headroom:ratio", "plumbline:capacity_demand:ratio"): WEEKS,
    ("plumbline:capacity_recovery_rate:bytes_per_second", "plumbline:capacity_recovery:bytes_per_second"): WEEKS,
    ("plumbline:capacity_asked:iops", "ceph_pool_rd"): RESET,
    ("plumbline:capacity_asked:iops", "ceph_pool_wr"): RESET,
    ("plumbline:capacity_pool_read_osds:count", "ceph_pool_rd"): RESET,
    ("plumbline:capacity_pool_read_osds:count", "ceph_pool_rd_bytes"): RESET,
    ("plumbline:capacity_demand:ratio", "ceph_pool_rd_bytes"): RESET,
    ("plumbline:capacity_demand:ratio", "ceph_pool_wr_bytes"): RESET,
    ("plumbline:canary_slow:info", "plumbline:recovery:bool"): ONCE,
    ("plumbline:canary_peak:ratio", "plumbline:degradation_fast:ratio"): ONCE,
    ("plumbline:canary_extreme:ratio", "plumbline:canary_load:ratio"): ONCE,
    ("PlumblineCanaryLatencyHigh", "plumbline:recovery:bool"): ONCE,
    ("PlumblineCanaryBudgetBurn", "plumbline:recovery:bool"): ONCE,
    ("PlumblineFleetLatencyHigh", "plumbline:recovery:bool"): ONCE,
    ("PlumblineBaselineOutgrown", "plumbline:fleet_outgrown:ratio"): ONCE,
    ("PlumblineNicLinkDown", "plumbline_nic_up"): ONCE,
    ("PlumblineDiskMediaErrors", "plumbline:disk_damage:count"): ONCE,
    ("PlumblineInfinibandPortDown", "plumbline_infiniband_port_state"): ONCE,
    ("PlumblineNicLinkDown", "plumbline:nic_place_up:bool"): ONCE,
    ("plumbline:maintenance_over:info", "plumbline:maintenance_node:info"): ONCE,
    ("plumbline:maintenance_noout:info", "ceph_osd_flag_noout"): FORGOTTEN,
}


def judged(tree: Node) -> Iterator[tuple[str, str, float]]:
    """(function, metric, seconds) of every range that something is said of."""
    for node, _ in promql.walk(tree):
        if isinstance(node, Call) and node.function in OVER_A_SPAN:
            of = node.arguments[-1]
            window = of.window if isinstance(of, Selector | Subquery) else ""
            for selector in promql.selectors(of):
                yield node.function, selector.metric, seconds(window.partition(":")[0])


def counted(tree: Node) -> Iterator[tuple[str, float]]:
    """(metric, seconds) of every range whose slots with a sample are counted, and enough of them asked for."""
    for node, _ in promql.walk(tree):
        if not isinstance(node, promql.Binary) or node.operator != ">=":
            continue
        match node.left, node.right:
            case Call("count_over_time", (Subquery(Call("last_over_time", (Selector() as series,)), window),)), least:
                span, slot = (seconds(each) for each in window.split(":"))
                assert isinstance(least, promql.Literal)
                assert seconds(series.window) == slot, "a slot without a sample counts"
                if int(least.text) >= math.ceil(SHARE * span / slot):
                    yield series.metric, span


def gaps(rules: list[dict[str, str]]) -> set[tuple[str, str]]:
    """(rule, metric) of what is said of spans that nobody counts."""
    found = set()
    for rule in rules:
        tree = promql.parse(rule["expr"])
        seen = set(counted(tree))
        found |= {
            (rule.get("record") or rule["alert"], metric)
            for _, metric, window in judged(tree)
            if not any(metric == other and span <= window <= span + SLACK for other, span in seen)
        }
    return found


def test_every_span_is_counted() -> None:
    found = gaps(rules_of(RULES) + rules_of(ALERTS))
    uncounted = found - WITHOUT_A_COUNT.keys()
    assert uncounted == set(), "count its samples (seen in alerts/lib/promql.libsonnet), or give the reason above"
    assert WITHOUT_A_COUNT.keys() - found == set(), "is counted, or is no rule any more"


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        ("min_over_time(x[10m]) > 1", {("A", "x")}),
        ("min_over_time(x[10m]) > 1 and x offset 10m", {("A", "x")}),
        ("min_over_time(x[10m]) > 1 and count_over_time(x[10m]) >= 14", {("A", "x")}),
        ("min_over_time(x[607s]) > 1 and count_over_time(last_over_time(x[30s])[10m:30s]) >= 14", set()),
        ("min_over_time(x[607s]) > 1 and count_over_time(last_over_time(x[30s])[10m:30s]) >= 13", {("A", "x")}),
        ("min_over_time(x[20m]) > 1 and count_over_time(last_over_time(x[30s])[10m:30s]) >= 14", {("A", "x")}),
        ("min_over_time(x[607s]) > 1 and count_over_time(last_over_time(y[30s])[10m:30s]) >= 14", {("A", "x")}),
    ],
)
def test_a_gap_is_noticed(expr: str, found: set[tuple[str, str]]) -> None:
    assert gaps([{"alert": "A", "expr": expr}]) == found
