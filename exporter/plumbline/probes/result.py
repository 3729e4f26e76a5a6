"""What a probe returns. Data only: probes never hold a metric, collectors never run a probe."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """How a run ended; each is a ``result`` label of ``plumbline_probe_runs_total``, initialised to 0."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"


class OperationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one operation (``read``, ``write``) of a run; anything not measured is ``None`` or absent."""

    operation: str
    iops: float | None = None
    throughput: float | None = None
    """Bytes per second."""
    latency: dict[str, float] = {}
    """Seconds by statistic: mean, p50, p95, p99, p999, max."""
    bins: tuple[tuple[float, int], ...] = ()
    """The whole distribution if the tool reports it: (seconds, operations), ascending."""
    retransmits: int | None = None
    """TCP segments retransmitted."""
    loss_ratio: float | None = None
    """Share of packets without a reply."""
    mtu_bytes: int | None = None
    """The largest packet that got through, including the IP header."""
    queue_depth: int | None = None
    """Operations in flight at the end of a search for a latency."""

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
    message: str = ""
    """Why it failed, in one line; on success empty, or a remark on the figures."""
