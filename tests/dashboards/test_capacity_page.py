"""The capacity page: a tile shows one device class, the worst; a forecast without its history is said to lack it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from preview.variables import substitute
from support.dashboards import DASHBOARDS, data_panels, load
from support.promtool import run_tests

DAY = 86400
NEEDS_DAYS = {"3d": 2, "14d": 10, "30d": 20}
HISTORY = "Is there enough history for a forecast?"
TILES = {
    "If the largest host dies now": ("plumbline:capacity_host_loss:verdict{%s}", 3.0),
    "Fullest OSD after that": ('plumbline:capacity_after_loss:ratio{%s,domain="host",name="a"}', 0.88),
    "Room until unsafe": ("plumbline:capacity_host_loss_left:bytes{%s}", 200.0),
    "Unsafe at the soonest in": ('plumbline:capacity_time_to_host_loss_unsafe:days{%s,slope="3d"}', 20.0),
    "Rebuild after losing the largest host": ("plumbline:capacity_rebuild:seconds{%s}", 7000.0),
}
"""Tile → what is recorded for it, and the worst of two classes (hdd)."""
BETTER = {
    "If the largest host dies now": 0.0,
    "Fullest OSD after that": 0.5,
    "Room until unsafe": 100.0,  # fewer bytes, but of smaller disks
    "Unsafe at the soonest in": 400.0,
    "Rebuild after losing the largest host": 60.0,
}


def queries(title: str) -> list[str]:
    """A panel's, of all clusters."""
    (page,) = [load(path) for path in DASHBOARDS if path.stem == "plumbline-capacity"]
    (panel,) = [each for each in data_panels(page) if each["title"] == title]
    return [substitute(target["expr"], {"cluster": ".*"}) for target in panel["targets"]]


def promtool(folder: Path, given: Sequence[dict[str, str]], cases: Sequence[dict[str, Any]], interval: str) -> str:
    """Empty when each expression has exactly these samples."""
    test = {"tests": [{"interval": interval, "input_series": [*given], "promql_expr_test": [*cases]}]}
    (folder / "test.yaml").write_text(json.dumps(test))
    return run_tests(folder / "test.yaml")


@pytest.mark.parametrize("title", TILES)
def test_a_tile_shows_the_worst_class_alone(title: str, tmp_path: Path) -> None:
    classes = {"hdd": (TILES[title][1], 0.98), "ssd": (BETTER[title], 0.55)}
    given = []
    for name, (value, ratio) in classes.items():
        labels = f'cluster="c",device_class="{name}"'
        given.append({"series": TILES[title][0] % labels, "values": f"{value}x2"})
        given.append({"series": f"plumbline:capacity_host_loss:ratio{{{labels}}}", "values": f"{ratio}x2"})
    (expr,) = queries(title)
    worst = TILES[title][1] * (DAY if "Unsafe" in title else 1)
    case = {
        "expr": f"sum by (cluster, device_class) ({expr})",
        "eval_time": "1m",
        "exp_samples": [{"labels": '{cluster="c",device_class="hdd"}', "value": worst}],
    }
    assert promtool(tmp_path, given, [case], "1m") == ""


@pytest.mark.parametrize("days", [0, 1, 3, 15, 21])
def test_a_forecast_has_its_history_or_not(days: int, tmp_path: Path) -> None:
    """15 days are what Prometheus keeps unless it is told more."""
    needed, there, _ = queries(HISTORY)
    used = {"series": 'plumbline:capacity_used:bytes{cluster="c",device_class="hdd"}', "values": f"1x{24 * days}"}
    watchdog = {"series": 'ALERTS{alertname="PlumblineWatchdog"}', "values": f"1x{24 * days}"}
    expected = {
        needed: {slope: DAY * need for slope, need in NEEDS_DAYS.items()},
        there: {slope: int(days >= need) for slope, need in NEEDS_DAYS.items()},
    }
    cases = [
        {
            "expr": expr,
            "eval_time": f"{days}d",
            "exp_samples": [{"labels": f'{{slope="{slope}"}}', "value": value} for slope, value in values.items()],
        }
        for expr, values in expected.items()
    ]
    assert promtool(tmp_path, [watchdog, *([used] if days else [])], cases, "1h") == ""
