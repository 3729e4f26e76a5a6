"""Every query parses, names only metrics and labels that exist, and can fill every legend, column and link."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import labelflow, promql
from support.dashboards import (
    DASHBOARDS,
    GRAFANAS,
    data_panels,
    expressions,
    label_values,
    load,
    placeholders,
    substitute,
    variables,
)
from support.offenders import for_every
from support.panelfields import annotation_faults, legend_faults, link_faults, table_faults
from support.programs import need


@pytest.fixture(params=DASHBOARDS, ids=lambda path: path.stem)
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    return load(request.param)


def _queried_variables(dashboard: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Variable → (selector, label)."""
    found = variables(dashboard).items()
    return {name: label_values(each["query"]) for name, each in found if each["type"] == "query"}


def test_every_query_parses(dashboard: dict[str, Any], tmp_path: Path) -> None:
    asked = [expr for _, expr in expressions(dashboard)]
    asked += [selector for selector, _ in _queried_variables(dashboard).values()]
    rules = [{"record": f"panel:query:{n}", "expr": substitute(expr)} for n, expr in enumerate(asked)]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run([need("promtool"), "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_every_metric_and_label_exists(dashboard: dict[str, Any]) -> None:
    known = labelflow.known()
    wrong = [f"{where}: {each}" for where, expr in expressions(dashboard) for each in _faults(expr, known)]
    for name, (selector, label) in _queried_variables(dashboard).items():
        wrong += [f"${name}: {each}" for each in _faults(selector, known)]
        if label not in labelflow.of(promql.parse(selector), known):
            wrong.append(f"${name}: {selector} has no label {label}")
    assert wrong == []


def test_every_variable_of_a_query_is_there_and_every_variable_is_used(dashboard: dict[str, Any]) -> None:
    has = variables(dashboard)
    used = {"datasource"}
    for where, expr in expressions(dashboard):
        asked = placeholders(expr)
        assert asked <= has.keys() | GRAFANAS.keys(), where
        used |= asked
    for index, (name, each) in enumerate(has.items()):
        if each["type"] == "query":
            asked = placeholders(each["query"])
            assert asked <= set(list(has)[:index]), f"${name} asks for what comes after it"
            used |= asked
    assert has.keys() - used == set()


def test_legends_columns_and_links_speak_of_what_is_there(dashboard: dict[str, Any]) -> None:
    wrong = [
        f"{panel['title']}: {each}"
        for panel in data_panels(dashboard)
        for faults in (legend_faults, link_faults, *([table_faults] if panel["type"] == "table" else []))
        for each in faults(panel)
    ]
    for annotation in dashboard["annotations"]["list"]:
        wrong += [f"annotation {annotation['name']}: {each}" for each in annotation_faults(annotation)]
    assert wrong == []


GROUPED_ALIKE = {
    "plumbline:capacity_osd_location:info: group by root: not there",
    "plumbline:capacity_osd_location:info: group by rack: not there",
    "plumbline:capacity_lost_with:info: count by root: not there",
    "plumbline:capacity_lost_with:info: group by root: not there",
    "plumbline:capacity_lost_with:info: unless on|ignoring root: not there on both sides",
    "plumbline:capacity_pool:info: group by device_class: not there",
}
"""Where one of several alternatives (``or``) lacks a label that others have: grouped alike on purpose, it is empty."""


def test_the_rules_name_only_what_exists_too() -> None:
    known = labelflow.known()
    wrong = {
        f"{rule.get('record') or rule['alert']}: {each}"
        for rule in labelflow.committed_rules()
        for each in _faults(rule["expr"], known)
    }
    assert wrong - GROUPED_ALIKE == set()
    assert GROUPED_ALIKE - wrong == set(), "no longer so"


def _faults(expr: str, known: labelflow.Labels) -> list[str]:
    return list(labelflow.faults(promql.parse(expr), known))


METRICS: labelflow.Labels = {
    "a": frozenset({"cluster", "instance", "device"}),
    "b": frozenset({"cluster", "osd"}),
    "h_bucket": frozenset({"cluster", "device", "le"}),
}


@for_every(
    ("query", "labels"),
    [
        ("a", "cluster instance device"),
        ('a{device=""}', "cluster instance"),
        ("sum(a)", ""),
        ("sum by (cluster, device) (rate(a[$__rate_interval]))", "cluster device"),
        ("sum (a) without (instance)", "cluster device"),
        ("topk(3, a)", "cluster instance device"),
        ('count_values("version", a)', "version"),
        ("a / b", "cluster"),
        ("a / on (cluster) group_left (osd) b", "cluster instance device osd"),
        ("b * on (cluster) group_right a > 3", "cluster instance device"),
        ("a * on (cluster) b", "cluster"),
        ("a and on (cluster) b", "cluster instance device"),
        ("a or b", "cluster instance device osd"),
        ("3 * a offset 1d > bool 0", "cluster instance device"),
        ("-sum by (device) (a) ^ 2 ^ 2 or vector(0)", "device"),
        ("histogram_quantile(0.99, sum by (le, device) (rate(h_bucket[5m])))", "device"),
        ('label_replace(a, "disk", "$1", "device", "(.+)")', "cluster instance device disk"),
        ("max_over_time(a[1d:5m])", "cluster instance device"),
        ("max_over_time((a > 3)[1d:5m] @ end())", "cluster instance device"),
        ('absent(a{device="sda"})', "device"),
        ("scalar(a) + time() - 1.5e3", ""),
        ("count by (cluster) (a == 0x1f) # why", "cluster"),
        ("a > bool 3 and a", "cluster instance device"),
    ],
)
def test_the_labels_of_a_result_are_known(query: str, labels: str) -> None:
    tree = promql.parse(query)
    assert labelflow.of(tree, METRICS) == frozenset(labels.split())
    assert list(labelflow.faults(tree, METRICS)) == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("c", "c: no such metric"),
        ('a{disk="x"}', "a has no label disk"),
        ("sum by (disk) (a)", "sum by disk: not there"),
        ("sum by (device) (sum by (cluster) (a))", "sum by device: not there"),
        ("a / on (device) b", "/ on|ignoring device: not there on both sides"),
        ("a * on (cluster) group_left (disk) b", "group_left (disk): not there"),
        ('label_replace(a, "x", "$1", "disk", "(.+)")', "label_replace from disk: not there"),
        ("sum without (disk) (a)", "sum without disk: not there"),
    ],
)
def test_a_name_that_nothing_has_is_noticed(query: str, said: str) -> None:
    assert said in list(labelflow.faults(promql.parse(query), METRICS))


