"""The committed JSON suits both ways into Grafana: files that it provisions, and the dialogue “Import dashboard”.

Provisioning (https://grafana.com/docs/grafana/latest/administration/provisioning/#dashboards) reads the file as it is:
it needs a uid, so that links and bookmarks hold, and no id of some other Grafana's database. The dialogue takes the
same model; ``__inputs`` is what *Export for sharing externally* puts there, to ask which data source a fixed one
stands for, and isn't needed where the data source is a variable.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.dashboards import DASHBOARDS, load, variables

GRAFANA_11 = 39
"""The newest schema that Grafana 11.0 reads without migration; it migrates older ones by itself."""
OLDEST = 36
FILE_LIMIT = 1 << 20
"""A ConfigMap, the usual carrier in Kubernetes, holds at most 1 MiB."""


@pytest.fixture(params=DASHBOARDS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def test_the_model_stands_alone(path: Path) -> None:
    page = load(path)
    assert page["uid"] == path.stem
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", page["uid"])  # Grafana's limit
    assert page["title"]
    assert page.get("id") is None, "an id is one Grafana's own; with it an import replaces another page"
    assert "version" not in page, "Grafana counts versions itself; a fixed one makes the second import a conflict"
    assert not {"__inputs", "__requires", "__elements", "dashboard", "meta", "folderUid"} & page.keys()
    assert OLDEST <= page["schemaVersion"] <= GRAFANA_11
    assert path.stat().st_size < FILE_LIMIT


def test_no_data_source_is_named(path: Path) -> None:
    page = load(path)
    assert variables(page)["datasource"]["type"] == "datasource"
    assert variables(page)["datasource"]["query"] == "prometheus"
    assert next(iter(variables(page))) == "datasource", "the others ask it, so it stands before them"
    assert set(_data_sources(page)) == {"${datasource}"}
    assert "${DS_" not in json.dumps(page)


def test_nothing_is_asked_but_what_a_plain_grafana_has(path: Path) -> None:
    core = {"row", "stat", "timeseries", "table", "heatmap", "bargauge", "barchart", "state-timeline", "text"}
    assert {panel["type"] for panel in load(path)["panels"]} <= core
    assert not any("libraryPanel" in panel for panel in load(path)["panels"])


def _data_sources(value: Any) -> list[str]:
    if isinstance(value, list):
        return [uid for each in value for uid in _data_sources(each)]
    if isinstance(value, dict):
        own = [value["datasource"]["uid"]] if isinstance(value.get("datasource"), dict) else []
        own += [value["datasource"]] if isinstance(value.get("datasource"), str) else []
        return own + [uid for each in value.values() for uid in _data_sources(each)]
    return []
