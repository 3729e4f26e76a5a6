"""Histograms of latencies: bucket edges, PromQL's quantile over them, totals of many runs, the last minutes.

Between 16 µs and 0.5 s neighbouring edges differ by 2^(1/8), 9 %. The effect on ``histogram_quantile``:

- a median whose own bucket holds most operations (one mode, however narrow) is within 4.6 %: interpolation puts it
  in the middle of its bucket, and half a bucket is 4.6 %;
- any median, even one exactly between two modes, is within 9.2 %, one whole bucket. Keeping that within 5 % as well
  would take 225 buckets instead of 120 on every node.

The baseline's bounds are edges themselves, so the share of operations above a bound is counted, not interpolated.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Annotated

import msgspec

from plumbline.core.histogram import HistogramValue, difference
from plumbline.probes.run.result import ProbeResult

_FINE_FROM_NS = 16_000
_STEPS_PER_OCTAVE = 8
_OCTAVES = 15
_BELOW_NS = (2_000, 4_000, 8_000)
# 1 s to 64 s: at this scale, 3 or 4 s makes no difference
_ABOVE_NS = tuple(10**9 * 2**power for power in range(7))


def latency_edges(bounds: Iterable[float] = ()) -> tuple[float, ...]:
    """Ascending edges in seconds, with ``bounds`` (seconds) among them. Edges have four significant digits and whole
    nanoseconds: they print short, and are the same after every restart. Raises ``ValueError`` for a bound that is not a
    positive number."""
    edges = {*_BELOW_NS, *_ABOVE_NS, *map(edge_ns, bounds)}
    for step in range(_OCTAVES * _STEPS_PER_OCTAVE + 1):
        edges.add(_four_digits(_FINE_FROM_NS * 2 ** (step / _STEPS_PER_OCTAVE)))
    return tuple(ns / 10**9 for ns in sorted(edges))


def edge_ns(edge: float) -> int:
    """An edge in nanoseconds, the unit of comparison; ``ValueError`` unless finite and at least 1 ns."""
    if not (math.isfinite(edge) and edge >= 1e-9):
        raise ValueError(f"a latency bound must be a positive number of seconds, not {edge!r}")
    return round(edge * 10**9)


def quantile(histogram: HistogramValue, q: float) -> float | None:
    """PromQL's ``histogram_quantile(q, …)`` of these buckets; ``None`` without observations. As in Prometheus'
    ``promql/quantile.go``, ``bucketQuantile``: linear inside the bucket of the rank, starting at 0 in the lowest; above
    the highest finite edge, that edge. ``ValueError`` unless 0 < q ≤ 1."""
    if not 0 < q <= 1:
        raise ValueError(f"a quantile lies in (0, 1], not {q!r}")
    if not histogram.count:
        return None
    rank = q * histogram.count
    below_edge, below = 0.0, 0
    for edge, cumulative in zip(histogram.edges, histogram.cumulative, strict=True):
        if cumulative >= rank:
            return below_edge + (edge - below_edge) * ((rank - below) / (cumulative - below))
        below_edge, below = edge, cumulative
    return histogram.edges[-1]


def _four_digits(ns: float) -> int:
    unit: int = 10 ** max(0, math.floor(math.log10(ns)) - 3)
    return round(ns / unit) * unit


EDGES = latency_edges()
_EDGES_NS = tuple(map(edge_ns, EDGES))
_BEYOND_NS = 0  # key of the bucket above the last edge

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A value that only grows; a damaged file with anything else is rejected on reading."""


class OperationTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of an operation, summed over all runs of a periodic probe. Bounded: at most one number per edge. A
    gauge shows what the newest run measured; this shows, by ``rate()`` and ``histogram_quantile()``, what any period
    was like, also across runs."""

    counts: dict[int, Count] = {}
    """Operations by the upper edge of their bucket in nanoseconds; keyed by value, so that it stays valid if a later
    release has other edges. 0: above the last edge."""
    sum: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # Seconds

    def plus(self, bins: Iterable[tuple[float, int]]) -> OperationTotals:
        """Add the distribution of one more run; a bin is counted in the bucket that contains its middle."""
        counts, total = dict(self.counts), self.sum
        for seconds, count in bins:
            position = bisect_left(_EDGES_NS, round(seconds * 1e9))
            edge = _EDGES_NS[position] if position < len(_EDGES_NS) else _BEYOND_NS
            counts[edge] = counts.get(edge, 0) + count
            total += seconds * count
        return OperationTotals(counts=dict(sorted(counts.items())), sum=total)

    def histogram(self) -> HistogramValue:
        """The same data as a growing histogram over :data:`EDGES`."""
        buckets = [0] * len(EDGES)
        for edge, count in self.counts.items():
            position = bisect_left(_EDGES_NS, edge)
            if edge != _BEYOND_NS and position < len(buckets):
                buckets[position] += count
        return HistogramValue(
            edges=EDGES, cumulative=[*accumulate(buckets)], count=sum(self.counts.values()), sum=self.sum
        )


def add_operations(totals: Mapping[str, OperationTotals], result: ProbeResult) -> dict[str, OperationTotals]:
    """``totals`` by operation plus those of ``result``; operations without a distribution are left out."""
    measured = {operation.operation: operation.bins for operation in result.operations if operation.bins}
    added = {name: totals.get(name, OperationTotals()).plus(bins) for name, bins in measured.items()}
    return {**totals, **added}


def without_bins(result: ProbeResult) -> ProbeResult:
    """The result as it is stored: a distribution of a thousand bins goes into the totals instead."""
    operations = tuple(msgspec.structs.replace(operation, bins=()) for operation in result.operations)
    return msgspec.structs.replace(result, operations=operations)


class RecentHistogram:
    """The last ``width_s`` seconds of a growing histogram, as snapshots, at most one every ``step_s``. Prometheus has
    ``rate()`` for this; the status page and ``plumbline`` on the terminal must work without it."""

    def __init__(self, *, width_s: float = 300.0, step_s: float = 10.0) -> None:
        self._width_s = width_s
        self._step_s = step_s
        self._snapshots: tuple[tuple[float, HistogramValue], ...] = ()  # replaced whole: any thread may read it

    def add(self, now: float, total: HistogramValue) -> None:
        """Remember the totals at ``now`` (monotonic seconds). If totals shrank or edges changed, start afresh."""
        snapshots = self._snapshots
        if snapshots:
            last_at, last = snapshots[-1]
            if difference(last, total) is None:
                snapshots = ()
            elif now - last_at < self._step_s:
                return
        snapshots = (*snapshots, (now, total))
        # keep one snapshot older than the window, so that the difference covers all of it
        while len(snapshots) > 2 and snapshots[1][0] <= now - self._width_s:
            snapshots = snapshots[1:]
        self._snapshots = snapshots

    def difference(self, total: HistogramValue) -> HistogramValue | None:
        """The increase of ``total`` since the oldest snapshot kept; ``None`` before the first one, and if ``total``
        belongs to another series."""
        snapshots = self._snapshots
        return difference(snapshots[0][1], total) if snapshots else None


class MedianHistory:
    """Medians of a growing histogram: one per ``step_s``, the last ``points`` of them. Memory is bounded: 8 bytes per
    median, plus the totals of the latest step, 6 kB for a canary's 130 buckets."""

    def __init__(self, *, points: int = 60, step_s: float = 60.0) -> None:
        self._points, self._step_s = points, step_s
        self._medians = array("d")  # NaN: nothing finished in that step
        self._at = 0.0
        self._total: HistogramValue | None = None

    def add(self, now: float, total: HistogramValue) -> None:
        """Take the totals at ``now`` (monotonic seconds). If totals shrank or edges changed, begin a new step."""
        since = difference(self._total, total) if self._total is not None else None
        if since is None:
            self._at, self._total = now, total
            return
        if now - self._at < self._step_s:
            return
        median = quantile(since, 0.5)
        medians = self._medians[1 - self._points :] if self._points > 1 else array("d")
        medians.append(math.nan if median is None else median)
        self._medians = medians  # replaced whole: the page may be iterating over the old ones
        self._at, self._total = now, total

    @property
    def values(self) -> tuple[float | None, ...]:
        """Seconds, oldest first; ``None``: nothing finished in that step."""
        return tuple(None if math.isnan(value) else value for value in self._medians)
