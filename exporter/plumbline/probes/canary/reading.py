"""What a canary says of itself: pure data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from plumbline.core.histogram import HistogramValue

SILENT_GAPS = 30.0
"""So many mean gaps without any operation: at Poisson arrivals the chance is 1e-13."""


class CanaryState(StrEnum):
    """Where a canary is in its life."""

    IDLE = "idle"
    """Not started."""
    PREPARING = "preparing"
    """The worker checks the directory and writes its file full."""
    RUNNING = "running"
    REFUSED = "refused"
    """The guard said no; it is asked again after a while."""
    RESTARTING = "restarting"
    """The worker died; another one starts after a while."""
    STOPPED = "stopped"
    UNKILLABLE = "unkillable"
    """Told to stop, but the worker hangs in the kernel: nothing may use its file until it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadReading:
    """One operation of one workload. Counts never go back while the daemon lives."""

    layer: str
    workload: str
    """Its id in the catalogue."""
    operation: str
    config_hash: str
    bounds: tuple[float, ...]
    """Edges of ``latency`` that are the baseline's bounds."""
    latency: HistogramValue
    """Seconds: finished operations and charged arrivals; failed operations are not in it."""
    charged: int
    """Arrivals among them that met a running operation."""
    errors: Mapping[str, int]
    """Failed operations by kind; every kind is there, from 0."""
    in_flight_s: float
    """How long the running operation has run; 0 when idle."""
    last_completion_ts: float | None
    """Unix seconds; failed operations complete, too."""
    last_success_ts: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryReading:
    """A canary at one moment."""

    probe: str
    device_class: str
    state: CanaryState
    reason: str
    """What is wrong, as a short label value; empty while all is well."""
    message: str
    """The same for a person, in one line."""
    workloads: tuple[WorkloadReading, ...]
    in_flight_s: float
    """The longest of all, the worker's preparations included; 0 when idle."""
    rate_per_s: float
    """Operations a second it works at now, after the load cap."""
    runs: int
    """Workers started."""
    skips: Mapping[str, int]
    """Refused starts by reason; every reason of the guard is there, from 0."""
    kind: str = "canary"
    """The ``type`` in the configuration."""
    target: str = ""
    """What is measured: ``sdb``, ``osd.3``; empty: the node itself."""
    device: str = ""
    """The disk below the target; empty: not known."""
    outdated: bool = False
    """What it was planned for is no longer what the configuration means here: plan anew."""
    success: bool | None
    """``None`` until every workload has had its first operation, then whether the last one of each succeeded,
    lately, and none hangs. False also while it is refused, restarting or unkillable."""

    @property
    def last_completion_ts(self) -> float | None:
        """Unix seconds of the last operation, whatever became of it."""
        return _latest(each.last_completion_ts for each in self.workloads)

    @property
    def last_success_ts(self) -> float | None:
        """Unix seconds of the last operation that succeeded."""
        return _latest(each.last_success_ts for each in self.workloads)


def _latest(times: Iterable[float | None]) -> float | None:
    return max((time for time in times if time is not None), default=None)
