"""One panel into its rectangle, by its type. Light, plain, with Grafana's layout and none of its skin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import charts, figures
from .answers import Source, Window
from .sheet import FRAME, INK, NORMAL, PAD_PX, PAPER, Draw, Place, cut, say

TYPES: dict[str, Draw] = {
    "timeseries": charts.time_series,
    "stat": figures.stat,
    "heatmap": charts.heatmap,
    "bargauge": figures.bar_gauge,
    "state-timeline": charts.states,
    "table": figures.table,
    "barchart": figures.bar_chart,
}


def panel(place: Place, given: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window) -> bool:
    """Draw it with its frame and title; whether it had data."""
    frame = place.axes(0, 0, 0, 0)
    frame.set_xticks([])
    frame.set_yticks([])
    frame.set_facecolor(PAPER)
    for spine in frame.spines.values():
        spine.set_color(FRAME)
    title = cut(given["title"], place.width - PAD_PX, NORMAL)
    frame.text(PAD_PX / place.width, 1 - 12 / place.height, title, transform=frame.transAxes,
               fontsize=NORMAL, fontweight="bold", color=INK, va="center")  # fmt: skip
    draw = TYPES.get(given["type"])
    if draw is None:
        say(place, f"({given['type']})")
        return True
    return draw(place, given, source, values, window)
