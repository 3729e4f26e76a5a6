"""Whether the wall clock was set while the process ran, and times that follow it.

What is remembered with Unix times has an age that must not change when somebody, or NTP after a start with a dead
battery, sets the clock: a disk would be forgotten at once, or a result never become old.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

SLACK_S = 60.0  # Clocks are slewed, and corrected by less, all the time

S = TypeVar("S", bound=msgspec.Struct)


class WallClock:
    """Compares Unix time with monotonic time. For one thread at a time."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.wall, self._monotonic = wall, monotonic
        self._offset_s = wall() - monotonic()
        self.jumped_in_all_s = 0.0

    def jumped_s(self) -> float:
        """By how much the clock was set since the last call; 0 for less than :data:`SLACK_S`."""
        offset_s = self.wall() - self._monotonic()
        jumped_s, self._offset_s = offset_s - self._offset_s, offset_s
        if abs(jumped_s) < SLACK_S:
            return 0.0
        self.jumped_in_all_s += jumped_s
        return jumped_s


def moved(record: S, by_s: float, *times: str) -> S:
    """A copy with these of its times moved; what is ``None`` stays so."""
    now = {name: getattr(record, name) for name in times}
    return msgspec.structs.replace(record, **{name: at + by_s for name, at in now.items() if at is not None})
