"""Plots of a report on baselines as inline SVG; its shapes are those of :mod:`plumbline.pages.drawing`.

A panel's text stands in the page's language of units: axes in base units with SI prefixes, figures as printed.
"""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.baseline import report_words as words
from plumbline.baseline.report_model import Bar, Line, Panel, Plot, Value
from plumbline.core.units import si
from plumbline.htmltext import Html, tag
from plumbline.pages import drawing as draw
from plumbline.pages.drawing import WIDTH, Scale, linear, logarithmic

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


# --- curves


def _curve(plot: Plot, panel: Panel) -> tuple[int, list[Html]]:
    bases = [value.base for value in panel.values]
    scale = logarithmic(bases) if panel.logarithmic else linear(bases)
    unit = words.base_unit(panel.figure)
    high = _HEIGHT - _TOP - _BOTTOM
    marks = []
    for tick in scale.ticks:
        y = _TOP + (1 - scale.at(tick)) * high
        marks.append(draw.line(_LEFT, y, WIDTH - _RIGHT, y, "grid"))
        marks.append(draw.text(_LEFT - 6, y + 4, si(tick, unit), "end"))
    for index, label in enumerate(plot.ticks):
        x = _x(index, len(plot.ticks))
        marks.append(draw.line(x, _HEIGHT - _BOTTOM, x, _HEIGHT - _BOTTOM + 4, "tick"))
        marks += _tick_label(x, label)
    marks.append(draw.line(_LEFT, _HEIGHT - _BOTTOM, WIDTH - _RIGHT, _HEIGHT - _BOTTOM, "axis"))
    below = _HEIGHT - (2 if any(" " in tick for tick in plot.ticks) else 12)  # ticks with units take two lines
    marks.append(draw.text((_LEFT + WIDTH - _RIGHT) / 2, below, plot.axis, "middle"))
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
    yield draw.text(x, _HEIGHT - _BOTTOM + 15, number, "middle")
    if unit:
        yield draw.text(x, _HEIGHT - _BOTTOM + 26, unit, "middle", "small")


def _polyline(plot: Plot, line: Line, scale: Scale, high: int) -> Iterator[Html]:
    """The line stops where a tick has no value: what was not measured is not drawn."""
    places = [
        None if value is None else (_x(index, len(plot.ticks)), _TOP + (1 - scale.at(value.base)) * high, value)
        for index, value in enumerate(line.values)
    ]
    piece: list[str] = []
    for place in [*places, None]:
        if place is not None:
            piece.append(f"{draw.n(place[0])},{draw.n(place[1])}")
            continue
        if len(piece) > 1:
            yield tag("polyline", points=" ".join(piece), class_=draw.line_class(line.series))
        piece = []
    for tick, place in zip(plot.ticks, places, strict=True):
        if place is not None:
            x, y, value = place
            said = tag("title", f"{plot.series[line.series]}, {tick}: {_said(value)}")
            yield tag("g", said, draw.mark(line.series, x, y, doubt=value.doubt))


# --- bars


def _bars(panel: Panel) -> tuple[int, list[Html]]:
    longest = max(bar.value.base for bar in panel.bars)
    groups: dict[str, list[Bar]] = {}
    for bar in panel.bars:
        groups.setdefault(bar.group, []).append(bar)
    marks, y = [], 0
    for group, bars in groups.items():
        y += _GROUP_HEAD
        marks.append(draw.text(0, y - 8, group, "start", "group"))
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
        printed = si(bar.value.base, unit) + (" IOPS" if unit == "1/s" else "")
    figure = printed + (" (in doubt)" if bar.value.doubt else "")
    label = draw.cut(bar.label, _LABEL_CHARS - len(figure) + 12)
    yield draw.text(0, y + 9, label, "start")
    yield draw.text(WIDTH, y + 9, figure, "end", "figure")
    said = tag("title", f"{bar.group}, {bar.label}: {_said(bar.value)}")
    yield tag(
        "g", said, tag("rect", x="0", y=draw.n(y + 13), width=draw.n(width), height=str(_BAR), rx="2", class_=style)
    )


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
