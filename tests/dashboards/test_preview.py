"""The preview on a small recorded set of answers: variables, tables, units, colours; and that it draws."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from preview import figures, series, units
from preview.answers import PreviewError, Recorded, Series, Server, Window, values
from preview.draw import TYPES
from preview.fields import look
from preview.page import render
from preview.sheet import Place
from preview.variables import choices, opened, substitute
from support.dashboards import DASHBOARDS, load

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parent / "preview"
"""Panels of several pages as rendered, and what the Prometheus of ``support/whole_stack.py`` answered for them."""
ENDED = 1795297124.0
WINDOW = Window(ENDED - 300, ENDED, 60.0)


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "shown"),
    [
        (0.000163, "s", None, "163 µs"),
        (7200.0, "s", 0, "2 h"),
        (0.0, "s", None, "0 s"),
        (0.4567, "percentunit", None, "45.7%"),
        (9.4e9, "bps", None, "9.4 Gb/s"),
        (1024.0**3 * 1.5, "bytes", None, "1.5 GiB"),
        (1500.0, "iops", None, "1.5 kio/s"),
        (1.05, "none", 2, "1.05"),
        (100.0, "none", None, "100"),
        (37.0, "celsius", None, "37 °C"),
        (1700000000000.0, "dateTimeAsIso", None, "2023-11-14 22:13:20"),
        (float("nan"), "s", None, "NaN"),
        (float("inf"), "none", None, "∞"),
        (2.0, "furlong", None, "2 furlong"),
    ],
)
def test_figures_are_written_with_their_units(value: float, unit: str, decimals: int | None, shown: str) -> None:
    assert units.text(value, unit, decimals) == shown


VARIABLES: dict[str, Any] = {
    "templating": {
        "list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus"},
            {"name": "cluster", "type": "query", "query": "label_values(up, cluster)", "includeAll": True,
             "allValue": ".*"},
            {"name": "instance", "type": "query", "query": 'label_values(up{cluster=~"$cluster"}, instance)'},
            {"name": "statistic", "type": "custom", "query": "median : p50,p99 : p99"},
        ]
    }
}  # fmt: skip


def _ask(selector: str, label: str) -> list[str]:
    return {('up{cluster=~".*"}', "instance"): ["b", "a"], ("up", "cluster"): ["x"]}.get((selector, label), [])


def test_a_page_opens_with_all_or_the_first_value() -> None:
    assert opened(VARIABLES, {}, _ask) == {"cluster": ".*", "instance": "a", "statistic": "p50"}
    assert opened(VARIABLES, {"cluster": "y"}, _ask) == {"cluster": "y", "instance": "", "statistic": "p50"}
    assert choices(VARIABLES["templating"]["list"][1], {}, _ask) == [".*", "x"]


def test_variables_are_replaced_but_not_what_a_regular_expression_found() -> None:
    expr = 'label_replace(rate(x{i="${instance:regex}", d=~"$device"}[$__rate_interval]), "a", "$1", "b", "(.+)")'
    known = {"instance": "a", "__rate_interval": "60s"}
    assert substitute(expr, known) == 'label_replace(rate(x{i="a", d=~".*"}[60s]), "a", "$1", "b", "(.+)")'


def test_legends_are_filled_in() -> None:
    assert series.legend("{{device}} {{ operation }}{{none}}", {"device": "sda", "operation": "read"}) == "sda read"
    assert series.legend("", {"__name__": "up", "job": "x"}) == 'up{job="x"}'


def test_cumulative_buckets_become_plain_ones() -> None:
    found = series.buckets(
        [
            Series({"le": "+Inf"}, ((1.0, 5.0), (2.0, 9.0))),
            Series({"le": "0.1"}, ((1.0, 2.0),)),
            Series({"le": "0.5"}, ((1.0, 5.0), (2.0, 9.0))),
        ]
    )
    assert found.edges == ("0.1", "0.5", "+Inf")
    assert found.counts == ((2.0, 0.0), (3.0, 9.0), (0.0, 0.0))


def _panel(**fields: Any) -> dict[str, Any]:
    steps = [{"value": None, "color": "#37872D"}, {"value": 1, "color": "red"}]
    settings = {"unit": "s", "thresholds": {"mode": "absolute", "steps": steps}, "color": {"mode": "thresholds"}}
    return {"fieldConfig": {"defaults": settings | fields, "overrides": []}}


def test_colours_and_words_follow_thresholds_mappings_and_overrides() -> None:
    empty = {"type": "special", "options": {"match": "null", "result": {"text": "none", "color": "transparent"}}}
    word = {"type": "value", "options": {"3": {"text": "three"}}}
    panel = _panel(mappings=[empty, word])
    panel["fieldConfig"]["overrides"] = [
        {"matcher": {"id": "byName", "options": "wear"}, "properties": [{"id": "unit", "value": "percentunit"}]},
        {"matcher": {"id": "byRegexp", "options": "/^base/"}, "properties": [{"id": "custom.lineWidth", "value": 2}]},
    ]
    assert [look(panel, "x").colour(value) for value in (0.5, 1.0, None)] == ["#37872D", "#C4162A", None]
    assert [look(panel, "x").text(value) for value in (3.0, 0.5, None)] == ["three", "500 ms", "none"]
    assert look(panel, "wear").text(0.5) == "50%"
    assert look(panel, "baseline p50").custom == {"lineWidth": 2}


def test_a_recorded_page_is_drawn(tmp_path: Path) -> None:
    """One panel of each kind, with what a real Prometheus answered; one of them has no data."""
    page = json.loads((RECORDED / "page.json").read_text("utf-8"))
    answers = Recorded.load(RECORDED / "answers.json")
    kinds = {panel["type"] for panel in page["panels"]}
    assert kinds >= {panel["type"] for path in DASHBOARDS for panel in load(path)["panels"]}
    assert set(TYPES) <= kinds
    given = {"instance": "vm:10047", "ceph_daemon": "osd.0"}
    chosen = opened(page, given, lambda selector, label: values(answers, selector, label))
    drawn = render(page, answers, chosen, WINDOW, tmp_path / "page.png", width_px=1200)
    assert drawn.panels == len(page["panels"]) - 1  # its heading
    assert drawn.empty == ("Unsafe at the soonest in",)
    with Image.open(tmp_path / "page.png") as picture:
        assert picture.width == 1200
        assert len(picture.getcolors(1 << 16) or []) > 20
    top = render(page, answers, chosen, WINDOW, tmp_path / "top.png", width_px=1200, rows=9)
    assert top.panels == 3


def test_the_command_draws_from_a_record(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "preview", "overview", "--recorded", RECORDED / "answers.json"]
    argv += ["--out", tmp_path, "--minutes", "10", "--rows", "12"]
    done = subprocess.run(argv, cwd=ROOT / "tests", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path / 'plumbline-overview.png'}: ")


def test_a_page_or_server_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "preview", "nowhere", "--out", tmp_path]
    done = subprocess.run(argv, cwd=ROOT / "tests", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("preview: no page is called nowhere; there are: ")
    with pytest.raises(PreviewError, match="is this a Prometheus server"):
        Server("http://127.0.0.1:9").get("query", {"query": "up"})


def test_what_was_not_recorded_has_no_data() -> None:
    assert Recorded({}).get("query", {"query": "up"}) == {"result": []}
    assert Recorded({}).get("label/x/values", {"match[]": "up"}) == []


class Answers:
    """A source that answers every query with these series, at the end of the window."""

    def __init__(self, **values: float) -> None:
        self._values = values

    def get(self, _path: str, _params: dict[str, str]) -> dict[str, Any]:
        found = [{"metric": {"name": name}, "value": [ENDED, str(value)]} for name, value in self._values.items()]
        return {"resultType": "vector", "result": found}


def texts(mode: str, **values: float) -> set[str]:
    """What a tile says of these series."""
    figure = Figure(figsize=(8, 2), dpi=100)
    panel = _panel() | {
        "targets": [{"expr": "x", "refId": "A", "legendFormat": "{{name}}", "instant": True, "range": False}],
        "options": {"colorMode": "background", "textMode": mode},
    }
    assert figures.stat(Place(figure, 0, 0, 800, 200), panel, Answers(**values), {}, WINDOW) is bool(values)
    return {text.get_text() for axes in figure.axes for text in axes.texts} - {""}


def test_a_tile_shows_every_series_and_names_them_where_grafana_does() -> None:
    assert texts("auto", a=0.5) == {"500 ms"}
    assert texts("value_and_name", a=0.5) == {"a", "500 ms"}
    assert texts("auto", a=0.5, b=2.0) == {"a", "500 ms", "b", "2 s"}
    assert texts("name", a=0.5) == {"a"}
    assert texts("auto") == {"no data"}
