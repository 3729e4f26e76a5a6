"""Every page through Grafana's own model (the official SDK for the release we name): no field and no word it hasn't."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.dashboards import DASHBOARDS, load
from support.grafana_schema import faults


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_grafanas_own_model_takes_every_field_and_word(path: Path) -> None:
    assert list(faults(load(path))) == []


PANELS: dict[str, dict[str, Any]] = {
    "state-timeline": {"options": {"mergeValues": True, "showValue": "never", "rowHeight": 0.85}},
    "bargauge": {"options": {"orientation": "horizontal", "displayMode": "basic", "showUnfilled": True}},
    "heatmap": {"options": {"calculate": False, "cellGap": 0, "yAxis": {"unit": "s", "axisPlacement": "left"}}},
    "table": {"options": {"showHeader": True, "cellHeight": "sm", "sortBy": [{"displayName": "x", "desc": True}]}},
    "stat": {"options": {"colorMode": "background", "graphMode": "area"}},
    "timeseries": {"options": {"tooltip": {"mode": "multi", "sort": "desc"}, "legend": {"displayMode": "table"}}},
}
"""One of each type that the library makes, right by the model."""


def _page(kind: str, panel: dict[str, Any]) -> dict[str, Any]:
    return {"title": "x", "panels": [{"type": kind, "title": "p", "targets": [], **panel}]}


@pytest.mark.parametrize("kind", PANELS)
def test_a_right_panel_is_taken_and_a_misspelt_option_noticed(kind: str) -> None:
    assert list(faults(_page(kind, PANELS[kind]))) == []
    option = next(iter(PANELS[kind]["options"]))
    misspelt = {"options": {option + "x": PANELS[kind]["options"][option]}}
    assert any(f"options.{option}x" in each for each in faults(_page(kind, misspelt)))


def _in_overrides(identity: str, value: Any) -> dict[str, Any]:
    rule = {"matcher": {"id": "byName", "options": "x"}, "properties": [{"id": identity, "value": value}]}
    return {"fieldConfig": {"defaults": {}, "overrides": [rule]}}


@pytest.mark.parametrize(
    ("kind", "panel", "said"),
    [
        ("timeseries", {"options": {"tooltip": {"mode": "all"}}}, "'all' is none of"),
        ("timeseries", {"fieldConfig": {"defaults": {"custom": {"lineWidht": 1}}}}, "custom.lineWidht"),
        ("timeseries", {"fieldConfig": {"defaults": {"thresholds": {"mode": "relative", "steps": []}}}}, "'relative'"),
        ("timeseries", {"fieldConfig": {"defaults": {"novalue": "none"}}}, "defaults.novalue"),
        ("timeseries", _in_overrides("custom.lineStyle", {"fill": "dashed"}), "'dashed' is none of"),
        ("timeseries", _in_overrides("custom.cellOptions", {"type": "auto"}), "custom.cellOptions"),
        ("table", _in_overrides("custom.alignment", "center"), "custom.alignment"),
        ("table", _in_overrides("units", "s"), "units"),
        ("stat", _in_overrides("custom.width", 10), "stat has no fields of its own"),
        ("table", {"transformations": [{"id": "organise", "options": {}}]}, "no transformation is called organise"),
        ("table", {"transformations": [{"id": "organize", "options": {"exclude": {}}}]}, "options.exclude: unknown"),
        ("statetimeline", {}, "no panel is called statetimeline"),
    ],
)
def test_a_wrong_word_or_property_is_noticed(kind: str, panel: dict[str, Any], said: str) -> None:
    assert any(said in each for each in faults(_page(kind, panel)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda page: page.update(refreshh="1m"), ".refreshh"),
        (lambda page: page["templating"]["list"][1].update(allvalue=".*"), ".templating.list[1].allvalue"),
        (lambda page: page["annotations"]["list"][0].update(enabled=True), ".annotations.list[0].enabled"),
        (lambda page: page["panels"][0].update(descr="x"), ".panels[0].descr"),
        (lambda page: page["links"][0].update(keepVars=True), ".links[0].keepVars"),
    ],
)
def test_a_wrong_field_of_the_page_is_noticed(change: Callable[[dict[str, Any]], None], said: str) -> None:
    broken = copy.deepcopy(load(DASHBOARDS[0]))
    change(broken)
    assert any(each.startswith(said) for each in faults(broken))
