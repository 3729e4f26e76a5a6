"""A whole page: its panels where the grid has them, its rows' titles, its variables; as a PNG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from . import draw, sheet
from .answers import Source, Window
from .variables import substitute

DPI = 100
COLUMNS, UNIT_PX, GAP_PX, HEAD_PX = 24, 38, 8, 46
"""Grafana's grid: 24 columns; a unit of height is 30 pixels and a gap of 8."""
COLOURS = 128
"""Of the stored picture: few are needed, and it gets small."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn, and which panels had no data."""

    panels: int
    empty: tuple[str, ...]


def render(
    dashboard: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window, out: Path,
    *, width_px: int = 1600, rows: int | None = None,
) -> Drawn:  # fmt: skip
    """Write the page to ``out``; ``rows``: only so many units of height, for the top of a long page."""
    shown = [(panel, panel["gridPos"]) for panel in dashboard["panels"]]
    shown = [(panel, at) for panel, at in shown if rows is None or at["y"] + at["h"] <= rows]
    while rows is not None and shown and shown[-1][0]["type"] == "row":  # a heading of what was cut off
        shown.pop()
    height = max((at["y"] + at["h"] for _, at in shown), default=1) * UNIT_PX + HEAD_PX
    figure = Figure(figsize=(width_px / DPI, height / DPI), dpi=DPI, facecolor="#F4F5F5")
    _head(figure, dashboard, values, width_px, height)
    column = (width_px - GAP_PX) / COLUMNS
    panels, empty = 0, []
    for panel, at in shown:
        left, top = GAP_PX + at["x"] * column, HEAD_PX + at["y"] * UNIT_PX
        place = sheet.Place(figure, left, top, at["w"] * column - GAP_PX, at["h"] * UNIT_PX - GAP_PX)
        if panel["type"] == "row":
            bare = place.blank(top=0)
            title = substitute(panel["title"], values)
            bare.text(0, place.height / 2, title, fontsize=11, fontweight="bold", va="center", color=sheet.INK)
            continue
        panels += 1
        if not draw.panel(place, panel, source, values, window):
            empty.append(panel["title"])
    figure.savefig(out, dpi=DPI, format="png")
    shrink(out)
    return Drawn(panels, tuple(empty))


def _head(figure: Figure, dashboard: Mapping[str, Any], values: Mapping[str, str], width: int, height: int) -> None:
    chosen = "   ".join(f"{name}: {'All' if value == '.*' else value or '–'}" for name, value in values.items())
    figure.text(GAP_PX / width, 1 - 15 / height, dashboard["title"], fontsize=12, fontweight="bold", va="center")
    figure.text(GAP_PX / width, 1 - 34 / height, chosen, fontsize=8, va="center", color=sheet.FAINT)
    figure.text(1 - GAP_PX / width, 1 - 15 / height, dashboard["description"], fontsize=8, va="center", ha="right",
                color=sheet.FAINT)  # fmt: skip


def shrink(file: Path) -> None:
    """A PNG in place: fewer colours, no metadata."""
    from PIL import Image

    with Image.open(file) as picture:
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(file, optimize=True)
