"""The worker process of canaries, as the daemon keeps it: started, looked after, ended, and never waited for.

One canary in a directory has a worker of its own. Canaries on raw disks share one, in which each has a thread: 60
processes would cost 600 MiB, and a thread that hangs in the kernel holds up no other. One of them can be taken away
while the others go on; only when the process itself must end and a thread hangs does it stay in the kernel, doing
nothing, until the disk answers or is removed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

import psutil

import plumbline
from plumbline.probes import canary_memory
from plumbline.probes.canary_plan import AnyPlan, CanaryPlan
from plumbline.probes.canary_reading import CanaryState
from plumbline.probes.canary_snapshot import DaemonMemory

FIRST_BACKOFF_S, LAST_BACKOFF_S = 1.0, 60.0
SETTLED_S = 60.0
"""A worker that lived so long starts the backoff over."""
_BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from plumbline.probes.canary_worker import main; "
_BOOTSTRAP += "sys.exit(main(sys.argv[3:]))"


class Member(Protocol):
    """A canary, as its crew sees it."""

    @property
    def plan(self) -> AnyPlan: ...

    @property
    def memory(self) -> DaemonMemory: ...

    @property
    def memory_fd(self) -> int: ...

    def count_refusals(self) -> None:
        """Before the memory is tidied."""
        ...

    def close(self) -> None:
        """It is over."""
        ...


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why no worker is at work."""

    state: CanaryState
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Worker:
    """A running worker and whose it is. Closing ``lifeline`` ends it."""

    process: subprocess.Popen[bytes]
    members: tuple[Member, ...]
    lifeline: int
    stderr: int
    started: float


