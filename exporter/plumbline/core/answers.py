"""Calls that may never return, above all reading a file named by the administrator: its mount may hang.

A read that waits in the kernel can't be interrupted, so it runs in its own thread. After a timeout the caller gets an
error; the thread ends when the read returns, or with the process. Until then the same question fails at once with
"still no answer", so at most one thread is left behind for each file.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from plumbline.core import threads

T = TypeVar("T")

WITHIN_S = 5.0
"""A healthy file server answers in milliseconds; one that fails over takes some seconds."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Beside(Generic[T]):
    """Runs one call at a time in its own thread; the caller fetches the answer later. ``ready`` is called when the
    answer or the exception is there."""

    def __init__(self, ready: Callable[[], object]) -> None:
        self._ready = ready
        self._thread: threading.Thread | None = None
        self._answer: T | None = None
        self._error: BaseException | None = None

    @property
    def idle(self) -> bool:
        """Whether no call is pending and no answer waits to be fetched."""
        return self._thread is None

    def ask(self, ask: Callable[[], T], *, name: str) -> None:
        """Start the call; only allowed while :attr:`idle`."""

        def run() -> None:
            try:
                self._answer = ask()
            except BaseException as error:  # noqa: BLE001  (raised where the answer is fetched)
                self._error = error
            self._ready()

        self._thread = threads.start("read", run, of=name)

    def fetch(self) -> T | None:
        """The answer, or ``None`` if there is none yet. Raises what the call raised."""
        if self._thread is None or self._thread.is_alive():
            return None
        answer, error = self._answer, self._error
        self._thread = self._answer = self._error = None
        if error is not None:
            raise error
        return answer


# Path that did not answer in time → the thread that still waits for it.
_UNANSWERED: dict[str, threading.Thread] = {}


class _Question(Generic[T]):
    def __init__(self, ask: Callable[[], T], late: Callable[[T], object]) -> None:
        self.given_up = False
        self.answers: list[T] = []
        self.error: BaseException | None = None
        self._ask, self._late = ask, late
        self._told = threading.Lock()

    def _run(self) -> None:
        try:
            answer = self._ask()
        except BaseException as error:  # noqa: BLE001  (raised where it was asked)
            self.error = error
            return
        with self._told:
            if not self.given_up:
                self.answers.append(answer)
                return
        self._late(answer)

    def answered(self, what: str, within_s: float) -> bool:
        thread = threads.start("ask", self._run, of=what)
        thread.join(within_s)
        with self._told:
            self.given_up = thread.is_alive() and not self.answers
            if self.given_up:
                _UNANSWERED[what] = thread
        return not self.given_up


def ask_in_time(
    what: str, ask: Callable[[], T], within_s: float = WITHIN_S, *, late: Callable[[T], object] = lambda _: None
) -> T:
    """The answer of ``ask``, or what it raises; :class:`TimeoutError` if it takes longer than ``within_s`` seconds.

    ``what`` is a path. While an earlier call for the same path is unanswered, the timeout is raised at once. ``late``
    receives an answer that comes after the timeout.
    """
    if (waiting := _UNANSWERED.get(what)) is not None and waiting.is_alive():
        raise TimeoutError(errno.ETIMEDOUT, "still no answer; does what it lies on hang?", what)
    _UNANSWERED.pop(what, None)
    question = _Question(ask, late)
    if not question.answered(what, within_s):
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {within_s:g} s; does what it lies on hang?", what)
    if question.error is not None:
        raise question.error
    return question.answers[0]


def read_named(path: str | Path, limit: int, *, within_s: float = WITHIN_S) -> bytes:
    """The content of a regular file named by the administrator: configuration, certificate, baseline, key.

    Raises :class:`OSError` with an actionable ``strerror``, also for anything but a regular file (a FIFO would wait for
    a writer, a device has no end), for more than ``limit`` bytes (EFBIG), and :class:`TimeoutError` for no answer.
    """
    name = os.fspath(path)
    return ask_in_time(name, lambda: _read(name, limit), within_s)


def stat_named(path: str | Path, *, within_s: float = WITHIN_S) -> os.stat_result:
    """``stat`` of a file named by the administrator; raises :class:`OSError` as :func:`read_named` does."""
    name = os.fspath(path)
    return ask_in_time(name, lambda: _possible(name, os.stat), within_s)


@contextmanager
def in_memory(data: bytes) -> Iterator[str]:
    """A path to ``data`` in memory, for a library that only reads files (OpenSSL), so that its read can't block."""
    descriptor = os.memfd_create("plumbline", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _read(name: str, limit: int) -> bytes:
    _check_regular(_possible(name, os.stat), name)  # first: opening a device can trigger it (a watchdog, a tape)
    fd = os.open(name, _FLAGS)
    try:
        _check_regular(os.fstat(fd), name)
        parts, length = [], 0
        while length <= limit and (part := os.read(fd, min(limit + 1 - length, 1 << 20))):
            parts.append(part)
            length += len(part)
    finally:
        os.close(fd)
    if length > limit:
        raise OSError(errno.EFBIG, f"it is longer than {limit} bytes", name)
    return b"".join(parts)


def _check_regular(found: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", name)


def _possible(name: str, call: Callable[[str], T]) -> T:
    try:
        return call(name)
    except ValueError:  # a NUL or a lone surrogate in the name
        raise OSError(errno.EINVAL, "no file can have this name", name) from None
