"""What a panel says without a series is true: words where nothing is known, a zero only where somebody counted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plumbline.metrics.default_page import NAMES
from support import promql
from support.dashboards import DASHBOARDS, Dashboard, Panel, data_panels, load, substitute, variables
from support.promtool import run_tests

PAGES = {path.stem.removeprefix("plumbline-"): load(path) for path in DASHBOARDS}
WATCHDOG = 'ALERTS{alertname="PlumblineWatchdog",alertstate="firing",severity="info"}'
"""It fires wherever the rules are evaluated."""
UNLOADED = -1e99
CLAIMS = {"none", "nothing", "nothing is copied", "no data", "ok", "0", ""}
"""What would call it well that nothing is known, or says no more than Grafana does by itself."""


def tiles(page: Dashboard) -> Iterator[tuple[Panel, str]]:
    """Every tile with its one query as Grafana sends it."""
    for panel in data_panels(page):
        if panel["type"] == "stat":
            (target,) = panel["targets"]
            yield panel, substitute(target["expr"])


def reads_rules(panel: Panel) -> bool:
    """Whether a panel's figures are recorded by rules, or alerts."""
    metrics = {
        each.metric
        for target in panel["targets"]
        for each in promql.selectors(promql.parse(target["expr"]))
        if promql.Matcher("alertname", "=", "PlumblineWatchdog") not in each.matchers
    }
    return any(":" in metric or metric.startswith("ALERTS") for metric in metrics)


def faults(panel: Panel) -> Iterator[str]:
    """What would let this panel say without a series that all is well, or nothing at all."""
    words = panel["fieldConfig"]["defaults"].get("noValue", "")
    if not words or words.lower() in {"no data"}:
        yield "no words for no series"
    if panel["type"] == "stat" and words.lower() in CLAIMS:
        yield f"{words!r}, though nothing is known"
    for target in panel["targets"]:
        for node, above in promql.walk(promql.parse(target["expr"])):
            if _is_constant(node) and _is_default(node, above):
                yield f"{target['refId']}: a constant stands for no series, and nothing proves that somebody looked"
    if panel["type"] == "table" and not _proven(panel):
        yield "no row says that the rules are not loaded, or that nobody looks"


def _is_constant(node: promql.Node) -> bool:
    return isinstance(node, promql.Call) and node.function == "vector"


def _is_default(node: promql.Node, above: tuple[promql.Node, ...]) -> bool:
    """On the right of an ``or`` whose left has series, unless those that prove something are what it lacks."""
    inner = node
    for outer in reversed(above):
        if isinstance(outer, promql.Binary):
            if (outer.operator, outer.on) == ("unless", ()) and inner is outer.left:
                return False
            if outer.operator == "or" and inner is outer.right and any(promql.selectors(outer.left)):
                return True
        inner = outer
    return False


def _proven(panel: Panel) -> bool:
    return any(
        isinstance(node, promql.Binary) and (node.operator, node.on) == ("unless", ()) and _is_constant(node.left)
        for target in panel["targets"]
        for node, _ in promql.walk(promql.parse(target["expr"]))
    )


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_no_panel_claims_what_nobody_looked_at(page: Dashboard) -> None:
    assert [f"{panel['title']}: {each}" for panel in data_panels(page) for each in faults(panel)] == []


def _tile(expr: str, words: str = "no daemon is scraped") -> Panel:
    return {
        "type": "stat",
        "fieldConfig": {"defaults": {"noValue": words}},
        "targets": [{"expr": expr, "refId": "A"}],
    }


@pytest.mark.parametrize(
    "expr",
    [
        "count(ALERTS) or vector(0)",
        "(sum(x) or vector(0)) + 1",
        "a or on () (b or vector(1))",
        'count(x) or on () label_replace(vector(0), "layer", "none", "", "")',
    ],
)
def test_a_constant_without_a_proof_is_noticed(expr: str) -> None:
    assert len(list(faults(_tile(expr)))) == 1


@pytest.mark.parametrize(
    "expr", ["count(x) or 0 * count(y)", "vector(1)", "x or on () (vector(-1) unless on () ALERTS)", "sum(x)"]
)
def test_a_proven_zero_a_line_and_words_are_none(expr: str) -> None:
    assert list(faults(_tile(expr))) == []


@pytest.mark.parametrize("words", ["", "No data", "none", "nothing is copied"])
def test_a_tile_without_true_words_is_noticed(words: str) -> None:
    assert list(faults(_tile("sum(x)", words)))


def test_a_table_without_a_proof_is_noticed() -> None:
    table = {**_tile("ALERTS", "none"), "type": "table"}
    assert list(faults(table)) == ["no row says that the rules are not loaded, or that nobody looks"]


