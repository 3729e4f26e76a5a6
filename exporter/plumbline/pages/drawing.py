"""Plots as inline SVG, the parts: scales, shapes, swatches. No script, no font, no colour of their own.

Drawn here and not by a library, for what the page has to be: its colours are custom properties of CSS, so that one
picture serves light, dark and paper; each panel is drawn 360 units wide, so that its text has the size of the page's
on a phone and beside others on a desk; every mark says its figure as printed, without a script. Libraries fix
colours and sizes when they draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plumbline.htmltext import Html, tag

WIDTH = 360


def swatch(index: int) -> Html:
    """A line's mark for the legend."""
    stroke = tag("line", x1="0", y1="6", x2="26", y2="6", class_=line_class(index))
    return tag("svg", stroke, mark(index, 13, 6, doubt=False), viewBox="0 0 26 12", class_="swatch", aria_hidden="true")


def bar_swatch(index: int) -> Html:
    """A bar's colour for the legend."""
    bar = tag("rect", width="12", height="12", rx="2", class_=f"fill{index % 8}")
    return tag("svg", bar, viewBox="0 0 12 12", class_="swatch square", aria_hidden="true")


def hollow_swatch() -> Html:
    """For the legend of a plot with doubtful figures."""
    circle = tag("circle", cx="6", cy="6", r="4.5", class_="hollow line7")
    return tag("svg", circle, viewBox="0 0 12 12", class_="swatch square", aria_hidden="true")


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


# --- shapes


def mark(index: int, x: float, y: float, *, doubt: bool) -> Html:
    """A shape for each line, so that colour is never alone; hollow where the figure is in doubt."""
    style = f"hollow line{index % 8}" if doubt else f"fill{index % 8}"
    if index % 4 == 0:
        return tag("circle", cx=n(x), cy=n(y), r="4", class_=style)
    corners = {
        1: ((-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)),
        2: ((0, -4.8), (4.6, 3.6), (-4.6, 3.6)),
        3: ((0, -5), (5, 0), (0, 5), (-5, 0)),
    }[index % 4]
    return tag("polygon", points=" ".join(f"{n(x + dx)},{n(y + dy)}" for dx, dy in corners), class_=style)


def line_class(index: int) -> str:
    """Eight colours; from the fifth on dashed."""
    return f"line line{index % 8}" + (" dashed" if index % 8 > 3 else "")


def cut(words: str, most: int) -> str:
    """No longer than ``most`` characters."""
    return words if len(words) <= most else words[: most - 1] + "…"


def n(number: float) -> str:
    """A coordinate."""
    return f"{number:.1f}".removesuffix(".0")


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Html:
    """A straight one."""
    return tag("line", x1=n(x1), y1=n(y1), x2=n(x2), y2=n(y2), class_=style)


def text(x: float, y: float, words: str, anchor: str, style: str = "") -> Html:
    """``anchor``: start, middle or end."""
    return tag("text", words, x=n(x), y=n(y), text_anchor=anchor, class_=style)
