"""Panels of what is now: one big figure, bars, tables, bars of parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from . import series
from .answers import Source, Window
from .fields import Look, look
from .sheet import (
    CELL,
    CELL_PX,
    FAINT,
    FRAME,
    INK,
    LINE_PX,
    NORMAL,
    PAD_PX,
    PALETTE,
    PAPER,
    ROW_PX,
    SMALL,
    TITLE_PX,
    Place,
    cut,
    plain,
    say,
)


def stat(place: Place, given: Mapping[str, Any], source: Source, values: Mapping[str, str], window: Window) -> bool:
    """A field for each series beside each other, with its name where there are several or the panel wants it."""
    found = [line for line in series.lines(source, given, values, window) if line.last is not None]
    if not found:
        how = look(given, "")
        _field(place.axes(2, TITLE_PX, 2, 2), how.settings.get("noValue", "no data"), "", INK, place.width)
        return False
    mode = given["options"].get("textMode")
    named = mode == "value_and_name" or (mode != "name" and len(found) > 1)
    width = place.width / len(found)
    for index, line in enumerate(found):
        how = look(given, line.name)
        colour = how.colour(line.last)
        dark = given["options"].get("colorMode") == "background" and colour is not None
        inner = place.axes(2 + index * width, TITLE_PX, 2 + (len(found) - 1 - index) * width, 2)
        if dark:
            inner.axhspan(0, 1, color=colour)
        shown = line.name if mode == "name" else how.text(line.last)
        _field(inner, shown, line.name if named else "", PAPER if dark else colour or INK, width)
        if len(found) == 1 and len(line.points) > 1 and given["options"].get("graphMode") == "area":
            spark = place.axes(2, TITLE_PX + (place.height - TITLE_PX) * 0.6, 2, 2)
            spark.set_axis_off()
            spark.fill_between([at for at, _ in line.points], [value for _, value in line.points],
                               color=PAPER if dark else FAINT, alpha=0.35)  # fmt: skip
    return True


def _field(inner: Axes, shown: str, name: str, ink: str, width: float) -> None:
    inner.set_axis_off()
    size = min(22.0, 1.15 * width / max(1, len(shown)))
    inner.text(0.5, 0.42 if name else 0.5, shown, transform=inner.transAxes, ha="center", va="center", fontsize=size,
               color=ink)  # fmt: skip
    inner.text(0.5, 0.86, cut(name, width), transform=inner.transAxes, ha="center", va="center", fontsize=NORMAL,
               color=ink)  # fmt: skip


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
            width, height, f"and {len(found) - len(shown)} more", ha="right", va="bottom", fontsize=SMALL, color=FAINT
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
    shown = min(rows, max(1, int(height // CELL_PX) - 1))
    columns = [(column, look(given, column.heading)) for column in frame.columns]
    columns = [(column, how) for column, how in columns if not how.custom.get("hidden")]
    texts = [[_cell(how, cell) for cell in column.values[:shown]] for column, how in columns]
    wanted = [
        max(len(column.heading), 3, *map(len, text)) + 2 for (column, _), text in zip(columns, texts, strict=True)
    ]
    left = 0.0
    for (column, how), text, share in zip(columns, texts, wanted, strict=True):
        size = width * share / sum(wanted)
        heading = cut(column.heading, size, CELL)
        sheet.text(left + 3, CELL_PX / 2, heading, fontsize=CELL, fontweight="bold", va="center", color=INK)
        filled = how.custom.get("cellOptions", {}).get("type") == "color-background"
        for index in range(shown):
            middle = (index + 1.5) * CELL_PX
            cell = column.values[index]
            colour = how.colour(cell if isinstance(cell, float) else None) if filled else None
            if colour:
                sheet.barh(middle, size - 1, left=left, height=CELL_PX - 1, color=colour)
            ink = PAPER if colour else INK
            sheet.text(left + 3, middle, cut(text[index], size, CELL), fontsize=CELL, va="center", color=ink)
        left += size
    for index in range(1, shown + 1):
        sheet.axhline(index * CELL_PX, color=FRAME, linewidth=0.4)
    if rows > shown:
        sheet.text(
            width, -TITLE_PX / 2, f"and {rows - shown} more", ha="right", va="center", fontsize=SMALL, color=FAINT
        )
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
