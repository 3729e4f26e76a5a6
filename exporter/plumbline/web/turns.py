"""Whose turn it is to have a password checked: :mod:`~plumbline.web.access` says why one at a time."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WAIT_S = 8.0  # Seconds to wait for a turn; a scrape times out after ten
# How often a waiting request checks whether its client is still there
_LOOK_EVERY_S = 0.25


class Turns:
    """Runs one check at a time, client addresses in turn, whatever the users are; lives as long as the server."""

    def __init__(self, *, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[object]] = {}  # the address served most recently is last
        self._taken = False

    @contextmanager
    def turn(self, peer: str, gone: Callable[[], bool]) -> Iterator[bool]:
        """Wait for a turn; yields ``False`` when it took too long, or the client no longer waits (``gone``)."""
        come = self._wait(peer, gone)
        try:
            yield come
        finally:
            if come:
                with self._changed:
                    self._taken = False
                    self._changed.notify_all()

    def _wait(self, peer: str, gone: Callable[[], bool]) -> bool:
        ticket = object()
        deadline = time.monotonic() + self._wait_s
        with self._changed:
            mine = self._waiting.setdefault(peer, deque())
            mine.append(ticket)
            while not (come := self._next() is ticket) and time.monotonic() < deadline and not gone():
                self._changed.wait(_LOOK_EVERY_S)
            mine.remove(ticket)
            if come:
                self._taken = True
                del self._waiting[peer]
                if mine:
                    self._waiting[peer] = mine
            elif not mine:
                del self._waiting[peer]
            return come

    def _next(self) -> object | None:
        return None if self._taken else next(iter(self._waiting.values()))[0]
