"""The preview without a browser: variables, layout, answers and their record. ``test_grafanas_code.py`` draws."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from preview import bundle
from preview.answers import PreviewError, Recorded, Recorder, Server, Window, answer, values
from preview.layout import HEAD_PX, UNIT_PX, layout
from preview.variables import choices, opened, substitute

ROOT = Path(__file__).parents[2]
WINDOW = Window(700.0, 1000.0, 60.0)

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


def _panel(kind: str, y: int, h: int, *inside: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "gridPos": {"x": 0, "y": y, "w": 12, "h": h}, "panels": list(inside)}


CLOSED = _panel("row", 0, 1, _panel("stat", 5, 4), _panel("table", 9, 8))
FOLDED = {"panels": [CLOSED, _panel("row", 1, 1), _panel("stat", 2, 4)]}


def _tops(dashboard: dict[str, Any], **how: Any) -> tuple[list[float], list[float]]:
    found = layout(dashboard, 1600, **how)
    rows, panels = ([(box["top"] - HEAD_PX) / UNIT_PX for _, box in each] for each in (found.headings, found.panels))
    return rows, panels


def test_a_closed_row_shows_its_heading_only() -> None:
    assert _tops(FOLDED) == ([0, 1], [2])


def test_an_opened_row_moves_down_what_stands_below() -> None:
    assert _tops(FOLDED, opened=True) == ([0, 13], [1, 5, 14])
    assert layout(FOLDED, 1600, opened=True).height == HEAD_PX + 18 * UNIT_PX


def test_the_top_of_a_page_ends_with_no_heading() -> None:
    assert _tops(FOLDED, rows=5) == ([], [])
    assert _tops(FOLDED, rows=6) == ([0, 1], [2])


class Prometheus:
    """A source that says what it was asked."""

    def get(self, endpoint: str, parameters: dict[str, str]) -> Any:
        return [endpoint] if endpoint.startswith("label/") else {"result": [endpoint, parameters["query"]]}


def test_what_was_recorded_is_answered_again_at_any_time(tmp_path: Path) -> None:
    recorder = Recorder(Prometheus(), WINDOW, {"page": {"cluster": ".*"}})
    now, over = {"expr": "up", "instant": True}, {"expr": "rate(x[$__rate_interval])", "range": True}
    assert answer(recorder, now, {}, WINDOW) == {"result": ["query", "up"]}
    assert answer(recorder, over, {}, WINDOW) == {"result": ["query_range", "rate(x[240s])"]}
    assert values(recorder, "up", "cluster") == ["label/cluster/values"]
    recorder.save(tmp_path / "a.json.gz")
    recorder.save(tmp_path / "b.json.gz")
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    recorded = Recorded.load(tmp_path / "a.json.gz")
    assert (recorded.window, recorded.pages) == (WINDOW, {"page": {"cluster": ".*"}})
    later = Window(5000.0, 5300.0, 60.0)
    assert [answer(recorded, each, {}, later)["result"][0] for each in (now, over)] == ["query", "query_range"]


def test_what_was_not_recorded_has_no_data() -> None:
    recorded = Recorded(WINDOW, {}, {})
    assert recorded.get("query", {"query": "up"})["result"] == []
    assert recorded.get("label/x/values", {"match[]": "up"}) == []


def test_a_page_or_server_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "preview", "nowhere", "--out", tmp_path]
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
    done = subprocess.run(
        argv, env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("preview: no page is called nowhere; there are: ")
    with pytest.raises(PreviewError, match="is this a Prometheus server"):
        Server("http://127.0.0.1:9").get("query", {"query": "up"})


def test_what_npm_is_missing_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PreviewError, match="node is not installed"):
        bundle.bundle(tmp_path)


def test_what_was_not_made_whole_is_not_kept(tmp_path: Path) -> None:
    def broken(work: Path) -> None:
        (work / "half").touch()
        raise PreviewError("no registry")

    with pytest.raises(PreviewError, match="no registry"):
        bundle._once(tmp_path, "packages", [Path(__file__)], broken)
    assert list(tmp_path.iterdir()) == []
    made = bundle._once(tmp_path, "packages", [Path(__file__)], lambda work: (work / "whole").touch())
    assert bundle._once(tmp_path, "packages", [Path(__file__)], broken) == made
    assert [path.name for path in made.iterdir()] == ["whole"]


WANTED = json.loads((bundle.SOURCES / "package.json").read_text("utf-8"))["dependencies"]
LOCKED = json.loads((bundle.SOURCES / "package-lock.json").read_text("utf-8"))["packages"]


def test_the_lock_names_no_registry_and_pins_each_release() -> None:
    """Every package with its hash; those that ``package.json`` names, exactly."""
    packages = {name: each for name, each in LOCKED.items() if name}
    assert len(packages) > 200
    assert [name for name, each in packages.items() if "resolved" in each or "integrity" not in each] == []
    assert {name: packages[f"node_modules/{name}"]["version"] for name in WANTED} == WANTED


def test_nothing_is_used_under_a_gpl() -> None:
    """Grafana's server and its Prometheus data source are AGPL."""
    grafanas = {name.removeprefix("node_modules/") for name in LOCKED if "/@grafana/" in name}
    assert grafanas >= {"@grafana/data", "@grafana/schema", "@grafana/ui"}
    assert "@grafana/prometheus" not in grafanas
    assert [name for name, each in LOCKED.items() if "GPL" in str(each.get("license"))] == []
