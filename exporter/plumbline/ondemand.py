"""``plumbline probe run``: one probe now, because a person asked for it, beside a running daemon or without one.

The engine is the daemon's, with the same locks and gates; the host's lock is a file in the storage path that both
mean. The result is shown and forgotten: what the daemon remembers is its own runs, of a steady schedule.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import plumbline
from plumbline.baseline.beside import Beside, beside
from plumbline.baseline.book import Book
from plumbline.config import GatesConfig
from plumbline.errors import ConfigError, PlumblineError, ProbeRefused, StateError
from plumbline.planning import ProbingPlan, targets_of
from plumbline.probes import gates
from plumbline.probes.canary import measure
from plumbline.probes.canary_job import CanaryJob
from plumbline.probes.canary_plan import MAX_RATE
from plumbline.probes.canary_reading import CanaryReading, CanaryState, WorkloadReading
from plumbline.probes.engine import STOPPED, run_probe
from plumbline.probes.histogram import quantile
from plumbline.probes.model import ClusterGuard, ContinuousJob, Identity, PeriodicProbe, Progress
from plumbline.probes.result import OperationResult, Outcome
from plumbline.probes.runner import ProcessRunner
from plumbline.probing import gates_of
from plumbline.recording import FASTER, OWN_DIRECTORY
from plumbline.roots import Roots
from plumbline.sources.diskstats import read_diskstats

CANARY_RUN_S = 60.0
"""How long a canary is looked at: at the pace of a recording that is some hundred operations on any disk."""
REFUSED = "refused"
FAILED = "failure"
_LOOK_EVERY_S = 0.2
_FIGURES_EVERY_S = 1.0
_RARE = 1000
"""Below so many operations a p99.9 is the maximum by another name."""


@dataclass(frozen=True, slots=True)
class OperationReport:
    """One operation beside its baseline."""

    operation: str
    figures: tuple[Beside, ...]
    facts: Mapping[str, float]
    """What no baseline holds: ``retransmits``, ``loss_ratio``, ``mtu_bytes``."""
    baseline: str = ""
    """Source and name of the baseline beside it; empty: there is none."""
    judges: bool = False
    """False: it is shown only."""
    tolerance_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """How one run went. Times are Unix seconds, durations seconds."""

    probe: str
    layer: str
    device_class: str
    workload: str
    target: str
    config_hash: str
    tool: str
    tool_version: str
    started: float
    duration_s: float
    outcome: str
    """``success``, ``failure``, ``timeout``, ``refused`` (nothing was touched) or ``stopped``."""
    reason: str = ""
    """Of a refusal: the label that ``plumbline_probe_skipped_total`` would have."""
    message: str = ""
    operations: tuple[OperationReport, ...] = ()


Item = PeriodicProbe | ContinuousJob


def pick(plan: ProbingPlan, names: Sequence[str]) -> list[Item]:
    """The probes that ``names`` mean, each once and in that order: a name is one of the configuration, with all its
    targets, or ``name/target``. :class:`ConfigError` for a name that nothing has."""
    known: dict[str, Item] = {probe.identity.probe: probe for probe in plan.periodic}
    known |= {job.name: job for job in plan.continuous}
    chosen: dict[str, Item] = {}
    for name in names:
        found = {each: item for each, item in known.items() if each == name or each.startswith(f"{name}/")}
        if not found:
            there = ", ".join(sorted(known)) or "none"
            raise ConfigError("probe", f"no such probe is configured and enabled; there are: {there}", value=name)
        chosen |= found
    return list(chosen.values())


def name_of(item: Item) -> str:
    """The ``probe`` label."""
    return item.identity.probe if isinstance(item, PeriodicProbe) else item.name


def check_storage(storage: Path) -> None:
    """Make sure that what a run leaves in the storage path is the daemon's to use; :class:`ConfigError` else.

    A directory made by root would be refused by the daemon's guard as not its own, for good.
    """
    try:
        storage.mkdir(parents=True, exist_ok=True, mode=0o750)
        owner = storage.stat()
    except OSError as error:
        raise StateError(f"{storage}: can't be used: {error.strerror}; choose another with --storage.path") from error
    if stat.S_ISDIR(owner.st_mode) and owner.st_uid != os.geteuid():
        raise ConfigError(
            str(storage),
            f"belongs to user {owner.st_uid} and this is user {os.geteuid()}: run it as the daemon's user"
            " (docs/probes.md, On demand), or with another --storage.path",
        )


class OnDemand:
    """Runs probes one after the other. ``stopping`` ends the one under way."""

    def __init__(
        self,
        *,
        storage: Path,
        roots: Roots,
        environment: Mapping[str, str],
        rules: GatesConfig,
        book: Book,
        cluster: ClusterGuard | None = None,
        stopping: threading.Event,
        clock: Callable[[], float] = time.time,
        canary_run_s: float = CANARY_RUN_S,
    ) -> None:
        self._roots, self._rules, self._book, self._cluster = roots, rules, book, cluster
        self._runner = ProcessRunner(environment)
        self._lock = gates.HeavyLock(storage / gates.HEAVY_LOCK)
        self._stopping, self._clock = stopping, clock
        self._canary_run_s = canary_run_s

    def run(self, item: Item, *, force: bool = False, progress: Callable[[Progress], None] = lambda _: None) -> Report:
        """Run one probe; what went wrong is in the report."""
        if isinstance(item, PeriodicProbe):
            return self._periodic(item, force, progress)
        return self._continuous(item, progress)

    def _periodic(self, probe: PeriodicProbe, force: bool, progress: Callable[[Progress], None]) -> Report:
        identity, began = probe.identity, self._clock()
        live = _DiskFigures(identity, self._roots, progress)
        try:
            if identity.cluster and self._cluster is None:
                raise ProbeRefused("unreachable", "nobody can be asked how the cluster is, and this probe loads it")
            with live:
                result = run_probe(
                    probe,
                    runner=self._runner,
                    host_lock=self._lock,
                    cluster=self._cluster,
                    gates=gates_of(
                        probe,
                        roots=self._roots,
                        rules=self._rules,
                        cluster=self._cluster,
                        clock=self._clock,
                        wait=self._stopping.wait,
                        force=force,
                    ),
                    clock=self._clock,
                    stopping=self._stopping,
                    progress=live.show,
                )
        except PlumblineError as error:
            return self._refused(identity, began, error)
        return replace(
            self._report(identity, result.started, result.duration, result.outcome, result.tool_version),
            message=result.message,
            operations=tuple(self._operation(identity, each) for each in result.operations),
        )

    def _continuous(self, job: ContinuousJob, progress: Callable[[Progress], None]) -> Report:
        """A canary for a minute; of its workloads each operation is a row."""
        began, identities = self._clock(), {each.workload: each for each in job.identities()}
        whole = _of_several(job)
        try:
            reading = self._look(job, progress)
        except PlumblineError as error:
            return self._refused(whole, began, error)
        failed = {error: n for each in reading.workloads for error, n in each.errors.items() if n}
        outcome = FAILED if failed or not any(each.latency.count for each in reading.workloads) else Outcome.SUCCESS
        return replace(
            self._report(whole, began, self._clock() - began, outcome, plumbline.__version__),
            message="" if outcome is Outcome.SUCCESS else _failures(failed),
            operations=tuple(self._operation(identities[each.workload], _figures(each)) for each in reading.workloads),
        )

    def _look(self, job: ContinuousJob, progress: Callable[[Progress], None]) -> CanaryReading:
        until: list[float] = []

        def tick(reading: CanaryReading) -> None:
            if self._stopping.is_set():
                raise ProbeRefused(STOPPED, "stopped")
            if reading.state is not CanaryState.RUNNING:
                progress(Progress("preparing"))
                return
            until[:] = until or [time.monotonic() + self._canary_run_s]
            left = max(0.0, until[0] - time.monotonic())
            progress(Progress("measuring", 1 - left / self._canary_run_s, _live(reading)))

        if isinstance(job, CanaryJob):
            plan = job.plan(self._book.bounds())
            plan = replace(plan, rate=min(MAX_RATE, FASTER * plan.wanted_rate))
            try:
                return measure(plan, self._canary_run_s, on_tick=tick)
            except ProbeRefused as refusal:
                if refusal.reason != "locked":
                    raise
            # the daemon's own canary works there
            return measure(replace(plan, directory=plan.directory / OWN_DIRECTORY), self._canary_run_s, on_tick=tick)
        canary = job.make(self._book.bounds())
        canary.start()
        try:
            while True:
                canary.poll()
                reading = canary.read()
                tick(reading)
                if reading.state in (CanaryState.REFUSED, CanaryState.RESTARTING):
                    raise ProbeRefused(reading.reason, reading.message)
                if until and time.monotonic() >= until[0]:
                    return reading
                self._stopping.wait(_LOOK_EVERY_S)
        finally:
            canary.stop()

    def _refused(self, identity: Identity, began: float, error: PlumblineError) -> Report:
        reason = error.reason if isinstance(error, ProbeRefused) else "error"
        outcome = FAILED if reason == "error" else STOPPED if reason == STOPPED else REFUSED
        report = self._report(identity, began, self._clock() - began, outcome, "")
        return replace(report, reason=reason, message="stopped on request" if outcome == STOPPED else str(error))

    @staticmethod
    def _report(identity: Identity, started: float, duration_s: float, outcome: str, tool_version: str) -> Report:
        return Report(
            probe=identity.probe,
            layer=identity.layer,
            device_class=identity.device_class,
            workload=identity.workload,
            target=identity.target,
            config_hash=identity.config_hash,
            tool=identity.tool,
            tool_version=tool_version,
            started=started,
            duration_s=duration_s,
            outcome=str(outcome),
        )

    def _operation(self, identity: Identity, result: OperationResult) -> OperationReport:
        (target,) = targets_of(replace(identity, operations=(result.operation,)))
        entry = self._book.shown(target)
        judges = self._book.in_force(target) is not None
        facts = {
            "retransmits": result.retransmits,
            "loss_ratio": result.loss_ratio,
            "mtu_bytes": result.mtu_bytes,
        }
        return OperationReport(
            operation=result.operation,
            figures=beside(
                entry, judges=judges, latency=result.latency, iops=result.iops, throughput=result.throughput
            ),
            facts={name: value for name, value in facts.items() if value is not None},
            baseline=f"{entry.source.value}: {entry.profile}" if entry else "",
            judges=judges,
            tolerance_ratio=entry.tolerance_ratio if entry else None,
        )


class _DiskFigures:
    """Adds to a run's progress what the disk below does meanwhile, where the run itself tells no figures.

    Of the whole disk: what others do there is in it, which is worth seeing as well.
    """

    def __init__(self, identity: Identity, roots: Roots, progress: Callable[[Progress], None]) -> None:
        self._device = "" if identity.layer == "network" else identity.device
        self._roots, self._progress = roots, progress
        self._last = Progress("")
        self._over = threading.Event()

    def __enter__(self) -> None:
        if self._device:
            threading.Thread(target=self._follow, name="live-figures", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def show(self, now: Progress) -> None:
        """What the run says."""
        self._last = now
        self._progress(now)

    def _follow(self) -> None:
        before = self._operations()
        while not self._over.wait(_FIGURES_EVERY_S):
            now, last = self._operations(), self._last
            if before and now and last.stage and not last.figures and not self._over.is_set():
                reads, writes = (max(0, new - old) / _FIGURES_EVERY_S for new, old in zip(now, before, strict=True))
                figures = f"{self._device} {reads:,.0f} reads/s, {writes:,.0f} writes/s"
                self._progress(replace(last, figures=figures))
            before = now

    def _operations(self) -> tuple[int, int] | None:
        try:
            for each in read_diskstats(self._roots, keep=lambda name: name == self._device):
                return each.reads, each.writes
        except PlumblineError:
            pass
        return None


def _of_several(job: ContinuousJob) -> Identity:
    """A canary of several workloads as one: its operations say which is which."""
    identities = job.identities()
    workloads = ", ".join(each.workload for each in identities)
    return replace(identities[0], probe=job.name, workload=workloads, config_hash="")


def _figures(each: WorkloadReading) -> OperationResult:
    latency = {}
    if each.latency.count:
        latency["mean"] = each.latency.sum / each.latency.count
        asked = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999))
        for name, q in asked:
            if (q < 0.999 or each.latency.count >= _RARE) and (found := quantile(each.latency, q)) is not None:
                latency[name] = found
    return OperationResult(operation=each.operation, latency=latency)


def _failures(failed: Mapping[str, int]) -> str:
    if not failed:
        return "not one operation finished"
    return "failed operations: " + ", ".join(f"{count} {error}" for error, count in sorted(failed.items()))


def _live(reading: CanaryReading) -> str:
    parts = []
    for each in reading.workloads:
        median = quantile(each.latency, 0.5) if each.latency.count else None
        if median is not None:
            parts.append(f"{each.operation} p50 {median * 1e3:.3g} ms")
    return ", ".join(parts)
