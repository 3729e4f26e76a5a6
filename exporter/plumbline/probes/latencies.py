"""From individual latencies to the figures of an operation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from plumbline.probes.result import OperationResult

_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def summarise(operation: str, latencies_ns: Sequence[int], *, bytes_each: int = 0) -> OperationResult:
    """Rates and percentiles (nearest rank) of operations that ran one after the other.

    The rate covers the operations alone: time that the measuring program spends between them is excluded.
    """
    ordered = sorted(latencies_ns)
    if not ordered:
        return OperationResult(operation=operation)
    count, total_s = len(ordered), max(1, sum(ordered)) / 1e9
    latency = {"mean": total_s / count}
    latency |= {name: ordered[math.ceil(q * count) - 1] / 1e9 for name, q in _QUANTILES.items()}
    latency["max"] = ordered[-1] / 1e9
    bins = Counter(_three_digits(each) for each in ordered)
    return OperationResult(
        operation=operation,
        iops=count / total_s,
        throughput=count * bytes_each / total_s if bytes_each else None,
        latency=latency,
        bins=tuple((ns / 1e9, bins[ns]) for ns in sorted(bins)),
    )


def _three_digits(ns: int) -> int:
    """Rounded by at most half a percent, so that there are few distinct values."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(1, ns))) - 2)
    return round(ns / unit) * unit
