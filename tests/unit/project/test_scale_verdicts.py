"""What compares two servers finds each way in which they can differ; what the fleet's faults do to a page."""

import pytest

from scale.documented import with_flags
from scale.simulation import line
from scale.verdicts import Span, alert_differences, series_differences, told, without_choice
from support.hosts import NOW
from support.moving_page import fault, of_exposition, slower

NAN = float("nan")
ONE = frozenset({("instance", "a")})


@pytest.mark.parametrize(
    ("one", "other", "touch"),
    [
        (Span(1, 1), Span(1, 1), True),
        (Span(1, 1), Span(1.04, 1.04), True),
        (Span(1, 1), Span(1.2, 1.2), False),
        (Span(1, 3), Span(2, 9), True),
        (Span(1, 2), Span(3, 4), False),
        (Span(0, 0), Span(0.1, 0.1), False),
        (Span(-1, -1), Span(1, 1), False),
        (Span(NAN, NAN), Span(NAN, NAN), True),
        (Span(NAN, NAN), Span(1, 1), False),
    ],
)
def test_spans_touch_or_do_not(one, other, touch):
    assert one.touches(other) == other.touches(one) == touch


def test_each_difference_of_series_is_told():
    assert series_differences({ONE: Span(1, 1)}, {ONE: Span(1, 1)}) == []
    assert "only the one Prometheus has {instance=a}" in series_differences({ONE: Span(1, 1)}, {})[0]
    assert "only Thanos has {instance=a}" in series_differences({}, {ONE: Span(1, 1)})[0]
    assert "{instance=a}: " in series_differences({ONE: Span(1, 1)}, {ONE: Span(2, 2)})[0]


def test_each_difference_of_alerts_is_told():
    firing, pending = {ONE: ("firing", frozenset({"summary: x"}))}, {ONE: ("pending", frozenset({"summary: x"}))}
    assert alert_differences(firing, firing) == []
    for one, many in ((firing, pending), (firing, {}), ({}, firing)):
        assert len(alert_differences(one, many)) == 1
    assert told([{"labels": {"instance": "a"}, "status": {"state": "active"}}]) == {ONE: "active"}


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("topk(10, a > 0)", "( a > 0)"),
        ("topk by (cluster, layer) (1, a)", "( a)"),
        ("bottomk(20, a) or b", "( a) or b"),
        ("sum(topk_of_nothing)", "sum(topk_of_nothing)"),
    ],
)
def test_a_choice_is_taken_out(query, whole):
    assert without_choice(query) == whole


def test_flags_are_replaced_and_only_those_that_are_there():
    argv = ["thanos", "query", "--endpoint=a", "--endpoint=b", "--x"]
    assert with_flags(argv, {"--endpoint": ["c"]}) == ["thanos", "query", "--x", "--endpoint=c"]
    with pytest.raises(AssertionError, match="lacks"):
        with_flags(argv, {"--other": ["c"]})


PAGE = """\
# TYPE x_total counter
x_total{device="sda"} 300
# TYPE h histogram
h_bucket{device="sda",le="0.1"} 300
h_bucket{device="sda",le="+Inf"} 600
# TYPE up_timestamp_seconds gauge
up_timestamp_seconds 1
# TYPE g gauge
g 5
"""


def samples(page):
    return [line for line in page.splitlines() if not line.startswith("#")]


def test_counters_go_on_gauges_stand_and_moments_are_moved():
    said = samples(of_exposition(PAGE).text(10, NOW + 7))
    assert said == [
        'x_total{device="sda"} 310.0',
        'h_bucket{device="sda",le="0.1"} 310',
        'h_bucket{device="sda",le="+Inf"} 620',
        "up_timestamp_seconds 8.0",
        "g 5.0",
    ]


def test_a_fault_changes_what_it_names():
    changes = (slower("h_bucket", least_s=0.2), fault("x_total", per_s=7.0), fault("g", value=6.0))
    said = samples(of_exposition(PAGE, changes).text(10, NOW))
    assert said[:3] == [
        'x_total{device="sda"} 370.0',
        'h_bucket{device="sda",le="0.1"} 300',
        'h_bucket{device="sda",le="+Inf"} 620',
    ]
    assert said[-1] == "g 6.0"


def test_a_line_through_points():
    assert line([(1, 5), (2, 7), (4, 11)]) == pytest.approx((3, 2))


def test_a_rounding_error_above_zero_is_no_series() -> None:
    noise, figure = frozenset({("device", "sda")}), frozenset({("device", "sdb")})
    found = series_differences({noise: Span(1e-11, 3e-8), figure: Span(1e-11, 0.2)}, {})
    assert found == ["only the one Prometheus has {device=sdb}"]
    assert len(series_differences({}, {noise: Span(float("nan"), float("nan"))})) == 1
    assert series_differences({noise: Span(6e-11, 3e-10)}, {noise: Span(5e-11, 5e-11)}) == []
    assert len(series_differences({noise: Span(1e-6, 1e-6)}, {noise: Span(2e-6, 2e-6)})) == 1
