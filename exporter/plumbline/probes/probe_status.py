"""One probe's status for every display: its last run, its counters, its current run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plumbline.core.histogram import HistogramValue
from plumbline.probes.result import OperationResult, Outcome, ProbeResult


@dataclass(frozen=True, slots=True)
class ProbeStatus:
    """What is known about one probe at the moment of a scrape. Times are Unix seconds, durations seconds.

    ``interval_s`` is ``None`` for a continuous probe (the canary), which has no runs and no figures here.
    """

    probe: str
    kind: str
    """``fio``, ``canary``."""
    interval_s: float | None
    result: ProbeResult | None
    """The latest finished run."""
    last_success_ts: float | None
    runs: Mapping[Outcome, int]
    skipped: Mapping[str, int]
    in_flight_s: float | None
    """``None``: idle."""
    success: bool | None
    """``None``: nothing has run yet."""
    tool: str
    tool_version: str
    config_hash: str
    layer: str
    device_class: str
    workload: str
    target: str = ""
    """What is measured, if not the node itself: ``osd.3``, ``sdb``, ``10.0.0.12``."""
    device: str = ""
    """The underlying disk, or the network port that leads to the target, if known."""
    good_result: ProbeResult | None = None
    """The latest *successful* run, in case ``result`` failed after it."""
    timeout_s: float | None = None
    operations: Mapping[str, HistogramValue] = field(default_factory=dict)
    """By operation, over all successful runs with the current parameters."""
    vantage: str = ""
    """``host``, ``vm`` or ``container``."""
    recent: Sequence[Sequence[OperationResult]] = ()
    """Figures of the last successful runs with the current parameters, newest first."""
