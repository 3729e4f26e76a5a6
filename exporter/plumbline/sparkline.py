"""A row of figures as a small inline SVG: no script, no colour of its own, and the same in words.

From 0 up, so that twice as high is twice as slow; the baseline is a dashed line across. Where nothing was measured the
line is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plumbline.core.units import figure_text
from plumbline.htmltext import Html, tag
from plumbline.status_model import Trend

WIDTH, HEIGHT = 120, 32
_MARGIN = 3.0
"""Room for the last figure's mark and the line's width."""


def sparkline(trend: Trend) -> Html:
    """The picture; nothing without a figure to draw."""
    known = [value for value in trend.values if value is not None]
    if not known:
        return Html("")
    top = max(*known, trend.baseline or 0.0) or 1.0
    points = [None if value is None else (_x(index, len(trend.values)), _y(value, top)) for index, value in
              enumerate(trend.values)]  # fmt: skip
    marks: list[Html] = []
    if trend.baseline:
        y = f"{_y(trend.baseline, top):.1f}"
        marks.append(tag("line", x1="0", x2=str(WIDTH), y1=y, y2=y, class_="accepted"))
    for run in _runs(points):
        marks.append(tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in run)))
    last = next(point for point in reversed(points) if point is not None)
    marks.append(tag("circle", cx=f"{last[0]:.1f}", cy=f"{last[1]:.1f}", r="2.5"))
    return tag("svg", *marks, class_="spark", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=in_words(trend))


def in_words(trend: Trend) -> str:
    """What the picture shows: ``p50, last 60 min: last 1.05 ms, least 300 µs, most 1.2 ms; baseline 331 µs``."""
    known = [value for value in trend.values if value is not None]
    if not known:
        return f"{trend.of}: nothing measured"
    last, least, most = (figure_text(trend.measure, value) for value in (known[-1], min(known), max(known)))
    baseline = f"baseline {figure_text(trend.measure, trend.baseline)}" if trend.baseline else "no baseline"
    return f"{trend.of}: last {last}, least {least}, most {most}; {baseline}"


def _x(index: int, count: int) -> float:
    return WIDTH - _MARGIN if count == 1 else _MARGIN + (WIDTH - 2 * _MARGIN) * index / (count - 1)


def _y(value: float, top: float) -> float:
    return HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * value / top


def _runs(points: Sequence[tuple[float, float] | None]) -> Iterator[list[tuple[float, float]]]:
    """Neighbours that are all known; one alone is drawn as a short stroke."""
    run: list[tuple[float, float]] = []
    for point in (*points, None):
        if point is not None:
            run.append(point)
        elif run:
            x, y = run[0]
            yield run if len(run) > 1 else [(x - 1, y), (x + 1, y)]
            run = []
