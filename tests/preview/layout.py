"""Where Grafana puts the panels of a page: rectangles in pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COLUMNS, UNIT_PX, GAP_PX, HEAD_PX = 24, 38, 8, 46
"""Grafana's grid: 24 columns; a unit of height is 30 pixels and a gap of 8."""


@dataclass(frozen=True, slots=True)
class Layout:
    """``(element, box)`` of every panel and of every row's heading, and the height of all."""

    panels: list[tuple[Mapping[str, Any], dict[str, float]]]
    headings: list[tuple[Mapping[str, Any], dict[str, float]]]
    height: int


def layout(dashboard: Mapping[str, Any], width: int, *, opened: bool = False, rows: int | None = None) -> Layout:
    """``opened``: with the rows that are closed at first. ``rows``: the top only, so many units high."""
    shown = list(_unfolded(dashboard["panels"]) if opened else _placed(dashboard["panels"]))
    if rows is not None:
        shown = [(panel, at) for panel, at in shown if at["y"] + at["h"] <= rows]
        while shown and shown[-1][0]["type"] == "row":  # a heading of what was cut off
            shown.pop()
    column = (width - GAP_PX) / COLUMNS
    boxes = [(panel, _box(at, column)) for panel, at in shown]
    return Layout(
        [(panel, box) for panel, box in boxes if panel["type"] != "row"],
        [(panel, box) for panel, box in boxes if panel["type"] == "row"],
        HEAD_PX + UNIT_PX * max((at["y"] + at["h"] for _, at in shown), default=1),
    )


Placed = Iterator[tuple[Mapping[str, Any], Mapping[str, int]]]


def _placed(panels: list[Mapping[str, Any]]) -> Placed:
    for panel in panels:
        yield panel, panel["gridPos"]


def _unfolded(panels: list[Mapping[str, Any]]) -> Placed:
    """An opened row moves down what stands below it."""
    moved = 0
    for panel, at in _placed(panels):
        yield panel, {**at, "y": at["y"] + moved}
        inside = panel.get("panels", [])
        if not inside:
            continue
        first = min(each["gridPos"]["y"] for each in inside)
        below = at["y"] + moved + 1 - first
        yield from ((each, {**each["gridPos"], "y": each["gridPos"]["y"] + below}) for each in inside)
        moved += max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in inside) - first


def _box(at: Mapping[str, int], column: float) -> dict[str, float]:
    return {
        "left": GAP_PX + at["x"] * column,
        "top": HEAD_PX + at["y"] * UNIT_PX,
        "width": at["w"] * column - GAP_PX,
        "height": at["h"] * UNIT_PX - GAP_PX,
    }
