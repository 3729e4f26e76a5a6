"""The outlier rule on a synthetic host of twelve disks: what a mean hides it finds, and everyday life it lets pass."""

import json
from dataclasses import replace

import pytest

from support.disk_fleet import DAY_SECONDS, Fleet
from support.promtool import run_tests
from support.rulefiles import load
from support.rules import ALERTS, RULES

ALERT = "PlumblineDiskLatencyOutlier"
SLOW = 6  # sdg
AT = '{device="sdg", instance="stor01.example:10047", operation="read"}'


@pytest.fixture
def promtool(tmp_path):
    """``promtool(fleet, behaviour, exprs, at)`` → complaints; only the disk rules and this alert are evaluated."""
    groups = load(RULES)["groups"] + load(ALERTS)["groups"]
    rules = [each for each in groups if each["name"] in ("plumbline-disk.rules", "plumbline-disk-tail.rules")]
    (alert,) = (rule for group in groups for rule in group["rules"] if rule.get("alert") == ALERT)
    rules.append({"name": "outlier", "rules": [alert]})
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": rules}))

    def run(fleet, behaviour, exprs, at):
        case = {
            "rule_files": ["rules.yaml"],
            "evaluation_interval": f"{fleet.step_seconds}s",
            "group_eval_order": ["plumbline-disk.rules", "plumbline-disk-tail.rules", "outlier"],
            "tests": [
                {
                    "interval": f"{fleet.step_seconds}s",
                    "input_series": fleet.series(behaviour),
                    "promql_expr_test": [
                        {"expr": expr, "eval_time": at, "exp_samples": [{"labels": a, "value": b} for a, b in samples]}
                        for expr, samples in exprs
                    ],
                }
            ],
        }
        (tmp_path / "test.yaml").write_text(json.dumps(case))
        return run_tests(tmp_path / "test.yaml")

    return run


def test_a_twentieth_of_the_operations_twenty_times_slower(promtool):
    """The mean doubles, p99 goes far above 4 times its peers, and only the one disk is told."""
    fleet = Fleet(disks=12, duration_seconds=2 * 3600, step_seconds=60)

    def behaviour(number):
        for step, moment in enumerate(fleet.everyday(number)):
            ill = number == SLOW and step >= 60
            yield replace(moment, slow_share=0.05, slow_factor=20.0) if ill else moment

    mean = 'plumbline:disk_latency:mean_seconds{device="sdg"}'
    firing = f'ALERTS{{alertname="{ALERT}", alertstate="firing"}}'
    verdict = promtool(
        fleet,
        behaviour,
        [
            (f"count by (device) (count_over_time({firing}[2h]))", [('{device="sdg"}', 1)]),
            (f"count by (device) ({firing} offset 1h)", []),
            # a mean of twice the hour before: twins of another load differ by as much
            (f"avg_over_time({mean}[30m]) < bool 2.3 * avg_over_time({mean}[30m] offset 1h)", [(AT, 1)]),
            ('min_over_time(plumbline:disk_latency_peers:ratio{device="sdg"}[30m]) > bool 6', [(AT, 1)]),
        ],
        "2h",
    )
    assert verdict == ""


@pytest.mark.long
def test_an_everyday_week_alerts_nobody(promtool):
    fleet = Fleet(disks=12, duration_seconds=7 * DAY_SECONDS, step_seconds=120)
    verdict = promtool(
        fleet,
        fleet.everyday,
        [
            (f'count(count_over_time(ALERTS{{alertname="{ALERT}", alertstate="firing"}}[7d]))', []),
            # not for want of trying: hiccups do cross the threshold, for a while
            (f'count(count_over_time(ALERTS{{alertname="{ALERT}", alertstate="pending"}}[7d])) > bool 6', [("{}", 1)]),
        ],
        "10078m",
    )
    assert verdict == ""
