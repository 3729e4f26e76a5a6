"""A panel's rectangle of the picture, and what all types of panels share: ink, text that fits, "no data"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .answers import Source, Window

INK, FAINT, FRAME, PAPER = "#22252B", "#6E7681", "#D8D9DA", "#FFFFFF"
PALETTE = ("#1F60C4", "#E0752D", "#37872D", "#8F3BB8", "#00A3A3", "#B0548D", "#C15C17", "#6E9FFF", "#9E9D24", "#5A6570")
SMALL, CELL, NORMAL = 6.5, 7.5, 8.5
PAD_PX, TITLE_PX, LINE_PX, ROW_PX = 6.0, 20.0, 11.0, 15.0
CELL_PX = 30.0
"""A row of a table. Grafana's smallest has 36 pixels; its title takes as much more than ours."""


class Place:
    """A panel's rectangle in pixels of the figure, from the top left."""

    def __init__(self, figure: Figure, left: float, top: float, width: float, height: float) -> None:
        self.figure = figure
        self.left, self.top, self.width, self.height = left, top, width, height

    def axes(self, left: float, top: float, right: float, bottom: float) -> Axes:
        """Axes with these margins inside the panel."""
        whole_w, whole_h = (size * self.figure.dpi for size in self.figure.get_size_inches())
        x, y = self.left + left, self.top + top
        w, h = max(1.0, self.width - left - right), max(1.0, self.height - top - bottom)
        return self.figure.add_axes((x / whole_w, 1 - (y + h) / whole_h, w / whole_w, h / whole_h))

    def blank(self, top: float = TITLE_PX) -> Axes:
        """Axes without any, whose units are pixels from the top left."""
        found = self.axes(PAD_PX, top, PAD_PX, PAD_PX / 2)
        found.set_axis_off()
        found.set_xlim(0, self.width - 2 * PAD_PX)
        found.set_ylim(self.height - top - PAD_PX / 2, 0)
        return found


Draw = Callable[[Place, Mapping[str, Any], Source, Mapping[str, str], Window], bool]
"""(place, panel, source, variables, window) → whether there was data."""


def say(place: Place, text: str) -> None:
    sheet = place.blank()
    sheet.text(0.5, 0.5, text, transform=sheet.transAxes, ha="center", va="center", fontsize=NORMAL, color=FAINT)


def cut(text: str, width: float, size: float = SMALL) -> str:
    """As much as fits into so many pixels, in letters of this size."""
    most = max(3, int(width / (0.8 * size)))
    return text if len(text) <= most else text[: most - 1] + "…"


def plain(chart: Axes) -> None:
    """Small ticks, a faint grid, no box."""
    chart.tick_params(labelsize=SMALL, length=2, colors=FAINT)
    chart.grid(visible=True, color=FRAME, linewidth=0.4)
    chart.set_axisbelow(True)
    for spine in chart.spines.values():
        spine.set_visible(False)
