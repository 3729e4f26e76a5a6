"""One computation for all who asked before it began: a crowd costs no more than two of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Calls ``compute`` for one caller at a time. What is handed out never began before it was asked for.

    ``wait_s``: how long a caller waits for another's computation; -1: as long as it takes.
    """

    def __init__(
        self, compute: Callable[[], T], *, wait_s: float = -1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._compute, self._wait_s, self._clock = compute, wait_s, clock
        self._lock = threading.Lock()
        self._made: tuple[float, T] | None = None

    def __call__(self) -> T:
        """The answer; what ``compute`` raises is raised here, and computed anew for the next.

        :class:`TimeoutError` when another's computation takes too long to wait for.
        """
        asked = self._clock()
        if not self._lock.acquire(timeout=self._wait_s):
            raise TimeoutError
        try:
            if self._made is None or self._made[0] <= asked:
                self._made = None
                began = self._clock()
                self._made = (began, self._compute())
            return self._made[1]
        finally:
            self._lock.release()
