"""How restless a recording's level was, by hand-made slices."""

from __future__ import annotations

import pytest

from plumbline.baseline.record.level import Slice, joined, level_of, missing
from plumbline.core.histogram import HistogramValue
from plumbline.probes.run.histogram import quantile

EDGES = tuple(each / 100 for each in range(1, 101))  # 10 ms each


def slices(*levels: float, step_s: float = 10.0, begin_s: float = 1000.0) -> list[Slice]:
    """A slice of ``step_s`` seconds for each level (seconds), in which every operation took as long."""
    return [
        Slice(ended=begin_s + number * step_s, seconds=step_s, counts={round(level * 100) - 1: 100})
        for number, level in enumerate(levels, 1)
    ]


def level(made: list[Slice], tolerance: float = 1.25):
    return level_of(made, EDGES, tolerance=tolerance, quantile=quantile)


def test_a_slice_holds_what_grew():
    grown = HistogramValue((0.1, 0.2, 0.3), [0, 4, 4], 6, 1.0)
    made = Slice.of(grown, ended=7.0, seconds=2.0)
    assert made.counts == {1: 4, 3: 2}
    again = made.histogram((0.1, 0.2, 0.3))
    assert (list(again.cumulative), again.count) == ([0, 4, 4], 6)


def test_a_steady_level_is_perfectly_calm():
    found = level(slices(*[0.1] * 18))
    assert (found.measured_s, dict(found.spread), found.calm_s) == (180.0, {"1m": 0.0}, 0.0)


@pytest.mark.parametrize(
    ("count", "spans"), [(17, []), (18, ["1m"]), (89, ["1m"]), (90, ["1m", "5m"]), (540, ["1m", "5m", "30m"])]
)
def test_a_span_longer_than_a_third_of_the_recording_is_left_out(count, spans):
    found = level(slices(*[0.1] * count))
    assert list(found.spread) == spans
    assert (found.calm_s is None) == (count < 18)
    assert max(missing(found).values(), default=0.0) == (0.0 if "30m" in spans else 5400.0)


def test_the_spread_is_the_upper_quantile_of_the_medians_over_their_median():
    # Of 25 windows the last six have one to six slow slices; the 23rd lowest median is that with four of them. Buckets
    # are interpolated: of 600 operations 200 lie below 0.19 s, the 300th is at 0.19 + 0.01 × 100 ÷ 400; calm is 0.095.
    assert level(slices(*[0.1] * 24, *[0.2] * 6)).spread["1m"] == pytest.approx(0.1925 / 0.095 - 1)
    assert level(slices(*[0.1] * 28, *[0.2] * 2)).spread["1m"] == 0.0


def test_time_to_calm_down_is_the_longest_stay_beyond_the_tolerance():
    assert level(slices(*[0.1] * 10, 0.2, *[0.1] * 5, *[0.2] * 3, *[0.1] * 10)).calm_s == pytest.approx(30.0)
    assert level(slices(*[0.1] * 10, *[0.2] * 3, *[0.1] * 10), tolerance=2.5).calm_s == 0.0


def test_it_is_unknown_when_the_recording_ended_before():
    assert level(slices(*[0.1] * 20, *[0.2] * 3)).calm_s is None


def test_nobody_saw_when_a_hiccup_at_the_end_of_a_run_was_over():
    first, second = slices(*[0.1] * 16, *[0.2] * 2), slices(*[0.1] * 8, begin_s=3000.0)
    assert level(first + second).calm_s == 0.0


def test_windows_need_half_of_their_time_measured():
    """Runs of ten seconds, each followed by the turns of others."""
    dense = [each for run in range(18) for each in slices(0.1, begin_s=1000.0 + 20 * run)]
    sparse = [each for run in range(18) for each in slices(0.1, begin_s=1000.0 + 40 * run)]
    assert list(level(dense).spread) == ["1m"]
    assert list(level(sparse).spread) == []


def test_of_several_targets_the_median():
    calm, restless = level(slices(*[0.1] * 30)), level(slices(*[0.1] * 22, *[0.2] * 8))
    assert joined([calm, calm, restless]).spread == {"1m": 0.0}
    assert joined([calm, calm, restless]).calm_s is None  # of one it is unknown
    assert joined([calm, level(slices(0.1))]).spread == {}
