"""What the status page says, before it is a page: plain data in, and the verdict a person at 3 a.m. wants first.

``app.py`` fills the model. Nothing here judges by a number of its own: tolerances come with the baselines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from plumbline.checks.model import Finding, Severity
from plumbline.snapshot import CollectorHealth


class Level(StrEnum):
    """How bad a line is; the words are CSS classes too."""

    GOOD = "good"
    NOTE = "note"
    BAD = "bad"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One latency statistic beside its baseline. Seconds; ``None``: not measured, no baseline, no tolerance."""

    measured_s: float | None
    baseline_s: float | None = None
    tolerance_ratio: float | None = None
    """Up to this ratio it is as accepted; the same figure the alerts use."""

    @property
    def ratio(self) -> float | None:
        """Measured ÷ baseline: 1 is as accepted, 2 is twice as slow."""
        return self.measured_s / self.baseline_s if self.measured_s is not None and self.baseline_s else None

    @property
    def word(self) -> str:
        """The ratio in words: ``as accepted``, ``1.9× slower``; empty without a ratio.

        Without a tolerance nothing was accepted: within 5 % it is ``about the same``.
        """
        ratio = self.ratio
        if ratio is None:
            return ""
        tolerance = self.tolerance_ratio or 1.05
        if ratio > tolerance:
            return f"{factor_text(ratio)}× slower"
        if ratio * tolerance < 1:
            return f"{factor_text(1 / ratio)}× faster" if ratio else "faster"
        return "as accepted" if self.tolerance_ratio else "about the same"

    @property
    def beyond(self) -> bool:
        """True when it is slower than the tolerance allows."""
        ratio = self.ratio
        return ratio is not None and self.tolerance_ratio is not None and ratio > self.tolerance_ratio


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One operation of one probe. A canary has a row for each of its workloads."""

    probe: str
    layer: str
    device_class: str
    workload: str
    operation: str
    success: bool | None
    """Of the last run; ``None``: it has not run yet."""
    age_s: float | None
    """Since the last finished run or, for a canary, the last operation."""
    p50: Comparison = Comparison(None)
    p99: Comparison = Comparison(None)
    baseline: str = ""
    """The baseline in force, e.g. ``measured`` or ``documented: unnoba-2020``; empty: there is none."""
    judges: bool = False
    """False: that baseline is shown only."""
    message: str = ""
    """Why the last run failed, or why the probe is being skipped."""
    stuck_s: float | None = None
    """How long an operation has been in flight, when that is too long."""
    overdue: bool = False
    next_s: float | None = None
    """Until the next start; ``None`` while it runs, and for a canary."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Starts that came to nothing, by reason."""
    recordable: bool = True
    """Whether ``plumbline baseline record`` gives it a baseline."""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A run that did not succeed."""

    probe: str
    outcome: str
    age_s: float
    duration_s: float
    message: str


@dataclass(frozen=True, slots=True)
class DiskRow:
    """One whole disk. Means are since boot."""

    device: str
    model: str = ""
    device_class: str = ""
    size_bytes: int | None = None
    reads: int | None = None
    writes: int | None = None
    read_mean_s: float | None = None
    write_mean_s: float | None = None
    in_flight: int | None = None
    osd: str = ""


@dataclass(frozen=True, slots=True)
class Loss:
    """Packets lost for one cause since boot; ``grew`` since the last look, ``None`` when that is not known."""

    what: str
    """``drops`` or ``errors``."""
    direction: str
    cause: str
    total: int
    grew: int | None = None

    @property
    def benign(self) -> bool:
        """What the host never wanted (other VLANs, unknown protocols) is no loss."""
        return self.what == "drops" and self.cause == "filter"


@dataclass(frozen=True, slots=True)
class NicRow:
    """One network device."""

    device: str
    driver: str = ""
    up: bool | None = None
    speed_bits_per_second: float | None = None
    mtu_bytes: int | None = None
    rx_ring: tuple[int, int] | None = None
    """Current and maximum entries."""
    losses: tuple[Loss, ...] = ()
    """Only what is not zero."""


@dataclass(frozen=True, slots=True)
class SoftnetRow:
    """All CPUs together, since boot; ``*_grew`` since the last look."""

    cpus: int
    processed: int
    dropped: int
    time_squeeze: int
    dropped_grew: int | None = None
    time_squeeze_grew: int | None = None


@dataclass(frozen=True, slots=True)
class StatusModel:
    """Everything on the page. ``now_ts`` and ``started_ts`` are Unix seconds."""

    host: str
    version: str
    now_ts: float
    started_ts: float
    waiting_for: str | None = None
    """Why the daemon is not ready yet."""
    config_error: str = ""
    """Why the last reload was refused; the configuration before it is in force."""
    last_look_s: float | None = None
    """How long ago the figures were that ``grew`` counts from."""
    probes: tuple[ProbeRow, ...] = ()
    failures: tuple[FailureRow, ...] = ()
    """The last failed runs of all probes, the newest first."""
    disks: tuple[DiskRow, ...] = ()
    nics: tuple[NicRow, ...] = ()
    softnet: SoftnetRow | None = None
    findings: tuple[Finding, ...] | None = ()
    """Documented advice, met or not, the worst first; ``None``: the host has not been judged yet."""
    collectors: tuple[CollectorHealth, ...] = ()
    standing: tuple[str, ...] = ()
    """What no longer fits between the baselines and this node, a sentence each."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first thing on the page: one sentence, then what it rests on, the worst first."""

    level: Level
    headline: str
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Findings:
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def judge(model: StatusModel) -> Verdict:
    """What is wrong here, or that nothing is; never "all is well" where nothing could be judged."""
    found = _Findings()
    for row in model.probes:
        _judge_probe(row, found)
    _judge_losses(model, found)
    found.notes += model.standing
    _judge_findings(model, found)
    _judge_daemon(model, found)
    problems, notes = tuple(found.problems), tuple(found.notes)
    if problems:
        return Verdict(Level.BAD, problems[0] if len(problems) == 1 else f"{len(problems)} problems", problems, notes)
    if model.waiting_for is not None:
        return Verdict(Level.NOTE, f"Still starting: {model.waiting_for}", (), notes)
    judged = [row for row in model.probes if row.judges and (row.p50.ratio is not None or row.p99.ratio is not None)]
    if not judged:
        return Verdict(Level.NOTE, "Nothing has failed, but no probe can be judged yet", (), notes)
    level = Level.NOTE if notes else Level.GOOD
    if len(judged) == len(model.probes):
        return Verdict(level, "Nothing is wrong: every probe performs as accepted", (), notes)
    share = f"{len(judged)} of {len(model.probes)} measurements"
    return Verdict(level, f"Nothing is wrong where there is a baseline to judge by ({share})", (), notes)


