"""The probes of this node: from configuration to running canaries and scheduled jobs, and back to their status.

A *plan* is what the configuration means on this host: where a probe works, which device lies below, which class
that device is. Plans are compared at a reload, so that a probe whose plan did not change goes on undisturbed, with
its histogram and its phase.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.baseline.model import Target
from plumbline.collectors.probe import ProbeStatus
from plumbline.config import Config
from plumbline.errors import PlumblineError, ProbeRefused
from plumbline.probe_config import CanaryConfig, FioConfig
from plumbline.probes import gates
from plumbline.probes.canary import Canary, CanaryPlan, CanaryReading
from plumbline.probes.fio import FioPlan, FioTool, run_fio
from plumbline.probes.recent import RecentHistogram
from plumbline.probes.result import Outcome
from plumbline.probes.runner import ProcessRunner
from plumbline.roots import Roots
from plumbline.scheduler import Job, Scheduler, splay
from plumbline.sources.block import BlockDevice, device_below
from plumbline.sources.diskstats import read_diskstats
from plumbline.state import ProbeRecord, StateStore
from plumbline.workloads import BlockWorkload, WorkloadCatalogue

log = logging.getLogger(__name__)

FIRST_RUN_WITHIN_S = 300.0
"""A probe that never ran here starts within this time, at a moment splayed by host."""


DISKS_ANSWER_WITHIN_S = 1.5
"""What all disks below the probes get to say what they are; one that hangs must not hang a start or a reload."""


@dataclass(frozen=True, slots=True)
class CanaryJob:
    """A canary as this host will run it."""

    config: CanaryConfig
    directory: Path
    device: str
    device_class: str
    workloads: tuple[BlockWorkload, ...]


@dataclass(frozen=True, slots=True)
class FioJob:
    """A periodic fio run as this host will do it."""

    config: FioConfig
    plan: FioPlan
    device: str


@dataclass(frozen=True, slots=True)
class ProbingPlan:
    """All probes of a configuration on this host."""

    canaries: tuple[CanaryJob, ...]
    fio: tuple[FioJob, ...]

    def targets(self) -> tuple[Target, ...]:
        """Everything that is measured here, for the choice of baselines."""
        found = [
            Target(
                probe=job.config.name,
                layer=workload.layer,
                device_class=job.device_class,
                workload=workload.id,
                operation=operation,
                config_hash=workload.config_hash(),
                device=job.device,
            )
            for job in self.canaries
            for workload in job.workloads
            for operation in workload.operations
        ]
        found += [
            Target(
                probe=job.config.name,
                layer=job.plan.workload.layer,
                device_class=job.plan.device_class,
                workload=job.plan.workload.id,
                operation=operation,
                config_hash=job.plan.config_hash,
                rate_iops=job.plan.rate_iops,
                device=job.device,
            )
            for job in self.fio
            for operation in job.plan.workload.operations
        ]
        return tuple(found)


Bounds = Mapping[tuple[str, str, str], tuple[float, ...]]
"""(probe, workload, operation) → the baseline's bounds in seconds, to be exact bucket edges."""


def make_plan(config: Config, *, storage: Path, roots: Roots, catalogue: WorkloadCatalogue) -> ProbingPlan:
    """What ``config`` means on this host. Raises :class:`ConfigError` for what no host could run."""
    canaries, fio = [], []
    probes = [probe for probe in config.probes if probe.enabled and isinstance(probe, CanaryConfig | FioConfig)]
    directories = [Path(probe.directory) if probe.directory else storage / probe.name for probe in probes]
    for probe, directory, device in zip(probes, directories, _devices_below(directories, roots), strict=True):
        device_class = probe.device_class or (device and device.device_class) or "unknown"
        name = device.name if device else ""
        if isinstance(probe, CanaryConfig):
            workloads = tuple(
                catalogue.of_kind(BlockWorkload, each, where="configuration", key=f"{probe.name}.workloads")
                for each in probe.workloads
            )
            canaries.append(CanaryJob(probe, directory, name, device_class, workloads))
        else:
            workload = catalogue.of_kind(
                BlockWorkload, probe.workload, where="configuration", key=f"{probe.name}.workload"
            )
            plan = FioPlan.of(probe, workload, directory=directory, device_class=device_class)
            fio.append(FioJob(probe, plan, name))
    return ProbingPlan(tuple(canaries), tuple(fio))


