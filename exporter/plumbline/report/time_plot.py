"""Plots of daily values over the period of a review."""

from collections.abc import Iterable
from statistics import median

from msgspec import Struct

from plumbline.core import words as say
from plumbline.core.words import DAY_S
from plumbline.pages.charts import Curve, LineChart, Point, date_ticks
from plumbline.pages.document import Plot, Table
from plumbline.report.model import Days, Review, Span
from plumbline.report.period import Period

_BREAK_DAYS = 1.5


class Line(Struct, frozen=True):
    """One line of daily values, interrupted where a day is missing."""

    name: str
    days: Days


def time_plot(
    period: Period,
    lines: tuple[Line, ...],
    *,
    title: str,
    about: str,
    unit: str,
    gaps: tuple[Span, ...] = (),
    level: tuple[str, float] | None = None,
    moments: tuple[tuple[str, float], ...] = (),
    picture_only: bool = False,
) -> Plot:
    """A plot with a table. ``unit``: ``ratio``, ``share`` or a base unit. ``level`` (name, value) is drawn dashed;
    ``moments`` are names and Unix seconds. The table has weekly medians; cells without data are empty."""

    def part(at_s: float) -> float:
        return (at_s - period.start_s) / period.length_s

    def curve(index: int, line: Line) -> Curve:
        points: list[Point | None] = []
        for (day, value), (before, _) in zip(line.days, (line.days[:1] + line.days), strict=False):
            if day - before > _BREAK_DAYS * DAY_S:
                points.append(None)
            points.append(Point(part(min(day + DAY_S / 2, period.end_s)), value))  # a day is drawn at its noon
        return Curve(line.name, index, tuple(points))

    chart = LineChart(
        title=title,
        description=_described(lines, unit),
        unit=unit,
        curves=tuple(curve(index, line) for index, line in enumerate(lines)),
        ticks=date_ticks(period.start_s, period.end_s),
        gaps=tuple(
            (part(gap.start_s), part(gap.end_s), f"no data from {say.moment(gap.start_s)} to {say.moment(gap.end_s)}")
            for gap in gaps
        ),
        level=level,
        moments=tuple((part(at), name) for name, at in moments),
    )
    weeks = range(period.start_s, period.end_s, 7 * DAY_S)
    rows = tuple((say.date(week), *(_median(line, week, unit) for line in lines)) for week in weeks)
    names = tuple(line.name for line in lines)
    return Plot(
        title, about, (("", chart),), names, ("Week from", *names), rows, weekly=True, picture_only=picture_only
    )


def _median(line: Line, week_s: int, unit: str) -> str:
    values = [value for day, value in line.days if week_s <= day < week_s + 7 * DAY_S]
    return say.level(median(values), unit) if values else ""


def _described(lines: tuple[Line, ...], unit: str) -> str:
    """Text alternative: each line's first, last and highest value; the table below has more."""
    parts = []
    for line in lines:
        if line.days:
            first, last, top = (
                f"{say.level(value, unit)} on {say.date(day)}"
                for day, value in (line.days[0], line.days[-1], max(line.days, key=lambda day: day[1]))
            )
            parts.append(f"{line.name}: {first}, {last}, highest {top}")
    return "Lines over days. " + "; ".join(parts) + "."


def table(review: Review, title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, tuple[str, ...]]]) -> Table:
    """``rows``: cluster and cells. The cluster gets a column if there are several."""
    if len(review.coverage) > 1:
        return Table(title, (*heads, "Cluster"), tuple((*cells, cluster) for cluster, cells in rows))
    return Table(title, heads, tuple(cells for _, cells in rows))


def gaps(review: Review, cluster: str | None = None) -> tuple[Span, ...]:
    """The gaps of a cluster; without ``cluster`` those of the only one, because gaps differ between clusters."""
    rows = [row for row in review.coverage if cluster in (None, row.cluster)]
    return rows[0].gaps if len(rows) == 1 else ()
