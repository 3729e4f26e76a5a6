"""Lines over the days of a period, as SVG; its shapes are those of :mod:`plumbline.pages.drawing`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from statistics import median

from plumbline.core.units import si
from plumbline.htmltext import Html, tag
from plumbline.pages import drawing as draw
from plumbline.pages.drawing import WIDTH, Scale
from plumbline.review import phrases as say
from plumbline.review.document import Line, TimePlot
from plumbline.review.period import DAY_S

_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 190, 46, 10, 12, 26
_BREAK_DAYS = 1.5
_LABEL_ROOM = 44.0
"""Units that a date below the axis takes."""


def plot_svg(plot: TimePlot, ident: str) -> Html:
    """The picture. ``ident`` is unique on the page; title and description are what a screen reader says."""
    scale = _scale(plot)
    return tag(
        "svg",
        tag("title", plot.title, id=f"{ident}-t"),
        tag("desc", _described(plot), id=f"{ident}-d"),
        *_gaps(plot),
        *_axes(plot, scale),
        *(mark for index, line in enumerate(plot.lines) for mark in _line(plot, line, index, scale)),
        *_level(plot, scale),
        *_moments(plot),
        viewBox=f"0 0 {WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{ident}-t {ident}-d",
    )


def plot_table(plot: TimePlot) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: the median of each week of the period; empty where there was no data."""
    heads = ["Week from", *(line.name for line in plot.lines)]
    rows = []
    for start in range(int(plot.start_s), int(plot.end_s), 7 * DAY_S):
        cells = []
        for line in plot.lines:
            found = [value for day, value in line.days if start <= day < start + 7 * DAY_S]
            cells.append(value_text(median(found), plot.unit) if found else "")
        rows.append([say.date(start), *cells])
    return heads, rows


def value_text(value: float, unit: str) -> str:
    """As the axis says it, with more digits."""
    if unit == "share":
        return say.share(value)
    return f"× {say.number(value)}" if unit == "ratio" else si(value, unit)


def _scale(plot: TimePlot) -> Scale:
    values = [value for line in plot.lines for _, value in line.days]
    if plot.level is not None:
        values.append(plot.level[1])
    highest = max(values, default=0.0)
    return draw.linear([highest if highest > 0 else 1.0], wanted=4)


def _x(plot: TimePlot, at_s: float) -> float:
    part = (at_s - plot.start_s) / (plot.end_s - plot.start_s)
    return _LEFT + min(max(part, 0.0), 1.0) * (WIDTH - _LEFT - _RIGHT)


def _y(scale: Scale, value: float) -> float:
    return _TOP + (1 - scale.at(value)) * (_HEIGHT - _TOP - _BOTTOM)


def _gaps(plot: TimePlot) -> Iterator[Html]:
    for gap in plot.gaps:
        left, right = _x(plot, gap.start_s), _x(plot, gap.end_s)
        said = tag("title", f"no data from {say.moment(gap.start_s)} to {say.moment(gap.end_s)}")
        shape = tag(
            "rect",
            x=draw.n(left),
            y=draw.n(_TOP),
            width=draw.n(max(right - left, 0.5)),
            height=draw.n(_HEIGHT - _TOP - _BOTTOM),
            class_="shade",
        )
        yield tag("g", said, shape)
        if right - left > 34:
            yield draw.text((left + right) / 2, _TOP + 12, "no data", "middle", "small")


def _axes(plot: TimePlot, scale: Scale) -> Iterator[Html]:
    for tick in scale.ticks:
        y = _y(scale, tick)
        yield draw.line(_LEFT, y, WIDTH - _RIGHT, y, "grid")
        yield draw.text(_LEFT - 6, y + 4, _tick(tick, plot.unit), "end")
    bottom = _HEIGHT - _BOTTOM
    yield draw.line(_LEFT, bottom, WIDTH - _RIGHT, bottom, "axis")
    for at in _dates(plot):
        x = _x(plot, at)
        yield draw.line(x, bottom, x, bottom + 4, "tick")
        when = datetime.fromtimestamp(at, UTC)
        yield draw.text(x, bottom + 16, f"{when.day} {when:%b}", "middle")


def _tick(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value * 100:.3g} %"
    return f"× {value:.3g}" if unit == "ratio" else si(value, unit)


def _dates(plot: TimePlot) -> list[int]:
    """Midnights, as many as have room: each day, week, two weeks, four …"""
    days = list(range(int(plot.start_s), int(plot.end_s), DAY_S))
    room = int((WIDTH - _LEFT - _RIGHT) / _LABEL_ROOM)
    step = next(step for step in (1, 2, 7, 14, 28, 56, 112, 364) if len(days) / step <= room)
    return [day for day in days[::step] if _x(plot, day) < WIDTH - _RIGHT - _LABEL_ROOM / 4]


def _line(plot: TimePlot, line: Line, index: int, scale: Scale) -> Iterator[Html]:
    """Interrupted where days are missing: what was not measured is not drawn. A day stands at its noon."""
    pieces: list[list[tuple[int, float]]] = []
    for day, value in line.days:
        if not pieces or day - pieces[-1][-1][0] > _BREAK_DAYS * DAY_S:
            pieces.append([])
        pieces[-1].append((day, value))
    marks = []
    for piece in pieces:
        places = [
            f"{draw.n(_x(plot, min(day + DAY_S / 2, plot.end_s)))},{draw.n(_y(scale, value))}" for day, value in piece
        ]
        if len(places) == 1:
            x, _, y = places[0].partition(",")
            marks.append(tag("circle", cx=x, cy=y, r="2", class_=f"fill{index % 8}"))
        else:
            marks.append(tag("polyline", points=" ".join(places), class_=draw.line_class(index)))
    yield tag("g", tag("title", line.name), *marks)
    # a mark at each end of the line, so that lines are told apart without colour
    for day, value in (line.days[0], line.days[-1]) if line.days and len(plot.lines) > 1 else ():
        yield draw.mark(index, _x(plot, min(day + DAY_S / 2, plot.end_s)), _y(scale, value), doubt=False)


def _level(plot: TimePlot, scale: Scale) -> Iterator[Html]:
    if plot.level is not None:
        name, value = plot.level
        y = _y(scale, value)
        yield draw.line(_LEFT, y, WIDTH - _RIGHT, y, "level")
        yield draw.text(_LEFT + 4, y - 4, name, "start", "small")


def _moments(plot: TimePlot) -> Iterator[Html]:
    for name, at in plot.moments:
        x = _x(plot, at)
        yield tag("g", tag("title", name), draw.line(x, _TOP, x, _HEIGHT - _BOTTOM, "moment"))
        left = x > WIDTH * 0.6
        yield draw.text(x - 4 if left else x + 4, _TOP + 8, name, "end" if left else "start", "small")


def _described(plot: TimePlot) -> str:
    """For who does not see it: each line's first and last value and its highest; the table below has more."""
    parts = []
    for line in plot.lines:
        if line.days:
            first, last, top = line.days[0], line.days[-1], max(line.days, key=lambda day: day[1])
            parts.append(
                f"{line.name}: {value_text(first[1], plot.unit)} on {say.date(first[0])},"
                f" {value_text(last[1], plot.unit)} on {say.date(last[0])},"
                f" highest {value_text(top[1], plot.unit)} on {say.date(top[0])}"
            )
    return "Lines over days. " + "; ".join(parts) + "."