class Crew:
    """One worker process and the canaries it works for. Any thread may call."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, interpreter: str = sys.executable) -> None:
        self._clock, self._interpreter = clock, interpreter
        self._lock = threading.Lock()
        self._joined = 0
        self._members: tuple[Member, ...] = ()
        self._worker: _Worker | None = None
        self._trouble = Trouble(CanaryState.IDLE)
        # weak: a member knows its crew, and its memory shall go when it goes, not when a cycle is found
        self._left = WeakKeyDictionary[Member, CanaryState]()
        self._retry_at = 0.0
        self._backoff = FIRST_BACKOFF_S
        self.runs = 0
        """Workers started."""

    def join(self) -> None:
        """A canary that will start here was made."""
        with self._lock:
            self._joined += 1

    def start(self, member: Member) -> None:
        """Begin with ``member``; the process starts when all that joined are there, or at the next poll."""
        with self._lock:
            self._members = (*self._members, member)
            if len(self._members) == self._joined:
                self._supervise()

    def poll(self) -> None:
        """Notice a worker that ended, and start the next one when its time has come."""
        with self._lock:
            self._supervise()

    def stop(self, member: Member, timeout: float) -> bool:
        """Take ``member`` away, and with the last one the process; False when it hangs in the kernel."""
        with self._lock:
            self._members = tuple(each for each in self._members if each is not member)
            worker = self._worker
            if worker is None or member not in worker.members:
                self._over(member)
                return True
            if not self._members:
                return self._end(worker, member, timeout)
            member.memory.leave()  # its thread begins nothing more; the others go on
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
        """The process while it is at work on ``member``, or hangs with it."""
        worker = self._worker
        if worker is None or member not in worker.members or self._left.get(member) is CanaryState.STOPPED:
            return None
        return worker.process.pid

    def trouble_of(self, member: Member) -> Trouble | None:
        """Why no worker works for ``member``; ``None`` while one does."""
        left, worker = self._left.get(member), self._worker
        if left is CanaryState.UNKILLABLE and worker is not None:
            return Trouble(
                left,
                "unkillable",
                f"worker {worker.process.pid} hangs in the kernel with {member.plan.where}; "
                "it ends when the device below answers or is removed",
            )
        if left is not None:
            return Trouble(CanaryState.STOPPED)
        return self._trouble if worker is None or member not in worker.members else None

    def _end(self, worker: _Worker, last: Member, timeout: float) -> bool:
        for end, share in ((worker.process.terminate, 0.4), (worker.process.kill, 0.5)):
            end()
            try:
                worker.process.wait(timeout * share)
            except subprocess.TimeoutExpired:
                continue
            self._bury(worker)
            return True
        self._left[last] = CanaryState.UNKILLABLE
        return False

    def _over(self, member: Member) -> None:
        self._left[member] = CanaryState.STOPPED
        member.close()

    def _supervise(self) -> None:
        worker = self._worker
        if worker is not None:
            if worker.process.poll() is None:
                self._look_after(worker)
                return
            self._bury(worker)
        if self._members and self._clock() >= self._retry_at:
            self._spawn()

    def _look_after(self, worker: _Worker) -> None:
        if self._clock() - worker.started >= SETTLED_S:
            self._backoff = FIRST_BACKOFF_S
        for member in worker.members:
            hung = self._left.get(member) is CanaryState.UNKILLABLE
            if hung and self._members and not any(member.memory.in_flight_since_ns()):
                self._over(member)
        if any(member not in worker.members for member in self._members):
            worker.process.terminate()  # one that came later: the next worker has it, too

    def _spawn(self) -> None:
        """Start a worker; a failure to start one is treated as its death."""
        members = self._members
        stderr = os.memfd_create("plumbline-canary-stderr")
        theirs, ours = os.pipe()
        code_root = str(Path(plumbline.__file__).resolve().parent.parent)
        label = ",".join(member.plan.name for member in members)[:100]
        # -I -S: no environment, no site packages. The worker needs nothing but the standard library and us.
        argv = [self._interpreter, "-I", "-S", "-c", _BOOTSTRAP, code_root, f"plumbline-canary {label}"]
        try:
            process = subprocess.Popen(
                [*argv, str(theirs), *_places(members)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                env={"LC_ALL": "C"},
                pass_fds=(*(member.memory_fd for member in members), theirs),
                start_new_session=True,
            )
        except OSError as error:
            os.close(ours)
            os.close(stderr)
            self._fail(CanaryState.RESTARTING, "died", f"{self._interpreter}: can't be started: {error.strerror}")
            return
        finally:
            os.close(theirs)
        self._worker = _Worker(process, members, ours, stderr, self._clock())
        self.runs += 1
        # best effort, lowest: the idle class would measure starvation instead of the service.
        # Fails when it died at once (poll will say) or in a sandbox, where nice 10 lowers it, too.
        with contextlib.suppress(psutil.Error, OSError):
            psutil.Process(process.pid).ionice(psutil.IOPRIO_CLASS_BE, 7)
        for member in members:
            member.memory.go()

    def _bury(self, worker: _Worker) -> None:
        """The worker ended: say why, close what was its."""
        self._worker = None
        os.close(worker.lifeline)
        last_words = os.pread(worker.stderr, 2**16, 0).decode("utf-8", "replace").strip().rpartition("\n")[2]
        os.close(worker.stderr)
        said = worker.members[0].memory.snapshot()
        for member in worker.members:
            if self._left.get(member) is CanaryState.STOPPED:
                continue
            member.count_refusals()
            member.memory.worker_gone()
            if member not in self._members:
                self._over(member)
        if not self._members:
            return
        code = worker.process.returncode
        if code == canary_memory.EXIT_REFUSED and said.state == canary_memory.REFUSED:
            reason, _, message = said.text.partition("\n")
            self._fail(CanaryState.REFUSED, reason, message)
            return
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        detail = f": {last_words}" if last_words else ""
        self._fail(CanaryState.RESTARTING, "died", f"the worker ended {how}{detail}")

    def _fail(self, state: CanaryState, reason: str, message: str) -> None:
        self._trouble = Trouble(state, reason, message)
        self._retry_at = self._clock() + self._backoff
        self._backoff = min(LAST_BACKOFF_S, 2 * self._backoff)


def _places(members: tuple[Member, ...]) -> list[str]:
    """What the worker is told, see ``canary_worker.py``."""
    first = members[0].plan
    if isinstance(first, CanaryPlan):
        (alone,) = members
        return ["file", str(alone.memory_fd), os.path.abspath(first.directory)]  # noqa: PTH100
    words = ["devices", str(first.dev), str(first.sys)]
    for member in members:
        words += [str(member.memory_fd), member.plan.target]
    return words