@pytest.mark.parametrize("query", ["sum(", "a{b}", "a +", "sum by device (a)", "a[5m", "a ! b", "rate(a[5m]) b", ""])
def test_what_is_no_promql_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match=r"expected|no PromQL"):
        promql.parse(query)


def test_rules_may_read_each_other_in_any_order() -> None:
    rules = [
        {"record": "last", "expr": "max by (cluster, device) (first)"},
        {"record": "first", "expr": "sum by (cluster, device) (a)", "labels": {"layer": "disk"}},
        {"record": "kept", "expr": "first or kept offset 1m"},
        {"alert": "Bad", "expr": "last > 1", "labels": {"severity": "warning"}},
    ]
    known = labelflow.of_rules(METRICS, rules)
    assert known["last"] == {"cluster", "device"}
    assert known["first"] == known["kept"] == {"cluster", "device", "layer"}
    assert known["ALERTS"] == {"alertname", "alertstate", "severity", "cluster", "device"}


def _panel(kind: str = "timeseries", **fields: Any) -> dict[str, Any]:
    target = {"expr": 'sum by (device) (plumbline_disk_info{cluster=~"$cluster"})', "legendFormat": "", "refId": "A"}
    config = {"defaults": {}, "overrides": []}
    return {"type": kind, "title": "x", "targets": [target], "fieldConfig": config, "options": {}, **fields}


def _link(url: str) -> dict[str, Any]:
    return {"defaults": {"links": [{"title": "Open", "url": f"/d/x?{url}"}]}, "overrides": []}


def test_a_legend_that_cannot_be_filled_is_noticed() -> None:
    panel = _panel()
    panel["targets"][0]["legendFormat"] = "{{device}} {{disk}}"
    assert list(legend_faults(panel)) == ["{{device}} {{disk}}: disk isn't among device"]


def test_a_link_to_a_label_or_column_that_is_not_there_is_noticed() -> None:
    assert list(link_faults(_panel(fieldConfig=_link("var-device=${__field.labels.device}")))) == []
    assert list(link_faults(_panel(fieldConfig=_link("var-device=${__field.labels.disk:percentencode}")))) == [
        "Open: a series without the label disk"
    ]
    hidden = [{"id": "organize", "options": {"excludeByName": {"device": True}}}]
    column = _link("var-device=${__data.fields.device:percentencode}")
    assert list(link_faults(_panel("table", fieldConfig=column))) == []
    assert list(link_faults(_panel("table", fieldConfig=column, transformations=hidden))) == ["Open: no column device"]


def test_a_column_that_is_not_there_is_noticed() -> None:
    organised = [{"id": "organize", "options": {"renameByName": {"device": "disk", "Value #A": "n"}}}]
    assert list(table_faults(_panel("table", transformations=organised))) == ["renameByName Value #A: no such column"]
    sorted_ = _panel("table", transformations=[], options={"sortBy": [{"displayName": "disk"}]})
    assert list(table_faults(sorted_)) == ["disk: no column is called so"]
    joined = [{"id": "joinByField", "options": {"byField": "serial", "mode": "outer"}}]
    assert list(table_faults(_panel("table", transformations=joined))) == ["joinByField serial: not in every query"]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("a", True),
        ("max by (device) (a)", False),
        ("topk(3, a)", True),
        ("a > 3", True),
        ("a > bool 3", False),
        ("a * 2", False),
        ("a and on (cluster) b", True),
        ("max(a) or b", True),
        ("rate(a[5m])", False),
        ('label_replace(a, "x", "", "", "")', True),
    ],
)
def test_a_result_with_its_metrics_name_is_known(query: str, kept: bool) -> None:
    assert labelflow.keeps_name(promql.parse(query)) is kept


def test_a_table_that_shows_the_metrics_name_is_noticed() -> None:
    panel = _panel("table", transformations=[{"id": "merge", "options": {}}])
    panel["targets"] = [{**panel["targets"][0], "expr": expr, "refId": ref} for expr, ref in (("up", "A"), ("up", "B"))]
    assert [each.partition(":")[0] for each in table_faults(panel)] == ["a column __name__"]
