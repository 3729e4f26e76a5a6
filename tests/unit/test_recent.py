"""The last minutes of a growing histogram."""

from plumbline.catalogue import HistogramValue
from plumbline.probes.recent import RecentHistogram

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
