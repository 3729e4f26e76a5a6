"""A plot of a review as a chart, and as a table of weeks."""

from __future__ import annotations

from statistics import median

from plumbline.htmltext import Html
from plumbline.pages.charts import Curve, LineChart, Point, date_ticks, line_chart
from plumbline.pages.figures import si
from plumbline.review import phrases as say
from plumbline.review.document import Line, TimePlot
from plumbline.review.period import DAY_S

_BREAK_DAYS = 1.5


def plot_svg(plot: TimePlot, ident: str) -> Html:
    """The picture. ``ident`` is unique on the page."""
    chart = LineChart(
        title=plot.title,
        description=_described(plot),
        unit=plot.unit,
        curves=tuple(Curve(line.name, index, _points(plot, line)) for index, line in enumerate(plot.lines)),
        ticks=date_ticks(plot.start_s, plot.end_s),
        gaps=tuple(
            (
                _part(plot, gap.start_s),
                _part(plot, gap.end_s),
                f"no data from {say.moment(gap.start_s)} to {say.moment(gap.end_s)}",
            )
            for gap in plot.gaps
        ),
        level=plot.level,
        moments=tuple((_part(plot, at), name) for name, at in plot.moments),
    )
    return line_chart(chart, ident)


def plot_table(plot: TimePlot) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: the median of each week of the period; empty where there was no data."""
    heads = ["Week from", *(line.name for line in plot.lines)]
    rows = []
    for start in range(int(plot.start_s), int(plot.end_s), 7 * DAY_S):
        cells = []
        for line in plot.lines:
            found = [value for day, value in line.days if start <= day < start + 7 * DAY_S]
            cells.append(_value_text(median(found), plot.unit) if found else "")
        rows.append([say.date(start), *cells])
    return heads, rows


def _part(plot: TimePlot, at_s: float) -> float:
    return (at_s - plot.start_s) / (plot.end_s - plot.start_s)


def _points(plot: TimePlot, line: Line) -> tuple[Point | None, ...]:
    """A day stands at its noon; missing days interrupt the line."""
    points: list[Point | None] = []
    before = None
    for day, value in line.days:
        if before is not None and day - before > _BREAK_DAYS * DAY_S:
            points.append(None)
        points.append(Point(_part(plot, min(day + DAY_S / 2, plot.end_s)), value))
        before = day
    return tuple(points)


def _value_text(value: float, unit: str) -> str:
    """As the axis says it, with more digits."""
    if unit == "share":
        return say.share(value)
    return f"× {say.number(value)}" if unit == "ratio" else si(value, unit)


def _described(plot: TimePlot) -> str:
    """For who does not see it: each line's first and last value and its highest; the table below has more."""
    parts = []
    for line in plot.lines:
        if line.days:
            first, last, top = line.days[0], line.days[-1], max(line.days, key=lambda day: day[1])
            parts.append(
                f"{line.name}: {_value_text(first[1], plot.unit)} on {say.date(first[0])},"
                f" {_value_text(last[1], plot.unit)} on {say.date(last[0])},"
                f" highest {_value_text(top[1], plot.unit)} on {say.date(top[0])}"
            )
    return "Lines over days. " + "; ".join(parts) + "."
