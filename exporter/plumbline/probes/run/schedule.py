"""Run this node's probes: keep canaries going, run periodic probes on schedule, and report their status."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from plumbline.config.model import GatesConfig
from plumbline.config.types import Schedule
from plumbline.core import threads
from plumbline.core.histogram import HistogramValue
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job, Scheduler, splay
from plumbline.core.storage_names import HEAVY_LOCK
from plumbline.core.wall_clock import SLACK_S
from plumbline.errors import PlumblineError, ProbeRefused, Unavailable
from plumbline.probes.run import gates
from plumbline.probes.run.engine import STOPPED, Gates, run_probe
from plumbline.probes.run.histogram import MedianHistory, RecentHistogram
from plumbline.probes.run.model import Bounds, ClusterGuard, ContinuousProbe, Identity, PeriodicProbe, Run
from plumbline.probes.run.plan import ProbingPlan
from plumbline.probes.run.reading import CanaryReading, WorkloadReading
from plumbline.probes.run.result import Outcome
from plumbline.probes.run.state import ProbeRecord, StateStore
from plumbline.sources.disk.diskstats import read_diskstats
from plumbline.sources.net.routes import read_device, read_device_speed_mbps

log = logging.getLogger(__name__)

FIRST_RUN_WITHIN_S = 300.0  # A probe that never ran here starts within this time, at a moment splayed by host
CALENDAR_SPLAY_S = 1800.0
"""Hosts with the same calendar start within this time after the scheduled moment, each with its own offset."""


class ProbeStatus(Struct, frozen=True):
    """A periodic probe at the moment of a scrape: what is remembered of it, and its current run."""

    identity: Identity
    record: ProbeRecord
    interval_s: float
    timeout_s: float | None = None
    in_flight_s: float | None = None  # None: idle
    vantage: str = ""  # host, vm or container

    @property
    def comparable(self) -> bool:
        """Whether the totals and the recent figures are those of the current parameters."""
        success = self.record.success
        return success is not None and success.config_hash == self.identity.config_hash


class Followed:
    """A running canary and its recent history, which never mixes two series. A canary with another configuration gets a
    new object, without history. Call :meth:`poll` from one thread, the rest from any."""

    def __init__(self, plan: object, canary: ContinuousProbe) -> None:
        self.plan, self.canary = plan, canary
        self._kept: dict[tuple[str, str], tuple[RecentHistogram, MedianHistory]] = {}

    def poll(self, now: float) -> None:
        self.canary.poll()
        for workload in self.canary.read().workloads:
            key = (workload.workload, workload.operation)
            kept = self._kept.get(key) or self._kept.setdefault(key, (RecentHistogram(), MedianHistory()))
            for memory in kept:
                memory.add(now, workload.latency)

    def recent(self, workload: WorkloadReading) -> HistogramValue | None:
        """The last minutes of one operation, up to the given reading; ``None`` if not known yet."""
        kept = self._kept.get((workload.workload, workload.operation))
        return kept[0].difference(workload.latency) if kept else None

    def medians(self, workload: WorkloadReading) -> tuple[float | None, ...]:
        """Medians of one operation, one per minute; seconds, oldest first."""
        kept = self._kept.get((workload.workload, workload.operation))
        return kept[1].values if kept else ()


class Probing:
    """Runs a plan. Call :meth:`apply` at start and at every reload, :meth:`poll` every second, :meth:`stop` once."""

    def __init__(
        self,
        *,
        store: StateStore,
        roots: Roots,
        host: str,
        environment: Mapping[str, str],
        cluster: ClusterGuard | None = None,
        vantage: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._roots, self._host, self._vantage = store, roots, host, vantage
        self._environment, self._clock = environment, clock
        self._scheduler = Scheduler(wall=clock)
        self._canaries: dict[str, Followed] = {}
        self._periodic: tuple[PeriodicProbe, ...] = ()
        self._rules = GatesConfig()
        self._heavy = gates.HeavyLock(store.directory / HEAVY_LOCK)
        self._cluster = cluster
        self.needs_cluster = False  # Whether any probe loads the Ceph cluster
        self._leaving: list[ContinuousProbe] = []

    def apply(self, plan: ProbingPlan, bounds: Bounds, rules: GatesConfig = GatesConfig()) -> None:  # noqa: B008  (frozen)
        """Run exactly ``plan``. Canaries and jobs whose plan is unchanged are not touched."""
        self._rules = rules
        wanted = {job.name: job.plan(bounds) for job in plan.continuous}
        kept = {name: running for name, running in self._canaries.items() if wanted.get(name) == running.plan}
        for name, running in self._canaries.items():
            if name not in kept and not running.canary.stop(timeout=1.0):
                self._leaving.append(running.canary)
        canaries = {
            job.name: kept.get(job.name) or Followed(wanted[job.name], job.make(bounds)) for job in plan.continuous
        }
        for name, running in canaries.items():
            if name not in kept:
                running.canary.start()
        self._canaries = canaries  # replaced whole: a scrape may be iterating over the old ones
        self._periodic = plan.periodic
        self.needs_cluster = any(identity.cluster for identity in plan.identities())
        self._store.forget_others(frozenset(probe.identity.probe for probe in plan.periodic))
        self._scheduler.replace(self._job(probe) for probe in plan.periodic)

    def poll(self) -> None:
        now = time.monotonic()
        self._store.follow_clock()
        for canary in self._leaving:
            canary.poll()
        self._leaving = [canary for canary in self._leaving if canary.pid is not None]
        for running in self._canaries.values():
            running.poll(now)

    def readings(self) -> list[CanaryReading]:
        return [running.canary.read() for running in self._canaries.values()]

    def followed(self) -> Sequence[Followed]:
        return [*self._canaries.values()]

    @property
    def outdated(self) -> bool:
        """Whether a canary no longer measures what the configuration means here, so that a new plan is needed."""
        return any(reading.outdated for reading in self.readings())

    def record(self, probe: PeriodicProbe) -> ProbeRecord:
        return self._store.get(probe.identity.probe)

    def statuses(self) -> list[ProbeStatus]:
        """Every periodic probe now; never blocks."""
        return [self.status(probe) for probe in self._periodic]

    def in_flight(self, probe: PeriodicProbe) -> float | None:
        """Seconds since the current run began; ``None`` if there is none."""
        return self._scheduler.in_flight(probe.identity.probe)

    def next_start(self, probe: PeriodicProbe) -> float | None:
        """Seconds until the probe's next start; ``None`` while it runs."""
        return self._scheduler.next_start(probe.identity.probe)

    def periodic(self) -> Sequence[PeriodicProbe]:
        return self._periodic

    def stop(self, timeout_s: float) -> list[str]:
        """End everything within ``timeout_s``; returns the names of what did not end (stuck in the kernel)."""
        deadline = time.monotonic() + timeout_s
        stuck = set(self._canaries)

        def stop(name: str, canary: ContinuousProbe) -> None:
            if canary.stop(timeout=timeout_s):
                stuck.discard(name)

        stopping = [
            threads.start("end", partial(stop, name, running.canary), of=name)
            for name, running in self._canaries.items()
        ]
        jobs = self._scheduler.stop(timeout_s)
        for thread in stopping:
            thread.join(max(0.0, deadline - time.monotonic()))
        return jobs + sorted(stuck)

    def _job(self, probe: PeriodicProbe) -> Job:
        runner = ProcessRunner(self._environment)
        at = probe.config.at
        clean = False  # before the first run, the remains of an earlier process are removed

        def run(cancel: threading.Event) -> None:
            nonlocal clean
            clean = clean or self.clean_up(probe, runner, cancel)
            self.run(probe, runner, cancel)

        return Job(
            name=probe.identity.probe,
            interval_s=interval_s(probe),
            first_delay_s=self._first_delay(probe),
            run=run,
            cancel=runner.stop,
            config=probe,
            next_after=None if at is None else partial(self._next_after, at, probe.identity.probe),
        )

    def _next_after(self, at: Schedule, name: str, now: float) -> float:
        late = splay(self._host, name, CALENDAR_SPLAY_S)
        return at.next_after(now - late) + late

    def _first_delay(self, probe: PeriodicProbe) -> float:
        """A restart continues the schedule; a probe that never ran starts soon, at a moment splayed by host."""
        interval, name = float(probe.config.interval), probe.identity.probe
        delay = splay(self._host, name, min(interval, FIRST_RUN_WITHIN_S))
        result = self._store.get(name).result
        if result is None or result.config_hash != probe.identity.config_hash:
            return delay
        age = self._clock() - result.started
        # a clock that jumped back must not delay the next run by more than an interval
        return delay if age < 0 else max(delay, interval - age)

    def run(self, probe: PeriodicProbe, runner: ProcessRunner, cancel: threading.Event) -> None:
        """One scheduled run; its outcome is remembered, except when it was stopped."""
        name, set_before_s = probe.identity.probe, self._store.follow_clock()
        try:
            result = run_probe(
                probe,
                runner=runner,
                host_lock=self._heavy,
                cluster=self._cluster,
                gates=gates_of(probe, self._roots, self._rules, self._cluster, clock=self._clock, wait=cancel.wait),
                clock=self._clock,
                stopping=cancel,
            )
        except PlumblineError as error:
            before, reason = self._store.get(name), error.reason if isinstance(error, ProbeRefused) else "error"
            if reason == STOPPED:
                return
            if reason == "error":
                log.error("probe %s: %s", name, error)
            elif str(error) != before.last_skip:
                log.warning("probe %s skipped: %s", name, error)
            self._store.put(name, before.with_skip(reason, str(error), at=self._clock()))
            return
        if result.outcome is Outcome.SUCCESS:
            log.info("probe %s: done in %.1f s", name, result.duration)
        else:
            log.error("probe %s: %s: %s", name, result.outcome, result.message)
        if self._store.follow_clock() != set_before_s and abs(self._clock() - result.finished) > SLACK_S:
            result = replace(result, started=self._clock() - result.duration)  # the clock was set in it
        self._store.put(name, self._store.get(name).with_result(result))

    def clean_up(self, probe: PeriodicProbe, runner: ProcessRunner, cancel: threading.Event) -> bool:
        """Remove what an earlier process of this probe left behind; a failed removal is retried at the next start.
        False: postponed, because another heavy probe runs (the remains may belong to ``plumbline probe run``)."""
        name = probe.identity.probe
        try:
            with self._heavy.hold(f"{name}, cleaning up") if probe.heavy else contextlib.nullcontext():
                probe.clean_up(Run(runner=runner, clock=self._clock, stopping=cancel))
        except PlumblineError as error:
            if isinstance(error, ProbeRefused) and error.reason == "locked":
                return False
            log.warning("probe %s: what an earlier run left behind could not be removed: %s", name, error)
        return True

    def status(self, probe: PeriodicProbe) -> ProbeStatus:
        name = probe.identity.probe
        return ProbeStatus(
            probe.identity,
            self._store.get(name),
            interval_s=interval_s(probe),
            timeout_s=float(probe.config.timeout),
            in_flight_s=self._scheduler.in_flight(name),
            vantage=self._vantage,
        )


