"""The canary, seen from the daemon: keeps one worker going, and reads what it says without ever waiting for it.

The operations themselves run in ``canary_worker.py``, a process of its own: a disk that hangs leaves that process in
the kernel, and nothing else. Histograms live in memory that all workers of one canary share one after another, so
counters never go back while the daemon lives.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

import psutil

import plumbline
from plumbline.catalogue import HistogramValue
from plumbline.errors import ProbeRefused
from plumbline.probes import canary_memory, guard
from plumbline.probes.canary_memory import ERRORS
from plumbline.probes.canary_plan import CanaryPlan
from plumbline.probes.canary_reading import CanaryReading, CanaryState, WorkloadReading
from plumbline.probes.canary_snapshot import DaemonMemory, Snapshot, lay_down
from plumbline.probes.canary_streams import stream_plan, streams_of

__all__ = ["Canary", "CanaryPlan", "CanaryReading", "CanaryState", "WorkloadReading", "measure"]

log = logging.getLogger(__name__)

FIRST_BACKOFF_S, LAST_BACKOFF_S = 1.0, 60.0
SETTLED_S = 60.0
"""A worker that lived so long starts the backoff over."""
_SILENT_GAPS = 30.0
"""So many mean gaps without any operation: at Poisson arrivals the chance is 1e-13."""
_BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from plumbline.probes.canary_worker import main; "
_BOOTSTRAP += "sys.exit(main(sys.argv[2:5]))"


@dataclass(slots=True)
class _Worker:
    """A running worker. Closing ``lifeline`` ends it."""

    process: subprocess.Popen[bytes]
    lifeline: int
    stderr: int
    started: float


@dataclass(slots=True)
class _Trouble:
    """Why there is no worker at work."""

    state: CanaryState = CanaryState.IDLE
    reason: str = ""
    message: str = ""
    skips: dict[str, int] = field(default_factory=lambda: dict.fromkeys(guard.ADVICE, 0))


class Canary:
    """One canary: ``start`` once, ``poll`` every second, ``read`` at any time from any thread, ``stop`` once."""

    def __init__(
        self,
        plan: CanaryPlan,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        interpreter: str = sys.executable,
    ) -> None:
        self.plan = plan
        self._clock, self._wall, self._interpreter = clock, wall, interpreter
        self._streams = streams_of(plan)
        self._lock = threading.Lock()
        self._memory_fd = lay_down(
            [stream_plan(stream) for stream in self._streams],
            file_bytes=plan.file_size_bytes,
            rate=plan.wanted_rate,
            max_busy_ratio=plan.max_busy_ratio,
        )
        self._memory = DaemonMemory(self._memory_fd)
        self._worker: _Worker | None = None
        self._wanted = False
        self._retry_at = 0.0
        self._backoff = FIRST_BACKOFF_S
        self._runs = 0
        self._trouble = _Trouble()
        self._logged = ""

    @property
    def pid(self) -> int | None:
        """The worker's process id while there is one."""
        worker = self._worker
        return worker.process.pid if worker else None

    def start(self) -> None:
        """Start the first worker. Does not wait for it and touches no disk."""
        with self._lock:
            self._wanted = True
            self._spawn()

    def poll(self) -> None:
        """Notice a worker that ended, and start the next one when its time has come. Never waits."""
        with self._lock:
            self._supervise()
            self._log_changes()

    def stop(self, timeout: float = 1.0) -> bool:
        """End the worker within ``timeout`` seconds: SIGTERM, then SIGKILL.

        False when it hangs in the kernel: then the state is ``unkillable``, ``poll`` goes on looking for its end,
        and no other canary may start in its directory (its lock there would refuse it, too).
        """
        with self._lock:
            self._wanted = False
            worker = self._worker
            if worker is not None:
                for end, share in ((worker.process.terminate, 0.4), (worker.process.kill, 0.5)):
                    end()
                    try:
                        worker.process.wait(timeout * share)
                    except subprocess.TimeoutExpired:
                        continue
                    break
                else:
                    self._trouble.state = CanaryState.UNKILLABLE
                    self._trouble.reason = "unkillable"
                    self._trouble.message = (
                        f"worker {worker.process.pid} hangs in the kernel with {self.plan.directory}; "
                        "it ends when the device below answers or is removed"
                    )
                    return False
                self._bury(worker)
            else:
                self._stopped()
            return True

    def read(self) -> CanaryReading:
        """What the canary knows now: no waiting, no disk, about 0.1 ms."""
        worker, trouble = self._worker, self._trouble
        snapshot = self._memory.snapshot()
        if worker is None:
            return self._reading(snapshot, trouble.state, trouble.reason, trouble.message, ())
        state, reason, message = CanaryState.PREPARING, "preparing", "the worker prepares its file"
        if trouble.state is CanaryState.UNKILLABLE:
            state, reason, message = trouble.state, trouble.reason, trouble.message
        elif snapshot.state == canary_memory.RUNNING:
            state, reason, message = CanaryState.RUNNING, "", ""
        elif snapshot.state == canary_memory.REFUSED:  # and about to end
            state = CanaryState.REFUSED
            reason, _, message = snapshot.text.partition("\n")
        return self._reading(snapshot, state, reason, message, self._memory.in_flight_since_ns())

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
                    errors=dict(zip(ERRORS, counts.errors, strict=True)),
                    in_flight_s=in_flight[index] if in_flight else 0.0,
                    last_completion_ts=counts.last_completion_ns / 1e9 or None,
                    last_success_ts=counts.last_success_ns / 1e9 or None,
                )
            )
        longest = max(in_flight, default=0.0)
        failing = [stream.operation for stream in streams if stream.last_completion_ts != stream.last_success_ts]
        if failing and not reason:
            reason, message = "errors", f"{self.plan.directory}: the last {failing[0]} failed; see the kernel's log"
        if longest >= self.plan.stuck_after_s and state in (CanaryState.RUNNING, CanaryState.PREPARING):
            reason, message = "stuck", f"{self.plan.directory}: an operation hangs for {longest:.0f} s"
        return CanaryReading(
            probe=self.plan.name,
            device_class=self.plan.device_class,
            state=state,
            reason=reason,
            message=message,
            workloads=tuple(streams),
            in_flight_s=longest,
            rate_per_s=snapshot.rate,
            runs=self._runs,
            skips=dict(self._trouble.skips),
            success=False if failing else self._verdict(state, streams, longest, snapshot.rate),
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
        return self._wall() - newest < self.plan.stuck_after_s + _SILENT_GAPS / rate

    def _supervise(self) -> None:
        worker = self._worker
        if worker is not None:
            if worker.process.poll() is None:
                if self._clock() - worker.started >= SETTLED_S:
                    self._backoff = FIRST_BACKOFF_S
                return
            self._bury(worker)
        if self._wanted and self._clock() >= self._retry_at:
            self._spawn()

    def _log_changes(self) -> None:
        """One line when something goes wrong, another kind of wrong, or well again; not one for every try."""
        reading = self.read()
        if reading.reason == "preparing" or (not reading.reason and not reading.success):
            return
        if reading.reason != self._logged:
            self._logged = reading.reason
            if reading.reason:
                log.warning("canary %s: %s: %s", self.plan.name, reading.reason, reading.message)
            else:
                log.info("canary %s: works again", self.plan.name)

    def _spawn(self) -> None:
        """Start a worker; a failure to start one is treated as its death."""
        stderr = os.memfd_create("plumbline-canary-stderr")
        theirs, ours = os.pipe()
        code_root = str(Path(plumbline.__file__).resolve().parent.parent)
        # -I -S: no environment, no site packages. The worker needs nothing but the standard library and us.
        argv = [self._interpreter, "-I", "-S", "-c", _BOOTSTRAP, code_root, str(self._memory_fd), str(theirs)]
        try:
            process = subprocess.Popen(
                [*argv, os.path.abspath(self.plan.directory), "plumbline-canary", self.plan.name],  # noqa: PTH100
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                env={"LC_ALL": "C"},
                pass_fds=(self._memory_fd, theirs),
                start_new_session=True,
            )
        except OSError as error:
            os.close(ours)
            os.close(stderr)
            self._fail(CanaryState.RESTARTING, "died", f"{self._interpreter}: can't be started: {error.strerror}")
            return
        finally:
            os.close(theirs)
        self._worker = _Worker(process, ours, stderr, self._clock())
        self._runs += 1
        # best effort, lowest: the idle class would measure starvation instead of the service.
        # Fails when it died at once (poll will say) or in a sandbox, where nice 10 lowers it, too.
        with contextlib.suppress(psutil.Error, OSError):
            psutil.Process(process.pid).ionice(psutil.IOPRIO_CLASS_BE, 7)

    def _bury(self, worker: _Worker) -> None:
        """The worker ended: say why, close what was its."""
        self._worker = None
        os.close(worker.lifeline)
        last_words = os.pread(worker.stderr, 2**16, 0).decode("utf-8", "replace").strip().rpartition("\n")[2]
        os.close(worker.stderr)
        if not self._wanted:
            self._stopped()
            return
        snapshot, code = self._memory.snapshot(), worker.process.returncode
        self._memory.worker_gone()
        if code == canary_memory.EXIT_REFUSED and snapshot.state == canary_memory.REFUSED:
            reason, _, message = snapshot.text.partition("\n")
            self._trouble.skips[reason] = self._trouble.skips.get(reason, 0) + 1
            self._fail(CanaryState.REFUSED, reason, message)
            return
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        detail = f": {last_words}" if last_words else ""
        self._fail(CanaryState.RESTARTING, "died", f"the worker ended {how}{detail}")

    def _stopped(self) -> None:
        self._trouble.state, self._trouble.reason, self._trouble.message = CanaryState.STOPPED, "", ""
        if self._memory_fd >= 0:
            os.close(self._memory_fd)
            self._memory_fd = -1

    def _fail(self, state: CanaryState, reason: str, message: str) -> None:
        self._trouble.state, self._trouble.reason, self._trouble.message = state, reason, message
        self._retry_at = self._clock() + self._backoff
        self._backoff = min(LAST_BACKOFF_S, 2 * self._backoff)


def measure(
    plan: CanaryPlan,
    duration_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    on_tick: Callable[[CanaryReading], None] = lambda _: None,
) -> CanaryReading:
    """Fresh counts of ``duration_s`` seconds of operations by a worker of its own, at the plan's rate without a cap.

    ``on_tick`` sees the reading a few times a second. Raises :class:`ProbeRefused` when the guard refuses, when the
    worker dies, and when an operation hangs for longer than ``plan.stuck_after_s``.
    """
    canary = Canary(replace(plan, max_busy_ratio=1.0), clock=clock)  # a person asked for it, and waits
    until: float | None = None
    canary.start()
    try:
        while True:
            canary.poll()
            reading = canary.read()
            on_tick(reading)
            if reading.state in (CanaryState.REFUSED, CanaryState.RESTARTING):
                raise ProbeRefused(reading.reason, reading.message)
            if reading.in_flight_s >= plan.stuck_after_s:
                raise ProbeRefused(
                    "stuck",
                    f"{plan.directory}: an operation hangs for {reading.in_flight_s:.0f} s; see the kernel's log",
                )
            if until is None and reading.state is CanaryState.RUNNING:
                until = clock() + duration_s
            left = until - clock() if until is not None else 0.2
            if left <= 0:
                return reading
            sleep(min(0.2, left))
    finally:
        canary.stop()
