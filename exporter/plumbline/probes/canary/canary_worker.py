"""The canary's worker: a small separate process that may hang with the disk, so that the daemon never does.

``pool.py`` starts it in an isolated interpreter as ``… <lifeline fd> <order as JSON>``. It checks and locks the
directory, fills its file once, and then does one operation at a time until it is ended. The workers of the other kinds
of targets use its loop, :func:`operate`.

The worker never outlives the daemon: the lifeline is a pipe whose other end only the daemon holds, and the kernel sends
SIGIO when that end closes. (PR_SET_PDEATHSIG would follow the *thread* that started the worker, and needs ctypes.)

Light modules only: the worker's memory is what the canary costs a node.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import mmap
import os
import select
import signal
import time
from random import Random

from plumbline.core import light_json
from plumbline.core.proofs import Marked
from plumbline.errors import ProbeRefused
from plumbline.probes.canary.memory import (
    ERRORS,
    EXIT_REFUSED,
    PREPARING,
    REFUSED,
    RUNNING,
    WorkerMemory,
    WorkerStream,
    error_index,
)
from plumbline.probes.canary.pacing import LoadCap, gap_ns
from plumbline.probes.run import guard

FILE_NAME = "canary.dat"
# operations per second that the load cap leaves a device which is slow from the start: 60 in five minutes
FLOOR_RATE = 0.2
# after this many the worker closes its file: its file system may be dead, and can't be unmounted while it is open
FAILURES_IN_A_ROW = 20


def main(argv: list[str]) -> int:
    """Work until ended; returns ``EXIT_REFUSED`` after a refusal, with the reason in the memory."""
    pause, order = settle(argv[0]), read_order(argv[1])
    ((memory_fd, _),) = order["targets"]
    memory = WorkerMemory(memory_fd)
    return until_refused(memory, lambda: work(memory, order["directory"], below=order["below"], pause=pause))


def read_order(text: str) -> dict[str, Any]:
    """What :meth:`.Target.order` wrote, and ``targets``: descriptor of the memory and name of each."""
    order: Any = light_json.parse(text)
    return order  # type: ignore[no-any-return]


def settle(lifeline_fd: str, leave: Callable[[], object] | None = None) -> Pause:
    """Prepare this process; returns how it sleeps. When the daemon ends it or is gone, the kernel ends it, also in a
    wait inside the kernel, if that is possible at all. ``leave``: ends a process that has objects to remove."""
    lifeline = os.dup(int(lifeline_fd))  # a low number, as select() needs
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGTERM, signal.SIGIO):
        signal.signal(number, (lambda *_: leave()) if leave else signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)

    def pause(seconds: float) -> None:
        if select.select((lifeline,), (), (), seconds)[0]:
            leave() if leave else os._exit(0)

    pause(0)  # it may have closed already
    try:  # contextlib is not light  # noqa: SIM105
        os.nice(10)
    except OSError:
        pass  # a sandbox forbids it: then the worker keeps the daemon's priority
    if leave is None:
        gc.disable()  # nothing here creates cycles, and a collection would count as latency
    return pause


def until_refused(memory: WorkerMemory, act: Callable[[], None]) -> int:
    try:
        act()
    except ProbeRefused as refusal:
        memory.say(REFUSED, f"{refusal.reason}\n{refusal}")
    return EXIT_REFUSED


def work(memory: WorkerMemory, directory: str, *, below: Sequence[str], pause: Pause) -> None:
    """Prepare, then operate for ever. ``below``: name and content of the parent's mark, or empty. Raises
    :class:`ProbeRefused` if it can't go on here."""
    clock = time.monotonic_ns

    def pause_preparing(seconds: float) -> None:
        memory.preparing(0)
        pause(seconds)
        memory.preparing(clock())

    memory.say(PREPARING)
    memory.preparing(clock())
    mark = Marked(below[0], below[1].encode()) if below else None
    with guard.prepare_directory(directory, size_bytes=memory.file_bytes, files=(FILE_NAME,), below=mark) as place:
        fds = {
            dsync: place.open_file(FILE_NAME, memory.file_bytes, direct=True, dsync=dsync, pause=pause_preparing)
            for dsync in {stream.dsync for stream in memory.streams}
        }
        memory.preparing(0)
        memory.say(RUNNING)
        where = f"{directory}/{FILE_NAME}"
        random = Random()  # noqa: S311
        operators = [
            (Writer if stream.write else Reader)(stream, fds[stream.dsync], memory.file_bytes, random)
            for stream in memory.streams
        ]

        def look(_: Operator) -> None:
            check_still_ours(min(fds.values()), memory.file_bytes, where)

        try:
            operate(memory, operators, random, look=look, pause=pause)
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise guard.refused("no-direct-io", where, "O_DIRECT is refused") from error
            raise guard.refused_by(error, where) from error