def interval_s(probe: PeriodicProbe) -> float:
    """Seconds from start to start; for a calendar, the longest gap."""
    at = probe.config.at
    return float(probe.config.interval) if at is None else at.longest_gap_s


def gates_of(
    probe: PeriodicProbe,
    roots: Roots,
    rules: GatesConfig,
    cluster: ClusterGuard | None,
    *,
    clock: Callable[[], float],
    wait: Callable[[float], object],
    force: bool = False,
) -> Gates:
    """The gates for ``probe``, both for the daemon and for a run on demand. ``force`` leaves out the gates that only
    protect the figures and the neighbours on this node: its load and how busy the disk or port is. Quiet hours and the
    cluster's health always apply."""
    cpus, config, device = os.cpu_count() or 1, probe.config, probe.identity.device
    throughout: list[gates.Gate] = []
    before: list[gates.Gate] = []
    if probe.heavy:
        throughout.append(lambda: gates.check_quiet_hours(rules.quiet_hours, time.localtime(clock())))
    if probe.identity.cluster and cluster is not None:
        throughout.append(cluster.check)
    if not force:
        limit = config.max_device_busy
        before.append(lambda: gates.check_load(roots, limit=config.max_load_per_cpu, cpus=cpus))
        if device and probe.identity.layer != "network":
            read = partial(device_busy_ms, roots, device)
            before.append(lambda: gates.check_device_busy(read, device=device, limit=limit, wait=wait))
        elif device and probe.heavy:
            before.append(lambda: _check_nic(device, limit, roots, wait))
    return Gates(before, throughout)


