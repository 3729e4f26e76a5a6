"""What a site may change of each alert: severity, `for`, off, and a selector of what it tells of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rjsonnet

from support.programs import need
from support.promtool import run_tests
from support.rulefiles import Rule, RuleSet, load, name_of
from support.rules import ALERTS, ROOT, RULES

NAMES = sorted({rule["alert"] for group in load(ALERTS)["groups"] for rule in group["rules"]})
WITHOUT_SERIES = {"PlumblineWatchdog", "PlumblineTargetsAbsent"}
"""They judge what is not there: no label to select by."""


def site_of(alerts: dict[str, Any]) -> str:
    changes = ", ".join(f"{name}+: {json.dumps(changed)}" for name, changed in alerts.items())
    return f"{{ _config+:: {{ alerts+: {{ {changes} }} }} }}"


def evaluated(expression: str, alerts: dict[str, Any]) -> Any:
    """Jsonnet's answer about ``m``, the mixin with a site's changes. All rules take seconds, what is asked for less."""
    source = f"local m = (import {json.dumps(str(ROOT / 'mixin.libsonnet'))}) + {site_of(alerts)}; {expression}"
    return json.loads(rjsonnet.evaluate_snippet("test", source))


def alert(name: str, changed: dict[str, Any]) -> Rule:
    """One alert as a site has it."""
    (rule,) = evaluated(
        f"[rule for group in m.prometheusAlerts.groups for rule in group.rules if rule.alert == '{name}']",
        {name: changed},
    )
    return rule


def render(folder: Path, alerts: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """``alerts``: name → what the site changes of its tunables."""
    (folder / "site.libsonnet").write_text(site_of(alerts), "utf-8")
    site = ["--site", folder / "site.libsonnet", "--out", folder / "out"]
    argv = [sys.executable, ROOT / "render.py", "--only", "rules", *site]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def rendered(folder: Path, alerts: dict[str, Any]) -> RuleSet:
    done = render(folder, alerts)
    assert done.returncode == 0, done.stderr
    return RuleSet.read(folder / "out" / "plumbline-rules.yaml", folder / "out" / "plumbline-alerts.yaml")


def test_every_alert_has_tunables_and_every_tunable_an_alert() -> None:
    assert sorted(evaluated("std.objectFields(m._config.alerts)", {})) == NAMES


@pytest.mark.parametrize("every", [0, 1])
def test_switched_off_they_are_gone_and_no_other(tmp_path: Path, every: int) -> None:
    """Each second one, then the others."""
    before, off = RuleSet.read(RULES, ALERTS).rules(), set(NAMES[every::2])
    after = rendered(tmp_path, {name: {"enabled": False} for name in off}).rules()
    assert after == [rule for rule in before if name_of(rule) not in off]


def test_a_group_without_alerts_is_gone() -> None:
    names = "[group.name for group in m.prometheusAlerts.groups]"
    before, after = evaluated(names, {}), evaluated(names, {"PlumblineFindingOpen": {"enabled": False}})
    assert after == [name for name in before if name != "plumbline-finding"]
    assert len(after) == len(before) - 1


def test_every_alert_takes_a_selector_and_stays_one_that_prometheus_reads(tmp_path: Path) -> None:
    selector = r'cluster="north", instance!~"stor9.*|a\\.b", cluster!="so{u}th, \"x\"", cluster=~"n.+"'
    rules = rendered(tmp_path, {name: {"selector": selector} for name in NAMES if name not in WITHOUT_SERIES})
    done = subprocess.run(
        [need("promtool"), "check", "rules", tmp_path / "out" / "plumbline-alerts.yaml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for rule in rules.rules():
        if "alert" in rule and rule["alert"] not in WITHOUT_SERIES:
            assert rule["expr"].count('"plumbline_selected", "yes"') == 8, "a mark and its counterpart each"


@pytest.mark.parametrize(
    ("selector", "heard"),
    [
        ('instance="stor01.example:10047"', {"stor01.example:10047"}),
        ('instance!="stor01.example:10047"', {"stor02.example:10047"}),
        ('instance="stor01.exampleX10047"', set()),
        ('instance=~"stor0[12].+"', {"stor01.example:10047", "stor02.example:10047"}),
        ('instance=~"stor0"', set()),
        ('instance!~".*02.*"', {"stor01.example:10047"}),
        ('cluster="north", instance!~"stor01.*"', {"stor02.example:10047"}),
        ('cluster="north", cluster="south"', set()),
        ('device=""', {"stor01.example:10047", "stor02.example:10047"}),
        ('device!=""', set()),
        ('device!~"loop.*"', {"stor01.example:10047", "stor02.example:10047"}),
    ],
)
def test_a_selector_means_what_it_means_in_promql(tmp_path: Path, selector: str, heard: set[str]) -> None:
    """On an alert whose expression ends in a comparison of two aggregations, which no selector could reach."""
    rule = alert("PlumblineTcpRetransmits", {"selector": selector})
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "one", "rules": [rule]}]}), "utf-8")
    series, expected = [], []
    for instance in ("stor01.example:10047", "stor02.example:10047"):
        labels = f'cluster="north",instance="{instance}",job="plumbline"'
        series += [
            {"series": f"plumbline_tcp_segments_retransmitted_total{{{labels}}}", "values": "0+12x99"},
            {"series": f'plumbline_tcp_segments_total{{{labels},direction="transmit"}}', "values": "0+600x99"},
        ]
        if instance in heard:
            labels = f'cluster="north", instance="{instance}", layer="network", severity="warning", signal="loss"'
            firing = f'ALERTS{{alertname="PlumblineTcpRetransmits", alertstate="firing", {labels}}}'
            expected.append({"labels": firing, "value": 1})
    test = {
        "interval": "30s",
        "input_series": series,
        "promql_expr_test": [
            {"expr": 'ALERTS{alertname="PlumblineTcpRetransmits"}', "eval_time": "40m", "exp_samples": expected}
        ],
    }
    file = tmp_path / "test.json"
    document = {"rule_files": ["rules.json"], "evaluation_interval": "1m", "tests": [test]}
    file.write_text(json.dumps(document), "utf-8")
    assert run_tests(file) == ""


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("PlumblineDwon", {"enabled": False}, "there is no alert PlumblineDwon"),
        ("PlumblineDown", {"enable": False}, "PlumblineDown: enable is no tunable"),
        ("PlumblineDown", {"selector": "cluster=north"}, "it ends too early; write it as"),
        ("PlumblineDown", {"selector": ""}, "it ends too early"),
        ("PlumblineDown", {"selector": '1a="x"'}, '"1a" is no label'),
        ("PlumblineDown", {"selector": 'a="x" b="y"'}, "a comma has to stand between"),
        ("PlumblineDown", {"selector": 'a"x"'}, "no =, !=, =~ or !~ before a value"),
        ("PlumblineDown", {"selector": 'a="x\\n"'}, "are escapes"),
        ("PlumblineDown", {"selector": 'layer="self"'}, "layer is the same in all of this alert"),
        ("PlumblineWatchdog", {"selector": 'a="x"'}, "has no labels of its own"),
        ("PlumblineTargetsAbsent", {"selector": 'job="x"'}, "plumblineSelector"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, name: str, changed: dict[str, Any], said: str) -> None:
    done = render(tmp_path, {name: changed})
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_severity_and_for_are_the_sites() -> None:
    rule = alert("PlumblineTcpRetransmits", {"severity": "critical", "for": "1h", "keepFiringFor": "2h"})
    assert (rule["labels"]["severity"], rule["for"], rule["keep_firing_for"]) == ("critical", "1h", "2h")


def test_alerts_that_share_numbers_are_changed_one_by_one() -> None:
    severities = dict(
        evaluated(
            "[[rule.alert, rule.labels.severity] for group in m.prometheusAlerts.groups for rule in group.rules]",
            {"PlumblineNicRingDrops": {"severity": "info", "enabled": False}},
        )
    )
    assert severities["PlumblineNicFifoDrops"] == severities["PlumblineNicRingSmall"] == "warning"


def test_one_line_raises_every_ticket_to_a_page(tmp_path: Path) -> None:
    """Of those with several severities too; what is a page stays one, and information stays information."""
    before = RuleSet.read(RULES, ALERTS).rules()
    tickets = {name_of(rule) for rule in before if rule.get("labels", {}).get("severity") == "warning"}
    assert {"PlumblineDiskHung", "PlumblineProbeStuck", "PlumblineDown", "PlumblineCephHealth"} <= tickets
    after = rendered(tmp_path, {name: {"severity": "critical"} for name in tickets}).rules()
    for was, now in zip(before, after, strict=True):
        if was.get("labels", {}).get("severity") == "warning":
            was["labels"]["severity"] = "critical"
        assert now == was
