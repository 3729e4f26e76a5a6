"""Charts as inline SVG: lines, bars, sparklines and legend swatches. They take only numbers and labels.

Drawn here rather than by a library, because libraries fix colours and sizes when they draw. Here colours are CSS custom
properties, so that one picture serves light, dark and paper; each chart is 360 units wide, so that its text matches the
page's on a phone and, beside other charts, on a desktop; every mark shows its value as a tooltip, without a script.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct

from plumbline.core.units import si
from plumbline.pages.htmltext import Html, tag

T = TypeVar("T")

WIDTH = 360
SPARK_WIDTH, SPARK_HEIGHT = 120, 32
_TOP, _RIGHT = 12, WIDTH - 10
_TIME_LEFT = 46
_DAY_S = 86400
# minimum width in units of a date below the axis
_DATE_ROOM = 44.0
_BAR_ROW, _BAR, _GROUP_HEAD, _BAR_AXIS = 34, 13, 24, 8
# characters of the 11-unit font that fit across a chart
_LABEL_CHARS = 38
# space for the last value's mark and the line's width
_SPARK_MARGIN = 3.0


class Point(Struct, frozen=True):
    """``x`` is 0 to 1 across the width; ``value`` is in base units. A point with a ``tooltip`` gets a mark."""

    x: float
    value: float
    tooltip: str = ""
    doubt: bool = False


class Curve(Struct, frozen=True):
    """One line. ``None`` interrupts it: missing values are not drawn. ``colour``: see :func:`line_class`."""

    name: str
    colour: int
    points: tuple[Point | None, ...]


class LineChart(Struct, frozen=True):
    """``unit`` is ``ratio``, ``share`` or a base unit. Ticks, gaps and moments start with their position, 0 to 1. The
    second line of a tick's label is printed small: units of sizes. ``gaps`` (start, end, tooltip) are drawn shaded,
    ``level`` (name, value) as a dashed horizontal line."""

    title: str
    description: str
    unit: str
    curves: tuple[Curve, ...]
    ticks: tuple[tuple[float, str], ...]
    axis: str = ""
    logarithmic: bool = False
    gaps: tuple[tuple[float, float, str], ...] = ()
    level: tuple[str, float] | None = None
    moments: tuple[tuple[float, str], ...] = ()

    @property
    def marks(self) -> tuple[Point, ...]:
        return tuple(point for curve in self.curves for point in curve.points if point is not None)

    def svg(self, ident: str) -> Html:
        """The picture. ``ident`` must be unique on the page; a screen reader reads title and description."""
        return _picture(self, ident, *_lines(self))


class Bar(Struct, frozen=True):
    """``value`` is in base units, ``text`` the same value as printed above the bar, ``tooltip`` the tooltip."""

    label: str
    colour: int
    value: float
    text: str
    tooltip: str
    doubt: bool = False


class BarChart(Struct, frozen=True):
    title: str
    description: str
    groups: tuple[tuple[str, tuple[Bar, ...]], ...]

    @property
    def marks(self) -> tuple[Bar, ...]:
        return tuple(bar for _, bars in self.groups for bar in bars)

    def svg(self, ident: str) -> Html:
        return _picture(self, ident, *_bars(self))


def _picture(chart: LineChart | BarChart, ident: str, height: int, marks: Iterable[Html]) -> Html:
    title, description = tag("title", chart.title, id=f"{ident}-t"), tag("desc", chart.description, id=f"{ident}-d")
    size, labels = f"0 0 {WIDTH} {height}", f"{ident}-t {ident}-d"
    return tag("svg", title, description, *marks, viewBox=size, role="img", aria_labelledby=labels)


def _lines(chart: LineChart) -> tuple[int, list[Html]]:
    values = [point.value for point in chart.marks]
    if chart.level is not None:
        values.append(chart.level[1])
    scale = logarithmic(values) if chart.logarithmic else linear(values)
    left, height, below = (52, 232, 44) if chart.axis else (_TIME_LEFT, 190, 26)
    plane = _Plane(scale, left, height - below)
    curves = (mark for curve in chart.curves for mark in _curve(curve, plane, ends=len(chart.curves) > 1))
    return height, [*_gaps(chart, plane), *_axes(chart, plane), *curves, *_level(chart, plane), *_moments(chart, plane)]


def _bars(chart: BarChart) -> tuple[int, list[Html]]:
    """Label and value are printed above each bar: they fit any width, and no bar is too short for its label."""
    longest = max(bar.value for bar in chart.marks)
    marks, y = [], 0
    for group, bars in chart.groups:
        y += _GROUP_HEAD
        marks.append(_text(0, y - 8, group, "start", "group"))
        for bar in bars:
            marks += _bar(bar, longest, y)
            y += _BAR_ROW
    return y + _BAR_AXIS, marks


def sparkline(values: Sequence[float | None], baseline: float | None, label: str) -> Html:
    """A line of values, oldest first; ``label`` describes it in words. Empty if there is no value to draw. The scale
    starts at 0, so that twice as high means twice as slow; the baseline is a dashed horizontal line."""
    top = max((value for value in (*values, baseline) if value is not None), default=0.0) or 1.0
    step = (SPARK_WIDTH - 2 * _SPARK_MARGIN) / max(len(values) - 1, 1)
    first = SPARK_WIDTH - _SPARK_MARGIN - step * (len(values) - 1)

    def y(value: float) -> float:
        return SPARK_HEIGHT - _SPARK_MARGIN - (SPARK_HEIGHT - 2 * _SPARK_MARGIN) * value / top

    lines = list(runs(None if value is None else (first + i * step, y(value)) for i, value in enumerate(values)))
    if not lines:
        return Html("")
    marks = [_line(0, y(baseline), SPARK_WIDTH, y(baseline), "accepted")] if baseline else []
    for line in lines:
        # a single value is drawn as a short stroke
        x, height = line[0]
        marks.append(tag("polyline", points=_places(line if len(line) > 1 else [(x - 1, height), (x + 1, height)])))
    x, height = lines[-1][-1]
    marks.append(tag("circle", cx=_n(x), cy=_n(height), r="2.5"))
    return tag("svg", *marks, class_="spark", viewBox=f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}", role="img", aria_label=label)


def swatch(index: int) -> Html:
    stroke = tag("line", x1="0", y1="6", x2="26", y2="6", class_=line_class(index))
    return _swatch(26, stroke, _mark(index, 13, 6, doubt=False))


def bar_swatch(index: int) -> Html:
    return _swatch(12, tag("rect", width="12", height="12", rx="2", class_=f"fill{index % 8}"))


def hollow_swatch() -> Html:
    """The mark of doubtful values, for the legend."""
    return _swatch(12, tag("circle", cx="6", cy="6", r="4.5", class_="hollow line7"))


def _swatch(width: int, *shapes: Html) -> Html:
    style = "swatch square" if width == 12 else "swatch"
    return tag("svg", *shapes, viewBox=f"0 0 {width} 12", class_=style, aria_hidden="true")


def line_class(index: int) -> str:
    """CSS classes for one of eight colours; from the fifth on the line is dashed."""
    return f"line line{index % 8}" + (" dashed" if index % 8 > 3 else "")


def value_text(value: float, unit: str) -> str:
    """An axis label: ``12 %`` for ``share``, ``× 2`` for ``ratio``, ``8.33 ms`` for a base unit."""
    if unit == "share":
        return f"{value * 100:.3g} %"
    return f"× {value:.3g}" if unit == "ratio" else si(value, unit)


def date_ticks(start_s: float, end_s: float) -> tuple[tuple[float, str], ...]:
    """Midnights (UTC), as many as fit: each day, second day, week, two weeks, four …"""
    width = _RIGHT - _TIME_LEFT
    days = list(range(int(start_s), int(end_s), _DAY_S))
    step = next(step for step in (1, 2, 7, 14, 28, 56, 112, 364) if len(days) / step <= int(width / _DATE_ROOM))
    placed = ((datetime.fromtimestamp(day, UTC), (day - start_s) / (end_s - start_s)) for day in days[::step])
    return tuple((x, f"{day.day} {day:%b}") for day, x in placed if x * width < width - _DATE_ROOM / 4)


def runs(points: Iterable[T | None]) -> Iterator[list[T]]:
    for known, group in itertools.groupby(points, lambda point: point is not None):
        if known:
            yield [point for point in group if point is not None]


class _Plane(Struct, frozen=True):
    """The area of the curves; ``left`` and ``bottom`` are its edges in units."""

    scale: Scale
    left: int
    bottom: int

    def x(self, part: float) -> float:
        return self.left + min(max(part, 0.0), 1.0) * (_RIGHT - self.left)

    def y(self, value: float) -> float:
        return _TOP + (1 - self.scale.at(value)) * (self.bottom - _TOP)


def _gaps(chart: LineChart, plane: _Plane) -> Iterator[Html]:
    height = _n(plane.bottom - _TOP)
    for start, end, reason in chart.gaps:
        left, right = plane.x(start), plane.x(end)
        width = _n(max(right - left, 0.5))
        shape = tag("rect", x=_n(left), y=_n(_TOP), width=width, height=height, class_="shade")
        yield tag("g", tag("title", reason), shape)
        if right - left > 34:
            yield _text((left + right) / 2, _TOP + 12, "no data", "middle", "small")


def _axes(chart: LineChart, plane: _Plane) -> Iterator[Html]:
    for tick in plane.scale.ticks:
        y = plane.y(tick)
        yield _line(plane.left, y, _RIGHT, y, "grid")
        yield _text(plane.left - 6, y + 4, value_text(tick, chart.unit), "end")
    bottom = plane.bottom
    yield _line(plane.left, bottom, _RIGHT, bottom, "axis")
    for part, label in chart.ticks:
        x = plane.x(part)
        yield _line(x, bottom, x, bottom + 4, "tick")
        first, _, second = label.partition("\n")
        yield _text(x, bottom + 16, first, "middle")
        if second:
            yield _text(x, bottom + 27, second, "middle", "small")
    if chart.axis:
        lines_below = any("\n" in label for _, label in chart.ticks)
        yield _text((plane.left + _RIGHT) / 2, bottom + (42 if lines_below else 32), chart.axis, "middle")


def _curve(curve: Curve, plane: _Plane, *, ends: bool) -> Iterator[Html]:
    """``ends`` puts a mark at each end, so that several lines can be distinguished without colour."""
    shapes = []
    for run in runs(curve.points):
        x, y = plane.x(run[0].x), plane.y(run[0].value)
        if len(run) > 1:
            places = _places((plane.x(point.x), plane.y(point.value)) for point in run)
            shapes.append(tag("polyline", points=places, class_=line_class(curve.colour)))
        elif not run[0].tooltip:
            shapes.append(tag("circle", cx=_n(x), cy=_n(y), r="2", class_=f"fill{curve.colour % 8}"))
    yield tag("g", tag("title", curve.name), *shapes)
    known = [point for point in curve.points if point is not None]
    marked = [point for point in known if point.tooltip] or ([known[0], known[-1]] if ends and known else [])
    for point in marked:
        shape = _mark(curve.colour, plane.x(point.x), plane.y(point.value), doubt=point.doubt)
        yield tag("g", tag("title", point.tooltip), shape) if point.tooltip else shape


def _level(chart: LineChart, plane: _Plane) -> Iterator[Html]:
    if chart.level is not None:
        name, value = chart.level
        y = plane.y(value)
        yield _line(plane.left, y, _RIGHT, y, "level")
        yield _text(plane.left + 4, y - 4, name, "start", "small")


def _moments(chart: LineChart, plane: _Plane) -> Iterator[Html]:
    for part, name in chart.moments:
        x = plane.x(part)
        yield tag("g", tag("title", name), _line(x, _TOP, x, plane.bottom, "moment"))
        left = x > WIDTH * 0.6
        yield _text(x - 4 if left else x + 4, _TOP + 8, name, "end" if left else "start", "small")


def _bar(bar: Bar, longest: float, y: float) -> Iterator[Html]:
    style = f"hollow line{bar.colour % 8}" if bar.doubt else f"fill{bar.colour % 8}"
    room = _LABEL_CHARS - len(bar.text) + 12
    label = bar.label if len(bar.label) <= room else bar.label[: room - 1] + "…"
    yield _text(0, y + 9, label, "start")
    yield _text(WIDTH, y + 9, bar.text, "end", "figure")
    width = _n(max(1.0, bar.value / longest * WIDTH))
    shape = tag("rect", x="0", y=_n(y + 13), width=width, height=str(_BAR), rx="2", class_=style)
    yield tag("g", tag("title", bar.tooltip), shape)


def _mark(index: int, x: float, y: float, *, doubt: bool) -> Html:
    """A different shape for each line, so that colour is not the only distinction; hollow if the value is doubtful."""
    style = f"hollow line{index % 8}" if doubt else f"fill{index % 8}"
    if index % 4 == 0:
        return tag("circle", cx=_n(x), cy=_n(y), r="4", class_=style)
    corners = {
        1: ((-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)),
        2: ((0, -4.8), (4.6, 3.6), (-4.6, 3.6)),
        3: ((0, -5), (5, 0), (0, 5), (-5, 0)),
    }[index % 4]
    return tag("polygon", points=_places((x + dx, y + dy) for dx, dy in corners), class_=style)


def _places(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> Html:
    return tag("line", x1=_n(x1), y1=_n(y1), x2=_n(x2), y2=_n(y2), class_=style)


def _text(x: float, y: float, words: str, anchor: str, style: str = "") -> Html:
    return tag("text", words, x=_n(x), y=_n(y), text_anchor=anchor, class_=style)


class Scale(Struct, frozen=True):
    """Maps values to 0…1; ``ticks`` are in base units."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(values: Sequence[float], steps: int = 4) -> Scale:
    """From 0 to a round number at or above the maximum, with about ``steps`` steps."""
    highest = max(values, default=0.0)
    rough = (highest if highest > 0 else 1.0) / steps
    power: float = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    count = math.ceil(rough * steps / step * 0.999)
    return Scale(0.0, count * step, False, tuple(index * step for index in range(count + 1)))


def logarithmic(values: Sequence[float]) -> Scale:
    """Between round numbers (1, 2, 5) that enclose all values; one tick per power of ten, more if there are few."""
    low, high = _round_log(min(values), up=False), _round_log(max(values), up=True)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    decades = math.log10(high / low)
    factors: tuple[int, ...] = (1,) if decades > 2.5 else (1, 3) if decades > 2 else (1, 2, 5)
    inside = (factor * 10.0**power for power in powers for factor in factors)
    return Scale(low, high, True, tuple(tick for tick in inside if low * 0.999 <= tick <= high * 1.001))


def _round_log(value: float, *, up: bool) -> float:
    power: float = 10.0 ** math.floor(math.log10(value))
    rounds = [power * factor for factor in (1, 2, 5, 10)]
    return next(r for r in rounds if r >= value * 0.999) if up else max(r for r in rounds if r <= value * 1.001)
