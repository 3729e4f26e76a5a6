"""Questions that may never be answered, above all a file that somebody named: it may lie on a mount that hangs.

A read that waits in the kernel can't be interrupted. It waits in a thread of its own; who asked is told after a while
that there is no answer, and the thread ends when it gets one, or with the process. While it waits, the same question
is answered at once with "still no answer": one thread at most is left behind for each file.
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

T = TypeVar("T")

WITHIN_S = 5.0
"""A file server that is well answers in milliseconds, one that changes over takes some seconds."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Beside(Generic[T]):
    """One question at a time in a thread of its own; the answer is fetched when it suits. ``ready`` is called then."""

    def __init__(self, ready: Callable[[], object]) -> None:
        self._ready = ready
        self._thread: threading.Thread | None = None
        self._answer: T | None = None
        self._error: BaseException | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing was asked whose answer has not been fetched."""
        return self._thread is None

    def ask(self, ask: Callable[[], T], *, name: str) -> None:
        """Begin; only while :attr:`idle`."""

        def run() -> None:
            try:
                self._answer = ask()
            except BaseException as error:  # noqa: BLE001  (raised where the answer is fetched)
                self._error = error
            self._ready()

        self._thread = threading.Thread(target=run, name=name, daemon=True)
        self._thread.start()

    def fetch(self) -> T | None:
        """The answer, or ``None`` where there is none yet; what the question raised is raised."""
        if self._thread is None or self._thread.is_alive():
            return None
        answer, error = self._answer, self._error
        self._thread = self._answer = self._error = None
        if error is not None:
            raise error
        return answer


class _Question(threading.Thread, Generic[T]):
    def __init__(self, what: str, ask: Callable[[], T], late: Callable[[T], object]) -> None:
        super().__init__(name=f"ask {what}"[:60], daemon=True)
        self.what, self.given_up = what, False
        self.answers: list[T] = []
        self.error: BaseException | None = None
        self._ask, self._late = ask, late
        self._told = threading.Lock()

    def run(self) -> None:
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

    def answered(self, within_s: float) -> bool:
        self.join(within_s)
        with self._told:
            self.given_up = self.is_alive() and not self.answers
        return not self.given_up


def ask_in_time(
    what: str, ask: Callable[[], T], within_s: float = WITHIN_S, *, late: Callable[[T], object] = lambda _: None
) -> T:
    """The answer of ``ask``, or what it raises; :class:`TimeoutError` where it does not come ``within_s`` seconds.

    ``what``: a path. At once while an earlier question about the same is unanswered. ``late``: what is to be done with
    an answer that nobody waits for any more.
    """
    if any(isinstance(each, _Question) and each.what == what and each.given_up for each in threading.enumerate()):
        raise TimeoutError(errno.ETIMEDOUT, "still no answer; does what it lies on hang?", what)
    question = _Question(what, ask, late)
    question.start()
    if not question.answered(within_s):
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {within_s:g} s; does what it lies on hang?", what)
    if question.error is not None:
        raise question.error
    return question.answers[0]


def read_named(path: str | Path, limit: int, *, within_s: float = WITHIN_S) -> bytes:
    """The content of a regular file that somebody named: configuration, certificate, baseline, key.

    :class:`OSError` with ``strerror`` a person can act on: also for what is no regular file (a FIFO would wait for a
    writer, a device has no end), is longer than ``limit`` bytes (EFBIG), or does not answer (:class:`TimeoutError`).
    """
    name = os.fspath(path)
    return ask_in_time(name, lambda: _read(name, limit), within_s)


def stat_named(path: str | Path, *, within_s: float = WITHIN_S) -> os.stat_result:
    """Of a file that somebody named; :class:`OSError` as :func:`read_named`."""
    name = os.fspath(path)
    return ask_in_time(name, lambda: _possible(name, os.stat), within_s)


@contextmanager
def in_memory(data: bytes) -> Iterator[str]:
    """A path for a library that reads files only (OpenSSL): of what was read already, so that it can't block."""
    descriptor = os.memfd_create("plumbline", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _read(name: str, limit: int) -> bytes:
    _check_regular(_possible(name, os.stat), name)  # first: to open a device may be to use it (a watchdog, a tape)
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
    except ValueError:  # a NUL, half a surrogate
        raise OSError(errno.EINVAL, "no file can have this name", name) from None