def evaluated(folder: Path, given: list[dict[str, str]], expected: dict[str, list[dict[str, Any]]]) -> str:
    """Empty when in Prometheus each query has exactly these samples, else what differs."""
    cases = [{"expr": expr, "eval_time": "5m", "exp_samples": samples} for expr, samples in expected.items()]
    test = {"tests": [{"interval": "1m", "input_series": given, "promql_expr_test": cases}]}
    (folder / "test.yaml").write_text(json.dumps(test))
    return run_tests(folder / "test.yaml")


def mapped(panel: Panel, value: float) -> dict[str, Any]:
    """The word and the colour that a tile has for exactly this figure; none for most."""
    options = [each["options"] for each in panel["fieldConfig"]["defaults"]["mappings"] if each["type"] == "value"]
    return next((each[f"{value:g}"] for each in options if f"{value:g}" in each), {})


def _words(panel: Panel) -> list[dict[str, Any]]:
    """What a tile's query has where there is no series at all."""
    if not reads_rules(panel):
        return []
    shown = {"Layer to blame": "layer", "Suspected of": "verdict"}.get(panel["title"])
    return [{"labels": f'{{{shown}="rules not loaded"}}' if shown else "{}", "value": UNLOADED}]


def test_without_a_series_a_tile_has_no_figure(tmp_path: Path) -> None:
    expected = {expr: _words(panel) for page in PAGES.values() for panel, expr in tiles(page)}
    assert len(expected) > 60
    assert evaluated(tmp_path, [], expected) == ""
    for page in PAGES.values():
        for panel, _ in tiles(page):
            assert mapped(panel, UNLOADED) == {"text": "rules not loaded", "color": "#5A6570", "index": 0}, panel[
                "title"
            ]


def test_without_a_series_a_table_says_who_did_not_look(tmp_path: Path) -> None:
    """Its last query has one row then; with the rules and a daemon it has none."""
    expected: dict[str, list[dict[str, Any]]] = {}
    for page in PAGES.values():
        for panel in data_panels(page):
            if panel["type"] == "table" and panel["targets"][-1]["refId"] == "proof":
                words = "rules not loaded" if reads_rules(panel) else "no daemon is scraped"
                if panel["title"] == "Health checks":
                    words = "no data from Ceph"
                expr = substitute(panel["targets"][-1]["expr"])
                label = next(node.arguments[1].text for node, _ in promql.walk(promql.parse(expr))
                             if isinstance(node, promql.Call) and node.function == "label_replace")  # fmt: skip
                expected[expr] = [{"labels": f'{{{label}="{words}"}}', "value": 0.0}]
    assert len(expected) > 8
    assert evaluated(tmp_path, [], expected) == ""
    looked = [WATCHDOG, 'plumbline_build_info{instance="a"}', "ceph_health_status"]
    given = [{"series": series, "values": "1x5"} for series in looked]
    assert evaluated(tmp_path, given, {expr: [] for expr in expected}) == ""
    of_ceph = {expr: rows for expr, rows in expected.items() if '"no data from Ceph"' in expr and "ALERTS" in expr}
    assert len(of_ceph) > 2
    rows = {
        expr: [{**row, "labels": row["labels"].replace("rules not loaded", "no data from Ceph")} for row in rows]
        for expr, rows in of_ceph.items()
    }
    assert evaluated(tmp_path, given[:2], rows) == ""


UP = 'up{cluster="",job="plumbline",instance="a"}'
BUILD = 'plumbline_build_info{cluster="",job="plumbline",instance="a"}'
OVERVIEW = {
    "Ceph health": ("no data from Ceph", "no data from Ceph", "no data from Ceph"),
    "OSDs down": ("rules not loaded", "no data from Ceph", "no data from Ceph"),
    "Degraded": ("no data from Ceph", "no data from Ceph", "no data from Ceph"),
    "Silent nodes": ("no daemon is scraped", "no daemon is scraped", "0"),
    "Pages": ("rules not loaded", "0", "0"),
    "Tickets": ("rules not loaded", "0", "0"),
    "Worst ratio": ("rules not loaded", "no baseline", "no baseline"),
    "In recovery": ("rules not loaded", "no data from Ceph", "no data from Ceph"),
    "Clusters": ("no daemon is scraped", "no daemon is scraped", "1"),
    "Nodes": ("no daemon is scraped", "no daemon is scraped", "1"),
    "No baseline": ("no probes", "no probes", "no probes"),
}
"""Tile → what it says without anything, with the rules alone, and on a healthy host without Ceph or probes."""


