"""Calls that may never return: a file on a mount that hangs, a dead disk, a kernel lock, a name server.

Such a call can't be interrupted, so it runs in its own thread. After a timeout the caller goes on without the answer;
the thread ends when the call returns, or with the process.
"""

import errno
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, TypeVar

from plumbline.core import threads

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Item = TypeVar("Item")

# A healthy file server answers in milliseconds; one that fails over takes some seconds.
WITHIN_S = 5.0
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
# Path that did not answer in time → the thread that still waits for it.
_UNANSWERED: dict[str, threading.Thread] = {}


def _outcome(call: Callable[[], T]) -> tuple[T] | BaseException:
    """The result of the call in a tuple, or what it raised."""
    try:
        return (call(),)
    except BaseException as error:  # noqa: BLE001  (raised where the answer is fetched)
        return error


def _result(outcome: tuple[T] | BaseException) -> T:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome[0]


class ThreadedCall(Generic[T]):
    """Runs one call at a time in its own thread; the caller, woken by ``ready``, fetches the answer later."""

    def __init__(self, ready: Callable[[], object]) -> None:
        self._ready = ready
        self._outcomes: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()
        self.idle = True  # Whether no call is pending and no answer waits to be fetched

    def ask(self, call: Callable[[], T], *, name: str) -> None:
        """Start the call; only allowed while :attr:`idle`."""

        def run() -> None:
            self._outcomes.put(_outcome(call))
            self._ready()

        threads.start("read", run, of=name)
        self.idle = False

    def fetch(self) -> T | None:
        """The answer, or ``None`` if there is none yet. Raises what the call raised."""
        if self._outcomes.empty():
            return None
        self.idle = True
        return _result(self._outcomes.get())


def ask_in_time(
    what: str, call: Callable[[], T], within_s: float = WITHIN_S, *, late: Callable[[T], object] = lambda _: None
) -> T:
    """The answer of ``call``, or what it raises; :class:`TimeoutError` after ``within_s`` seconds, and at once while an
    earlier call for the same path ``what`` is unanswered, so that at most one thread is left behind for each path.
    ``late`` receives an answer that comes after the timeout."""
    if (waiting := _UNANSWERED.get(what)) is not None and waiting.is_alive():
        raise TimeoutError(errno.ETIMEDOUT, "still no answer; does its disk or mount hang?", what)
    _UNANSWERED.pop(what, None)
    outcomes: list[tuple[T] | BaseException] = []
    lock, given_up = threading.Lock(), False

    def run() -> None:
        outcome = _outcome(call)
        with lock:
            if not given_up:
                outcomes.append(outcome)
                return
        if isinstance(outcome, tuple):
            late(outcome[0])

    thread = threads.start("ask", run, of=what)
    thread.join(within_s)
    with lock:
        given_up = not outcomes
    if given_up:
        _UNANSWERED[what] = thread
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {within_s:g} s; does its disk or mount hang?", what)
    return _result(outcomes[0])


def ask_side_by_side(
    calls: Mapping[K, Callable[[], T]], within_s: float, *, what: str = "ask"
) -> tuple[dict[K, T], frozenset[K]]:
    """The answers that came within ``within_s`` seconds altogether, and the keys still unanswered. A call that raises
    is in neither: its exception is logged. ``what`` names the purpose of the threads."""
    answers: dict[K, T] = {}

    def run(key: K) -> None:
        answers[key] = calls[key]()

    deadline = time.monotonic() + within_s
    asked = {key: threads.start(what, partial(run, key), of=str(key)) for key in calls}
    for thread in asked.values():
        thread.join(max(0.0, deadline - time.monotonic()))
    in_time = dict(answers)  # late threads may still write to the original
    return in_time, frozenset(key for key, thread in asked.items() if thread.is_alive() and key not in in_time)


def in_turn(items: Sequence[Item], do: Callable[[Item], T], at_once: int, *, what: str) -> Iterator[T]:
    """The results of ``do`` in the order of ``items``, ``at_once`` of them in parallel; the first error ends it."""
    left = deque(enumerate(items))
    done: list[SimpleQueue[tuple[T] | BaseException]] = [SimpleQueue() for _ in items]

    def work() -> None:
        while left:
            try:
                index, item = left.popleft()
            except IndexError:  # another thread took the last item
                return
            done[index].put(_outcome(partial(do, item)))

    for number in range(min(at_once, len(items))):
        threads.start(what, work, of=str(number))
    try:
        for outcome in done:
            yield _result(outcome.get())
    finally:
        left.clear()


def _any(_descriptor: int) -> None:
    pass


def read_named(path: str | Path, limit: int, *, check: Callable[[int], object] = _any) -> bytes:
    """The content of a regular file named by the administrator: configuration, certificate, baseline, key. Raises
    :class:`OSError` with an actionable ``strerror``, also for anything but a regular file (a FIFO would wait for a
    writer, a device has no end) and beyond ``limit`` bytes (EFBIG); :class:`TimeoutError` for no answer. ``check``
    looks at the open file, and may refuse it by an :class:`OSError`; secrets are read by :mod:`.keyfiles`."""
    name = os.fspath(path)
    return ask_in_time(name, lambda: _read(name, limit, check))


def open_named(path: str | Path, *, check: Callable[[int], object] = _any) -> int:
    """A descriptor of a file as :func:`read_named` reads it."""
    name = os.fspath(path)
    return ask_in_time(name, lambda: _open(name, check), late=os.close)


def stat_named(path: str | Path) -> os.stat_result:
    """``stat`` of a file named by the administrator; raises :class:`OSError` as :func:`read_named` does."""
    name = os.fspath(path)
    return ask_in_time(name, lambda: _possible(name, os.stat))


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


def _read(name: str, limit: int, check: Callable[[int], object]) -> bytes:
    fd = _open(name, check)
    try:
        parts, length = [], 0
        while length <= limit and (part := os.read(fd, min(limit + 1 - length, 1 << 20))):
            parts.append(part)
            length += len(part)
    finally:
        os.close(fd)
    if length > limit:
        raise OSError(errno.EFBIG, f"it is longer than {limit} bytes", name)
    return b"".join(parts)


def _open(name: str, check: Callable[[int], object]) -> int:
    _check_regular(_possible(name, os.stat), name)  # first: opening a device can trigger it (a watchdog, a tape)
    fd = os.open(name, _FLAGS)
    try:
        _check_regular(os.fstat(fd), name)
        check(fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check_regular(status: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", name)


def _possible(name: str, call: Callable[[str], T]) -> T:
    try:
        return call(name)
    except ValueError:  # a NUL or a lone surrogate in the name
        raise OSError(errno.EINVAL, "no file can have this name", name) from None
