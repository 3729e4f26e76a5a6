"""The distributions of many runs of a periodic probe, added up: one bounded histogram for each operation.

A gauge tells what the newest run measured; a histogram that only grows tells, by ``rate()`` and
``histogram_quantile()``, what any stretch of time was like, also over runs.
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
"""Stands for the bucket above the last edge."""


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Of what only grows; what a damaged file says instead is refused where it is read."""


class OperationTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How long the operations of many runs took. Bounded: a number for each standard edge at most."""

    counts: dict[int, Count] = {}
    """Operations by the upper edge of their bucket in nanoseconds; by its value, so that it stays true when a later
    release has other edges. 0: above the last edge."""
    sum: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Seconds."""

    def plus(self, bins: Iterable[tuple[float, int]]) -> OperationTotals:
        """With the distribution of one more run; a bin belongs to the bucket that its middle lies in."""
        counts, total = dict(self.counts), self.sum
        for seconds, count in bins:
            position = bisect_left(_EDGES_NS, round(seconds * 1e9))
            edge = _EDGES_NS[position] if position < len(_EDGES_NS) else BEYOND_NS
            counts[edge] = counts.get(edge, 0) + count
            total += seconds * count
        return OperationTotals(counts=dict(sorted(counts.items())), sum=total)

    def histogram(self) -> HistogramValue:
        """The same as a growing histogram over :data:`EDGES`."""
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
    """``totals`` by operation with those of ``result``; what tells no distribution is left out."""
    return {
        **totals,
        **{
            each.operation: totals.get(each.operation, OperationTotals()).plus(each.bins)
            for each in result.operations
            if each.bins
        },
    }


def without_bins(result: ProbeResult) -> ProbeResult:
    """The result as it is remembered: a distribution of a thousand bins goes into totals instead."""
    operations = tuple(msgspec.structs.replace(each, bins=()) for each in result.operations)
    return msgspec.structs.replace(result, operations=operations)
