"""When the canary operates, and how it accounts for arrivals during an operation: pure arithmetic, no clock, no disk.

Arrivals are a Poisson process, so they sample the device's state averaged over time (PASTA). An arrival that meets an
idle canary becomes an operation. One that meets a running operation is *charged*: recorded with the time until that
operation ends, the least that a client arriving then would have waited. So a stall of 30 s shows as 300 slow arrivals
instead of one (no coordinated omission), without a burst of 300 operations after it. The process is memoryless, so
arrivals during an operation, and the gap to the next one, are drawn when it is over.

A charge is a lower bound: an operation of T seconds comes with rate × T charges, so the median is affected only if
rate × T > 1 (0.1 s at ten a second, a hundred times a healthy SSD), and halved at most.
"""

from __future__ import annotations

from bisect import bisect_left
from random import Random

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing: this runs in the canary's small worker
if TYPE_CHECKING:
    from collections.abc import Sequence

EXACT_ARRIVALS = 512  # Up to this many expected arrivals are drawn one by one; a longer stall is charged in one step


def gap_ns(random: Random, rate: float) -> int:
    """Time to the next arrival in nanoseconds; ``rate`` is per second."""
    return round(random.expovariate(rate) * 1e9)


class Charge:
    """What arrivals during one operation add to a histogram: ``buckets`` by index, ``sum_ns``, ``total``."""

    __slots__ = ("buckets", "sum_ns", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = {}
        self.sum_ns = 0
        self.total = 0


def charge(random: Random, rate: float, elapsed_ns: int, edges_ns: Sequence[int]) -> Charge:
    """Arrivals at ``rate`` per second during an operation of ``elapsed_ns``, by their remaining wait. Index
    ``len(edges_ns)`` is the bucket above the last edge. The cost is bounded: see :data:`EXACT_ARRIVALS`."""
    charged = Charge()
    expected = rate * elapsed_ns / 1e9
    if expected > EXACT_ARRIVALS:
        _charge_at_once(random, expected, elapsed_ns, edges_ns, charged)
        return charged
    wait = elapsed_ns - gap_ns(random, rate)
    while wait > 0:
        index = bisect_left(edges_ns, wait)
        charged.buckets[index] = charged.buckets.get(index, 0) + 1
        charged.sum_ns += wait
        charged.total += 1
        wait -= gap_ns(random, rate)
    return charged


def _charge_at_once(random: Random, expected: float, elapsed_ns: int, edges_ns: Sequence[int], charged: Charge) -> None:
    """For many arrivals: their number is normal about its mean, their waits are uniform over (0, elapsed]. Systematic
    sampling: one random offset, then every bucket gets its share to within one arrival."""
    total = max(1, round(random.gauss(expected, expected**0.5)))
    offset = random.random()
    done = 0
    for index, edge in enumerate((*edges_ns, elapsed_ns)):
        reached = total if edge >= elapsed_ns else int(total * edge / elapsed_ns + offset)
        if reached > done:
            charged.buckets[index] = reached - done
            done = reached
        if edge >= elapsed_ns:
            break
    charged.sum_ns = total * elapsed_ns // 2
    charged.total = total


class LoadCap:
    """Lowers the rate until the canary keeps the device busy for at most ``max_busy`` of the time. The busy time is
    judged by the *healthy* latency, the lowest mean of any :data:`WINDOW` consecutive operations: a device that becomes
    slower later is sampled as often as before, at a cost of at most the slowdown times ``max_busy``. For a device that
    is slow from the start, ``floor`` (per second) keeps enough operations for a median over five minutes."""

    WINDOW = 32

    def __init__(self, rate: float, *, max_busy: float, floor: float, healthy_ns: int = 0) -> None:
        self._wanted, self._max_busy, self._floor = rate, max_busy, floor
        self.healthy_ns = healthy_ns  # Lowest window mean so far in nanoseconds; 0 until the first window is full
        self._count = self._sum_ns = 0
        self.rate = self._capped()  # Current rate in operations per second

    def observe(self, latency_ns: int) -> None:
        self._count += 1
        self._sum_ns += latency_ns
        if self._count == self.WINDOW:
            mean = max(1, self._sum_ns // self._count)
            self.healthy_ns = min(self.healthy_ns, mean) if self.healthy_ns else mean
            self._count = self._sum_ns = 0
            self.rate = self._capped()

    def _capped(self) -> float:
        if not self.healthy_ns:
            return self._wanted
        return min(self._wanted, max(self._floor, self._max_busy * 1e9 / self.healthy_ns))
