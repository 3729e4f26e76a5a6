"""``plumbline probe run``: run one probe now, on request, with or without a running daemon.

It uses the daemon's engine, locks and gates; the host's lock is a file in the storage path that both use. The result is
shown and not stored: the daemon remembers only its own runs, which follow a steady schedule.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

import plumbline
from plumbline.baseline.book import Book
from plumbline.baseline.comparison import ReferenceFigure, reference_figures
from plumbline.core.grouping import grouped
from plumbline.errors import ConfigError, PlumblineError, ProbeRefused, UnknownName
from plumbline.probes.run.engine import STOPPED
from plumbline.probes.run.histogram import quantile
from plumbline.probes.run.model import ContinuousJob, Identity, PeriodicProbe, Progress
from plumbline.probes.run.plan import ProbingPlan, targets_of
from plumbline.probes.run.reading import CanaryReading, WorkloadReading
from plumbline.probes.run.result import QUANTILES, OperationResult, Outcome
from plumbline.probes.run.single_run import RunOnce
from plumbline.probes.run.state import open_storage

# how long a canary is observed: at the rate of a recording, this gives some hundred operations on any disk
CANARY_RUN_S = 60.0
REFUSED = "refused"
FAILED = "failure"
# with fewer operations, a p99.9 is in effect the maximum
_RARE = 1000


class OperationReport(Struct, frozen=True):
    operation: str
    figures: tuple[ReferenceFigure, ...]
    facts: Mapping[str, float]  # Figures without a baseline: retransmits, loss_ratio, mtu_bytes
    baseline: str = ""  # Source and name of the baseline shown beside it; empty if there is none
    judges: bool = False  # False: the baseline is only shown
    tolerance_ratio: float | None = None
    rates: tuple[float, ...] = ()  # Operations per second, second by second, where the tool reports them
    documented: str = ""  # The nearest documented figure, in words; empty if there is none


class Report(Struct, frozen=True):
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
    outcome: str  # success, failure, timeout, refused (nothing was touched) or stopped
    reason: str = ""  # Of a refusal: the label value it would have in plumbline_probe_runs_skipped_total
    message: str = ""
    operations: tuple[OperationReport, ...] = ()
    device: str = ""  # The underlying disk or network port, if known


Item = PeriodicProbe | ContinuousJob
Group = Sequence[Item]  # One periodic probe, or canaries that run in parallel


def pick(plan: ProbingPlan, names: Sequence[str]) -> list[Item]:
    """The probes named by ``names``, each once and in that order. A name is that of a configuration entry, meaning all
    its targets, or ``name/target``. Raises :class:`UnknownName`."""
    planned: tuple[Item, ...] = (*plan.periodic, *plan.continuous)
    items = {name_of(item): item for item in planned}
    chosen: dict[str, Item] = {}
    for name in names:
        picked = {key: item for key, item in items.items() if key == name or key.startswith(f"{name}/")}
        if not picked:
            there = ", ".join(sorted(items)) or "none"
            raise UnknownName(f"probe = {name!r}: no such probe is configured and enabled; there are: {there}")
        chosen |= picked
    return list(chosen.values())


def name_of(item: Item) -> str:
    """The ``probe`` label."""
    return item.identity.probe if isinstance(item, PeriodicProbe) else item.name


def together(items: Sequence[Item]) -> list[Group]:
    """Group what runs at the same time: the canaries of one configuration entry together, everything else alone. A
    minute for each of a host's 60 disks would take an hour, and raw canaries do not disturb each other."""

    def entry(item: Item) -> str:
        return name_of(item) if isinstance(item, PeriodicProbe) else name_of(item).partition("/")[0]

    return list(grouped(items, entry).values())


def group_name(group: Group) -> str:
    """A single item's own name; for several, the name of their configuration entry."""
    name = name_of(group[0])
    return name if len(group) == 1 else name.partition("/")[0]


def check_storage(storage: Path) -> None:
    """Make sure that the daemon can use what a run leaves in the storage path; raises :class:`ConfigError` if not. The
    daemon's guard would permanently refuse a directory created by root as not its own."""
    try:
        owner = storage.stat().st_uid
    except OSError:
        owner = os.geteuid()  # missing, or the attempt to open it gives a better error
    if owner != os.geteuid():
        raise ConfigError(
            str(storage),
            f"belongs to user {owner} and this is user {os.geteuid()}: run it as the daemon's user"
            " (docs/probes.md, On demand), or with another --storage.path",
        )
    open_storage(storage).close()


