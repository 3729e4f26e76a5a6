"""Grafana's dashboard-linter over every page; what it may not ask of a panel stands in ``exclusions.yaml``, argued."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.dashboards import DASHBOARDS, data_panels, load
from support.linter import PAGE, PAGE_RULES, PANEL_RULES, lint

EXCLUSIONS: list[dict[str, str]] = yaml.safe_load(Path(__file__).with_name("exclusions.yaml").read_text("utf-8")) or []


def _excluded(rule: str, dashboard: str, panel: str) -> bool:
    return any((each["rule"], each["dashboard"], each["panel"]) == (rule, dashboard, panel) for each in EXCLUSIONS)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_no_rule_is_broken(path: Path) -> None:
    breaches = [
        f"{each.rule}: {each.panel}: {each.text}"
        for each in lint(load(path))
        if not _excluded(each.rule, each.dashboard, each.panel)
    ]
    assert breaches == []


def test_every_exclusion_is_argued_and_needed() -> None:
    broken = {(each.rule, each.dashboard, each.panel) for path in DASHBOARDS for each in lint(load(path))}
    for each in EXCLUSIONS:
        assert set(each) == {"rule", "dashboard", "panel", "reason"}, each
        assert len(each["reason"]) > 30, each
        assert (each["rule"], each["dashboard"], each["panel"]) in broken, f"excuses nothing: {each}"


def _broken(page: dict[str, Any], rule: str) -> None:
    """Break exactly this rule, in the first panel where it is a panel's."""
    panel = next(data_panels(page))
    target = panel["targets"][0]
    variables = page["templating"]["list"]
    match rule:
        case "template-datasource":
            variables[0]["name"] = "source"
        case "template-cluster":
            variables[1]["allValue"] = None
        case "template-instance":
            page["templating"]["list"] = [each for each in variables if each["name"] != "instance"]
        case "template-label-promql":
            variables[1]["query"] = "label_values(up{, cluster)"
        case "template-on-time-change-reload":
            variables[1]["refresh"] = 1
        case "uneditable":
            page["editable"] = True
        case "panel-datasource":
            target["datasource"] = {"type": "prometheus", "uid": "P1809"}
        case "panel-title-description":
            panel["description"] = ""
        case "panel-units":
            panel["fieldConfig"]["defaults"]["unit"] = "milliseconds"
        case "panel-no-targets":
            panel["targets"] = []
        case "target-promql":
            target["expr"] = 'sum(up{cluster=~"$cluster", instance=~"$instance"}'
        case "target-rate-interval":
            target["expr"] = 'rate(x_total{cluster=~"$cluster", instance=~"$instance"}[5m])'
        case "target-cluster":
            target["expr"] = 'up{instance=~"$instance"}'
        case "target-instance":
            target["expr"] = 'sum(up{cluster=~"$cluster"})'
        case "target-counter-agg":
            target["expr"] = 'sum(x_total{cluster=~"$cluster", instance=~"$instance"})'
        case _:
            raise AssertionError(rule)


@pytest.mark.parametrize("rule", [*PAGE_RULES, *PANEL_RULES])
def test_each_rule_is_noticed_when_broken(rule: str) -> None:
    node = next(path for path in DASHBOARDS if path.stem == "plumbline-node")
    page = load(node)
    before = {(each.rule, each.panel) for each in lint(page)}
    broken = copy.deepcopy(page)
    _broken(broken, rule)
    where = PAGE if rule in PAGE_RULES else next(data_panels(page))["title"]
    assert {(each.rule, each.panel) for each in lint(broken)} - before == {(rule, where)}


def test_a_label_may_come_by_matching_and_a_counter_may_be_asked_for_alone() -> None:
    page = load(next(path for path in DASHBOARDS if path.stem == "plumbline-node"))
    ours = '{cluster=~"$cluster", instance=~"$instance"}'
    shown = copy.deepcopy(page)
    next(data_panels(shown))["targets"][0]["expr"] = f"up{ours} and on (cluster, instance) x_total"
    assert set(lint(shown)) == set(lint(page))
    next(data_panels(shown))["targets"][0]["expr"] = f"up{ours} or on (cluster, instance) x_total"
    assert {each.rule for each in set(lint(shown)) - set(lint(page))} == {
        "target-cluster",
        "target-instance",
        "target-counter-agg",
    }
