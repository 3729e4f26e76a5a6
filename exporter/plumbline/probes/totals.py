"""The latency distributions of all runs of a periodic probe, summed: one bounded histogram per operation.

A gauge shows what the newest run measured; a growing histogram shows, by ``rate()`` and ``histogram_quantile()``, what
any period was like, also across runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from plumbline.core.histogram import HistogramValue
from plumbline.probes.histogram import edge_ns, latency_edges
from plumbline.probes.result import ProbeResult

EDGES = latency_edges()
_EDGES_NS = tuple(map(edge_ns, EDGES))
BEYOND_NS = 0
"""Key of the bucket above the last edge."""


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A value that only grows; a damaged file with anything else is rejected on reading."""


class OperationTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of the operations of many runs. Bounded: at most one number per standard edge."""

    counts: dict[int, Count] = {}
    """Operations by the upper edge of their bucket in nanoseconds; keyed by value, so that it stays valid if a later
    release has other edges. 0: above the last edge."""
    sum: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Seconds."""

    def plus(self, bins: Iterable[tuple[float, int]]) -> OperationTotals:
        """Add the distribution of one more run; a bin is counted in the bucket that contains its middle."""
        counts, total = dict(self.counts), self.sum
        for seconds, count in bins:
            position = bisect_left(_EDGES_NS, round(seconds * 1e9))
            edge = _EDGES_NS[position] if position < len(_EDGES_NS) else BEYOND_NS
            counts[edge] = counts.get(edge, 0) + count
            total += seconds * count
        return OperationTotals(counts=dict(sorted(counts.items())), sum=total)

    def histogram(self) -> HistogramValue:
        """The same data as a growing histogram over :data:`EDGES`."""
        buckets = [0] * len(EDGES)
        for edge, count in self.counts.items():
            position = bisect_left(_EDGES_NS, edge)
            if edge != BEYOND_NS and position < len(buckets):
                buckets[position] += count
        cumulative, below = [], 0
        for count in buckets:
            below += count
            cumulative.append(below)
        return HistogramValue(edges=EDGES, cumulative=cumulative, count=sum(self.counts.values()), sum=self.sum)


def add_operations(totals: Mapping[str, OperationTotals], result: ProbeResult) -> dict[str, OperationTotals]:
    """``totals`` by operation plus those of ``result``; operations without a distribution are left out."""
    return {
        **totals,
        **{
            each.operation: totals.get(each.operation, OperationTotals()).plus(each.bins)
            for each in result.operations
            if each.bins
        },
    }


def without_bins(result: ProbeResult) -> ProbeResult:
    """The result as it is stored: a distribution of a thousand bins goes into the totals instead."""
    operations = tuple(msgspec.structs.replace(each, bins=()) for each in result.operations)
    return msgspec.structs.replace(result, operations=operations)
