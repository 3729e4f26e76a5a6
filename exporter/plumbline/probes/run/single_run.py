"""One interactive run, with the daemon's engines, locks, gates and guard.

Both ``plumbline probe run`` and ``plumbline baseline record`` use this: periodic probes run by
:func:`.engine.run_probe`, canaries for a limited time in a worker of their own.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from plumbline.config.model import GatesConfig
from plumbline.core import threads
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.core.storage_names import BESIDE_LOCK, HEAVY_LOCK
from plumbline.core.units import si
from plumbline.errors import PlumblineError, ProbeRefused
from plumbline.probes.run.engine import STOPPED, run_probe
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.histogram import quantile
from plumbline.probes.run.model import (
    Bounds,
    ClusterGuard,
    ContinuousJob,
    ContinuousProbe,
    Identity,
    PeriodicProbe,
    Progress,
)
from plumbline.probes.run.reading import CanaryReading, CanaryState
from plumbline.probes.run.result import ProbeResult
from plumbline.probes.run.schedule import gates_of
from plumbline.sources.disk.diskstats import read_diskstats

FASTER = 8.0
"""Rate of a canary in an interactive run, relative to its usual one: percentiles need operations, and a minute at the
usual rate has none beyond the p95. One operation at a time still meets an idle queue: on a virtio disk the medians at
10 and at 80 operations a second differed by less than 10 %, as much as two runs at the same rate did."""

_LOOK_EVERY_S = 0.2
# a canary that is not running by then never will: its worker gives up each of its steps after half a minute
_READY_WITHIN_S = 120.0
# time to remove its objects; nothing else would remove them soon
_STOP_WITHIN_S = 3.0
_FIGURES_EVERY_S = 1.0
_ENDED = (CanaryState.REFUSED, CanaryState.RESTARTING)

Show = Callable[[Progress], None]
See = Callable[[Sequence[CanaryReading]], None]


class RunOnce:
    """Runs probes one at a time. ``stopping`` ends the current run; ``clock`` is Unix time."""

    def __init__(
        self,
        *,
        storage: Path,
        roots: Roots,
        environment: Mapping[str, str],
        rules: GatesConfig,
        cluster: ClusterGuard | None,
        stopping: threading.Event,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._roots, self._rules, self._cluster = roots, rules, cluster
        self._runner = ProcessRunner(environment)
        self._lock = HeavyLock(storage / HEAVY_LOCK)
        self._beside = HeavyLock(storage / BESIDE_LOCK)
        self._stopping, self.clock = stopping, clock

    def periodic(self, probe: PeriodicProbe, *, force: bool, progress: Show) -> ProbeResult:
        """One run. ``force``: even if the node or the disk is busy. Raises :class:`PlumblineError` if the run was
        refused (:class:`ProbeRefused`) or could not begin."""
        if probe.identity.cluster and self._cluster is None:
            raise ProbeRefused("unreachable", "this probe loads the cluster, whose state is unknown")
        gates = gates_of(
            probe, self._roots, self._rules, self._cluster, clock=self.clock, wait=self._stopping.wait, force=force
        )
        live = _DiskFigures(probe.identity, self._roots, progress)
        with live:
            return run_probe(
                probe,
                runner=self._runner,
                host_lock=self._lock,
                cluster=self._cluster,
                gates=gates,
                clock=self.clock,
                stopping=self._stopping,
                progress=live.show,
            )

    def canaries(
        self,
        name: str,
        jobs: Sequence[ContinuousJob],
        *,
        run_s: float,
        bounds: Bounds,
        progress: Show,
        see: See = lambda _: None,
    ) -> list[CanaryReading]:
        """What canaries measured in ``run_s`` seconds in parallel, at :data:`FASTER` times their rate; ``see`` is
        called with their readings a few times a second from the moment one works. Raises as :meth:`periodic`."""
        if jobs[0].locks:
            (job,) = jobs
            return [self._in_place(job, run_s, bounds, progress, see)]
        with self._beside.hold(f"an interactive run of {name}"):
            return self._run_together([job.faster(FASTER).make(bounds) for job in jobs], run_s, progress, see)

    def _in_place(self, job: ContinuousJob, run_s: float, bounds: Bounds, progress: Show, see: See) -> CanaryReading:
        """What a canary measured that locks its place, or a spare one. Raises :class:`ProbeRefused` if the guard
        refuses, the worker dies, or an operation hangs."""
        for spare in (False, True):
            canary = job.faster(FASTER, spare=spare).make(bounds)
            (reading,) = self._run_together([canary], run_s, progress, see, until_stuck=True)
            if reading.reason != "locked":
                break
        if reading.reason == "stuck":
            raise ProbeRefused("stuck", f"{reading.message}; see the kernel's log")
        if reading.state in _ENDED:
            raise ProbeRefused(reading.reason, reading.message)
        return reading

    def _run_together(
        self,
        canaries: Sequence[ContinuousProbe],
        run_s: float,
        progress: Show,
        see: See,
        *,
        until_stuck: bool = False,
    ) -> list[CanaryReading]:
        """Run canaries in parallel; one that is refused, dies, or (``until_stuck``) hangs does not delay the others."""
        watch = _Watch(self._stopping, run_s, progress)
        ended: dict[int, CanaryReading] = {}
        try:
            for canary in canaries:
                canary.start()
            while True:
                for canary in canaries:
                    canary.poll()
                readings = [ended.get(index, canary.read()) for index, canary in enumerate(canaries)]
                ended |= {
                    index: reading
                    for index, reading in enumerate(readings)
                    if reading.state in _ENDED or (until_stuck and reading.reason == "stuck")
                }
                watch.see(readings)
                if watch.measuring:
                    see(readings)
                if watch.over or len(ended) == len(canaries):
                    return readings
                self._stopping.wait(_LOOK_EVERY_S)
        finally:
            for canary in canaries:
                canary.stop(timeout=_STOP_WITHIN_S)


class _DiskFigures:
    """Adds the disk's current activity, also that of other users, to a run's progress if the run reports no figures."""

    def __init__(self, identity: Identity, roots: Roots, progress: Show) -> None:
        self._device = "" if identity.layer == "network" else identity.device
        self._roots, self._progress = roots, progress
        self._last = Progress("")
        self._over = threading.Event()

    def __enter__(self) -> None:
        if self._device:
            threads.start("live-figures", self._follow)

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def show(self, now: Progress) -> None:
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
            for counters in read_diskstats(self._roots, keep=lambda name: name == self._device):
                return counters.reads, counters.writes
        except PlumblineError:
            pass
        return None


class _Watch:
    """Follows running canaries: the time since the first one was running, and their live figures."""

    def __init__(self, stopping: threading.Event, run_s: float, progress: Show) -> None:
        self._stopping, self._run_s, self._progress = stopping, run_s, progress
        self._until: float | None = None
        self._ready_by = time.monotonic() + _READY_WITHIN_S

    @property
    def measuring(self) -> bool:
        return self._until is not None

    @property
    def over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def see(self, readings: Sequence[CanaryReading]) -> None:
        """Call a few times a second. Raises :class:`ProbeRefused` on a stop, and if no canary runs in time."""
        if self._stopping.is_set():
            raise ProbeRefused(STOPPED, "stopped")
        now, working = time.monotonic(), [reading for reading in readings if reading.state is CanaryState.RUNNING]
        if not working and self._until is None:
            if now >= self._ready_by:
                why = next((reading.message for reading in readings if reading.message), "no answer")
                raise ProbeRefused("stuck", f"not running after {_READY_WITHIN_S:.0f} s: {why}")
            self._progress(Progress("preparing"))
            return
        self._until = self._until or now + self._run_s
        left = max(0.0, self._until - now)
        self._progress(Progress("measuring", 1 - left / self._run_s, _live(working, len(readings))))


def _live(working: Sequence[CanaryReading], total: int) -> str:
    """The medians; with several canaries only the slowest one's."""
    medians = [(_medians(reading), reading.target or reading.probe) for reading in working]
    if total == 1:
        return ", ".join(
            f"{operation} p50 {si(s, 's')}" for medians_of, _ in medians for operation, s in medians_of.items()
        )
    figures = [(s, f"{target} {operation}") for medians_of, target in medians for operation, s in medians_of.items()]
    slowest = f", slowest: {max(figures)[1]} p50 {si(max(figures)[0], 's')}" if figures else ""
    return f"{len(working)} of {total} running{slowest}"


def _medians(reading: CanaryReading) -> dict[str, float]:
    medians = {
        workload.operation: quantile(workload.latency, 0.5) for workload in reading.workloads if workload.latency.count
    }
    return {operation: median for operation, median in medians.items() if median is not None}
