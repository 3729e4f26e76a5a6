"""Panels of what is now: one big figure, bars, tables, bars of parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.ticker import FuncFormatter

from . import series
from .answers import Source, Window
from .fields import Look, look
from .sheet import FAINT, FRAME, INK, LINE_PX, PAD_PX, PALETTE, PAPER, ROW_PX, SMALL, TITLE_PX, Place, cut, plain, say


def stat(place: Place, given: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window) -> bool:
    found = [line for line in series.lines(source, given, values, window) if line.last is not None]
    how = look(given, found[0].name if found else "")
    figure = found[0].last if found else None
    shown = how.text(figure, empty=how.settings.get("noValue", "no data"))
    colour = how.colour(figure)
    inner = place.axes(2, TITLE_PX, 2, 2)
    inner.set_axis_off()
    dark = given["options"].get("colorMode") == "background" and colour is not None
    if dark:
        inner.axhspan(0, 1, color=colour)
    if len(found) == 1 and len(found[0].points) > 1 and given["options"].get("graphMode") == "area":
        spark = place.axes(2, TITLE_PX + (place.height - TITLE_PX) * 0.6, 2, 2)
        spark.set_axis_off()
        spark.fill_between([at for at, _ in found[0].points], [value for _, value in found[0].points],
                           color=PAPER if dark else FAINT, alpha=0.35)  # fmt: skip
    size = min(22.0, 0.32 * place.height, 1.25 * place.width / max(1, len(shown)))
    inner.text(0.5, 0.5, shown, transform=inner.transAxes, ha="center", va="center", fontsize=size,
               color=PAPER if dark else colour or INK)  # fmt: skip
    return figure is not None


def bar_gauge(
    place: Place, given: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window
) -> bool:
    found = [line for line in series.lines(source, given, values, window) if line.last is not None]
    found.sort(key=lambda line: -(line.last or 0.0))
    if not found:
        say(place, given["fieldConfig"]["defaults"].get("noValue", "No data"))
        return False
    sheet = place.blank()
    width, height = place.width - 2 * PAD_PX, place.height - TITLE_PX - PAD_PX
    shown = found[: max(1, int(height // ROW_PX))]
    defaults = look(given, "").settings
    finite = [abs(line.last or 0.0) for line in found if math.isfinite(line.last or 0.0)]
    most = defaults.get("max") or max(finite, default=0.0) or 1.0
    row = min(height / len(shown), 26.0)
    for index, line in enumerate(shown):
        how, value = look(given, line.name, ref_id=line.ref_id), line.last or 0.0
        middle = (index + 0.5) * row
        share = min(1.0, max(0.0, value / most)) if math.isfinite(value) else 1.0
        sheet.barh(middle, 0.55 * width, left=0.3 * width, height=0.6 * row, color="#EEF0F2")
        sheet.barh(
            middle, 0.55 * width * share, left=0.3 * width, height=0.6 * row, color=how.colour(value) or PALETTE[0]
        )
        sheet.text(0.29 * width, middle, cut(line.name, 0.29 * width), ha="right", va="center", fontsize=SMALL)
        sheet.text(0.86 * width, middle, how.text(value), ha="left", va="center", fontsize=SMALL)
    if len(found) > len(shown):
        sheet.text(
            width, height, f"{len(found) - len(shown)} more", ha="right", va="bottom", fontsize=SMALL, color=FAINT
        )
    return True


def table(place: Place, given: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window) -> bool:
    frame = series.table(source, given, values, window)
    if not len(frame):
        say(place, given["fieldConfig"]["defaults"].get("noValue", "No data"))
        return False
    sheet = place.blank()
    width, height = place.width - 2 * PAD_PX, place.height - TITLE_PX - PAD_PX
    rows = len(frame)
    shown = min(rows, max(1, int(height // ROW_PX) - 1))
    columns = [(column, look(given, column.heading)) for column in frame.columns]
    columns = [(column, how) for column, how in columns if not how.custom.get("hidden")]
    texts = [[_cell(how, cell) for cell in column.values[:shown]] for column, how in columns]
    wanted = [
        max(len(column.heading), 3, *map(len, text)) + 2 for (column, _), text in zip(columns, texts, strict=True)
    ]
    left = 0.0
    for (column, how), text, share in zip(columns, texts, wanted, strict=True):
        size = width * share / sum(wanted)
        heading = cut(column.heading, size)
        sheet.text(left + 3, ROW_PX / 2, heading, fontsize=SMALL, fontweight="bold", va="center", color=INK)
        filled = how.custom.get("cellOptions", {}).get("type") == "color-background"
        for index in range(shown):
            middle = (index + 1.5) * ROW_PX
            cell = column.values[index]
            colour = how.colour(cell if isinstance(cell, float) else None) if filled else None
            if colour:
                sheet.barh(middle, size - 1, left=left, height=ROW_PX - 1, color=colour)
            ink = PAPER if colour else INK
            sheet.text(left + 3, middle, cut(text[index], size), fontsize=SMALL, va="center", color=ink)
        left += size
    for index in range(1, shown + 1):
        sheet.axhline(index * ROW_PX, color=FRAME, linewidth=0.4)
    if rows > shown:
        sheet.text(width, height, f"{rows - shown} more rows", ha="right", va="bottom", fontsize=SMALL, color=FAINT)
    return True


def _cell(how: Look, cell: str | float | None) -> str:
    return cell if isinstance(cell, str) else how.text(cell)


def bar_chart(
    place: Place, given: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window
) -> bool:
    """Lying bars, one a row of the table; its columns stacked."""
    frame = series.table(source, given, values, window)
    category = frame.find(given["options"].get("xField", ""))
    parts = [column for column in frame.columns if column is not category and column.name != "Time"]
    if category is None or not parts:
        say(place, given["fieldConfig"]["defaults"].get("noValue", "No data"))
        return False
    below = 1.5 * LINE_PX
    chart = place.axes(0.22 * place.width, TITLE_PX + 6, 20, below + 20)
    names = [cut(str(value), 0.22 * place.width) for value in category.values]
    ends = [0.0] * len(names)
    for index, column in enumerate(parts):
        lengths = [value if isinstance(value, float) and math.isfinite(value) else 0.0 for value in column.values]
        colour = look(given, column.heading).colour(None) or PALETTE[index % len(PALETTE)]
        chart.barh(range(len(names)), lengths, left=ends, height=0.7, color=colour, label=column.heading)
        ends = [end + length for end, length in zip(ends, lengths, strict=True)]
    how = look(given, "")
    for row, end in enumerate(ends):
        chart.text(end, row, f" {how.text(end)}", fontsize=SMALL, va="center", color=FAINT)
    chart.set_yticks(range(len(names)), names)
    chart.set_ylim(len(names) - 0.5, -0.5)
    chart.set_xlim(0, max(ends) * 1.1 or 1.0)
    chart.xaxis.set_major_formatter(FuncFormatter(lambda value, _: how.text(value)))
    plain(chart)
    chart.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=len(parts), fontsize=SMALL, frameon=False)
    return True