def _judge_daemon(model: StatusModel, found: _Findings) -> None:
    if model.config_error:
        found.problems.append(f"The new configuration was refused, the old one is in force: {model.config_error}")
    for health in model.collectors:
        if not health.success:
            found.problems.append(f"Collector {health.name} fails: {health.reason}")


def _judge_probe(row: ProbeRow, found: _Findings) -> None:
    what = f"{row.probe}: {row.operation} {row.workload}" if row.operation else row.probe
    if row.stuck_s is not None:
        found.problems.append(f"{what} has been in flight for {seconds_text(row.stuck_s)}: what is below it hangs")
    elif row.success is False:
        found.problems.append(f"{what} failed{': ' if row.message else ''}{row.message}")
    slower = [
        f"{statistic} {figure.word} ({seconds_text(figure.measured_s)}, accepted {seconds_text(figure.baseline_s)})"
        for statistic, figure in (("p50", row.p50), ("p99", row.p99))
        if row.judges and figure.beyond and figure.measured_s is not None and figure.baseline_s is not None
    ]
    if slower:
        found.problems.append(f"{what} is slower than accepted: {', '.join(slower)}")
    if row.overdue:
        found.notes.append(f"{what} is overdue{': ' if row.message else ''}{row.message}")
    if row.success is None:
        found.notes.append(f"{what} has not run yet{': ' if row.message else ''}{row.message}")
    elif not row.baseline:
        found.notes.append(f"{what} has no baseline; {how_to_get_one(recordable=row.recordable)}")
    elif not row.judges:
        found.notes.append(f"{what} is shown beside another site's figures ({row.baseline}), which judge nothing here")


def how_to_get_one(*, recordable: bool) -> str:
    """What to do about a missing baseline."""
    return "record one with: plumbline baseline record" if recordable else "write one into a file of baseline.files"


def _judge_losses(model: StatusModel, found: _Findings) -> None:
    for nic in model.nics:
        for loss in nic.losses:
            if loss.grew and not loss.benign:
                found.problems.append(
                    f"{nic.device} is losing packets: {loss.grew:,} more {loss.direction} {loss.what} ({loss.cause})"
                )
    softnet = model.softnet
    if softnet is not None and softnet.dropped_grew:
        found.problems.append(f"The kernel's backlog overflows: {softnet.dropped_grew:,} more packets dropped")
    if softnet is not None and softnet.time_squeeze_grew:
        found.notes.append(
            f"Packet processing ran out of its time slice {softnet.time_squeeze_grew:,} more times (time squeeze)"
        )


def _judge_findings(model: StatusModel, found: _Findings) -> None:
    """What is critical is a problem; warnings are worth knowing, in one line; the table has them all."""
    open_ones = [each for each in model.findings or () if not each.met]
    for each in open_ones:
        if each.severity is Severity.CRITICAL:
            found.problems.append(f"{each.subject}: {each.is_}; should be {each.should}")
    warnings = sum(each.severity is Severity.WARNING for each in open_ones)
    if warnings:
        found.notes.append(
            f"{warnings} {'finding asks' if warnings == 1 else 'findings ask'} for a change, see Findings"
        )


def factor_text(ratio: float) -> str:
    """``1.9``, ``12``: two digits are what a person compares by."""
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:,.0f}"


def seconds_text(seconds: float) -> str:
    """A duration with three digits and the unit that fits: ``163 µs``, ``4.72 ms``, ``1.5 s``, ``12 min``."""
    for limit, scale, unit in ((1e-6, 1e-9, "ns"), (1e-3, 1e-6, "µs"), (1.0, 1e-3, "ms"), (120.0, 1.0, "s")):
        if abs(seconds) < limit * 0.9995:
            return f"{seconds / scale:.3g}\N{NO-BREAK SPACE}{unit}"
    for limit, scale, unit in ((7200.0, 60.0, "min"), (48 * 3600.0, 3600.0, "h")):
        if abs(seconds) < limit:
            return f"{seconds / scale:.0f}\N{NO-BREAK SPACE}{unit}"
    return f"{seconds / 86400:,.0f}\N{NO-BREAK SPACE}days"
