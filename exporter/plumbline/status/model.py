"""The content of the status page as plain data.

:mod:`plumbline.status.gather` fills it; :mod:`plumbline.status.verdict` and :mod:`plumbline.status.layers` judge it.
There are no thresholds here: tolerances come with the baselines, limits of losses from :mod:`plumbline.status.limits`.
"""

import math
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from plumbline.checks.model import Finding
from plumbline.core.units import degradation_text, figure_text, seconds_text
from plumbline.metrics.snapshot import CollectorHealth
from plumbline.sources.ceph.osds import OsdState
from plumbline.status.limits import BACKLOG_DROPS, LOSSES


class Level(StrEnum):
    """How bad a line is; the values are also CSS classes."""

    GOOD = "good"
    NOTE = "note"
    BAD = "bad"
    NEUTRAL = "neutral"

    @property
    def sign(self) -> str:
        return {Level.GOOD: "✔", Level.NOTE: "●", Level.BAD: "✖", Level.NEUTRAL: "○"}[self]


class Measure(StrEnum):
    """The kind of a compared figure. Latency is in seconds; the others are per second, and more is better."""

    LATENCY = "latency"
    IOPS = "iops"
    THROUGHPUT = "throughput"


class Comparison(Struct, frozen=True):
    """One figure beside its baseline, in base units; ``None``: not measured, no baseline, or no tolerance."""

    measured: float | None
    baseline: float | None = None
    tolerance_ratio: float | None = None  # the highest ratio that counts as accepted; the alerts use the same value
    measure: Measure = Measure.LATENCY

    @property
    def ratio(self) -> float | None:
        """The degradation ratio: 1 is as accepted, 2 is twice as bad, for latencies and rates alike."""
        if self.measured is None or not self.baseline:
            return None
        if self.measure is Measure.LATENCY:
            return self.measured / self.baseline
        return self.baseline / self.measured if self.measured else math.inf

    @property
    def word(self) -> str:
        """The ratio in words: ``as accepted``, ``1.9× slower``; empty without a ratio."""
        return degradation_text(self.measure, self.ratio, self.tolerance_ratio)

    @property
    def beyond(self) -> bool:
        ratio = self.ratio
        return ratio is not None and self.tolerance_ratio is not None and ratio > self.tolerance_ratio

    @property
    def excess(self) -> float:
        """Ratio ÷ tolerance; the worst figure is the one with the highest excess, not with the largest ratio."""
        return (self.ratio or 0.0) / (self.tolerance_ratio or 1.0)

    def text(self, value: float) -> str:
        return figure_text(self.measure, value)


class Trend(Struct, frozen=True):
    """The last figures of one operation, oldest first; ``None`` if nothing was measured."""

    of: str  # the figure and the time it covers: p50, last 60 min
    values: tuple[float | None, ...]
    baseline: float | None = None
    measure: Measure = Measure.LATENCY


class ProbeRow(Struct, frozen=True):
    """One operation of one probe. A canary has a row for each of its workloads."""

    probe: str
    layer: str
    device_class: str
    workload: str
    operation: str
    success: bool | None  # whether the last run succeeded; None: no run yet
    age_s: float | None  # seconds since the last finished run or, for a canary, since the last operation
    p50: Comparison = Comparison(None)
    p99: Comparison = Comparison(None)
    baseline: str = ""  # the baseline shown, such as measured here or documented: unnoba-2020; empty if there is none
    judges: bool = False  # False: the baseline is only shown
    message: str = ""  # why the last run failed, or why the probe is being skipped
    stuck_s: float | None = None  # seconds an operation has been in flight, if that is too long
    overdue: bool = False
    next_s: float | None = None  # seconds until the next start; None while it runs, and for a canary
    skipped: Mapping[str, int] = field(default_factory=dict)  # skipped starts by reason
    canary: bool = False  # it runs all the time
    recordable: bool = True  # whether plumbline baseline record writes a baseline for it
    rate: Comparison | None = None  # throughput or IOPS, instead of a latency or beside it
    trend: Trend | None = None  # None: too few values are kept
    last_skip: str = ""  # why the newest start was skipped; empty after a run
    documented: str = ""  # the nearest documented figure: unnoba-2020, ssd: mean 84 µs; empty if there is none

    @property
    def name(self) -> str:
        """The name in sentences: ``canary: read randread-4k-qd1-j1``."""
        return f"{self.probe}: {self.operation} {self.workload}" if self.operation else self.probe

    @property
    def what(self) -> str:
        """The operation in short: ``disk hdd read randread-4k-qd1-j1``."""
        return " ".join(filter(None, (self.layer, self.device_class, self.operation, self.workload)))

    @property
    def state(self) -> tuple[Level, str]:
        if self.stuck_s is not None:
            return Level.BAD, f"stuck for {seconds_text(self.stuck_s)}"
        if self.success is None:
            return Level.NOTE, "has not run yet"
        if not self.success:
            return Level.BAD, "failed"
        return (Level.NOTE, "overdue") if self.overdue else (Level.GOOD, "success")

    def level_of(self, figure: Comparison) -> Level:
        """The level of one figure; neutral if no baseline in force judges it now."""
        if not self.judges or self.overdue or figure.tolerance_ratio is None:
            return Level.NEUTRAL
        return Level.BAD if figure.beyond else Level.GOOD

    @property
    def excess(self) -> float:
        """The highest excess of its judged figures; above 1 is beyond the tolerance."""
        return max((figure.excess for _, figure in self.judged), default=0.0)

    @property
    def judged(self) -> tuple[tuple[str, Comparison], ...]:
        """The figures that a baseline in force judges now, by name; an overdue result is not current, so not judged."""
        if not self.judges or self.overdue:
            return ()
        named = (("p50", self.p50), ("p99", self.p99), ("rate", self.rate))
        return tuple(
            (name if figure.measure is Measure.LATENCY else figure.measure, figure)
            for name, figure in named
            if figure is not None and figure.ratio is not None and figure.tolerance_ratio is not None
        )