def operate(
    memory: WorkerMemory,
    operators: Sequence[Operator],
    random: Random,
    *,
    look: Look,
    pause: Pause,
    choose: Choose | None = None,
    errors: tuple[str, ...] = ERRORS,
) -> None:
    """One operation per arrival, one at a time. ``look`` is called after each one. ``choose``: the next operation, by
    default at random by the streams' shares. Raises the disk's ``OSError`` after too many failures in a row, or if the
    disk does not support the operation."""
    clock = time.monotonic_ns
    cap = LoadCap(memory.rate, max_busy=memory.max_busy_ratio, floor=FLOOR_RATE, healthy_ns=memory.healthy_ns)
    shares = [operator.stream.share for operator in operators]
    done = clock()
    while True:
        pause(max(0, done + gap_ns(random, cap.rate) - clock()) / 1e9)
        if memory.leaving:
            return
        operator = choose() if choose else random.choices(operators, shares)[0]
        stream = operator.stream
        operator.get_ready()
        failed = None
        started = clock()
        stream.started(started)
        try:
            transferred = operator.run()
        except OSError as error:
            failed = error
        done = clock()
        stream.started(0)
        latency, rate = done - started, cap.rate
        whole = failed is None and transferred == stream.block_bytes
        if whole:
            cap.observe(latency)
            operator.failures = 0
        else:
            operator.failures += 1
        memory.pace(cap.rate, cap.healthy_ns)
        kind = None if whole else error_index(failed, errors)
        memory.account(stream, latency, kind, rate, random, streams=memory.streams)
        if failed is not None and (failed.errno == errno.EINVAL or operator.failures >= FAILURES_IN_A_ROW):
            raise failed
        look(operator)


def check_still_ours(fd: int, file_bytes: int, where: str) -> None:
    """Refuse a file that was removed, truncated or linked; the next worker starts from the directory again."""
    try:
        status = os.fstat(fd)
    except OSError:
        return  # the disk's fault, not the file's: the operations count the error
    if status.st_nlink != 1 or status.st_size != file_bytes:
        raise guard.refused("file-lost", where, "was removed, linked or truncated while the canary ran")


class Operator:
    """What :func:`operate` needs to know of one stream."""

    def __init__(self, stream: WorkerStream) -> None:
        self.stream = stream
        self.failures = 0  # Consecutive failures

    def get_ready(self) -> None:
        """Outside the measured time."""

    def run(self) -> int:
        """The operation; returns the bytes transferred, and raises ``OSError``."""
        raise NotImplementedError


class Reader(Operator):
    """A stream with its descriptor, a page-aligned buffer, and the next position in the file or on the disk."""

    def __init__(self, stream: WorkerStream, fd: int, file_bytes: int, random: Random) -> None:
        super().__init__(stream)
        self.fd = fd
        self.buffer = mmap.mmap(-1, stream.block_bytes)
        self._blocks = file_bytes // stream.block_bytes
        self._random = random
        self._block = -1

    @property
    def offset(self) -> int:
        return self._block * self.stream.block_bytes

    def get_ready(self) -> None:
        """Choose the next block."""
        block = self._block + 1 if self.stream.sequential else self._random.randrange(self._blocks)
        self._block = block % self._blocks

    def run(self) -> int:
        return os.preadv(self.fd, (self.buffer,), self.offset)


class Writer(Reader):
    """The same for a stream that writes; only ever used on a file of our own."""

    def get_ready(self) -> None:
        super().get_ready()
        self.buffer[:] = os.urandom(self.stream.block_bytes)

    def run(self) -> int:
        return os.pwritev(self.fd, (self.buffer,), self.offset)


TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Pause = Callable[[float], None]
    Look = Callable[["Operator"], None]
    Choose = Callable[[], "Operator"]
