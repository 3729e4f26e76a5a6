"""The daemon's side of a canary: keeps one worker running, and reads its data without ever waiting for it.

The operations run in a separate process (``worker`` of its target): a hung disk or cluster blocks only that process.
Histograms are in memory that successive workers of one canary share, so counters never go back while the daemon lives.
Canaries on raw disks and OSDs share a worker (:mod:`.pool`), each with memory of its own.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import accumulate

from plumbline.core.histogram import HistogramValue
from plumbline.probes.canary import memory
from plumbline.probes.canary.pool import WorkerPool
from plumbline.probes.canary.process import Trouble
from plumbline.probes.canary.snapshot import DaemonMemory, Snapshot, lay_down
from plumbline.probes.canary.target import Target, streams_of
from plumbline.probes.run.reading import SILENT_GAPS, CanaryLog, CanaryReading, CanaryState, WorkloadReading


class Canary:
    """One canary: ``start`` once, ``poll`` every second, ``read`` at any time from any thread, ``stop`` once. ``pool``:
    the worker shared with others; ``None``: a worker of its own. ``device``: the disk, or the one below the file;
    empty if there is none or it is unknown."""

    def __init__(
        self,
        plan: Target,
        *,
        pool: WorkerPool | None = None,
        device: str = "",
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        interpreter: str = sys.executable,
    ) -> None:
        self.plan, self.device = plan, device
        self._clock, self._wall = clock, wall
        self._streams = streams_of(plan)
        self.memory_fd = lay_down(
            [stream.for_worker() for stream in self._streams],
            file_bytes=plan.file_size_bytes,
            rate=plan.wanted_rate,
            max_busy_ratio=plan.max_busy_ratio,
        )
        self.memory = DaemonMemory(self.memory_fd)
        self._pool = pool or WorkerPool(clock=clock, interpreter=interpreter)
        self._pool.join()
        self._counting = threading.Lock()
        self._skips = dict.fromkeys((*plan.reasons, *plan.notes), 0)
        self._refusals = 0
        self._note = ""
        self._log = CanaryLog()

    @property
    def pid(self) -> int | None:
        return self._pool.pid_of(self)

    def start(self) -> None:
        """Start the first worker, once all canaries that share it were started. Never waits, touches no disk."""
        self._pool.start(self)

    def poll(self) -> None:
        self._pool.poll()
        self.count_refusals()
        reading = self.read()
        if reading.reason != self._note:
            self._note = reading.reason
            if reading.reason in self.plan.notes:
                self._skips[reading.reason] += 1
        if not self.plan.attended:
            self._log.look(reading)

    def stop(self, timeout: float = 1.0) -> bool:
        """End the worker within ``timeout`` seconds: SIGTERM, then SIGKILL; a shared worker may only drop this canary.
        False if it hangs in the kernel: then the state is ``unkillable``, ``poll`` keeps checking whether it ended, and
        no other canary may start in its directory (its lock there would refuse it, too)."""
        return self._pool.stop(self, timeout)

    def read(self) -> CanaryReading:
        """The canary's current data: no waiting, no disk access, about 0.1 ms."""
        trouble = self._pool.trouble_of(self)
        snapshot = self.memory.snapshot()
        if trouble is None:
            return self._reading(snapshot, self._work(snapshot), self.memory.in_flight_since_ns())
        since = self.memory.in_flight_since_ns() if trouble.state is CanaryState.UNKILLABLE else ()
        return self._reading(snapshot, trouble, since)

    def count_refusals(self) -> None:
        """Count the worker's refusals since the last call, under its current reason."""
        with self._counting:
            snapshot = self.memory.snapshot()
            reason = snapshot.text.partition("\n")[0]
            if snapshot.refusals > self._refusals and reason:
                self._skips[reason] = self._skips.get(reason, 0) + snapshot.refusals - self._refusals
                self._refusals = snapshot.refusals

    def close(self) -> None:
        """Close the memory's descriptor; counts can still be read."""
        if self.memory_fd >= 0:
            os.close(self.memory_fd)
            self.memory_fd = -1

    def _work(self, snapshot: Snapshot) -> Trouble:
        """State, reason and message of a living worker."""
        reason, _, message = snapshot.text.partition("\n")
        if snapshot.state == memory.RUNNING:
            return Trouble(CanaryState.RUNNING, reason, message)
        if snapshot.state == memory.REFUSED:
            return Trouble(CanaryState.REFUSED, reason, message)
        before = self._pool.trouble.message
        message = f"the worker is {self.plan.prepares}{before and '; the previous worker: '}{before}"
        return Trouble(CanaryState.PREPARING, "preparing", message)

    def _reading(self, snapshot: Snapshot, work: Trouble, since_ns: tuple[int, ...]) -> CanaryReading:
        plan, state, reason, message = self.plan, work.state, work.reason, work.message
        now_ns = int(self._clock() * 1e9)
        in_flight = [max(0, now_ns - since) / 1e9 if since else 0.0 for since in since_ns]
        streams = self._workloads(snapshot, in_flight)
        longest = max(in_flight, default=0.0)
        working = state in (CanaryState.RUNNING, CanaryState.PREPARING)
        failing = [stream for stream in streams if stream.last_completion_ts != stream.last_success_ts]
        outdated = reason == memory.OUTDATED
        if outdated:
            reason = message = ""
        # even after it has ended: after a single run, a person wants to know why there are no figures
        note = self._noted(snapshot) if state is CanaryState.RUNNING or not reason else ""
        if note:
            reason, message = note, f"{plan.where}: {plan.notes[note]}"
        elif failing and not reason:
            reason, message = "errors", plan.failed(failing[0])
        if longest >= plan.stuck_after_s and working:
            reason, message = "stuck", f"{plan.where}: an operation hangs for {longest:.0f} s"
        return CanaryReading(
            probe=plan.name,
            kind=plan.kind,
            target=plan.target,
            device=self.device,
            device_class=plan.device_class,
            state=state,
            reason=reason,
            message=message,
            workloads=tuple(streams),
            in_flight_s=longest,
            rate_per_s=snapshot.rate,
            runs=self._pool.runs,
            skips=dict(self._skips),
            success=False if failing else self._verdict(state, reason, streams, snapshot.rate),
            outdated=outdated or (plan.provisional and state is CanaryState.RUNNING),
        )

    def _workloads(self, snapshot: Snapshot, in_flight: Sequence[float]) -> list[WorkloadReading]:
        readings = []
        for index, (stream, counts) in enumerate(zip(self._streams, snapshot.streams, strict=True)):
            *cumulative, total = accumulate(counts.buckets)
            readings.append(
                WorkloadReading(
                    layer=stream.workload.layer,
                    workload=stream.workload.id,
                    config_hash=stream.config_hash,
                    operation=stream.operation,
                    bounds=stream.bounds,
                    latency=HistogramValue(stream.edges, cumulative, total, counts.sum_ns / 1e9),
                    charged=counts.charged,
                    errors=dict(zip(self.plan.errors, counts.errors, strict=False)),
                    in_flight_s=in_flight[index] if in_flight else 0.0,
                    last_completion_ts=counts.last_completion_ns / 1e9 or None,
                    last_success_ts=counts.last_success_ns / 1e9 or None,
                )
            )
        return readings

    def _noted(self, snapshot: Snapshot) -> str:
        """Why it has no operations; empty if it has."""
        number = snapshot.streams[0].note if snapshot.streams else 0
        return list(self.plan.notes)[number - 1] if number else ""

    def _verdict(self, state: CanaryState, reason: str, streams: Sequence[WorkloadReading], rate: float) -> bool | None:
        if reason == "stuck":
            return False
        if state in (CanaryState.IDLE, CanaryState.STOPPED):
            return None
        if state not in (CanaryState.RUNNING, CanaryState.PREPARING) or reason in self.plan.notes:
            return False
        if state is CanaryState.PREPARING and self._pool.trouble.message:
            return False  # otherwise it would alternate while the cluster is gone: refused, preparing, refused
        completions = [stream.last_completion_ts for stream in streams if stream.last_completion_ts is not None]
        if len(completions) < len(streams) or not streams:
            return None
        return self._wall() - max(completions) < self.plan.stuck_after_s + SILENT_GAPS / rate
