"""The last minutes of a growing histogram."""

from plumbline.core.histogram import HistogramValue
from plumbline.probes.run.histogram import MedianHistory, RecentHistogram

EDGES = (0.001, 0.01)


def total(fast, slow, seconds=0.0):
    return HistogramValue(edges=EDGES, cumulative=(fast, fast + slow), count=fast + slow, sum=seconds)


def test_the_difference_covers_the_window_and_not_more():
    recent = RecentHistogram(width_s=300, step_s=10)
    assert recent.difference(total(1, 0)) is None
    for second in range(0, 1000, 5):
        recent.add(float(second), total(second, 0))
    recent.add(1000.0, total(1000, 0))
    lately = recent.difference(total(1000, 7))
    assert lately is not None
    assert lately.count - 7 == 300
    assert list(lately.cumulative) == [300, 307]


def test_a_restart_or_new_edges_start_afresh():
    recent = RecentHistogram()
    recent.add(0.0, total(500, 5))
    recent.add(20.0, total(3, 0))
    lately = recent.difference(total(4, 0))
    assert lately is not None
    assert lately.count == 1
    other = HistogramValue(edges=(1.0,), cumulative=(9,), count=9, sum=1.0)
    assert recent.difference(other) is None
    recent.add(40.0, other)
    assert recent.difference(other).count == 0


def counted(*cumulative: int) -> HistogramValue:
    return HistogramValue((0.001, 0.002), cumulative, cumulative[-1], 0.0)


def test_a_median_for_each_step_and_none_where_nothing_finished() -> None:
    history = MedianHistory(points=3, step_s=60)
    history.add(0, counted(0, 0))
    history.add(59, counted(100, 100))
    assert history.values == ()
    history.add(60, counted(100, 100))
    history.add(120, counted(100, 200))
    history.add(181, counted(100, 200))
    assert history.values == (0.0005, 0.0015, None)
    history.add(241, counted(200, 300))
    assert history.values == (0.0015, None, 0.0005), "the oldest goes"


def test_totals_that_began_anew_begin_a_step() -> None:
    history = MedianHistory(step_s=60)
    history.add(0, counted(10, 100))
    history.add(60, counted(10, 10))
    history.add(90, counted(20, 20))
    assert history.values == ()
    history.add(120, counted(20, 20))
    assert history.values == (0.0005,)


def test_two_lives_are_never_mixed() -> None:
    """After a reload that changed a canary there are for a moment the old totals and the new series, or the reverse."""
    recent, history = RecentHistogram(), MedianHistory(step_s=60)
    recent.add(0.0, counted(300, 500))
    history.add(0.0, counted(300, 500))
    for other in (counted(1, 3), counted(0, 600), counted(400, 450), counted(290, 700), counted(500, 550)):
        assert recent.difference(other) is None, other
        history.add(100.0, other)
        assert history.values == ()
        history.add(100.0, counted(300, 500))  # a step begins anew
    assert recent.difference(counted(310, 520)) is not None


def test_a_total_above_the_last_edge_is_a_bucket_too() -> None:
    recent = RecentHistogram()
    recent.add(0.0, HistogramValue((1.0,), (5,), 10, 0.0))
    assert recent.difference(HistogramValue((1.0,), (8,), 11, 0.0)) is None, "two less above 1 s than before"
