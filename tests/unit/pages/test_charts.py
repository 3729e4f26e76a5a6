"""Charts from numbers and labels alone: what is drawn where, and what interrupts a line."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from plumbline.pages.charts import Bar, BarChart, Curve, LineChart, Point, date_ticks, runs, value_text

DAY = 86400


def drawn(chart: LineChart | BarChart) -> ElementTree.Element:
    return ElementTree.fromstring(chart.svg("x"))


def chart(*curves: Curve, **more: object) -> LineChart:
    return LineChart("t", "d", "s", curves, ((0.0, "4\nKiB"), (1.0, "8\nKiB")), **more)  # type: ignore[arg-type]


def test_a_gap_interrupts_the_line_and_a_point_alone_is_a_dot() -> None:
    points = (Point(0.0, 1.0), Point(0.2, 2.0), None, Point(0.6, 3.0))
    svg = drawn(chart(Curve("one", 0, points)))
    assert [len(line.attrib["points"].split()) for line in svg.findall("g/polyline")] == [2]
    assert len(svg.findall("g/circle")) == 1
    assert list(runs([1, None, None, 2, 3])) == [[1], [2, 3]]


def test_several_lines_have_different_marks_at_their_ends() -> None:
    points = (Point(0.0, 1.0), Point(1.0, 2.0))
    svg = drawn(chart(Curve("one", 0, points), Curve("two", 1, points)))
    assert (len(svg.findall("circle")), len(svg.findall("polygon"))) == (2, 2)


def test_level_gap_and_moment_stand_at_their_places() -> None:
    svg = drawn(
        chart(
            Curve("one", 0, (Point(0.0, 1.0),)), level=("safe", 2.0), gaps=((0.5, 1.0, "none"),), moments=((0.5, "m"),)
        )
    )
    (level,) = [line for line in svg.findall("line") if line.attrib["class"] == "level"]
    assert float(level.attrib["y1"]) == pytest.approx(12)  # 2 s is the top of the axis
    (shade,), (moment,) = svg.findall("g/rect"), svg.findall("g/line")
    assert shade.attrib["x"] == moment.attrib["x1"] == "198"


def test_a_long_label_of_a_bar_leaves_room_for_its_figure() -> None:
    bars = (Bar("n" * 99, 0, 2.0, "2 GB/s", "said"), Bar("short", 0, 1.0, "1 GB/s", "said", doubt=True))
    svg = drawn(BarChart("t", "d", (("Reads", bars),)))
    labels = [text.text or "" for text in svg.findall("text")]
    assert labels[0] == "Reads"
    assert labels[1].endswith("n…")
    assert len(labels[1]) + len("2 GB/s") == 50
    assert [bar.attrib["class"] for bar in svg.findall("g/rect")] == ["fill0", "hollow line0"]


@pytest.mark.parametrize(("days", "step"), [(3, 1), (7, 2), (30, 7), (90, 28), (800, 364)])
def test_dates_below_an_axis_never_touch(days: int, step: int) -> None:
    ticks = date_ticks(0, days * DAY)
    assert ticks[0] == (0.0, "1 Jan")
    assert ticks[1][0] == pytest.approx(step / days)


@pytest.mark.parametrize(
    ("value", "unit", "text"), [(0.25, "share", "25 %"), (2.5, "ratio", "× 2.5"), (0.01, "s", "10 ms")]
)
def test_ticks_say_their_unit(value: float, unit: str, text: str) -> None:
    assert value_text(value, unit) == text