class OnDemand:
    """Runs probes one after the other, and compares their figures with the baseline."""

    def __init__(self, once: RunOnce, book: Book, *, canary_run_s: float = CANARY_RUN_S) -> None:
        self._once, self._book, self._canary_run_s = once, book, canary_run_s

    def run(
        self, group: Group, *, force: bool = False, progress: Callable[[Progress], None] = lambda _: None
    ) -> list[Report]:
        """Run one probe, or canaries in parallel; failures are in the reports."""
        if isinstance(group[0], PeriodicProbe):
            return [self._periodic(group[0], force, progress)]
        jobs = [job for job in group if not isinstance(job, PeriodicProbe)]
        return self._canaries(jobs, progress)

    def _periodic(self, probe: PeriodicProbe, force: bool, progress: Callable[[Progress], None]) -> Report:
        identity, began = probe.identity, self._once.clock()
        try:
            result = self._once.periodic(probe, force=force, progress=progress)
        except PlumblineError as error:
            return self._refused(identity, began, error)
        return replace(
            self._report(identity, result.started, result.duration, result.outcome, result.tool_version),
            message=result.message,
            operations=tuple(self._operation(identity, operation) for operation in result.operations),
        )

    def _canaries(self, jobs: Sequence[ContinuousJob], progress: Callable[[Progress], None]) -> list[Report]:
        """Run canaries for a minute; each operation of each workload becomes one row."""
        began = self._once.clock()
        try:
            readings = self._once.canaries(
                group_name(jobs), jobs, run_s=self._canary_run_s, bounds=self._book.bounds(), progress=progress
            )
        except PlumblineError as error:
            return [self._refused(_of_several(job), began, error) for job in jobs]
        return [self._of_reading(job, reading, began) for job, reading in zip(jobs, readings, strict=True)]

    def _of_reading(self, job: ContinuousJob, reading: CanaryReading, began: float) -> Report:
        whole, identities = _of_several(job), {identity.workload: identity for identity in job.identities()}
        failed = {error: n for workload in reading.workloads for error, n in workload.errors.items() if n}
        if not failed and not any(workload.latency.count for workload in reading.workloads) and reading.reason:
            # nothing was tried: the target is down, out, or does not answer
            return self._refused(whole, began, ProbeRefused(reading.reason, reading.message))
        outcome = (
            FAILED if failed or not any(workload.latency.count for workload in reading.workloads) else Outcome.SUCCESS
        )
        return replace(
            self._report(whole, began, self._once.clock() - began, outcome, plumbline.__version__),
            message="" if outcome is Outcome.SUCCESS else _failures(failed),
            operations=tuple(
                self._operation(identities[workload.workload], _figures(workload)) for workload in reading.workloads
            ),
        )

    def _refused(self, identity: Identity, began: float, error: PlumblineError) -> Report:
        reason = error.reason if isinstance(error, ProbeRefused) else "error"
        outcome = FAILED if reason == "error" else STOPPED if reason == STOPPED else REFUSED
        report = self._report(identity, began, self._once.clock() - began, outcome, "")
        return replace(report, reason=reason, message="stopped on request" if outcome == STOPPED else str(error))

    @staticmethod
    def _report(identity: Identity, started: float, duration_s: float, outcome: str, tool_version: str) -> Report:
        return Report(
            probe=identity.probe,
            layer=identity.layer,
            device_class=identity.device_class,
            workload=identity.workload,
            target=identity.target,
            device=identity.device,
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
        facts = {"retransmits": result.retransmits, "loss_ratio": result.loss_ratio, "mtu_bytes": result.mtu_bytes}
        return OperationReport(
            operation=result.operation,
            figures=reference_figures(
                entry, judges=judges, latency=result.latency, iops=result.iops, throughput=result.throughput
            ),
            facts={name: value for name, value in facts.items() if value is not None},
            baseline=f"{entry.source.value}: {entry.profile}" if entry else "",
            judges=judges,
            tolerance_ratio=entry.tolerance_ratio if entry else None,
            rates=result.rates,
            documented=self._book.documented(target),
        )


def _of_several(job: ContinuousJob) -> Identity:
    """A canary of several workloads as one identity: its operations identify the workloads."""
    identities = job.identities()
    if not identities:  # the target is not known yet
        return Identity(
            probe=job.name, kind="", layer="", device_class="", workload="", operations=(), config_hash="",
            tool="plumbline",
        )  # fmt: skip
    workloads = ", ".join(identity.workload for identity in identities)
    return replace(identities[0], probe=job.name, workload=workloads, config_hash="")


def _figures(workload: WorkloadReading) -> OperationResult:
    latency = {}
    if workload.latency.count:
        latency["mean"] = workload.latency.sum / workload.latency.count
        for name, q in QUANTILES.items():
            if (q < 0.999 or workload.latency.count >= _RARE) and (value := quantile(workload.latency, q)) is not None:
                latency[name] = value
    return OperationResult(operation=workload.operation, latency=latency)


def _failures(failed: Mapping[str, int]) -> str:
    if not failed:
        return "no operation finished"
    return "failed operations: " + ", ".join(f"{count} {error}" for error, count in sorted(failed.items()))
