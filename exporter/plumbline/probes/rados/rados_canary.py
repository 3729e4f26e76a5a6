"""The daemon's side of the RADOS canary: one worker for all OSDs of a probe, and one canary per OSD to read.

The operations run in ``rados_canary_worker.py``, a separate process: a cluster that hangs blocks only that process.
Histograms are in memory that successive workers share, so counters never go back while the daemon lives.
"""

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from itertools import accumulate

from msgspec import Struct

from plumbline.config.workloads import RadosOps
from plumbline.core.histogram import HistogramValue
from plumbline.probes.canary import memory
from plumbline.probes.canary.process import Trouble, WorkerProcess, Workplace
from plumbline.probes.canary.snapshot import DaemonMemory, Snapshot, StreamPlan, lay_down
from plumbline.probes.ceph.librados import Access
from plumbline.probes.rados.osd_choice import ChosenOsd
from plumbline.probes.rados.rados_canary_worker import ADVICE, ERRORS, NOTES, OPERATIONS, OSDS_CHANGED
from plumbline.probes.run.histogram import edge_ns, latency_edges
from plumbline.probes.run.reading import SILENT_GAPS, CanaryLog, CanaryReading, CanaryState, WorkloadReading

log = logging.getLogger(__name__)

_NOT_SERVED = {
    "choosing": "its objects are being chosen",
    "down": "the OSD is down",
    "out": "the OSD is out",
    "gone": "the cluster has no such OSD",
    "no-primary": "primary for no placement group of the pool: its CRUSH rule excludes the OSD, or pg_num is too low",
}


class OsdPlan(ChosenOsd, frozen=True):
    """One OSD of the canary, and its baseline's bounds in seconds by operation."""

    bounds: tuple[tuple[float, ...], ...] = ((),) * len(OPERATIONS)

    @property
    def name(self) -> str:
        return f"osd.{self.number}"


class RadosCanaryPlan(Struct, frozen=True):
    """All OSDs of one probe: they share a worker, so they start and stop together."""

    name: str
    access: Access
    pool: str
    namespace: str
    prefix: str
    host: str
    words: tuple[str, ...]
    workload: RadosOps
    rate: float  # Operations per second on each OSD
    stuck_after_s: float
    osds: tuple[OsdPlan, ...]  # Empty while they are unknown

    def order(self) -> str:
        facts = {name: getattr(self, name) for name in ("pool", "namespace", "prefix", "host", "words")}
        facts |= {"access": asdict(self.access), "object_size": self.workload.object_size}
        return json.dumps({**facts, "osds": [(osd.number, osd.crush_class) for osd in self.osds]})


