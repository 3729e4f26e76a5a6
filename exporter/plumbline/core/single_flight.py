"""One computation shared by all callers that asked before it began: concurrent callers cause at most two."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Calls ``compute`` for one caller at a time. A caller never gets a result whose computation began before its call,
    and waits at most ``wait_s`` for another's computation; -1: without limit."""

    def __init__(
        self, compute: Callable[[], T], *, wait_s: float = -1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._compute, self._wait_s, self._clock = compute, wait_s, clock
        self._lock = threading.Lock()
        self._made: tuple[float, T] | None = None

    def __call__(self) -> T:
        """The result, or what ``compute`` raises; the next caller computes anew. :class:`TimeoutError` after
        ``wait_s``."""
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
