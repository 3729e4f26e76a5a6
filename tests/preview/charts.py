"""Panels over time: lines and stacked areas, heatmaps, states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from . import series
from .answers import Source, Window
from .fields import Look, look
from .sheet import FAINT, INK, LINE_PX, PAD_PX, PALETTE, SMALL, TITLE_PX, Place, cut, plain, say

LEGEND_ROWS = 4
"""More series are counted, not named."""
_TICKS_S = (60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000)


def time_series(
    place: Place, given: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window
) -> bool:
    found = series.lines(source, given, values, window)
    if not found:
        say(place, given["fieldConfig"]["defaults"].get("noValue", "No data"))
        return False
    looks = [look(given, line.name, ref_id=line.ref_id) for line in found]
    named = min(len(found), LEGEND_ROWS)
    below = LINE_PX * (named + (len(found) > named)) + 4
    chart = place.axes(52, TITLE_PX + 6, 10, below + 18)
    colours = _line_colours(looks)
    defaults = look(given, "")
    drawn = list(zip(found, looks, colours, strict=True))
    stacked = defaults.custom.get("stacking", {}).get("mode") == "normal"
    if stacked:
        _stack(chart, [(line, colour) for line, how, colour in drawn if _in_stack(line, how)])
    for line, how, colour in drawn:
        if not stacked or not _in_stack(line, how):
            _line(chart, line, how, colour)
    positive = any(value > 0 for line in found for _, value in line.points)
    if positive and defaults.custom.get("scaleDistribution", {}).get("type") == "log":
        chart.set_yscale("log")
        chart.yaxis.set_major_locator(LogLocator(numticks=6))
        chart.yaxis.set_minor_formatter(NullFormatter())
    else:
        chart.yaxis.set_major_locator(MaxNLocator(5))
        top = max((value for line in found for _, value in line.points if math.isfinite(value)), default=0.0)
        if stacked:  # matplotlib saw the sums
            top = chart.get_ylim()[1] / 1.05
        chart.set_ylim(
            bottom=defaults.settings.get("min"), top=defaults.settings.get("max") or (top * 1.08 if top > 0 else 1.0)
        )
    _time_axis(chart, window)
    chart.yaxis.set_major_formatter(FuncFormatter(lambda value, _: defaults.text(value)))
    _legend(place, found, looks, colours, below)
    return True


def heatmap(place: Place, given: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window) -> bool:
    found = [each for target in given["targets"] for each in series.asked(source, target, values, window)]
    grid = series.buckets(found)
    lived = [index for index, row in enumerate(grid.counts) if any(row)]
    if not lived or len(grid.times) < 2:
        say(place, "No data")
        return False
    low, high = max(0, lived[0] - 1), lived[-1] + 1
    chart = place.axes(52, TITLE_PX + 6, 10, 20)
    step = grid.times[1] - grid.times[0]
    times = (*grid.times, grid.times[-1] + step)
    rows = [[value or math.nan for value in row] for row in grid.counts[low:high]]
    chart.pcolormesh(times, range(len(rows) + 1), rows, cmap="Oranges", norm=PowerNorm(0.5), shading="flat")
    edges = grid.edges[low:high]
    every = max(1, len(edges) // 8)
    how = look(given, "")
    chart.set_yticks(
        [index + 1 for index in range(0, len(edges), every)],
        ["∞" if edge == "+Inf" else how.text(float(edge)) for edge in edges[::every]],
    )
    _time_axis(chart, window)
    return True


def states(place: Place, given: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window) -> bool:
    found = series.lines(source, given, values, window)
    if not found:
        say(place, given["fieldConfig"]["defaults"].get("noValue", "No data"))
        return False
    shown = found[: max(1, int((place.height - TITLE_PX - 24) // 9))]
    chart = place.axes(0.22 * place.width, TITLE_PX + 6, 10, 20)
    for index, line in enumerate(shown):
        how = look(given, line.name, ref_id=line.ref_id)
        for at, value in line.points:
            if math.isfinite(value):
                colour = how.colour(value) or PALETTE[0]
                chart.broken_barh([(at - window.step / 2, window.step)], (index + 0.1, 0.8), color=colour, linewidth=0)
    chart.set_yticks(
        [index + 0.5 for index in range(len(shown))], [cut(each.name, 0.21 * place.width) for each in shown]
    )
    chart.set_ylim(len(shown), 0)
    _time_axis(chart, window)
    return True


def _line(chart: Axes, line: series.Line, how: Look, colour: str) -> None:
    style = how.custom.get("lineStyle", {})
    dashes = style.get("dash") if style.get("fill") in ("dash", "dot") else None
    times = [at for at, _ in line.points]
    drawn = [value if math.isfinite(value) else math.nan for _, value in line.points]
    width = how.custom.get("lineWidth", 1)
    chart.plot(times, drawn, color=colour, linewidth=0.9 * width, marker="." if len(times) == 1 else None,
               linestyle=(0, tuple(each / 2 for each in dashes)) if dashes else "-")  # fmt: skip


def _in_stack(line: series.Line, how: Look) -> bool:
    """A dashed baseline is no part of the whole; nor is what the panel takes out."""
    mode = how.custom.get("stacking", {}).get("mode")
    return bool(mode != "none") and not line.name.startswith(("baseline", "documented"))


def _stack(chart: Axes, parts: Sequence[tuple[series.Line, str]]) -> None:
    """Areas upon each other."""
    moments = sorted({at for line, _ in parts for at, _ in line.points})
    rows = [[dict(line.points).get(at, 0.0) for at in moments] for line, _ in parts]
    if rows:
        chart.stackplot(moments, rows, colors=[colour for _, colour in parts], alpha=0.6, linewidth=0.5)


def _line_colours(looks: Sequence[Look]) -> list[str]:
    """The fixed ones, and the palette in order for the others."""
    free = iter(range(len(looks)))
    found = []
    for how in looks:
        own = how.settings.get("color", {})
        fixed = how.colour(None) if own.get("mode") == "fixed" else None
        found.append(fixed or PALETTE[next(free) % len(PALETTE)])
    return found


def _legend(
    place: Place, found: Sequence[series.Line], looks: Sequence[Look], colours: Sequence[str], below: float
) -> None:
    sheet = place.axes(PAD_PX, place.height - below, PAD_PX, 2)
    sheet.set_axis_off()
    sheet.set_xlim(0, place.width - 2 * PAD_PX)
    sheet.set_ylim(below, 0)
    width = place.width - 2 * PAD_PX
    for index, (line, how, colour) in enumerate(zip(found[:LEGEND_ROWS], looks, colours, strict=False)):
        y = LINE_PX * (index + 0.5)
        dashed = how.custom.get("lineStyle", {}).get("fill") in ("dash", "dot")
        sheet.plot([0, 14], [y, y], color=colour, linewidth=2, linestyle=":" if dashed else "-")
        sheet.text(20, y, cut(line.name, width - 90), fontsize=SMALL, va="center", color=INK)
        sheet.text(width, y, how.text(line.last, empty="-"), fontsize=SMALL, va="center", ha="right", color=FAINT)
    if len(found) > LEGEND_ROWS:
        more = f"and {len(found) - LEGEND_ROWS} more"
        sheet.text(20, LINE_PX * (LEGEND_ROWS + 0.5), more, fontsize=SMALL, va="center", color=FAINT)


def _time_axis(chart: Axes, window: Window) -> None:
    """Unix seconds, with ticks at round times (UTC)."""
    span = window.end - window.start
    step = next((each for each in _TICKS_S if span / each <= 7), _TICKS_S[-1])
    first = math.ceil(window.start / step)
    ticks = [number * step for number in range(first, int(window.end // step) + 1)]
    form = "%d %b" if step >= 86400 else "%H:%M"
    chart.set_xlim(window.start, window.end)
    chart.set_xticks(ticks, [datetime.fromtimestamp(at, UTC).strftime(form) for at in ticks])
    plain(chart)