class FailureRow(Struct, frozen=True):
    probe: str
    outcome: str
    age_s: float
    duration_s: float
    message: str


class Times(Struct, frozen=True):
    """Operations of one kind in the last minutes, and their latencies in seconds."""

    operation: str
    count: int
    p50_s: float | None = None
    p99_s: float | None = None


class OsdRow(Struct, frozen=True):
    """One OSD of this host, according to its admin socket."""

    daemon: str  # osd.3.
    answer: OsdState  # on its admin socket
    disks: tuple[str, ...] = ()
    times: tuple[Times, ...] = ()  # client operations in the last minutes, including queue and replicas
    blocked: int | None = None
    blocked_age_s: float | None = None
    slow: int | None = None  # number of slow operations that it recorded in the last ten minutes
    ping_worst_s: float | None = None  # heartbeat time of the last minute to the slowest peer
    ping_peer: str = ""
    blocked_stage: str = ""  # where most blocked operations wait: queue, pg, store, peer

    @property
    def answers(self) -> bool:
        return self.answer is OsdState.ANSWERS

    @property
    def state(self) -> tuple[Level, str]:
        if self.answer is OsdState.ENDED:
            return Level.BAD, "has ended"
        if not self.answers:
            return Level.BAD, "does not answer"
        if not self.blocked:
            return Level.GOOD, "answers"
        oldest = f", the oldest {seconds_text(self.blocked_age_s)}" if self.blocked_age_s else ""
        return Level.BAD, f"{self.blocked:,} blocked{oldest}"


class DiskRow(Struct, frozen=True):
    """One whole disk. Means are since boot; ``times`` covers the last minutes and needs the kernel's histograms."""

    device: str
    model: str = ""
    device_class: str = ""
    size_bytes: int | None = None
    reads: int | None = None
    writes: int | None = None
    read_mean_s: float | None = None
    write_mean_s: float | None = None
    in_flight: int | None = None
    osd: str = ""  # osd.3, or several separated by commas.
    times: tuple[Times, ...] = ()
    transport: str = ""

    @property
    def osds(self) -> tuple[str, ...]:
        return tuple(filter(None, self.osd.split(",")))


class Loss(Struct, frozen=True):
    """Packets lost for one cause since boot; ``grew``: in the last minutes, ``None`` if unknown; ``packets``: all that
    the port had in this direction in these minutes."""

    what: str  # drops or errors
    direction: str
    cause: str
    total: int
    grew: int | None = None
    packets: int | None = None

    @property
    def grown(self) -> str:
        """``50 more rx drops (ring)``; only where ``grew`` is known."""
        return f"{self.grew:,} more {self.direction} {self.what} ({self.cause})"

    @property
    def benign(self) -> bool:
        """Whether it is no real loss: packets the host never wanted (other VLANs, unknown protocols)."""
        return self.what == "drops" and self.cause == "filter"

    @property
    def out_of_line(self) -> bool:
        """Whether an alert would be about it, if it lasts."""
        limit = LOSSES.get(self.what)
        return (
            limit is not None
            and (limit.causes is None or self.cause in limit.causes)
            and (self.grew or 0) >= limit.minimum
            and (self.grew or 0) > limit.share * (self.packets or 0)
        )


class NicRow(Struct, frozen=True):
    device: str
    driver: str = ""
    up: bool | None = None
    speed_bytes_per_second: float | None = None
    mtu_bytes: int | None = None
    rx_ring: tuple[int, int] | None = None  # current and maximum entries
    losses: tuple[Loss, ...] = ()  # only losses that are not zero


class SoftnetRow(Struct, frozen=True):
    """Totals of all CPUs since boot; ``*_grew``: in the last minutes."""

    cpus: int
    processed: int
    dropped: int
    time_squeeze: int
    dropped_grew: int | None = None
    time_squeeze_grew: int | None = None

    @property
    def out_of_line(self) -> bool:
        return (self.dropped_grew or 0) >= BACKLOG_DROPS


class StatusModel(Struct, frozen=True):
    """Everything on the page. ``now_ts`` and ``started_ts`` are Unix seconds."""

    host: str
    version: str
    now_ts: float
    started_ts: float
    waiting_for: str | None = None  # why the daemon is not ready yet
    config_error: str = ""  # why the last reload was refused; the previous configuration stays in force
    exposure_warning: str = ""  # why the listener is unprotected
    maintenance: tuple[str, ...] = ()  # announced on this node: host, until when, who, why
    window_s: float | None = None  # length of "the last minutes"; None: there is no earlier collection yet
    probes: tuple[ProbeRow, ...] = ()
    failures: tuple[FailureRow, ...] = ()  # the last failed runs of all probes, newest first
    osds: tuple[OsdRow, ...] = ()
    disks: tuple[DiskRow, ...] = ()
    nics: tuple[NicRow, ...] = ()
    softnet: SoftnetRow | None = None
    findings: tuple[Finding, ...] | None = ()
    """Findings on documented advice, met or not, worst first; ``None``: the host has not been judged yet."""
    collectors: tuple[CollectorHealth, ...] = ()
    standing: tuple[str, ...] = ()  # sentences on what no longer fits between the baselines and this node

    @property
    def open_findings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings or () if not finding.met)


def missing_baseline_hint(*, recordable: bool) -> str:
    return "record one with: plumbline baseline record" if recordable else "add one to a file listed in baseline.files"