def test_the_overviews_tiles_say_what_is_known(tmp_path: Path) -> None:
    shown = {panel["title"]: (panel, expr) for panel, expr in tiles(PAGES["overview"])}
    assert list(shown) == list(OVERVIEW)
    for state, series in enumerate(([], [WATCHDOG], [WATCHDOG, UP, BUILD])):
        expected: dict[str, list[dict[str, Any]]] = {}
        for title, (panel, expr) in shown.items():
            text = OVERVIEW[title][state]
            value = UNLOADED if text == "rules not loaded" else float(text) if text.isdigit() else math.nan
            words = panel["fieldConfig"]["defaults"]["noValue"] if math.isnan(value) else f"{value:g}"
            assert text == mapped(panel, value).get("text", words), title
            expected[expr] = [] if math.isnan(value) else [{"labels": "{}", "value": value}]
        given = [{"series": each, "values": "1x5"} for each in series]
        assert evaluated(tmp_path, given, expected) == "", state


def test_a_figure_of_a_tile_hides_the_words(tmp_path: Path) -> None:
    pages = next(expr for panel, expr in tiles(PAGES["overview"]) if panel["title"] == "Pages")
    page = 'ALERTS{alertname="PlumblineCephDown",alertstate="firing",severity="critical",cluster="c"}'
    given = [{"series": page, "values": "1x5"}]
    assert evaluated(tmp_path, given, {pages: [{"labels": "{}", "value": 1.0}]}) == ""


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_titles_of_tiles_are_not_cut(page: Dashboard) -> None:
    """Grafana at 1,400 pixels with its menu open: a unit of its grid has room for seven letters; icons take eight."""
    wide = {panel["title"]: 7 * panel["gridPos"]["w"] - 8 for panel, _ in tiles(page)}
    assert {title: room for title, room in wide.items() if len(title) > room} == {}


SEVERAL = {"node": "instance", "probes": "instance", "disk": "device", "nic": "device", "osd": "ceph_daemon"}
"""Page → the host, disk, port or OSD of which several can be chosen."""


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_what_can_be_several_is_matched_as_such(page: Dashboard) -> None:
    """Grafana joins what is chosen to a regular expression, also where it is one value."""
    several = {name for name, each in variables(page).items() if each.get("multi")}
    assert SEVERAL.get(page["uid"].removeprefix("plumbline-")) in several | {None}
    texts = [target["expr"] for panel in data_panels(page) for target in panel["targets"]]
    texts += [each["expr"] for each in page["annotations"]["list"]]
    texts += [each["query"] for each in variables(page).values() if each["type"] == "query"]
    wrong = [
        f'{name}{op}"${name}"' for name in several for op in ("=", "!=") for text in texts if f'{op}"${name}"' in text
    ]
    assert wrong == []


@pytest.mark.parametrize("page", ["node", "disk", "nic", "osd"])
def test_each_of_several_has_rows_of_its_own(page: str) -> None:
    """Their figures would be added up or drawn under one name."""
    rows = [panel for panel in PAGES[page]["panels"] if panel["type"] == "row"]
    assert PAGES[page]["panels"][0] is rows[0]
    assert {row.get("repeat") for row in rows} == {SEVERAL[page]}
    assert all(f"${SEVERAL[page]}" in row["title"] for row in rows)


OPEN = {
    "budget": ["Here, over time"],
    "capacity": ["What if the largest host dies?", "Growth", "Pools"],
    "disk": ["$device", "Latency of $device", "Load of $device"],
    "node": ["$instance", "Probes of $instance against their baseline"],
    "overview": ["To blame", "Alerts", "Over time"],
}
"""Page → the rows that open with it."""


@pytest.mark.parametrize("page", OPEN)
def test_rows_that_nobody_opens_first_are_closed(page: str) -> None:
    rows = [panel for panel in PAGES[page]["panels"] if panel["type"] == "row"]
    assert [row["title"] for row in rows if not row["collapsed"]] == OPEN[page]
    assert all(bool(row.get("panels")) is row["collapsed"] for row in rows)


def test_a_graph_that_reads_only_what_the_default_page_leaves_out_says_so() -> None:
    found = {True: 0, False: 0}
    for path in DASHBOARDS:
        for panel in data_panels(load(path)):
            left_out = all(_is_left_out(target["expr"]) for target in panel["targets"])
            found[left_out] += 1
            words = panel["fieldConfig"]["defaults"].get("noValue", "")
            assert (words == "only with profile: [full]") == left_out, (path.stem, panel["title"])
    assert min(found.values()) > 1


def _is_left_out(expr: str) -> bool:
    families = {re.sub("_(bucket|sum|count)$", "", each.metric) for each in promql.selectors(promql.parse(expr))}
    return any(name.startswith("plumbline_") and name not in NAMES for name in families)
