"""How much counters grew recently."""

from collections import defaultdict, deque
from typing import TypeAlias

from msgspec import Struct

WINDOW_S = 3600.0
"""Growth within the last hour counts as "recently": a burst a day ago is no reason to change a setting now, and one a
minute ago must still be there when somebody looks."""

_Key: TypeAlias = tuple[str, tuple[str | int, ...]]


class Count(Struct, frozen=True):
    """A counter: ``total`` since the kernel or driver started, ``grew`` within the window (``None``: one look)."""

    total: int
    grew: int | None = None

    @property
    def grows(self) -> bool:
        return bool(self.grew)


class Growth:
    """What counters gained between looks within the last ``window_s`` seconds; one that fell was reset and counts from
    0. Call :meth:`look` first, then :meth:`count` once per counter. For one thread."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._began_s: float | None = None
        self._last: dict[_Key, int] = {}
        self._now: dict[_Key, int] = {}
        self._gains: deque[tuple[float, dict[_Key, int]]] = deque()
        self._gained: dict[_Key, int] = defaultdict(int)  # the sum of the gains
        self.seen_s: float | None = None
        """Seconds for which counters have been watched, at most the window; ``None``: looked at once."""

    def look(self, now_s: float) -> None:
        """Begin a look. ``now_s`` is a monotonic time."""
        if self._began_s is None:
            self._began_s = now_s
        self.seen_s = min(now_s - self._began_s, self._window_s) or None
        self._last, self._now = self._now, {}
        self._gains.append((now_s, {}))
        while self._gains[0][0] <= now_s - self._window_s:
            for key, gain in self._gains.popleft()[1].items():
                self._gained[key] -= gain
                if not self._gained[key]:
                    del self._gained[key]  # or devices that are gone would be kept for ever

    def count(self, counter: str, total: int | None, *of: str | int) -> Count | None:
        """This counter of a device, CPU …, with its growth; ``None`` where ``total`` is unknown. ``counter``: a name
        that no other counter has."""
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
