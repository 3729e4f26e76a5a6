"""Classic histograms as plain values, exchanged by readers, probes and metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from msgspec import Struct


class Coarse(Struct, frozen=True):
    """Fewer of a histogram's edges: ``edges[i]`` is the edge ``picks[i]`` of the histogram."""

    edges: tuple[float, ...]
    picks: tuple[int, ...]

    @classmethod
    def of(cls, edges: Sequence[float], wanted: Callable[[float], bool]) -> Coarse:
        """The edges that are ``wanted``."""
        picks = tuple(index for index, edge in enumerate(edges) if wanted(edge))
        return cls(tuple(edges[index] for index in picks), picks)


@dataclass(frozen=True, slots=True)
class HistogramValue:
    """``cumulative[i]`` operations took at most ``edges[i]`` seconds; +Inf is ``count``. ``edges`` is ascending,
    finite, and the same object from scrape to scrape, so that the renderer can cache by it. ``coarse``: the edges that
    the default page has; ``None``: all of them."""

    edges: tuple[float, ...]
    cumulative: Sequence[int]
    count: int
    sum: float
    coarse: Coarse | None = field(default=None, compare=False)


def coarser(histogram: HistogramValue) -> HistogramValue:
    """The same operations in fewer buckets, where fewer are enough."""
    coarse = histogram.coarse
    if coarse is None:
        return histogram
    cumulative = [histogram.cumulative[index] for index in coarse.picks]
    return HistogramValue(coarse.edges, cumulative, histogram.count, histogram.sum)


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
