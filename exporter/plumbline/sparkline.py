"""A row of figures as a small picture: what a template draws, and the same in words.

From 0 up, so that twice as high is twice as slow; the baseline is a line across. Where nothing was measured the line is
broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plumbline.status_model import Trend, figure_text

WIDTH, HEIGHT = 120, 32
_MARGIN = 3.0  # room for the last figure's mark and the line's width


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Coordinates as SVG has them, from the top left; ``baseline``: its height, empty where there is none."""

    words: str
    lines: tuple[str, ...]
    last: tuple[str, str]
    baseline: str = ""
    width: int = WIDTH
    height: int = HEIGHT


def sparkline(trend: Trend) -> Sparkline | None:
    """``None`` without a figure to draw."""
    known = [value for value in trend.values if value is not None]
    if not known:
        return None
    top = max(*known, trend.baseline or 0.0) or 1.0
    points = [
        None if value is None else (_x(index, len(trend.values)), _y(value, top))
        for index, value in enumerate(trend.values)
    ]
    x, y = next(point for point in reversed(points) if point is not None)
    return Sparkline(
        in_words(trend),
        tuple(" ".join(f"{x:.1f},{y:.1f}" for x, y in run) for run in _runs(points)),
        (f"{x:.1f}", f"{y:.1f}"),
        f"{_y(trend.baseline, top):.1f}" if trend.baseline else "",
    )


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
