"""The pages held against Grafana's own code, release 13: what it knows, and what it draws of recorded answers.

Opt-in, by ``make test-grafana``: it fetches 450 MB of npm's packages the first time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from preview.answers import Recorded, Recorder, answer
from preview.page import NOTHING, Drawn, Easel, Shown, easel
from support import grafana_frames
from support.dashboards import DASHBOARDS, Panel, data_panels, load
from support.programs import need

fetching = [
    pytest.mark.skipif(
        not os.environ.get("PLUMBLINE_GRAFANA"), reason="fetches 450 MB of npm's packages: make test-grafana"
    ),
    pytest.mark.timeout(1800),
]
NEUTRAL = "#5A6570"
FOLDER = Path(__file__).parent / "preview"
PAGES = {path.stem.removeprefix("plumbline-"): load(path) for path in DASHBOARDS}
ALL = [panel for page in PAGES.values() for panel in data_panels(page)]
OURS = {"heatmap", "state-timeline", "barchart"}
"""Types of panels whose components are in none of Grafana's packages under the Apache License."""


@pytest.fixture(scope="module")
def grafana() -> Iterator[Easel]:
    for program in ("node", "npm", "chromium"):
        need(program)
    with easel() as drawing:
        yield drawing


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return Recorded.load(FOLDER / "pages.json.gz")


@pytest.fixture(scope="module")
def drawn(grafana: Easel, recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Drawn]:
    """Every page with all its rows open, each with a choice of its variables that has data."""
    folder = tmp_path_factory.mktemp("pages")
    return {
        name: grafana.draw(
            page, recorded, recorded.pages[page["uid"]], recorded.window, folder / f"{name}.png", opened=True,
            width_px=1400,
        )
        for name, page in PAGES.items()
    }  # fmt: skip


def panels(drawn: dict[str, Drawn]) -> Iterator[tuple[str, Shown]]:
    """``page / title`` and panel."""
    for name, page in drawn.items():
        yield from ((f"{name} / {panel.title}", panel) for panel in page.panels)


@cache
def expected(kind: str) -> set[str]:
    """What ``preview/expected.yaml`` lists, each with its reason."""
    groups = yaml.safe_load((FOLDER / "expected.yaml").read_text("utf-8"))[kind]
    return {where for group in groups for where in group["panels"]}


def test_every_query_was_recorded(recorded: Recorded) -> None:
    """Else record anew: ``tests/support/record_pages.py``."""
    asked = Recorder(recorded, recorded.window)
    for page in PAGES.values():
        for target in (target for panel in data_panels(page) for target in panel["targets"]):
            answer(asked, target, recorded.pages[page["uid"]], recorded.window)
    assert sorted(asked.answers.keys() - recorded.answers.keys()) == []


class TestDrawn:
    pytestmark = fetching

    def test_every_panel_is_drawn(self, drawn: dict[str, Drawn]) -> None:
        assert [panel.title for _, panel in panels(drawn)] == [panel["title"] for panel in ALL]
        assert {panel.type for _, panel in panels(drawn) if panel.by != "Grafana"} == OURS

    def test_nothing_is_thrown_and_nothing_is_unknown(self, drawn: dict[str, Drawn]) -> None:
        found = [f"{where}: {each}" for where, panel in panels(drawn) for each in (*panel.unknown, *panel.faults)]
        assert found + [f"{name}: {complaint}" for name, page in drawn.items() for complaint in page.complaints] == []

    def test_no_panel_is_empty_where_all_is_there(self, drawn: dict[str, Drawn]) -> None:
        assert {where for where, panel in panels(drawn) if panel.empty} == expected("empty")

    def test_no_panel_says_that_nobody_looks(self, drawn: dict[str, Drawn]) -> None:
        words = {"rules not loaded", "no daemon is scraped", "no data from Ceph", "No data"}
        assert {where for where, panel in panels(drawn) if words & set(panel.text.splitlines())} == expected("unasked")

    def test_every_override_is_borne_by_a_field(self, drawn: dict[str, Drawn]) -> None:
        found = {f"{where} / {each}" for where, panel in panels(drawn) if not panel.empty for each in panel.unmatched}
        assert found == expected("overrides")

    def test_titles_headings_and_tables_fit(self, drawn: dict[str, Drawn]) -> None:
        """In a window of 1,400 pixels."""
        assert {where: panel.cut for where, panel in panels(drawn) if panel.cut} == {}

    def test_no_legend_has_the_words_for_no_series(self, drawn: dict[str, Drawn]) -> None:
        """Grafana writes them beside a line of NaN only."""
        found = [
            shown.title
            for panel, (_, shown) in zip(ALL, panels(drawn), strict=True)
            if not shown.empty and shown.type == "timeseries"
            and panel["fieldConfig"]["defaults"].get("noValue", "No data") in shown.text
        ]  # fmt: skip
        assert found == []

    def test_tables_are_as_the_model_of_clicks_has_them(self, drawn: dict[str, Drawn], recorded: Recorded) -> None:
        """``support/grafana_frames.py`` makes of the same answers the same tables."""
        compared = 0
        for name, page in PAGES.items():
            for panel, shown in zip(data_panels(page), drawn[name].panels, strict=True):
                if panel["type"] != "table":
                    continue
                model = modelled(panel, recorded, recorded.pages[page["uid"]])
                assert shown.headings == [column.heading for column in model.columns], (name, shown.title)
                assert shown.rows == [list(row.values()) for row in model.rows()], (name, shown.title)
                compared += len(shown.rows)
        assert compared > 200


