"""Classic histograms as plain values, exchanged by readers, probes and metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class HistogramValue:
    """``cumulative[i]`` operations took at most ``edges[i]`` seconds; +Inf is ``count``. ``edges`` is ascending,
    finite, and the same object from scrape to scrape, so that the renderer can cache by it."""

    edges: tuple[float, ...]
    cumulative: Sequence[int]
    count: int
    sum: float


def added(histograms: Sequence[HistogramValue]) -> HistogramValue:
    """The sum of at least one histogram; all must have the same edges."""
    return HistogramValue(
        edges=histograms[0].edges,
        cumulative=[sum(counts) for counts in zip(*(histogram.cumulative for histogram in histograms), strict=True)],
        count=sum(histogram.count for histogram in histograms),
        sum=sum(histogram.sum for histogram in histograms),
    )


def difference(before: HistogramValue, after: HistogramValue) -> HistogramValue | None:
    """What was counted between; ``None`` if edges differ or a bucket decreased: another series, or a reset counter."""
    if before.edges != after.edges:
        return None
    grown = [new - old for new, old in zip(after.cumulative, before.cumulative, strict=True)]
    count = after.count - before.count
    if any(later < earlier for earlier, later in pairwise((0, *grown, count))):
        return None
    return HistogramValue(edges=after.edges, cumulative=grown, count=count, sum=max(0.0, after.sum - before.sum))
