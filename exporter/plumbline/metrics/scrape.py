"""Collecting one page within its time limit: collectors run in sequence, and one that hangs is abandoned.

A read of ``/proc`` or ``/sys`` may wait for a kernel lock for minutes (a driver that resets its card under
``rtnl_lock``), uninterruptibly. So the collectors run in their own thread. When the page's time is up, the running one
counts as failed and keeps its thread, and the rest continues in another. It is not run again until it has returned.

On a host short of CPU nothing hangs, and other threads would not be faster: the page waits longer for the same one.
"""

import threading
from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple

from plumbline.core import threads
from plumbline.core.stall import Stall, read_stall
from plumbline.metrics.guard import Collected, GuardedCollector, Labels
from plumbline.metrics.snapshot import CollectorHealth

PAGE_WITHIN_S = 4.0
"""Time limit for all collectors of a page; a quiet host needs a hundredth of it. After one hangs, the rest gets half of
it, then a quarter, and so on: even if several hang, the page comes within Prometheus's own 10 s."""
AT_LEAST_S = 0.1  # the least time the rest gets


class _Hung(NamedTuple):
    """A collector that has not returned."""

    began: float
    thread: int  # kernel id of the thread that runs it
    thread_began: float


class Collecting:
    """Runs guarded collectors, for one page at a time."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        page_within_s: float = PAGE_WITHIN_S,
        stall: Callable[[int], Stall] = read_stall,
    ) -> None:
        """``clock``: monotonic seconds; measures how long a collector has hung. ``stall``: looks at a late thread."""
        self._clock, self._page_within_s, self._stall = clock, page_within_s, stall
        self._hung: dict[str, _Hung] = {}  # its thread removes a collector on return

    def run(self, guards: Sequence[GuardedCollector], shared: Iterable[str]) -> list[Collected]:
        """The result of each collector, in their order. ``shared``: the metrics that several of them declare."""
        results: dict[str, Collected] = {}
        before = dict(self._hung)
        hung = dict(before)
        left = [guard for guard in guards if guard.collector.name not in hung]
        within_s = self._page_within_s
        no_cpu = ""
        late_for: dict[str, str] = {}
        while left and not no_cpu:
            batch = _Batch(left, _taken(results.values(), shared), self._hung, self._clock)
            ended = batch.run(within_s)
            while not ended and (no_cpu := self._no_cpu(batch.current())) and within_s > AT_LEAST_S:
                within_s = max(AT_LEAST_S, within_s / 2)
                ended = batch.wait(within_s)
            done = batch.done()
            results |= {guard.collector.name: entry for guard, entry in zip(left, done, strict=False)}
            left = left[len(done) :]
            if left:  # the first of them has not returned
                name = left.pop(0).collector.name
                hung[name], late_for[name] = batch.current(), no_cpu
            within_s = max(AT_LEAST_S, within_s / 2)
        unasked = {guard.collector.name for guard in left}
        return [
            results.get(guard.collector.name)
            or Collected(
                guard.late(0.0, f"no time left to ask: {no_cpu}", new=True)
                if guard.collector.name in unasked
                else self._late(guard, hung[guard.collector.name], before, late_for.get(guard.collector.name, "")),
                [],
            )
            for guard in guards
        ]

    def _no_cpu(self, running: _Hung) -> str:
        """Why the thread is late if that is for want of a CPU, else empty."""
        stall, elapsed_s = self._stall(running.thread), self._clock() - running.thread_began
        return stall.why(elapsed_s) if stall.starved(elapsed_s) else ""

    def _late(self, guard: GuardedCollector, hung: _Hung, before: Container[str], why: str) -> CollectorHealth:
        """``why``, if it is known: its thread may have ended since it was looked at, and then says nothing."""
        now = self._clock()
        why = why or self._stall(hung.thread).why(now - hung.thread_began)
        new = guard.collector.name not in before
        return guard.late(now - hung.began, f"no answer for {now - hung.began:.0f} s: {why}", new=new)


class _Batch:
    """Some collectors in their own thread, until one of them takes too long."""

    def __init__(
        self,
        guards: Sequence[GuardedCollector],
        taken: dict[str, set[Labels]],
        hung: dict[str, _Hung],
        clock: Callable[[], float],
    ) -> None:
        self._guards, self._taken, self._hung, self._clock = guards, taken, hung, clock
        self._lock = threading.Lock()  # between the thread and the caller that abandons it
        self._ended = threading.Event()
        self._collected: list[Collected] = []
        self._given_up = False
        self._thread = 0
        self._thread_began = self._began = clock()  # the latter: when the running collector began
        self._error: BaseException | None = None

    def run(self, within_s: float) -> bool:
        """Begin; whether it ended in time."""
        try:
            self._thread = threads.start("collect", self._work).native_id or 0
        except RuntimeError:  # the system can't start another thread
            self._work()
        return self.wait(within_s)

    def wait(self, within_s: float) -> bool:
        """Whether it ended within that time."""
        return self._ended.wait(within_s)

    def current(self) -> _Hung:
        """The running collector."""
        return _Hung(self._began, self._thread, self._thread_began)

    def done(self) -> list[Collected]:
        """What was collected in time: everything, or everything before the collector that runs, which is given up."""
        with self._lock:
            if len(self._collected) < len(self._guards) and self._error is None:
                self._given_up = True
                self._hung[self._guards[len(self._collected)].collector.name] = self.current()
        if self._error is not None:
            raise self._error
        return self._collected

    def _work(self) -> None:
        try:
            for guard in self._guards:
                self._began = self._clock()
                collected = guard.run(self._taken)
                with self._lock:
                    if self._given_up:
                        del self._hung[guard.collector.name]
                        return
                    self._collected.append(collected)
        except BaseException as error:  # noqa: BLE001  (raised again in the thread that waits for the page)
            self._error = error
        finally:
            self._ended.set()


def _taken(collected: Iterable[Collected], shared: Iterable[str]) -> dict[str, set[Labels]]:
    """The series of shared metrics that are already on the page."""
    taken: dict[str, set[Labels]] = {name: set() for name in shared}
    for result in collected:
        for family in result.families:
            if family.spec.name in taken:
                taken[family.spec.name].update(family.labels)
    return taken
