"""A canary's current data, and its log messages."""

import logging
from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from plumbline.core.histogram import HistogramValue

log = logging.getLogger(__name__)

SILENT_GAPS = 30.0
"""This many mean gaps without an operation count as silence: with Poisson arrivals the chance is 1e-13."""


class CanaryState(StrEnum):
    IDLE = "idle"  # Not started
    PREPARING = "preparing"  # The worker checks the directory and fills its file
    RUNNING = "running"
    REFUSED = "refused"  # The guard refused; it is tried again after a while
    RESTARTING = "restarting"  # The worker died; another one starts after a while
    STOPPED = "stopped"
    UNKILLABLE = "unkillable"  # Stopped, but the worker hangs in the kernel: nothing may use its file until it is gone


class WorkloadReading(Struct, frozen=True, kw_only=True):
    """One operation of one workload. Counts never decrease while the daemon lives."""

    layer: str
    workload: str  # Its id in the catalogue
    operation: str
    config_hash: str
    bounds: tuple[float, ...]  # Edges of latency that are the baseline's bounds
    latency: HistogramValue  # Seconds: finished operations and charged arrivals; failed operations are not included
    charged: int  # Arrivals among them that met a running operation
    errors: Mapping[str, int]  # Failed operations by kind; every kind is present, starting at 0
    in_flight_s: float  # Age of the running operation; 0 when idle
    last_completion_ts: float | None  # Unix seconds; includes failed operations
    last_success_ts: float | None


class CanaryReading(Struct, frozen=True, kw_only=True):
    probe: str
    device_class: str
    state: CanaryState
    reason: str  # What is wrong, as a short label value; empty while all is well
    message: str  # The same as one line of text
    workloads: tuple[WorkloadReading, ...]
    in_flight_s: float  # The longest of all, including the worker's preparations; 0 when idle
    rate_per_s: float  # Current operations per second, after the load cap
    runs: int  # Workers started
    skips: Mapping[str, int]  # Refused starts by reason; every reason of the guard is present, starting at 0
    kind: str = "canary"  # The type in the configuration
    target: str = ""  # What is measured: sdb, osd.3; empty for the node itself
    device: str = ""  # The disk below the target; empty if unknown
    outdated: bool = False  # The configuration now means something else here, so a new plan is needed
    success: bool | None
    """``None`` until every workload has had its first operation; then whether the last one of each succeeded recently
    and none hangs. Also False while refused, restarting or unkillable."""

    @property
    def last_completion_ts(self) -> float | None:
        """Unix seconds of the last operation, whatever its outcome."""
        return _latest(workload.last_completion_ts for workload in self.workloads)

    @property
    def last_success_ts(self) -> float | None:
        return _latest(workload.last_success_ts for workload in self.workloads)


def _latest(times: Iterable[float | None]) -> float | None:
    return max((time for time in times if time is not None), default=None)


class CanaryLog:
    """Logs each kind of problem once until the canary works again: an operation that hangs, then times out and is
    followed by the next that hangs would log two lines a minute for as long as the disk or the cluster is gone."""

    def __init__(self) -> None:
        self._said = set[str]()

    def look(self, reading: CanaryReading) -> None:
        """Log what is new in ``reading``; nothing while its state is still unknown."""
        if reading.reason == "preparing" or (not reading.reason and not reading.success):
            return
        if not reading.reason:
            if self._said:
                log.info("canary %s: works again", reading.probe)
            self._said.clear()
        elif reading.reason not in self._said:
            self._said.add(reading.reason)
            log.warning("canary %s: %s: %s", reading.probe, reading.reason, reading.message)