def _check_nic(device: str, limit: float, roots: Roots, wait: Callable[[float], object]) -> None:
    """Skip the check for a port without a speed (a virtual one): its utilisation is unknown."""
    try:
        speed_mbps = read_device_speed_mbps(device, roots)
    except PlumblineError as error:
        raise ProbeRefused("device-gone", str(error)) from error
    if speed_mbps is not None:
        gates.check_nic_busy(lambda: nic_bytes(device), device=device, speed_mbps=speed_mbps, limit=limit, wait=wait)


def device_busy_ms(roots: Roots, device: str) -> tuple[float, float]:
    """Busy time of a disk in milliseconds, and monotonic seconds. Raises :class:`ProbeRefused` if the disk is gone."""
    stats = read_diskstats(roots, keep=lambda name: name == device)
    if not stats:
        raise ProbeRefused("device-gone", f"{device}: no longer in {roots.proc / 'diskstats'}")
    return float(stats[0].busy_ms), time.monotonic()


def nic_bytes(device: str) -> tuple[int, int, float]:
    """Received and sent bytes of a network device, and monotonic time in seconds; :class:`Unavailable` if uncounted."""
    stats = read_device(device).stats
    if stats is None:
        raise Unavailable(f"{device}: does not count its bytes")
    return stats.rx_bytes, stats.tx_bytes, time.monotonic()
