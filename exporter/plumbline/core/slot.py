"""A reading taken in the background and shown by the scrape: one slot with the latest value and its age."""

import math
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from plumbline.core.scheduler import Job
from plumbline.core.stall import Stall, read_stall
from plumbline.errors import PlumblineError, Unavailable

T = TypeVar("T")


class Slot(Generic[T]):
    """Holds the latest result of ``read``. One thread refreshes (a :class:`.scheduler.Job`), any thread may read.
    ``last``: the latest successful value, however old; ``tried``: whether ``read`` has returned or failed once."""

    def __init__(
        self,
        read: Callable[[], T],
        *,
        what: str,
        stale_after_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``what`` names the reading in errors. A value older than ``stale_after_s`` raises an error instead."""
        self._read, self._what, self._stale_after_s, self._clock = read, what, stale_after_s, clock
        self._began_s: float | None = None
        self._reading: tuple[int, float, Stall] | None = None  # the thread, since when, and how it was then
        self._slot: tuple[float, T | PlumblineError] | None = None
        self.last: T | None = None
        self.tried = False

    def refresh(self, _cancel: threading.Event | None = None) -> None:
        """Read anew; a :class:`PlumblineError` is kept in place of the value."""
        result: T | PlumblineError
        thread, now = threading.get_native_id(), self._clock()
        self._began_s = now if self._began_s is None else self._began_s
        self._reading = thread, now, read_stall(thread)
        try:
            result = self.last = self._read()
        except PlumblineError as error:
            result = error
        finally:
            self._reading = None
        self._slot, self.tried = (self._clock(), result), True

    @property
    def value(self) -> T:
        """The latest value or error; ``Unavailable`` before the first reading, :class:`PlumblineError` if stale."""
        slot, began_s = self._slot, self._began_s
        age_s = self._clock() - (slot[0] if slot else self._clock() if began_s is None else began_s)
        if age_s > self._stale_after_s:
            raise PlumblineError(f"{self._what}: no answer for {age_s:.0f} s: {self._why()}")
        if slot is None:
            yet = "have not been read yet" if began_s is None else f"have not answered yet, for {age_s:.0f} s"
            raise Unavailable(f"{self._what} {yet}")
        if isinstance(slot[1], PlumblineError):
            raise slot[1].with_traceback(None)  # raised at every scrape: it must not accumulate tracebacks
        return slot[1]

    def _why(self) -> str:
        """Why there is no new value."""
        if (reading := self._reading) is None:
            return "the daemon has not begun to read them again: it failed (see the log), or the host is short of CPU"
        thread, began_s, before = reading
        return read_stall(thread).since(before).why(self._clock() - began_s)


class PeriodicSlot(Slot[T]):
    """Filled every ``every_s`` seconds by its job, which is called ``name``; stale after four intervals."""

    def __init__(
        self,
        name: str,
        every_s: float,
        what: str,
        read: Callable[[], T],
        *,
        serves: tuple[str, ...] = (),
        cancel: Callable[[], None] = lambda: None,
    ) -> None:
        """``what`` names the reading in errors. ``read`` limits its own run time; ``cancel`` ends it at once.
        ``serves``: see :class:`Job`."""
        super().__init__(read, what=what, stale_after_s=4 * every_s)
        self.job = Job(name, every_s, 0.0, self.refresh, cancel=cancel, serves=serves)