def _devices_below(directories: Sequence[Path], roots: Roots) -> list[BlockDevice | None]:
    """The disk below each directory; ``None`` where there is none, or it does not answer in time."""
    found: list[BlockDevice | None] = [None] * len(directories)

    def ask(index: int) -> None:
        try:
            found[index] = device_below(directories[index], roots)
        except PlumblineError as error:
            log.debug("%s", error)

    asking = [threading.Thread(target=ask, args=(index,), daemon=True) for index in range(len(directories))]
    for thread in asking:
        thread.start()
    deadline = time.monotonic() + DISKS_ANSWER_WITHIN_S
    for thread, directory in zip(asking, directories, strict=True):
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            log.warning("%s: the disk below does not answer; its class is unknown until the next reload", directory)
    return list(found)


class Probing:
    """Runs a plan. :meth:`apply` at start and at every reload, :meth:`poll` every second, :meth:`stop` once."""

    def __init__(
        self,
        *,
        store: StateStore,
        roots: Roots,
        host: str,
        environment: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._roots, self._host = store, roots, host
        self._environment, self._clock = environment, clock
        self._scheduler = Scheduler()
        self._canaries: dict[str, tuple[CanaryPlan, Canary]] = {}
        self._recent: dict[tuple[str, str, str], RecentHistogram] = {}
        self._fio: tuple[FioJob, ...] = ()
        self._tool = FioTool()
        self._heavy = gates.HeavyLock(store.directory / gates.HEAVY_LOCK)
        self._leaving: list[Canary] = []

    def apply(self, plan: ProbingPlan, bounds: Bounds) -> None:
        """Run exactly ``plan``. Canaries and jobs whose plan is unchanged are not touched."""
        wanted = {job.config.name: canary_plan(job, bounds) for job in plan.canaries}
        kept = {name: pair for name, pair in self._canaries.items() if wanted.get(name) == pair[0]}
        for name, (_, canary) in self._canaries.items():
            if name not in kept and not canary.stop(timeout=1.0):
                self._leaving.append(canary)
        canaries = {name: kept.get(name) or (each, Canary(each)) for name, each in wanted.items()}
        for name, (_, canary) in canaries.items():
            if name not in kept:
                canary.start()
        self._canaries = canaries  # replaced whole: a scrape may be going through the old ones
        self._fio = plan.fio
        self._store.forget_others(frozenset(job.config.name for job in plan.fio))
        self._scheduler.replace(self._job(job) for job in plan.fio)

    def poll(self) -> None:
        """Supervise: restart what died, remember the last minutes."""
        now = time.monotonic()
        for canary in self._leaving:
            canary.poll()
        self._leaving = [canary for canary in self._leaving if canary.pid is not None]
        for name, (_, canary) in self._canaries.items():
            canary.poll()
            for each in canary.read().workloads:
                key = (name, each.workload, each.operation)
                self._recent.setdefault(key, RecentHistogram()).add(now, each.latency)

    def readings(self) -> list[CanaryReading]:
        """Every canary now; never blocks."""
        return [canary.read() for _, canary in self._canaries.values()]

    def recent(self, probe: str, workload: str, operation: str) -> RecentHistogram | None:
        """The last minutes of one operation of a canary."""
        return self._recent.get((probe, workload, operation))

    def record(self, job: FioJob) -> ProbeRecord:
        """What is remembered of a periodic probe."""
        return self._store.get(job.config.name)

    def statuses(self) -> list[ProbeStatus]:
        """Every periodic probe now; never blocks."""
        return [self._status(job) for job in self._fio]

    def fio_jobs(self) -> Sequence[FioJob]:
        """The periodic probes that run."""
        return self._fio

    def stop(self, timeout_s: float) -> list[str]:
        """End everything within ``timeout_s``; the names of what could not be ended (stuck in the kernel)."""
        deadline = time.monotonic() + timeout_s
        stuck = set(self._canaries)

        def stop(name: str, canary: Canary) -> None:
            if canary.stop(timeout=timeout_s):
                stuck.discard(name)

        stopping = [
            threading.Thread(target=stop, args=(name, canary), name=f"stop-{name}", daemon=True)
            for name, (_, canary) in self._canaries.items()
        ]
        for thread in stopping:
            thread.start()
        jobs = self._scheduler.stop(timeout_s)
        for thread in stopping:
            thread.join(max(0.0, deadline - time.monotonic()))
        return jobs + sorted(stuck)

    def _job(self, job: FioJob) -> Job:
        runner = ProcessRunner(self._environment)
        return Job(
            name=job.config.name,
            interval_s=float(job.config.interval),
            first_delay_s=self._first_delay(job),
            run=lambda cancel: self._run(job, runner, cancel),
            cancel=runner.stop,
            config=job,
        )

    def _first_delay(self, job: FioJob) -> float:
        """A restart goes on where the schedule was; what never ran starts soon, at a moment of this host's own."""
        interval = float(job.config.interval)
        delay = splay(self._host, job.config.name, min(interval, FIRST_RUN_WITHIN_S))
        result = self._store.get(job.config.name).result
        if result is None or result.config_hash != job.plan.config_hash:
            return delay
        age = self._clock() - result.started
        # a clock that jumped back must not put the next run off for longer than an interval
        return delay if age < 0 else max(delay, interval - age)

    def _run(self, job: FioJob, runner: ProcessRunner, cancel: threading.Event) -> None:
        name = job.config.name
        try:
            result = run_fio(
                job.plan,
                runner=runner,
                tool=self._tool,
                lock=self._heavy,
                clock=self._clock,
                gates=self._gates(job, cancel),
            )
        except ProbeRefused as refusal:
            if refusal.reason == "stopped":
                return
            before = self._store.get(name)
            if str(refusal) != before.last_skip:
                log.warning("probe %s skipped: %s", name, refusal)
            self._store.put(name, before.with_skip(refusal.reason, str(refusal)))
            return
        except PlumblineError as error:
            log.error("probe %s: %s", name, error)
            self._store.put(name, self._store.get(name).with_skip("error", str(error)))
            return
        if result.outcome is Outcome.SUCCESS:
            log.info("probe %s: done in %.1f s", name, result.duration)
        else:
            log.error("probe %s: %s: %s", name, result.outcome, result.message)
        self._store.put(name, self._store.get(name).with_result(result))

    def _gates(self, job: FioJob, cancel: threading.Event) -> list[gates.Gate]:
        cpus = os.cpu_count() or 1
        found: list[gates.Gate] = [
            lambda: gates.check_load(self._roots, limit=job.config.max_load_per_cpu, cpus=cpus),
        ]
        if job.device:
            found.append(
                lambda: gates.check_device_busy(
                    lambda: device_busy_ms(self._roots, job.device),
                    device=job.device,
                    limit=job.config.max_device_busy,
                    wait=cancel.wait,
                )
            )
        return found

    def _status(self, job: FioJob) -> ProbeStatus:
        name = job.config.name
        record = self._store.get(name)
        success = record.success
        return ProbeStatus(
            probe=name,
            kind="fio",
            interval_s=float(job.config.interval),
            result=record.result,
            good_result=success,
            last_success_ts=success.started + success.duration if success else None,
            success=record.result.outcome is Outcome.SUCCESS if record.result else None,
            runs=record.runs,
            skipped=record.skipped,
            in_flight_s=self._scheduler.in_flight(name),
            tool="fio",
            tool_version=success.tool_version if success else "",
            config_hash=job.plan.config_hash,
            layer=job.plan.workload.layer,
            device_class=job.plan.device_class,
            workload=job.plan.workload.id,
        )


def device_busy_ms(roots: Roots, device: str) -> tuple[float, float]:
    """Busy time of a disk in milliseconds, and the moment in monotonic seconds; refuses when the disk is gone."""
    stats = read_diskstats(roots, keep=lambda name: name == device)
    if not stats:
        raise ProbeRefused("device-gone", f"{device}: no longer in {roots.proc / 'diskstats'}")
    return float(stats[0].busy_ms), time.monotonic()


def canary_plan(job: CanaryJob, bounds: Bounds) -> CanaryPlan:
    """What the canary's engine needs to know."""
    return CanaryPlan(
        name=job.config.name,
        directory=job.directory,
        file_size_bytes=_file_size(job),
        workloads=tuple(
            (workload, bounds.get((job.config.name, workload.id, workload.operations[0]), ()))
            for workload in job.workloads
        ),
        device_class=job.device_class,
        rate=job.config.rate,
        stuck_after_s=float(job.config.stuck_after),
    )


def _file_size(job: CanaryJob) -> int:
    """A rotational disk's own cache (64 to 512 MiB) must not hold the file, or reads would measure that."""
    if job.config.file_size is not None:
        return int(job.config.file_size)
    return 2**30 if job.device_class == "hdd" else 2**24
