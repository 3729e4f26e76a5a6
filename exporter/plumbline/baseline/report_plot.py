"""Plots of a report as inline SVG: no script, no font, no colour of their own.

Drawn here and not by a library, for what the page has to be: its colours are custom properties of CSS, so that one
picture serves light, dark and paper; each panel is drawn 360 units wide, so that its text has the size of the page's
on a phone and beside others on a desk; every mark says its figure as printed, without a script. Libraries fix
colours and sizes when they draw.

A panel's text stands in the page's language of units: axes in base units with SI prefixes, figures as printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plumbline.baseline import report_words as words
from plumbline.baseline.report_model import Bar, Line, Panel, Plot, Value
from plumbline.htmltext import Html, tag

WIDTH = 360
_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 232, 52, 10, 10, 44
_BAR_ROW, _BAR, _GROUP_HEAD, _BAR_AXIS = 34, 13, 24, 8
_LABEL_CHARS = 38
"""Of the 11-unit font, between two edges of a panel."""


def panel_svg(plot: Plot, panel: Panel, ident: str) -> Html:
    """One panel. ``ident`` is unique on the page; title and description are what a screen reader says."""
    height, marks = _curve(plot, panel) if panel.lines else _bars(panel)
    name = words.FIGURE_TITLES[panel.figure]
    return tag(
        "svg",
        tag("title", f"{plot.title}: {name.lower()}", id=f"{ident}-t"),
        tag("desc", _described(plot, panel), id=f"{ident}-d"),
        *marks,
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_labelledby=f"{ident}-t {ident}-d",
    )


def swatch(index: int) -> Html:
    """A line's mark for the legend."""
    line = tag("line", x1="0", y1="6", x2="26", y2="6", class_=_line_class(index))
    return tag("svg", line, _mark(index, 13, 6, doubt=False), viewBox="0 0 26 12", class_="swatch", aria_hidden="true")


def bar_swatch(index: int) -> Html:
    """A bar's colour for the legend."""
    bar = tag("rect", width="12", height="12", rx="2", class_=f"fill{index % 8}")
    return tag("svg", bar, viewBox="0 0 12 12", class_="swatch square", aria_hidden="true")


def hollow_swatch() -> Html:
    """For the legend of a plot with doubtful figures."""
    mark = tag("circle", cx="6", cy="6", r="4.5", class_="hollow line7")
    return tag("svg", mark, viewBox="0 0 12 12", class_="swatch square", aria_hidden="true")


# --- scales


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to 0…1; ``ticks`` in base units."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Where ``value`` lies."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(values: Sequence[float], wanted: int = 4) -> Scale:
    """From 0 to the round number above the highest, with about ``wanted`` steps."""
    highest = max(values)
    rough = highest / wanted
    power: float = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    count = math.ceil(highest / step * 0.999)
    return Scale(0.0, count * step, False, tuple(index * step for index in range(count + 1)))


def logarithmic(values: Sequence[float]) -> Scale:
    """Between the round numbers (1, 2, 5) around all values; a tick each power of ten, or more where there are few."""
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


# --- curves


def _curve(plot: Plot, panel: Panel) -> tuple[int, list[Html]]:
    bases = [value.base for value in panel.values]
    scale = logarithmic(bases) if panel.logarithmic else linear(bases)
    unit = words.base_unit(panel.figure)
    high = _HEIGHT - _TOP - _BOTTOM
    marks = []
    for tick in scale.ticks:
        y = _TOP + (1 - scale.at(tick)) * high
        marks.append(_line(_LEFT, y, WIDTH - _RIGHT, y, "grid"))
        marks.append(_text(_LEFT - 6, y + 4, words.si(tick, unit), "end"))
    for index, label in enumerate(plot.ticks):
        x = _x(index, len(plot.ticks))
        marks.append(_line(x, _HEIGHT - _BOTTOM, x, _HEIGHT - _BOTTOM + 4, "tick"))
        marks += _tick_label(x, label)
    marks.append(_line(_LEFT, _HEIGHT - _BOTTOM, WIDTH - _RIGHT, _HEIGHT - _BOTTOM, "axis"))
    below = _HEIGHT - (2 if any(" " in tick for tick in plot.ticks) else 12)  # ticks with units take two lines
    marks.append(_text((_LEFT + WIDTH - _RIGHT) / 2, below, plot.axis, "middle"))
    for line in panel.lines:
        marks += _polyline(plot, line, scale, high)
    return _HEIGHT, marks


def _x(index: int, count: int) -> float:
    """Ticks stand at equal distances: queue depths and block sizes double, so the axis is logarithmic to the base 2."""
    room = WIDTH - _LEFT - _RIGHT - 24
    return _LEFT + 12 + (room / 2 if count == 1 else room * index / (count - 1))


