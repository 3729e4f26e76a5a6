"""Bucket edges for latencies, and PromQL's quantile over them.

Between 16 µs and 0.5 s neighbouring edges differ by 2^(1/8), 9 %. The effect on ``histogram_quantile``:

- a median whose own bucket holds most operations (one mode, however narrow) is within 4.6 %: interpolation puts it
  in the middle of its bucket, and half a bucket is 4.6 %;
- any median, even one exactly between two modes, is within 9.2 %, one whole bucket. Keeping that within 5 % as well
  would take 225 buckets instead of 120 on every node.

The baseline's bounds are edges themselves, so the share of operations above a bound is counted, not interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from plumbline.core.histogram import HistogramValue

_FINE_FROM_NS = 16_000
_STEPS_PER_OCTAVE = 8
_OCTAVES = 15
_BELOW_NS = (2_000, 4_000, 8_000)
# 1 s to 64 s: at this scale, 3 or 4 s makes no difference
_ABOVE_NS = tuple(10**9 * 2**power for power in range(7))


def latency_edges(bounds: Iterable[float] = ()) -> tuple[float, ...]:
    """Ascending edges in seconds, with ``bounds`` (seconds) among them.

    Edges have four significant digits and whole nanoseconds: they print short, and are the same after every restart.
    Raises ``ValueError`` for a bound that is not a positive number.
    """
    wanted = {*_BELOW_NS, *_ABOVE_NS, *map(edge_ns, bounds)}
    for step in range(_OCTAVES * _STEPS_PER_OCTAVE + 1):
        wanted.add(_four_digits(_FINE_FROM_NS * 2 ** (step / _STEPS_PER_OCTAVE)))
    return tuple(ns / 10**9 for ns in sorted(wanted))


def edge_ns(edge: float) -> int:
    """An edge in nanoseconds, the unit of comparison; ``ValueError`` unless finite and at least 1 ns."""
    if not (math.isfinite(edge) and edge >= 1e-9):
        raise ValueError(f"a latency bound must be a positive number of seconds, not {edge!r}")
    return round(edge * 10**9)


def quantile(histogram: HistogramValue, q: float) -> float | None:
    """PromQL's ``histogram_quantile(q, …)`` of these buckets; ``None`` without observations.

    As in Prometheus' ``promql/quantile.go``, ``bucketQuantile``: linear inside the bucket of the rank, starting at 0 in
    the lowest; above the highest finite edge, that edge. ``ValueError`` unless 0 < q ≤ 1.
    """
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
