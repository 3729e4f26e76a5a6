"""How much counters grew lately."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Literal, TypeAlias

WINDOW_S = 3600.0
"""What grew within the last hour grows "lately": a burst a day ago is no reason to change a setting now, and one of a
minute ago must still be there when somebody comes to look."""

CounterName: TypeAlias = Literal[
    "disk media errors",
    "frames lost in the ring",
    "frames lost in the port's buffer",
    "pause frames received",
    "softnet processed",
    "softnet dropped",
    "softnet squeezed",
    "softnet squeezed by budget",
    "softnet squeezed by time",
    "tcp receive queue drops",
    "pcie errors",
]
_Key: TypeAlias = tuple[CounterName, tuple[str | int, ...]]


@dataclass(frozen=True, slots=True)
class Count:
    """A counter: ``total`` since the kernel or driver began, ``grew`` in the window looked at (``None``: one look)."""

    total: int
    grew: int | None = None

    @property
    def grows(self) -> bool:
        """More became of it in the window."""
        return bool(self.grew)


class Growth:
    """What counters gained between looks within the last ``window_s`` seconds; one that fell was reset and counts from
    0. A look begins with :meth:`look`, and :meth:`count` then notes each counter once. For one thread."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._began_s: float | None = None
        self._last: dict[_Key, int] = {}
        self._now: dict[_Key, int] = {}
        self._gains: deque[tuple[float, dict[_Key, int]]] = deque()
        self._gained: dict[_Key, int] = defaultdict(int)  # the sum of them
        self.seen_s: float | None = None
        """For how long counters have been looked at, the window at most; ``None``: one look."""

    def look(self, now_s: float) -> None:
        """Begin a look. ``now_s`` is monotonic."""
        if self._began_s is None:
            self._began_s = now_s
        self.seen_s = min(now_s - self._began_s, self._window_s) or None
        self._last, self._now = self._now, {}
        self._gains.append((now_s, {}))
        while self._gains[0][0] <= now_s - self._window_s:
            for key, gain in self._gains.popleft()[1].items():
                self._gained[key] -= gain

    def count(self, counter: CounterName, total: int | None, *of: str | int) -> Count | None:
        """This counter of that device, CPU …, with its growth; ``None`` where it is not known."""
        if total is None:
            return None
        key = counter, of
        before, self._now[key] = self._last.get(key), total
        if before is None:
            return Count(total)
        if total != before:
            gain = total - before if total > before else total
            self._gains[-1][1][key] = gain
            self._gained[key] += gain
        return Count(total, self._gained.get(key, 0))
