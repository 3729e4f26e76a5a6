"""One computation for all who asked before it began, as with the scrape: a crowd costs no more than two of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Calls ``compute`` for one caller at a time. What is handed out never began before it was asked for."""

    def __init__(self, compute: Callable[[], T], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._compute, self._clock = compute, clock
        self._lock = threading.Lock()
        self._made: tuple[float, T] | None = None

    def __call__(self) -> T:
        """The answer; what ``compute`` raises is raised here, and computed anew for the next."""
        asked = self._clock()
        with self._lock:
            if self._made is None or self._made[0] <= asked:
                self._made = None
                began = self._clock()
                self._made = (began, self._compute())
            return self._made[1]
