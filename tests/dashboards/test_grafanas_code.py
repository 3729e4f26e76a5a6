"""The pages held against Grafana's own code, release 13: what it knows, and what it makes of recorded answers.

Opt-in, by ``make test-grafana``: it fetches 180 MB of npm's packages the first time.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from preview import bundle, frames
from preview.answers import PreviewError, Recorded, Window, values
from preview.grafanas import NOTHING, Made, made
from preview.series import with_grafanas
from preview.variables import opened, substitute
from support.dashboards import DASHBOARDS, Panel, data_panels, load
from support.programs import need

NEUTRAL = "#5A6570"
fetching = pytest.mark.skipif(
    not os.environ.get("PLUMBLINE_GRAFANA"), reason="fetches 180 MB of npm's packages: make test-grafana"
)
RECORDED = Path(__file__).parent / "preview"
ENDED = 1795297124.0
WINDOW = Window(ENDED - 300, ENDED, 60.0)
GIVEN = {"instance": "vm:10047", "ceph_daemon": "osd.0"}
WANTED = json.loads((bundle.SOURCES / "package.json").read_text("utf-8"))["dependencies"]
LOCKED = json.loads((bundle.SOURCES / "package-lock.json").read_text("utf-8"))["packages"]


def test_the_lock_names_no_registry_and_pins_each_release() -> None:
    """Every package with its hash; those that ``package.json`` names, exactly."""
    packages = {name: each for name, each in LOCKED.items() if name}
    assert len(packages) > 100
    assert [name for name, each in packages.items() if "resolved" in each or "integrity" not in each] == []
    assert {name: packages[f"node_modules/{name}"]["version"] for name in WANTED} == WANTED


def test_nothing_is_used_under_a_gpl() -> None:
    """Grafana's server and its data source for Prometheus are AGPL."""
    assert "node_modules/@grafana/data" in LOCKED
    assert "node_modules/@grafana/prometheus" not in LOCKED
    assert [name for name, each in LOCKED.items() if "GPL" in str(each.get("license"))] == []


def test_what_was_not_made_whole_is_not_kept(tmp_path: Path) -> None:
    def broken(work: Path) -> None:
        (work / "half").touch()
        raise PreviewError("no registry")

    with pytest.raises(PreviewError, match="no registry"):
        bundle._once(tmp_path, "packages", [Path(__file__)], broken)
    assert list(tmp_path.iterdir()) == []
    made_there = bundle._once(tmp_path, "packages", [Path(__file__)], lambda work: (work / "whole").touch())
    assert bundle._once(tmp_path, "packages", [Path(__file__)], broken) == made_there
    assert [path.name for path in made_there.iterdir()] == ["whole"]


def test_a_missing_npm_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PreviewError, match="node is not installed"):
        bundle.bundle(tmp_path)


@pytest.fixture(scope="module")
def node() -> None:
    for program in ("node", "npm"):
        need(program)


@pytest.fixture(scope="module")
def recorded(node: None) -> list[tuple[Panel, Made, list[dict[str, Any]]]]:
    """One panel of each kind with what Grafana makes of a real Prometheus' answers, and these."""
    page, source = load(RECORDED / "page.json"), Recorded.load(RECORDED / "answers.json")
    chosen = opened(page, GIVEN, lambda selector, label: values(source, selector, label))
    jobs = []
    for panel in data_panels(page):
        answers = []
        for target in panel["targets"]:
            expr = substitute(target["expr"], with_grafanas(chosen, WINDOW))
            answers.append(source.get("query" if target.get("instant") else "query_range", {"query": expr}))
        jobs.append((panel, [{**NOTHING, **each} for each in answers]))
    return [(panel, one, answers) for (panel, answers), one in zip(jobs, made(jobs), strict=True)]


@fetching
def test_grafana_knows_every_option_override_unit_and_transformation(node: None) -> None:
    """It would pass over another one in silence."""
    panels = [panel for page in map(load, DASHBOARDS) for panel in data_panels(page)]
    shown = made([(panel, [NOTHING] * len(panel["targets"])) for panel in panels])
    assert [each.title for each in shown] == [panel["title"] for panel in panels]
    assert {each.title: each.unknown for each in shown if each.unknown} == {}


@fetching
def test_a_tile_without_a_series_is_neither_good_nor_bad(node: None) -> None:
    """It says why, in a neutral colour: by itself Grafana takes that of the lowest step."""
    panels = [panel for page in map(load, DASHBOARDS) for panel in data_panels(page)]
    tiles = [panel for panel in panels if panel["type"] in ("stat", "bargauge")]
    shown = made([(panel, [NOTHING] * len(panel["targets"])) for panel in tiles])
    wrong = [
        (panel["title"], one.tiles)
        for panel, one in zip(tiles, shown, strict=True)
        if one.tiles != [[panel["fieldConfig"]["defaults"]["noValue"], NEUTRAL]]
    ]
    assert wrong == []
    assert len(tiles) > 90


def _panel(field: dict[str, Any], override: dict[str, Any], **more: Any) -> Panel:
    targets = [{"refId": "A", "format": "table"}]
    config = {"defaults": field, "overrides": [override]}
    return {"type": "table", "title": "x", "targets": targets, "options": {}, "fieldConfig": config, **more}


@fetching
def test_what_grafana_does_not_know_is_said(node: None) -> None:
    field = {"unit": "furlong", "color": {"mode": "rainbow"}, "mappings": [{"type": "guess"}]}
    override = {"matcher": {"id": "byLook", "options": "x"}, "properties": [{"id": "custom.breadth", "value": 1}]}
    steps = [{"id": "merged", "options": {}}]
    (one,) = made([(_panel(field, override, transformations=steps, options={"sortedBy": []}), [NOTHING])])
    assert one.unknown == [
        "unknown option sortedBy",
        "unknown property custom.breadth",
        "unknown matcher byLook",
        "unknown transformation merged",
        "unknown unit furlong",
        "unknown colour mode rainbow",
        "unknown mapping guess",
    ]


@fetching
def test_what_no_field_bears_is_said(node: None) -> None:
    override = {"matcher": {"id": "byName", "options": "Values"}, "properties": []}
    order = {"sortBy": [{"displayName": "Value"}, {"displayName": "age"}]}
    (one,) = made([(_panel({}, override, options=order), [NOTHING])])
    assert (one.unknown, one.unmatched) == ([], ["byName Values", "sortBy age"])


@fetching
def test_tables_are_as_our_model_has_them(recorded: list[tuple[Panel, Made, list[dict[str, Any]]]]) -> None:
    """``preview/frames.py``, by which tables are drawn and clicks are tested."""
    compared = 0
    for panel, one, answers in recorded:
        if not all(target.get("format") == "table" for target in panel["targets"]):
            continue
        alone = len(panel["targets"]) == 1
        asked = [
            frames.of_query(
                [(each["metric"], float(each["value"][1])) for each in answer["result"]],
                ref_id=target["refId"],
                alone=alone,
            )
            for target, answer in zip(panel["targets"], answers, strict=True)
        ]
        model = frames.transformed(asked, panel.get("transformations", []))
        assert one.headings == [column.heading for column in model.columns], panel["title"]
        assert one.rows == [list(row.values()) for row in model.rows()], panel["title"]
        compared += len(one.rows)
    assert compared > 5
