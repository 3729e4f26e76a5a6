"""Every ratio to a small figure has a floor in the figure's unit, or a reason why not: microseconds make any ratio.

A ratio is what an alert compares, directly or through what rules record from it. ``FLOORED`` says where its floor is,
by rule and text of the rule's expression; ``WITHOUT`` says why a ratio needs none.
"""

from __future__ import annotations

from support import promql
from support.paces import metrics_of
from support.rules import ALERTS, RULES, rules_of

FLOORED = {
    "plumbline:degradation:ratio": {
        "PlumblineProbeLatencyHigh": "plumbline:baseline_in_force:floor_ratio",
        "plumbline:degradation_beyond:bool": "plumbline:baseline_in_force:floor_ratio",
    },
    "plumbline:degradation_fast:ratio": {"plumbline:canary_limit:ratio": "plumbline:baseline_in_force:floor_ratio"},
    "plumbline:canary_hour:ratio": {"plumbline:canary_slow:info": "plumbline:baseline_in_force:floor_ratio"},
    "plumbline:canary_day:ratio": {"plumbline:canary_slow:info": "plumbline:baseline_in_force:floor_ratio"},
    "plumbline:canary_extreme:ratio": {"plumbline:canary_extreme:ratio": "min by"},
    "plumbline:degradation_long:ratio": {"PlumblineCanaryLatencyHigh": "plumbline:baseline_in_force:floor_ratio"},
    "plumbline:disk_latency_peers:ratio": {
        "PlumblineDiskLatencyOutlier": "plumbline:disk_latency:p99_seconds >= 0.001"
    },
    "plumbline:disk_mean_equals:ratio": {"PlumblineDiskLatencyOutlier": "plumbline:disk_model:figure"},
    "plumbline:disk_latency_past:ratio": {
        "PlumblineDiskLatencyRegressed": 'plumbline:disk_hour:figure{figure="latency"} >= 0.001'
    },
    "plumbline:osd_class:ratio": {"plumbline:osd_slow:info": "0.15 * min by"},
    "plumbline:osd_equals:ratio": {"plumbline:osd_slow:info": "1 * plumbline:osd_class:figure"},
    "plumbline:gateway_latency_past:ratio": {"PlumblineGatewayLatencyHigh": ">= 0.001"},
    "plumbline:gateway_latency_peers:ratio": {"PlumblineGatewayLatencyHigh": ">= 0.001"},
    "plumbline:canary_slow_level:ratio": {
        "PlumblineCanaryBudgetBurn": 'plumbline:canary_latency:seconds{statistic="p99"'
    },
    "plumbline:canary_slow_operations:ratio": {
        "PlumblineCanaryBudgetBurn": 'plumbline:canary_latency:seconds{statistic="p99"'
    },
    "plumbline:canary_load:ratio": {"plumbline:canary_load:ratio": "plumbline:canary_load_floor:figure"},
    "plumbline:canary_load_growth:ratio": {"plumbline:canary_load_growth:ratio": "clamp_min"},
}
WITHOUT = {
    "plumbline:canary_failed_operations:ratio": "a share of operations that failed",
    "plumbline:canary_drift:ratio": "hours against the same hours of other days: what a host adds by itself is in both",
    "plumbline:canary_expected:ratio": "what is usual, not what is judged",
    "plumbline:canary_season:ratio": "what is usual",
    "plumbline:canary_limit:ratio": "has the floor in it",
    "plumbline:canary_near:ratio": "half of the way to a limit that has the floor in it",
    "plumbline:canary_usual_peak:ratio": "what is usual; it only takes back",
    "plumbline:fleet_beyond:ratio": "a share of parts",
    "plumbline:pcie_link:ratio": "of lanes and speeds",
    "plumbline:osd_cpu_throttled:ratio": "a share of periods",
    "plumbline:osd_write_share:ratio": "a share of an operation",
    "plumbline:osd_read_share:ratio": "a share of an operation",
    "plumbline:osd_database_used:ratio": "a share of a device",
    "plumbline:osd_capacity:ratio": "of two capacities, of which none is small",
    "plumbline:osd_equals_limit:ratio": "a limit",
    "plumbline:disk_mean_limit:ratio": "a limit",
    "plumbline:disk_wear:ratio": "a share of a disk's life",
    "plumbline:baseline_in_force:tolerance_ratio": "a limit",
    "plumbline:baseline_in_force:floor_ratio": "is the floor",
    "plumbline:degradation_median_of_three:ratio": "judged with the latest run, which has the floor",
    "plumbline:canary_spread:ratio": "how far a ratio strays; raises a limit",
    "plumbline:fleet_spread:ratio": "how far a ratio strays; raises a limit",
    "plumbline:canary_slow_usual:ratio": "what is usual",
    "plumbline:canary_upper:ratio": "what is usual",
    "plumbline:canary_job:ratio": "what is usual",
    "plumbline:canary_drift_limit:ratio": "a limit",
    "plumbline:canary_tolerated:ratio": "a limit",
    "plumbline:fleet_outgrown:ratio": "raises a limit; its alert asks for clearly more load too",
}


def compared() -> set[str]:
    """Recorded ratios that some alert or rule compares with a limit."""
    found = set()
    for rule in rules_of(RULES) + rules_of(ALERTS):
        for node, _ in promql.walk(promql.parse(rule["expr"])):
            if isinstance(node, promql.Binary) and node.operator in promql.COMPARISONS:
                found |= {each.metric for each in promql.selectors(node) if each.metric.endswith("ratio")}
    return {name for name in found if name.startswith("plumbline:") and "capacity_" not in name and "pool_" not in name}


def test_every_ratio_that_is_judged_has_a_floor_or_a_reason() -> None:
    assert compared() ^ (FLOORED.keys() | WITHOUT.keys()) == set()


def test_every_floor_stands_in_its_rule() -> None:
    rules = rules_of(RULES) + rules_of(ALERTS)
    for ratio, name, text in ((ratio, *floor) for ratio, floors in FLOORED.items() for floor in floors.items()):
        expressions = [rule["expr"] for rule in rules if name in (rule.get("record"), rule.get("alert"))]
        assert any(text in expr for expr in expressions), (ratio, name)
        assert any(ratio in metrics_of(rule["expr"]) for rule in rules), ratio
