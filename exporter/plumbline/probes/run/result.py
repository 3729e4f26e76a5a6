"""What a probe returns. Data only: probes never hold a metric, collectors never run a probe."""

import math
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

import msgspec

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}


class Outcome(StrEnum):
    """How a run ended; each is a ``result`` label of ``plumbline_probe_runs_total``, initialised to 0."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"


class OperationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one operation (``read``, ``write``) of a run; anything not measured is ``None`` or absent."""

    operation: str
    iops: float | None = None
    throughput: float | None = None  # Bytes per second
    latency: dict[str, float] = {}  # Seconds by statistic: mean, p50, p95, p99, p999, max
    bins: tuple[tuple[float, int], ...] = ()
    """The whole distribution if the tool reports it: (seconds, operations), ascending."""
    retransmits: int | None = None  # TCP segments retransmitted
    loss_ratio: float | None = None  # Share of packets without a reply
    mtu_bytes: int | None = None  # The largest packet that got through, including the IP header
    queue_depth: int | None = None  # Operations in flight at the end of a search for a latency
    rates: tuple[float, ...] = ()  # Operations per second in each second of the run, if the tool reports its course

    @property
    def leading(self) -> tuple[str, float] | None:
        """The run's main figure and its name: a latency, or a rate if no latency was measured."""
        figures = {"p50": self.latency.get("p50"), "mean": self.latency.get("mean")}
        figures |= {"throughput": self.throughput, "iops": self.iops}
        return next(((name, value) for name, value in figures.items() if value is not None), None)


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One finished run of a periodic probe. Times are Unix seconds, durations seconds."""

    probe: str
    layer: str
    device_class: str
    workload: str
    config_hash: str
    tool: str
    tool_version: str
    started: float
    duration: float
    outcome: Outcome
    operations: tuple[OperationResult, ...] = ()
    message: str = ""  # Why it failed, in one line; on success empty, or a remark on the figures

    @property
    def finished(self) -> float:
        return self.started + self.duration


def summarise(operation: str, latencies_ns: Sequence[int], *, bytes_each: int = 0) -> OperationResult:
    """Rates and percentiles (nearest rank) of operations that ran one after the other. The rate covers the operations
    alone: time that the measuring program spends between them is excluded."""
    ordered = sorted(latencies_ns)
    if not ordered:
        return OperationResult(operation=operation)
    count, total_s = len(ordered), max(1, sum(ordered)) / 1e9
    latency = {"mean": total_s / count}
    latency |= {name: ordered[math.ceil(q * count) - 1] / 1e9 for name, q in QUANTILES.items()}
    latency["max"] = ordered[-1] / 1e9
    bins = Counter(_three_digits(ns) for ns in ordered)
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