def _tick_label(x: float, label: str) -> Iterator[Html]:
    """A unit goes below its number, so that eight sizes stand side by side."""
    number, _, unit = label.partition(" ")
    yield _text(x, _HEIGHT - _BOTTOM + 15, number, "middle")
    if unit:
        yield _text(x, _HEIGHT - _BOTTOM + 26, unit, "middle", "small")


def _polyline(plot: Plot, line: Line, scale: Scale, high: int) -> Iterator[Html]:
    """The line stops where a tick has no value: what was not measured is not drawn."""
    places = [
        None if value is None else (_x(index, len(plot.ticks)), _TOP + (1 - scale.at(value.base)) * high, value)
        for index, value in enumerate(line.values)
    ]
    piece: list[str] = []
    for place in [*places, None]:
        if place is not None:
            piece.append(f"{_n(place[0])},{_n(place[1])}")
            continue
        if len(piece) > 1:
            yield tag("polyline", points=" ".join(piece), class_=_line_class(line.series))
        piece = []
    for tick, place in zip(plot.ticks, places, strict=True):
        if place is not None:
            x, y, value = place
            said = tag("title", f"{plot.series[line.series]}, {tick}: {_said(value)}")
            yield tag("g", said, _mark(line.series, x, y, doubt=value.doubt))


def _mark(index: int, x: float, y: float, *, doubt: bool) -> Html:
    """A shape for each line, so that colour is never alone; hollow where the figure is in doubt."""
    style = f"hollow line{index % 8}" if doubt else f"fill{index % 8}"
    if index % 4 == 0:
        return tag("circle", cx=_n(x), cy=_n(y), r="4", class_=style)
    corners = {
        1: ((-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)),
        2: ((0, -4.8), (4.6, 3.6), (-4.6, 3.6)),
        3: ((0, -5), (5, 0), (0, 5), (-5, 0)),
    }[index % 4]
    return tag("polygon", points=" ".join(f"{_n(x + dx)},{_n(y + dy)}" for dx, dy in corners), class_=style)


def _line_class(index: int) -> str:
    return f"line line{index % 8}" + (" dashed" if index % 8 > 3 else "")


# --- bars


def _bars(panel: Panel) -> tuple[int, list[Html]]:
    longest = max(bar.value.base for bar in panel.bars)
    groups: dict[str, list[Bar]] = {}
    for bar in panel.bars:
        groups.setdefault(bar.group, []).append(bar)
    marks, y = [], 0
    for group, bars in groups.items():
        y += _GROUP_HEAD
        marks.append(_text(0, y - 8, group, "start", "group"))
        for bar in bars:
            marks += _bar(bar, panel.figure, longest, y)
            y += _BAR_ROW
    return y + _BAR_AXIS, marks


def _bar(bar: Bar, name: str, longest: float, y: float) -> Iterator[Html]:
    """Name and figure above the bar: both are read at any width, and no bar is too short for its label."""
    width = max(1.0, bar.value.base / longest * WIDTH)
    style = f"hollow line{bar.subject % 8}" if bar.value.doubt else f"fill{bar.subject % 8}"
    printed = bar.value.printed
    if len(printed) > words.READABLE:
        unit = words.base_unit(name)
        printed = words.si(bar.value.base, unit) + (" IOPS" if unit == "1/s" else "")
    figure = printed + (" (in doubt)" if bar.value.doubt else "")
    label = _cut(bar.label, _LABEL_CHARS - len(figure) + 12)
    yield _text(0, y + 9, label, "start")
    yield _text(WIDTH, y + 9, figure, "end", "figure")
    said = tag("title", f"{bar.group}, {bar.label}: {_said(bar.value)}")
    yield tag("g", said, tag("rect", x="0", y=_n(y + 13), width=_n(width), height=str(_BAR), rx="2", class_=style))


# --- words and shapes


def _described(plot: Plot, panel: Panel) -> str:
    """For who does not see it: what is drawn, and of each line its ends. The table below has all figures."""
    if panel.bars:
        return "; ".join(f"{bar.group}, {bar.label}: {bar.value.printed}" for bar in panel.bars)
    parts = []
    for line in panel.lines:
        known = [(tick, value) for tick, value in zip(plot.ticks, line.values, strict=True) if value is not None]
        ends = [known[0]] if len(known) == 1 else [known[0], known[-1]]
        parts.append(f"{plot.series[line.series]}: " + ", ".join(f"{value.printed} at {tick}" for tick, value in ends))
    scale = "logarithmic" if panel.logarithmic else "linear"
    return f"Lines over {plot.axis}, {scale} axis. {'; '.join(parts)}."


def _said(value: Value) -> str:
    return value.printed + (", in doubt" if value.doubt else "")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> Html:
    return tag("line", x1=_n(x1), y1=_n(y1), x2=_n(x2), y2=_n(y2), class_=style)


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> Html:
    return tag("text", text, x=_n(x), y=_n(y), text_anchor=anchor, class_=style)
