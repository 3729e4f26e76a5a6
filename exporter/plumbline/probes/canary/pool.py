"""The canaries' worker process, as the daemon manages it: started, supervised, ended, and never waited for.

A canary in a directory, on a mount or at an endpoint has a worker of its own. Canaries on raw disks share one worker
with a thread for each: 60 processes would cost 600 MiB, and a thread that hangs in the kernel does not block the
others. One canary can be removed while the others go on. Only if the process itself must end while a thread hangs does
it stay in the kernel, idle, until the disk answers or is removed. Those of a cluster's OSDs share a worker with its
connection, and end together: its prefix can't be swept for one of them alone.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from msgspec import Struct

from plumbline.core.backoff import Backoff
from plumbline.probes.canary.process import Trouble, WorkerProcess
from plumbline.probes.run.reading import CanaryState

if TYPE_CHECKING:
    from plumbline.probes.canary.canary import Canary as Member


class _Working(Struct, frozen=True):
    process: WorkerProcess
    members: tuple[Member, ...]


class WorkerPool:
    """One worker process at a time and its canaries. All methods may be called from any thread."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, interpreter: str = sys.executable) -> None:
        self._clock, self._interpreter = clock, interpreter
        self._lock = threading.Lock()
        self._backoff, self._retry_at = Backoff(), 0.0
        self._joined = 0
        self._members: tuple[Member, ...] = ()
        self._worker: _Working | None = None
        self.trouble = Trouble(CanaryState.IDLE)
        """Why the last worker ended by itself, until its successor works."""
        # weak: a member refers to its pool, and its memory must be freed with it, not when the cycle is collected
        self._left = WeakKeyDictionary["Member", CanaryState]()
        self.runs = 0  # Workers started

    def join(self) -> None:
        """Announce a canary that will start here."""
        with self._lock:
            self._joined += 1

    def start(self, member: Member) -> None:
        """Add ``member``; the process starts when all that joined were added, or at the next poll."""
        with self._lock:
            self._members = (*self._members, member)
            if len(self._members) == self._joined:
                self._supervise()

    def poll(self) -> None:
        with self._lock:
            self._supervise()

    def stop(self, member: Member, timeout: float) -> bool:
        """Remove ``member``, and end the process after the last one; False if it hangs in the kernel."""
        together = member.plan.end_together
        with self._lock:
            ending = self._members if together and member in self._members else (member,)
            self._members = tuple(other for other in self._members if other not in ending)
            worker = self._worker
            if worker is None or member not in worker.members:
                self._over(member)
                return True
            if together and self._left.get(member) is CanaryState.UNKILLABLE:
                return False
            if not self._members:
                return self._end(worker, worker.members if together else (member,), timeout)
            member.memory.leave()  # its thread starts no new operation; the others go on
        deadline = time.monotonic() + timeout
        while any(member.memory.in_flight_since_ns()):
            if time.monotonic() >= deadline:
                self._left[member] = CanaryState.UNKILLABLE
                return False
            time.sleep(0.01)
        with self._lock:
            self._over(member)
        return True

    def pid_of(self, member: Member) -> int | None:
        """The process id while the worker works for ``member``, or hangs with it."""
        worker = self._worker
        if worker is None or member not in worker.members or self._left.get(member) is CanaryState.STOPPED:
            return None
        return worker.process.pid

    def trouble_of(self, member: Member) -> Trouble | None:
        """Why no worker works for ``member``; ``None`` while one does."""
        left, worker = self._left.get(member), self._worker
        if left is CanaryState.UNKILLABLE and worker is not None:
            message = f"worker {worker.process.pid} hangs in the kernel with {member.plan.where}"
            return Trouble(left, "unkillable", f"{message}; it ends when {member.plan.hangs_until}")
        if left is not None:
            return Trouble(CanaryState.STOPPED)
        return self.trouble if worker is None or member not in worker.members else None

    def _end(self, worker: _Working, last: tuple[Member, ...], timeout: float) -> bool:
        if worker.process.end(timeout, asked_share=last[0].plan.asked_share):
            self._reap(worker)
            return True
        for member in last:
            self._left[member] = CanaryState.UNKILLABLE
        return False

    def _over(self, member: Member) -> None:
        self._left[member] = CanaryState.STOPPED
        member.close()

    def _supervise(self) -> None:
        worker = self._worker
        if worker is not None:
            if not worker.process.ended:
                self._look_after(worker)
                return
            self._reap(worker)
        if self._members and self._clock() >= self._retry_at:
            self._spawn()

    def _look_after(self, worker: _Working) -> None:
        self._backoff.lasted(self._clock() - worker.process.started)
        if any(member.memory.running for member in worker.members):
            self.trouble = Trouble(CanaryState.IDLE)
        for member in worker.members:
            hung = self._left.get(member) is CanaryState.UNKILLABLE
            if hung and self._members and not any(member.memory.in_flight_since_ns()):
                self._over(member)
        if any(member not in worker.members for member in self._members):
            worker.process.replace()  # a member joined later: the next worker includes it

    def _spawn(self) -> None:
        members = self._members
        plan = members[0].plan
        targets = [(member.memory_fd, member.plan.target) for member in members]
        try:
            process = WorkerProcess(
                plan.worker,
                json.dumps({"targets": targets, **plan.order()}),
                keep_fds=[member.memory_fd for member in members],
                started=self._clock(),
                site_packages=plan.site_packages,
                interpreter=self._interpreter,
            )
        except OSError as error:
            self._failed(Trouble(CanaryState.RESTARTING, "died", error.strerror or ""))
            return
        self.runs += 1
        self._worker = _Working(process, members)
        for member in members:
            member.memory.go()

    def _reap(self, worker: _Working) -> None:
        self._worker = None
        last_words = worker.process.reap()
        reported = worker.members[0].memory.snapshot()
        for member in worker.members:
            if self._left.get(member) is CanaryState.STOPPED:
                continue
            member.count_refusals()
            if member in self._members:
                member.memory.worker_gone()
            else:
                self._over(member)
        if self._members:
            self._failed(worker.process.why(last_words, reported))

    def _failed(self, trouble: Trouble) -> None:
        """No worker now: delay the next one."""
        self.trouble = trouble
        self._retry_at = self._clock() + self._backoff.failed()
