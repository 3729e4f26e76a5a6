"""The daemon's side of a canary: keeps one worker running, and reads its data without ever waiting for it.

The operations run in ``canary_worker.py``, a separate process: a hung disk blocks only that process in the kernel.
Histograms are in memory that successive workers of one canary share, so counters never go back while the daemon lives.
Canaries on raw disks share a worker (:mod:`.crew`), each with memory of its own.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from itertools import accumulate

from plumbline.core.histogram import HistogramValue
from plumbline.probes.canary import memory
from plumbline.probes.canary.crew import Crew
from plumbline.probes.canary.plan import WorkerPlan, streams_of
from plumbline.probes.canary.snapshot import DaemonMemory, Snapshot, lay_down
from plumbline.probes.run.reading import SILENT_GAPS, CanaryLog, CanaryReading, CanaryState, WorkloadReading


class Canary:
    """One canary: ``start`` once, ``poll`` every second, ``read`` at any time from any thread, ``stop`` once. ``crew``:
    the worker shared with others; ``None``: a worker of its own. ``device``: the disk, or the one below the file;
    empty if there is none or it is unknown."""

    def __init__(
        self,
        plan: WorkerPlan,
        *,
        crew: Crew | None = None,
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
        self._crew = crew or Crew(clock=clock, interpreter=interpreter)
        self._crew.join()
        self._counting = threading.Lock()
        self._skips = dict.fromkeys(plan.reasons, 0)
        self._refusals = 0
        self._log = CanaryLog()

    @property
    def pid(self) -> int | None:
        return self._crew.pid_of(self)

    def start(self) -> None:
        """Start the first worker, once all canaries that share it were started. Never waits, touches no disk."""
        self._crew.start(self)

    def poll(self) -> None:
        self._crew.poll()
        self.count_refusals()
        self._log.look(self.read())

    def stop(self, timeout: float = 1.0) -> bool:
        """End the worker within ``timeout`` seconds: SIGTERM, then SIGKILL; a shared worker only drops this canary.
        False if it hangs in the kernel: then the state is ``unkillable``, ``poll`` keeps checking whether it ended, and
        no other canary may start in its directory (its lock there would refuse it, too)."""
        return self._crew.stop(self, timeout)

    def read(self) -> CanaryReading:
        """The canary's current data: no waiting, no disk access, about 0.1 ms."""
        trouble = self._crew.trouble_of(self)
        snapshot = self.memory.snapshot()
        if trouble is not None:
            since = self.memory.in_flight_since_ns() if trouble.state is CanaryState.UNKILLABLE else ()
            return self._reading(snapshot, trouble.state, trouble.reason, trouble.message, since)
        state, reason, message = CanaryState.PREPARING, "preparing", "the worker is preparing"
        if snapshot.state == memory.RUNNING:
            state, reason, message = CanaryState.RUNNING, "", ""
        elif snapshot.state == memory.REFUSED:
            state = CanaryState.REFUSED
            reason, _, message = snapshot.text.partition("\n")
        return self._reading(snapshot, state, reason, message, self.memory.in_flight_since_ns())

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

    def _reading(
        self, snapshot: Snapshot, state: CanaryState, reason: str, message: str, since_ns: tuple[int, ...]
    ) -> CanaryReading:
        now_ns = int(self._clock() * 1e9)
        in_flight = [max(0, now_ns - since) / 1e9 if since else 0.0 for since in since_ns]
        streams = []
        for index, (stream, counts) in enumerate(zip(self._streams, snapshot.streams, strict=True)):
            *cumulative, total = accumulate(counts.buckets)
            streams.append(
                WorkloadReading(
                    layer=stream.workload.layer,
                    workload=stream.workload.id,
                    config_hash=stream.config_hash,
                    operation=stream.operation,
                    bounds=stream.bounds,
                    latency=HistogramValue(stream.edges, cumulative, total, counts.sum_ns / 1e9),
                    charged=counts.charged,
                    errors=dict(zip(self.plan.errors, counts.errors, strict=True)),
                    in_flight_s=in_flight[index] if in_flight else 0.0,
                    last_completion_ts=counts.last_completion_ns / 1e9 or None,
                    last_success_ts=counts.last_success_ns / 1e9 or None,
                )
            )
        longest = max(in_flight, default=0.0)
        failing = [stream.operation for stream in streams if stream.last_completion_ts != stream.last_success_ts]
        if failing and not reason:
            reason, message = "errors", f"{self.plan.where}: the last {failing[0]} failed; see {self.plan.look_at}"
        if longest >= self.plan.stuck_after_s and state in (CanaryState.RUNNING, CanaryState.PREPARING):
            reason, message = "stuck", f"{self.plan.where}: an operation hangs for {longest:.0f} s"
        return CanaryReading(
            probe=self.plan.name,
            kind=self.plan.kind,
            target=self.plan.target,
            device=self.device,
            device_class=self.plan.device_class,
            state=state,
            reason=reason,
            message=message,
            workloads=tuple(streams),
            in_flight_s=longest,
            rate_per_s=snapshot.rate,
            runs=self._crew.runs,
            skips=dict(self._skips),
            success=False if failing else self._verdict(state, streams, longest, snapshot.rate),
            outdated=self.plan.provisional and state is CanaryState.RUNNING,
        )

    def _verdict(
        self, state: CanaryState, streams: list[WorkloadReading], in_flight_s: float, rate: float
    ) -> bool | None:
        if in_flight_s >= self.plan.stuck_after_s:
            return False
        if state in (CanaryState.IDLE, CanaryState.STOPPED):
            return None
        if state not in (CanaryState.RUNNING, CanaryState.PREPARING):
            return False
        last = [stream.last_completion_ts for stream in streams]
        known = [ts for ts in last if ts is not None]
        if len(known) < len(last):
            return None
        newest = max(known)
        return self._wall() - newest < self.plan.stuck_after_s + SILENT_GAPS / rate
