"""Signals for a loop that waits: recorded by handlers that take no lock, noticed through a pipe.

``threading.Event`` can't do this: its lock is not reentrant, so a handler that interrupts ``wait`` at the wrong
instruction and calls ``set`` deadlocks. ``signal.set_wakeup_fd`` writes in the C handler instead.
"""

import contextlib
import os
import select
import signal
from types import FrameType


class Signals:
    """Sets ``stop`` (SIGTERM, SIGINT) and ``reload`` (SIGHUP) on arrival. For the main thread only."""

    def __init__(self) -> None:
        self.stop = False
        self.reload = False
        self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._ready = select.poll()
        self._ready.register(self._read_fd, select.POLLIN)

    def install(self) -> None:
        # a full pipe means that a wake-up is already pending: nothing is lost
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._ask_stop)
        signal.signal(signal.SIGINT, self._ask_stop)
        signal.signal(signal.SIGHUP, self._ask_reload)

    def wait(self, timeout_s: float) -> None:
        """Wait for a signal, at most ``timeout_s``; returns at once if one came since the last call."""
        self._ready.poll(timeout_s * 1000)
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read_fd, 4096):
                pass

    def wake(self) -> None:
        """End a :meth:`wait`; any thread may call it."""
        with contextlib.suppress(OSError):  # full: a wake-up is already pending; closed: nobody waits any more
            os.write(self._write_fd, b"\0")

    def _ask_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop = True

    def _ask_reload(self, _number: int, _frame: FrameType | None) -> None:
        self.reload = True
