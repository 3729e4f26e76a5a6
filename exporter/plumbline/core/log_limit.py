"""Bounds what the log gets of events that somebody else can cause as often as they like.

A memory of what was logged must not be keyed by anything that comes from outside: it would grow, or fill up and leave
no place for the daemon's own failures. So the keys are members of an :class:`~enum.Enum`, which the code alone defines.
"""

import threading
import time
from collections.abc import Callable
from enum import Enum


class LogLimit:
    """Whether to log an event: at most once in ``every_s`` seconds for each kind. Threads may share it."""

    def __init__(self, every_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s, self._clock = every_s, clock
        self._lock = threading.Lock()
        self._logged_at: dict[Enum, float] = {}

    def due(self, kind: Enum) -> bool:
        """Whether to log an event of this kind now; ``True`` counts as logged."""
        with self._lock:
            now = self._clock()
            logged_at = self._logged_at.get(kind)
            if logged_at is not None and now - logged_at < self._every_s:
                return False
            self._logged_at[kind] = now
            return True
