"""Collecting one page within its time limit: collectors run in sequence, and one that hangs is abandoned.

A read of ``/proc`` or ``/sys`` may wait for a kernel lock for minutes (a driver that resets its card under
``rtnl_lock``), uninterruptibly. So the collectors run in their own thread. When the page's time is up, the running one
counts as failed and keeps its thread, and the rest continues in another. It is not run again until it has returned.
"""

import threading
from collections.abc import Callable, Iterable, Sequence

from plumbline.core import threads
from plumbline.metrics.guard import Collected, GuardedCollector, Labels

PAGE_WITHIN_S = 4.0
"""Time limit for all collectors of a page; a quiet host needs a hundredth of it. After one hangs, the rest gets half of
it, then a quarter, and so on: even if several hang, the page comes within Prometheus's own 10 s."""
AT_LEAST_S = 0.1  # the least time the rest gets


class Collecting:
    """Runs guarded collectors, for one page at a time."""

    def __init__(self, *, clock: Callable[[], float], page_within_s: float = PAGE_WITHIN_S) -> None:
        """``clock``: monotonic seconds; measures how long a collector has hung."""
        self._clock, self._page_within_s = clock, page_within_s
        self._hung: dict[str, float] = {}  # hung collector → since when; its thread removes it on return

    def run(self, guards: Sequence[GuardedCollector], shared: Iterable[str]) -> list[Collected]:
        """The result of each collector, in their order. ``shared``: the metrics that several of them declare."""
        found: dict[str, Collected] = {}
        before = dict(self._hung)
        hung = dict(before)
        left = [guard for guard in guards if guard.collector.name not in hung]
        within_s = self._page_within_s
        while left:
            batch = _Batch(left, _taken(found.values(), shared), self._hung, self._clock)
            done = batch.run(within_s)
            found |= {guard.collector.name: each for guard, each in zip(left, done, strict=False)}
            left = left[len(done) :]
            if left:  # the first of them hangs
                hung[left.pop(0).collector.name] = batch.began
            within_s = max(AT_LEAST_S, within_s / 2)
        now = self._clock()
        return [
            found.get(name := guard.collector.name)
            or Collected(guard.hung(now - hung[name], new=name not in before), [])
            for guard in guards
        ]


class _Batch:
    """Some collectors in their own thread, until one of them takes too long."""

    def __init__(
        self,
        guards: Sequence[GuardedCollector],
        taken: dict[str, set[Labels]],
        hung: dict[str, float],
        clock: Callable[[], float],
    ) -> None:
        self._guards, self._taken, self._hung, self._clock = guards, taken, hung, clock
        self._lock = threading.Lock()  # between the thread and the caller that abandons it
        self._ended = threading.Event()
        self._collected: list[Collected] = []
        self._given_up = False
        self.began = clock()  # when the running collector began
        self._error: BaseException | None = None

    def run(self, within_s: float) -> list[Collected]:
        """What was collected in time: everything, or everything before the collector that hangs."""
        try:
            threads.start("collect", self._work)
        except RuntimeError:  # the system can't start another thread
            self._work()
        if not self._ended.wait(within_s):
            with self._lock:
                if len(self._collected) < len(self._guards) and self._error is None:
                    self._given_up = True
                    self._hung[self._guards[len(self._collected)].collector.name] = self.began
        if self._error is not None:
            raise self._error
        return self._collected

    def _work(self) -> None:
        try:
            for guard in self._guards:
                self.began = self._clock()
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
    for each in collected:
        for family in each.families:
            if family.spec.name in taken:
                taken[family.spec.name].update(family.labels)
    return taken