class RadosCanaries:
    def __init__(
        self,
        plan: RadosCanaryPlan,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.plan = plan
        self.clock, self.wall = clock, wall
        self._place = Workplace(sys.executable, clock)
        self._lock = threading.Lock()
        self._memory_fd = lay_down(
            [
                StreamPlan(
                    write=operation == "write",
                    sequential=False,
                    dsync=False,
                    block_bytes=plan.workload.object_size,
                    share=1 / len(OPERATIONS),
                    edges_ns=tuple(edge_ns(edge) for edge in edges_of(bounds)[1]),
                )
                for osd in plan.osds
                for operation, bounds in zip(OPERATIONS, osd.bounds, strict=True)
            ],
            file_bytes=0,
            rate=plan.rate,
            max_busy_ratio=1.0,
        )
        self._memory = DaemonMemory(self._memory_fd)
        self._worker: WorkerProcess | None = None
        self._should_run = False
        self._trouble = Trouble(CanaryState.IDLE)
        self.skips = dict.fromkeys(ADVICE, 0)

    @property
    def pid(self) -> int | None:
        worker = self._worker
        return worker.pid if worker else None

    @property
    def runs(self) -> int:
        return self._place.runs

    @property
    def stopped(self) -> bool:
        """Whether it is stopped for good: make a new object to start again."""
        return self._memory_fd < 0

    @property
    def troubled(self) -> bool:
        """Whether the last worker ended by itself; the current one must first prove that it works."""
        return bool(self._trouble.message)

    def start(self) -> None:
        with self._lock:
            if not self._should_run and not self.stopped:
                self._should_run = True
                self._spawn()

    def poll(self) -> None:
        with self._lock:
            worker = self._worker
            if worker is not None:
                if not worker.ended:
                    self._place.look_after(worker)
                    return
                self._bury(worker)
            if self._should_run and self._place.due:
                self._spawn()

    def stop(self, timeout_s: float) -> bool:
        """End the worker; False if it hangs in the kernel."""
        with self._lock:
            self._should_run = False
            worker = self._worker
            if worker is None:
                self._stopped()
                return True
            if not worker.end(timeout_s, asked_share=0.75):  # it has objects to remove
                message = f"worker {worker.pid} hangs in the kernel"
                self._trouble = Trouble(CanaryState.UNKILLABLE, "unkillable", message)
                return False
            self._bury(worker)
            return True

    def look(self) -> tuple[Snapshot, tuple[int, ...], CanaryState, str, str]:
        """Counts, start times of running operations, and the worker's state with reason and message."""
        worker, trouble = self._worker, self._trouble
        snapshot = self._memory.snapshot()
        if worker is None or trouble.state is CanaryState.UNKILLABLE:
            return snapshot, (), trouble.state, trouble.reason, trouble.message
        reason, _, message = snapshot.text.partition("\n")
        since = self._memory.in_flight_since_ns()
        if snapshot.state == memory.RUNNING:
            return snapshot, since, CanaryState.RUNNING, reason, message
        if snapshot.state == memory.REFUSED:  # and about to end
            return snapshot, since, CanaryState.REFUSED, reason, message
        before = f"; the previous worker: {trouble.message}" if self.troubled else ""
        message = f"the worker is connecting and choosing its objects{before}"
        return snapshot, since, CanaryState.PREPARING, "preparing", message

    def _spawn(self) -> None:
        order = [str(self._memory_fd), self.plan.order(), self.plan.name]
        started = self._place.spawn("plumbline.probes.rados.rados_canary_worker", order, keep_fds=[self._memory_fd])
        if isinstance(started, Trouble):
            self._in_trouble(started)
        else:
            self._worker = started

    def _bury(self, worker: WorkerProcess) -> None:
        self._worker = None
        last_words = worker.bury()
        if not self._should_run:
            self._stopped()
            return
        snapshot = self._memory.snapshot()
        self._memory.worker_gone()
        trouble = worker.why(last_words, snapshot)
        if trouble.state is CanaryState.REFUSED:
            self.skips[trouble.reason] = self.skips.get(trouble.reason, 0) + 1
        self._place.failed()
        self._in_trouble(trouble)

    def _stopped(self) -> None:
        self._trouble = Trouble(CanaryState.STOPPED)
        if self._memory_fd >= 0:
            os.close(self._memory_fd)
            self._memory_fd = -1

    def _in_trouble(self, trouble: Trouble) -> None:
        if trouble.reason != self._trouble.reason:
            log.warning("canary %s: %s: %s", self.plan.name, trouble.reason, trouble.message)
        self._trouble = trouble


class OsdCanary:
    """One OSD's share of a worker, a :class:`.ContinuousProbe`; without an OSD that of the whole
    probe, while its OSDs are unknown. Starting or stopping it affects all OSDs of the probe."""

    def __init__(self, group: RadosCanaries, osd: OsdPlan | None) -> None:
        self._group, self._osd = group, osd
        self._first = len(OPERATIONS) * (group.plan.osds.index(osd) if osd else 0)
        self._notes = dict.fromkeys(NOTES[2:], 0)
        self._note = ""
        self._log = CanaryLog()

    @property
    def plan(self) -> RadosCanaryPlan:
        return self._group.plan

    @property
    def pid(self) -> int | None:
        return self._group.pid

    def start(self) -> None:
        self._group.start()

    def poll(self) -> None:
        self._group.poll()
        reading = self.read()
        if reading.reason != self._note:
            self._note = reading.reason
            if reading.reason in self._notes:
                self._notes[reading.reason] += 1
        self._log.look(reading)

    def stop(self, timeout: float = 1.0) -> bool:
        return self._group.stop(timeout)

    def read(self) -> CanaryReading:
        plan, osd, group = self.plan, self._osd, self._group
        snapshot, since_ns, state, reason, message = group.look()
        own = slice(self._first, self._first + len(OPERATIONS)) if osd else slice(0, 0)
        now_ns = int(group.clock() * 1e9)
        in_flight = [max(0, now_ns - since) / 1e9 if since else 0.0 for since in (*since_ns[own], *since_ns[-1:])]
        streams = []
        counted = snapshot.streams[own]
        for index, (operation, counts) in enumerate(zip(OPERATIONS, counted, strict=False)):
            bounds, edges = edges_of(osd.bounds[index] if osd else ())
            *cumulative, total = accumulate(counts.buckets)
            streams.append(
                WorkloadReading(
                    layer=plan.workload.layer,
                    workload=plan.workload.id,
                    config_hash=plan.workload.config_hash(),
                    operation=operation,
                    bounds=bounds,
                    latency=HistogramValue(edges, cumulative, total, counts.sum_ns / 1e9),
                    charged=counts.charged,
                    errors=dict(zip(ERRORS, counts.errors, strict=True)),
                    in_flight_s=in_flight[index] if since_ns else 0.0,
                    last_completion_ts=counts.last_completion_ns / 1e9 or None,
                    last_success_ts=counts.last_success_ns / 1e9 or None,
                )
            )
        note = NOTES[counted[0].note] if counted else ""
        name = osd.name if osd else plan.name
        longest = max(in_flight, default=0.0)
        failing = [stream for stream in streams if stream.last_completion_ts != stream.last_success_ts]
        outdated = reason == OSDS_CHANGED
        if outdated:
            reason = message = ""
        # even after it has ended: after a single run, a person wants to know why this OSD has no figures
        if note and (state is CanaryState.RUNNING or not reason):
            reason, message = note, f"{name}: {_NOT_SERVED[note]}"
        elif state is CanaryState.RUNNING and failing:
            kind = max(failing[0].errors, key=failing[0].errors.__getitem__)
            reason, message = (
                "errors",
                f"{name}: the last {failing[0].operation} failed; the most frequent error is {kind}",
            )
        if longest >= plan.stuck_after_s and state in (CanaryState.RUNNING, CanaryState.PREPARING):
            reason, message = "stuck", f"{name}: an operation hangs for {longest:.0f} s"
        return CanaryReading(
            probe=f"{plan.name}/{name}" if osd else plan.name,
            device_class=osd.device_class if osd else "",
            state=state,
            reason=reason,
            message=message,
            workloads=tuple(streams),
            in_flight_s=longest,
            rate_per_s=plan.rate,
            runs=group.runs,
            skips={**group.skips, **self._notes},
            success=self._verdict(state, reason, streams),
            kind="rados-canary",
            target=name if osd else "",
            device=osd.device if osd else "",
            outdated=outdated,
        )

    def _verdict(self, state: CanaryState, reason: str, streams: list[WorkloadReading]) -> bool | None:
        if state in (CanaryState.IDLE, CanaryState.STOPPED):
            return None
        if reason not in ("", "preparing", "choosing") or state not in (CanaryState.RUNNING, CanaryState.PREPARING):
            return False
        if state is CanaryState.PREPARING and self._group.troubled:
            return False  # otherwise it would alternate while the cluster is gone: refused, trying, refused
        completions = [stream.last_completion_ts for stream in streams if stream.last_completion_ts is not None]
        if len(completions) < len(streams) or not streams:
            return None
        quiet_s = self._group.wall() - max(completions)
        return quiet_s < self.plan.stuck_after_s + SILENT_GAPS / self.plan.rate


@cache
def edges_of(bounds: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Bounds as they are counted, and all edges: the same objects for ever, as the renderer needs them."""
    exact = tuple(sorted({edge_ns(bound) / 10**9 for bound in bounds}))
    return exact, latency_edges(exact)