def modelled(panel: Panel, recorded: Recorded, chosen: dict[str, str]) -> grafana_frames.Frame:
    """A table by our own model of Grafana's transformations."""
    alone = len(panel["targets"]) == 1
    frames = []
    for target in panel["targets"]:
        series = answer(recorded, target, chosen, recorded.window)["result"]
        vector = [(each["metric"], float(each["value"][1])) for each in series]
        frames.append(grafana_frames.of_query(vector, ref_id=target["refId"], alone=alone))
    return grafana_frames.transformed(frames, panel.get("transformations", []))


class TestWithoutSeries:
    pytestmark = fetching

    def test_a_tile_is_neither_good_nor_bad(self, grafana: Easel) -> None:
        """It says why, in a neutral colour: by itself Grafana takes that of the lowest step."""
        tiles = [panel for panel in ALL if panel["type"] in ("stat", "bargauge")]
        shown = grafana.made([(panel, [NOTHING] * len(panel["targets"])) for panel in tiles])
        wrong = [
            (panel["title"], one.tiles)
            for panel, one in zip(tiles, shown, strict=True)
            if one.tiles != [[panel["fieldConfig"]["defaults"]["noValue"], NEUTRAL]]
        ]
        assert wrong == []
        assert len(tiles) > 90

    def test_what_grafana_does_not_know_is_said(self, grafana: Easel) -> None:
        field = {"unit": "furlong", "color": {"mode": "rainbow"}, "mappings": [{"type": "guess"}]}
        override = {"matcher": {"id": "byLook", "options": "x"}, "properties": [{"id": "custom.breadth", "value": 1}]}
        steps = [{"id": "merged", "options": {}}]
        given = _panel(field, override, transformations=steps, options={"sortedBy": []})
        (one,) = grafana.made([(given, [NOTHING])])
        assert one.unknown == [
            "unknown option sortedBy",
            "unknown property custom.breadth",
            "unknown matcher byLook",
            "unknown transformation merged",
            "unknown unit furlong",
            "unknown colour mode rainbow",
            "unknown mapping guess",
        ]

    def test_what_no_field_bears_is_said(self, grafana: Easel) -> None:
        override = {"matcher": {"id": "byName", "options": "Values"}, "properties": []}
        order = {"sortBy": [{"displayName": "Value"}, {"displayName": "age"}]}
        (one,) = grafana.made([(_panel({}, override, options=order), [NOTHING])])
        assert (one.unknown, one.unmatched) == ([], ["byName Values", "sortBy age"])


def _panel(field: dict[str, Any], override: dict[str, Any], **more: Any) -> Panel:
    targets = [{"refId": "A", "format": "table"}]
    config = {"defaults": field, "overrides": [override]}
    return {"type": "table", "title": "x", "targets": targets, "options": {}, "fieldConfig": config, **more}
