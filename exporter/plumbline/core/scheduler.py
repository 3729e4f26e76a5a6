"""Periodic jobs outside the scrape: one loop and thread a job, so that none overlaps itself or delays another.

Whatever may block (a command, a slow disk, a cluster) runs here. A tick that comes while the job still runs is dropped,
not queued. Start times are splayed by host: hosts restarted together do not all probe at once.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from plumbline.core import threads
from plumbline.errors import PlumblineError

log = logging.getLogger(__name__)

Clock = Callable[[], float]
_LOOK_AGAIN_S = 60.0
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Job:
    """Runs every ``interval_s`` seconds, first after ``first_delay_s``; an exception is logged, and the next tick tries
    again. ``run`` gets an event that is set when it must end at once; ``cancel`` is called then too, for work that
    can't watch an event. In :meth:`Scheduler.replace`, a job equal in name, interval and ``config`` keeps its loop and
    phase."""

    name: str
    interval_s: float
    first_delay_s: float = field(compare=False)
    run: Callable[[threading.Event], None] = field(compare=False)
    config: object = None
    next_after: Callable[[float], float] | None = field(default=None, compare=False)
    """Replaces the interval: returns the first calendar time after a given time, both Unix seconds."""
    cancel: Callable[[], None] = field(default=lambda: None, compare=False)
    serves: tuple[str, ...] = field(default=(), compare=False)
    """The collectors that alone show what it reads; empty: others need it, too."""


def next_tick(previous: float, interval_s: float, now: float) -> float:
    """The first tick of the grid ``previous + n × interval_s`` (n ≥ 1) that is not in the past."""
    missed = math.ceil((now - previous) / interval_s)
    return previous + max(1, missed) * interval_s


def splay(host: str, job: str, width_s: float) -> float:
    """A start delay in [0, ``width_s``) seconds: constant for a host and job, evenly spread over hosts."""
    import hashlib  # noqa: PLC0415

    digest = hashlib.sha256(f"{host}\0{job}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64 * width_s


class _Loop:
    """One job's thread."""

    def __init__(self, job: Job, clock: Clock, wall: Clock) -> None:
        self.job = job
        self.started_at: float | None = None
        self.due: float | None = None
        self._ran = False
        self._clock, self._wall = clock, wall
        self._cancel = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threads.start("job", self._loop, of=self.job.name, until=self._cancel)

    def cancel(self) -> None:
        self._cancel.set()
        self._wake.set()
        self.job.cancel()

    def kick(self) -> None:
        self._wake.set()

    @property
    def owes(self) -> bool:
        """Whether a run that was due at once, or requested, has not ended."""
        awaited = not (self._ran or self.job.first_delay_s)
        return awaited or self._wake.is_set() or self.started_at is not None  # in this order, see _loop

    def join(self, timeout_s: float) -> bool:
        if self._thread is None:
            return True
        self._thread.join(max(0.0, timeout_s))
        return not self._thread.is_alive()

    def _loop(self) -> None:
        if self.job.next_after is not None:
            self._follow(self.job.next_after)
            return
        # when this loop is restarted after an error it waits a whole interval, because the first start is over
        self.due = due = self._clock() + (self.job.first_delay_s if self.due is None else self.job.interval_s)
        while not self._cancel.is_set():
            kicked = self._wake.wait(max(0.0, due - self._clock()))
            self.started_at = self._clock()  # before clearing the event, so that ``owes`` is never false in between
            self._wake.clear()
            if self._cancel.is_set():
                return
            self._run()
            if not kicked:
                self.due = due = next_tick(due, self.job.interval_s, self._clock())

    def _follow(self, next_after: Callable[[float], float]) -> None:
        """Start at each calendar time. Checked again each minute, because the wall clock may be set. A time missed by
        more than two checks (the machine slept, the clock was set) is skipped; one that comes again within a day
        because the clock was set back is not run twice."""
        ran = -math.inf
        moment = next_after(self._wall())
        while not self._cancel.is_set():
            left = max(0.0, moment - self._wall())
            self.due = self._clock() + left
            kicked = self._wake.wait(min(left, _LOOK_AGAIN_S))
            self._wake.clear()
            if self._cancel.is_set():
                return
            late = self._wall() - moment
            if late >= 0:
                ran = moment
            if kicked or 0 <= late <= 2 * _LOOK_AGAIN_S:
                self._run()
            now = self._wall()
            moment = next_after(ran if 0 < ran - now < _DAY_S else now)

    def _run(self) -> None:
        self.started_at = self._clock()
        try:
            self.job.run(self._cancel)
        except PlumblineError as error:  # it says what to do: where it was raised helps nobody
            log.error("job %s failed: %s; it is tried again at its next tick", self.job.name, error)
        except Exception:
            log.exception("job %s failed; it is tried again at its next tick", self.job.name)
        finally:
            self._ran, self.started_at = True, None


class Scheduler:
    """Runs jobs in daemon threads, so that a job stuck in the kernel can't keep the process alive."""

    def __init__(self, *, clock: Clock = time.monotonic, wall: Clock = time.time) -> None:
        """``clock``: monotonic seconds, for intervals. ``wall``: Unix seconds, for calendars."""
        self._clock, self._wall = clock, wall
        self._loops: dict[str, _Loop] = {}
        self._lock = threading.Lock()

    def replace(self, jobs: Iterable[Job]) -> None:
        """Run exactly ``jobs``: equal ones continue undisturbed, the others are cancelled, new ones start."""
        wanted = {job.name: job for job in jobs}
        with self._lock:
            for name, loop in list(self._loops.items()):
                if wanted.get(name) != loop.job:
                    loop.cancel()
                    del self._loops[name]
            for name, job in wanted.items():
                if name not in self._loops:
                    self._loops[name] = loop = _Loop(job, self._clock, self._wall)
                    loop.start()

    def kick(self, name: str) -> None:
        """Run a job now, in addition to its ticks; no effect if it is unknown or a rerun is already requested."""
        loop = self._loops.get(name)
        if loop:
            loop.kick()

    def owing(self) -> frozenset[str]:
        """Names of jobs with a run due at once, or requested by :meth:`kick`, that has not ended."""
        with self._lock:
            return frozenset(name for name, loop in self._loops.items() if loop.owes)

    def in_flight(self, name: str) -> float | None:
        """Seconds since the job's current run began; ``None`` if it is not running."""
        loop = self._loops.get(name)
        started = loop.started_at if loop else None
        return None if started is None else max(0.0, self._clock() - started)

    def next_start(self, name: str) -> float | None:
        """Seconds until the job's next start; ``None`` while it runs or if the time is not known."""
        loop = self._loops.get(name)
        due = loop.due if loop and loop.started_at is None else None
        return None if due is None else max(0.0, due - self._clock())

    def stop(self, timeout_s: float) -> list[str]:
        """Cancel all jobs and wait at most ``timeout_s`` altogether; returns the names of jobs that did not end."""
        with self._lock:
            loops, self._loops = self._loops, {}
        for loop in loops.values():
            loop.cancel()
        deadline = self._clock() + timeout_s
        return [name for name, loop in loops.items() if not loop.join(deadline - self._clock())]
