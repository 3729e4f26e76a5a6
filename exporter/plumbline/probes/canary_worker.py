"""The canary's worker: a small process of its own that may hang with the disk, so that the daemon never does.

``probes/canary.py`` starts it in an isolated interpreter as ``… <memory fd> <lifeline fd> <directory>``. It checks
and locks the directory, writes its file full once, and then does one operation at a time until it is ended.

It never outlives the daemon: the lifeline is a pipe whose other end only the daemon holds, and the kernel sends SIGIO
when that closes, however the daemon ended. (PR_SET_PDEATHSIG would follow the *thread* that started the worker, and
needs ctypes.)

Light modules only: its memory is what the canary costs a node.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import mmap
import os
import select
import signal
import sys
import time
from bisect import bisect_left
from random import Random

from plumbline.errors import ProbeRefused
from plumbline.probes import canary_memory, guard
from plumbline.probes.canary_memory import WorkerMemory, WorkerStream
from plumbline.probes.canary_pacing import LoadCap, charge, gap_ns

FILE_NAME = "canary.dat"
FLOOR_RATE = 0.2
"""Operations a second that the load cap leaves a device which is slow from the start: 60 in five minutes."""
FAILURES_IN_A_ROW = 20
"""So many, and the worker gives up its file: its file system may be dead, and can't be unmounted while it is open."""


def main(argv: list[str]) -> int:
    """Work until ended; returns ``EXIT_REFUSED`` when it can't, with the reason in the memory."""
    memory_fd, lifeline, directory = int(argv[0]), os.dup(int(argv[1])), argv[2]  # a low number, as select() needs
    live_only_with(lifeline)
    try:  # contextlib is not light  # noqa: SIM105
        os.nice(10)
    except OSError:
        pass  # a sandbox forbids it: then it works at the daemon's own priority
    gc.disable()  # nothing here makes cycles, and a collection would count as latency
    memory = WorkerMemory(memory_fd)
    try:
        work(memory, directory, pause=lambda seconds: sleep(lifeline, seconds))
    except ProbeRefused as refusal:
        memory.say(canary_memory.REFUSED, f"{refusal.reason}\n{refusal}")
    return canary_memory.EXIT_REFUSED


def live_only_with(lifeline: int) -> None:
    """Die (SIGIO's default) when the other end of this pipe closes; SIGTERM ends the worker, too.

    Both also end a wait inside the kernel, where the file system allows that at all.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)
    sleep(lifeline, 0)  # it may have closed before


def sleep(lifeline: int, seconds: float) -> None:
    """Sleep while the daemon lives."""
    if select.select((lifeline,), (), (), seconds)[0]:
        os._exit(0)


def work(memory: WorkerMemory, directory: str, *, pause: Pause) -> None:
    """Prepare, then operate for ever. Raises :class:`ProbeRefused` when it can't go on here."""
    clock = time.monotonic_ns

    def pause_preparing(seconds: float) -> None:
        memory.preparing(0)
        pause(seconds)
        memory.preparing(clock())

    memory.say(canary_memory.PREPARING)
    memory.preparing(clock())
    with guard.prepare_directory(directory, size_bytes=memory.file_bytes) as place:
        fds = {
            dsync: place.open_file(FILE_NAME, memory.file_bytes, direct=True, dsync=dsync, pause=pause_preparing)
            for dsync in {stream.dsync for stream in memory.streams}
        }
        memory.preparing(0)
        memory.say(canary_memory.RUNNING)
        operate(memory, fds, f"{directory}/{FILE_NAME}", pause=pause)


def operate(memory: WorkerMemory, fds: dict[bool, int], where: str, *, pause: Pause) -> None:
    """One operation per arrival, each alone; ``fds`` by O_DSYNC."""
    clock, wall = time.monotonic_ns, time.time_ns
    random = Random()  # noqa: S311
    cap = LoadCap(memory.rate, max_busy=memory.max_busy_ratio, floor=FLOOR_RATE, healthy_ns=memory.healthy_ns)
    streams = [_Operator(stream, fds[stream.dsync], memory.file_bytes, random) for stream in memory.streams]
    shares = [stream.share for stream in memory.streams]
    done = clock()
    while True:
        pause(max(0, done + gap_ns(random, cap.rate) - clock()) / 1e9)
        (operator,) = random.choices(streams, shares)
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
        now = wall()
        latency = done - started
        charges = [(other, charge(random, cap.rate * other.share, latency, other.edges_ns)) for other in memory.streams]
        memory.begin()
        if failed is None and transferred == stream.block_bytes:
            stream.count(bisect_left(stream.edges_ns, latency), latency, now)
            cap.observe(latency)
            operator.failures = 0
        else:
            stream.count_error(canary_memory.error_index(failed), now)
            operator.failures += 1
        for other, charged in charges:
            if charged.total:
                other.count_charge(charged)
        memory.pace(cap.rate, cap.healthy_ns)
        memory.end()
        if failed is not None:
            if failed.errno == errno.EINVAL:
                raise guard.refused("no-direct-io", where, f"O_DIRECT of {stream.block_bytes} bytes is refused")
            if operator.failures >= FAILURES_IN_A_ROW:
                raise guard.refused_by(failed, where) from failed
        check_still_ours(operator.fd, memory.file_bytes, where)


def check_still_ours(fd: int, file_bytes: int, where: str) -> None:
    """A file that was removed, cut or linked is left alone; the next worker starts from the directory again."""
    try:
        found = os.fstat(fd)
    except OSError:
        return  # the disk's fault, not the file's: operations count it
    if found.st_nlink != 1 or found.st_size != file_bytes:
        raise guard.refused("file-lost", where, "was removed, linked or cut while the canary ran")


class _Operator:
    """A stream with its descriptor, a buffer aligned to a page, and the next place in the file."""

    def __init__(self, stream: WorkerStream, fd: int, file_bytes: int, random: Random) -> None:
        self.stream, self.fd = stream, fd
        self._buffer = mmap.mmap(-1, stream.block_bytes)
        self._blocks = file_bytes // stream.block_bytes
        self._random = random
        self._block = -1
        self.failures = 0
        """In a row."""

    def get_ready(self) -> None:
        """Outside the measured time: another block, and new random bytes for a write."""
        block = self._block + 1 if self.stream.sequential else self._random.randrange(self._blocks)
        self._block = block % self._blocks
        if self.stream.write:
            self._buffer[:] = os.urandom(self.stream.block_bytes)

    def run(self) -> int:
        """Bytes transferred; raises ``OSError``."""
        offset = self._block * self.stream.block_bytes
        if self.stream.write:
            return os.pwritev(self.fd, (self._buffer,), offset)
        return os.preadv(self.fd, (self._buffer,), offset)


TYPE_CHECKING = False  # as typing's, without loading typing
if TYPE_CHECKING:
    from collections.abc import Callable

    Pause = Callable[[float], None]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
