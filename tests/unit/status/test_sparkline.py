"""Small pictures of the last figures: drawn to scale, broken where nothing was measured, said in words."""

from __future__ import annotations

import re

import pytest

from plumbline.pages.charts import SPARK_HEIGHT as HEIGHT
from plumbline.pages.charts import SPARK_WIDTH as WIDTH
from plumbline.status.model import Measure, Trend
from plumbline.status.page import sparkline, trend_text


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def lines(trend: Trend) -> list[list[tuple[float, float]]]:
    return [
        [(float(x), float(y)) for x, y in (point.split(",") for point in points.split())]
        for points in re.findall(r'<polyline points="([^"]*)"', sparkline(trend))
    ]


def test_it_is_said() -> None:
    trend = Trend("p50, last 3 min", (0.001, 0.004, 0.002), 0.0011)
    assert plain(trend_text(trend)) == "p50, last 3 min: last 2 ms, lowest 1 ms, highest 4 ms; baseline 1.1 ms"
    assert plain(trend_text(Trend("x", (2e9,), None, Measure.THROUGHPUT))) == (
        "x: last 2 GB/s, lowest 2 GB/s, highest 2 GB/s; no baseline"
    )
    assert trend_text(Trend("x", (None,), 0.1)) == "x: nothing measured"
    assert f'aria-label="{trend_text(trend)}"' in sparkline(trend)
    assert 'role="img"' in sparkline(trend)


def test_twice_as_high_is_twice_as_slow() -> None:
    ((first, second, third),) = lines(Trend("x", (0.0, 0.002, 0.004)))
    bottom, top = first[1], third[1]
    assert second[1] == pytest.approx((bottom + top) / 2, abs=0.1)
    assert 0 < top < bottom < HEIGHT
    assert (first[0], third[0]) == (3.0, WIDTH - 3.0)


def test_the_baseline_is_in_the_picture_even_far_above() -> None:
    drawn = sparkline(Trend("x", (0.001, 0.001), 0.004))
    (y,) = re.findall(r'<line [^>]*y1="([\d.]+)" [^>]*class="accepted"', drawn)
    assert 0 < float(y) < HEIGHT
    assert lines(Trend("x", (0.001, 0.001), 0.004))[0][0][1] > float(y)
    assert "accepted" not in sparkline(Trend("x", (0.001, 0.001)))


def test_where_nothing_was_measured_the_line_is_broken() -> None:
    first, alone, last = lines(Trend("x", (1.0, 2.0, None, 3.0, None, None, 1.0, 1.0)))
    assert (len(first), len(last)) == (2, 2)
    assert alone[1][0] - alone[0][0] == pytest.approx(2)
    assert sparkline(Trend("x", (None, None), 1.0)) == ""


@pytest.mark.parametrize("values", [(0.0,), (0.0, 0.0), (1e-9, 1e9), (5.0, None)])
def test_whatever_comes_stays_inside(values: tuple[float | None, ...]) -> None:
    for line in lines(Trend("x", values, 1.0)):
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line)
