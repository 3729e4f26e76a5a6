"""What a canary is asked to do, and what it says of itself: pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from plumbline.catalogue import HistogramValue
from plumbline.workloads import Workload

HDD_RATE = 1.0
DEFAULT_RATE = 10.0
"""Operations a second, all workloads together, where the config says nothing."""
MIN_RATE, MAX_RATE = 0.001, 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryPlan:
    """One canary: single operations of ``workloads`` in one file in ``directory``.

    Beside each workload stand its baseline's bounds in seconds; they become exact bucket edges. ``rate`` is in
    operations a second over all workloads, as the config says; it is kept, within :data:`MIN_RATE` and
    :data:`MAX_RATE`. ``None`` takes the device class' default, lowered where that would keep the device busy for
    more than 1 %.
    """

    name: str
    directory: str
    file_size_bytes: int
    workloads: tuple[tuple[Workload, tuple[float, ...]], ...]
    device_class: str
    rate: float | None = None
    stuck_after_s: float = 10.0

    @property
    def wanted_rate(self) -> float:
        """Operations a second before any cap."""
        if self.rate is not None:
            return max(MIN_RATE, min(self.rate, MAX_RATE))
        return HDD_RATE if self.device_class == "hdd" else DEFAULT_RATE


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
class StreamReading:
    """One operation of one workload. Counts never go back while the daemon lives."""

    workload: Workload
    operation: str
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

    plan: CanaryPlan
    state: CanaryState
    reason: str
    """What is wrong, as a short label value; empty while all is well."""
    message: str
    """The same for a person, in one line."""
    streams: tuple[StreamReading, ...]
    in_flight_s: float
    """The longest of all, the worker's preparations included; 0 when idle."""
    rate: float
    """Operations a second it works at now, after the load cap."""
    runs: int
    """Workers started."""
    skips: Mapping[str, int]
    """Refused starts by reason; every reason of the guard is there, from 0."""
    success: bool | None
    """``None`` until every workload has had its first operation, then whether the last one of each succeeded,
    lately, and none hangs. False also while it is refused, restarting or unkillable."""

    @property
    def last_completion_ts(self) -> float | None:
        """Unix seconds of the last operation, whatever became of it."""
        return max((s.last_completion_ts for s in self.streams if s.last_completion_ts is not None), default=None)

    @property
    def last_success_ts(self) -> float | None:
        """Unix seconds of the last operation that succeeded."""
        return max((s.last_success_ts for s in self.streams if s.last_success_ts is not None), default=None)
