"""A thread that waits for the kernel's events and reports a burst of them once."""

import select
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial

from plumbline.core import threads


class EventListener:
    """Calls ``on_change()`` in its own thread, ``settle_s`` after the first event of a burst; it must be quick and not
    raise (best: set a :class:`threading.Event`). An event is only a hint: the kernel drops some (ENOBUFS), so the owner
    also looks on a timer."""

    def __init__(self, name: str, on_change: Callable[[], None], settle_s: float) -> None:
        """``name``: purpose of the thread."""
        self._name, self._on_change, self._settle_s = name, on_change, settle_s
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._opened = ExitStack()

    def _listen(self, descriptors: Iterable[int], drain: Callable[[], bool], opened: ExitStack) -> None:
        """Start the thread. ``drain`` consumes all pending events; True when there was one, or when some were lost.
        ``opened`` is closed when the thread has ended."""
        self._wake, woken = socket.socketpair()
        opened.enter_context(woken)
        self._opened = opened
        poll = select.poll()
        for descriptor in (*descriptors, woken.fileno()):
            poll.register(descriptor, select.POLLIN)
        self._stopping.clear()
        self._thread = threads.start(self._name, partial(self._run, poll, drain), until=self._stopping)

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Stop listening; True when the thread has ended (False only while ``on_change`` blocks)."""
        thread, self._thread = self._thread, None
        if thread is None:
            return True
        self._stopping.set()
        self._wake.close()  # makes the other end readable from here on
        thread.join(timeout_s)
        if thread.is_alive():
            return False
        self._opened.close()
        return True

    def _run(self, poll: select.poll, drain: Callable[[], bool]) -> None:
        while not self._stopping.is_set():
            poll.poll()
            if not drain():
                continue
            if self._stopping.wait(self._settle_s):
                return
            drain()
            self._on_change()
