"""The daemon's side of the canary's shared memory: write the plan, take consistent copies."""

import mmap
import os
import time
from array import array
from collections.abc import Callable, Sequence

from msgspec import Struct

from plumbline.probes.canary import memory

_TRIES = 6
_TRY_AGAIN_S = 0.0002


class StreamPlan(Struct, frozen=True):
    """What the worker needs to know about one operation of one workload. The shares of all streams add up to 1."""

    write: bool
    sequential: bool
    dsync: bool
    block_bytes: int
    share: float
    edges_ns: tuple[int, ...]


class StreamCounts(Struct, frozen=True):
    """One stream's counts. Times are Unix ns, 0 for never; ``buckets`` are not cumulative, one more than the edges."""

    last_completion_ns: int
    last_success_ns: int
    sum_ns: int
    charged: int
    errors: tuple[int, ...]
    buckets: tuple[int, ...]
    note: int = 0  # A number that the worker sets for this stream alone


class Snapshot(Struct, frozen=True):
    """A consistent copy. ``state`` is the worker's; ``text`` is its reason and message, separated by a newline."""

    state: int
    rate: float
    text: str
    refusals: int  # Total number of times it reported REFUSED
    streams: tuple[StreamCounts, ...]


def lay_down(streams: Sequence[StreamPlan], *, file_bytes: int, rate: float, max_busy_ratio: float) -> int:
    """Create a new memory with this plan in it. The descriptor (close-on-exec) belongs to the caller."""
    sizes = [memory.STREAM_WORDS + 2 * len(stream.edges_ns) + 1 for stream in streams]
    fd = os.memfd_create("plumbline-canary")
    os.ftruncate(fd, (memory.HEADER_WORDS + sum(sizes)) * memory.WORD_BYTES)
    with mmap.mmap(fd, 0) as mapped, memoryview(mapped) as raw, raw.cast("Q") as words:
        words[memory.H_MAGIC], words[memory.H_VERSION] = memory.MAGIC, memory.VERSION
        words[memory.H_STREAMS], words[memory.H_FILE_BYTES] = len(streams), file_bytes
        words[memory.H_RATE] = words[memory.H_RATE_NOW] = round(rate * memory.MILLION)
        words[memory.H_MAX_BUSY] = round(max_busy_ratio * memory.MILLION)
        at = memory.HEADER_WORDS
        for stream, size in zip(streams, sizes, strict=True):
            words[at + memory.S_WORDS] = size
            words[at + memory.S_FLAGS] = (
                stream.write * memory.WRITE | stream.sequential * memory.SEQUENTIAL | stream.dsync * memory.DSYNC
            )
            words[at + memory.S_BLOCK_BYTES] = stream.block_bytes
            words[at + memory.S_SHARE] = round(stream.share * memory.MILLION)
            words[at + memory.S_EDGES] = len(stream.edges_ns)
            for index, edge in enumerate(stream.edges_ns, at + memory.STREAM_WORDS):
                words[index] = edge
            at += size
    return fd


class DaemonMemory(memory.MappedWords):
    """The daemon's side: reads while a worker lives, resets the memory when the worker is gone."""

    def __init__(self, fd: int, *, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(fd)
        self._starts = self.stream_starts()
        self._sleep = sleep
        self._last = self._parse(self.words.tolist())  # consistent: there is no worker yet

    def snapshot(self) -> Snapshot:
        """The latest consistent copy; if none is available within about a millisecond, the previous one."""
        words = self.words
        for _ in range(_TRIES):
            before = words[memory.H_SEQUENCE]
            if not before & 1:
                copy = words.tolist()
                if words[memory.H_SEQUENCE] == copy[memory.H_SEQUENCE] == before:
                    self._last = self._parse(copy)
                    break
            self._sleep(_TRY_AGAIN_S)
        return self._last

    def in_flight_since_ns(self) -> tuple[int, ...]:
        """Start of each stream's running operation, then of the current preparation step (monotonic ns); 0 when idle.
        Read directly, not from a snapshot: this is what counts while the worker hangs."""
        words = self.words
        return (*(words[at + memory.S_IN_FLIGHT_SINCE] for at in self._starts), words[memory.H_PREPARING_SINCE])

    @property
    def running(self) -> bool:
        return self.words[memory.H_STATE] == memory.RUNNING

    def go(self) -> None:
        self.words[memory.H_GO] = 1

    def leave(self) -> None:
        """This canary is over: the worker starts no more operations for it."""
        self.words[memory.H_LEAVE] = 1

    def worker_gone(self) -> None:
        """Reset what the dead worker last wrote: nothing runs any more. Call only while there is no worker."""
        words = self.words
        words[memory.H_SEQUENCE] += words[memory.H_SEQUENCE] & 1  # it was killed while updating counts
        for at in self._starts:
            words[at + memory.S_IN_FLIGHT_SINCE] = words[at + memory.S_NOTE] = 0
        words[memory.H_PREPARING_SINCE] = words[memory.H_TEXT_BYTES] = words[memory.H_GO] = 0
        words[memory.H_STATE] = memory.STARTING

    def _parse(self, copy: list[int]) -> Snapshot:
        text = array("Q", copy[memory.TEXT_AT : memory.TEXT_AT + memory.TEXT_WORDS]).tobytes()
        return Snapshot(
            state=copy[memory.H_STATE],
            rate=copy[memory.H_RATE_NOW] / memory.MILLION,
            text=text[: copy[memory.H_TEXT_BYTES]].decode("utf-8", "replace"),
            refusals=copy[memory.H_REFUSALS],
            streams=tuple(self._stream(copy, at) for at in self._starts),
        )

    @staticmethod
    def _stream(copy: list[int], at: int) -> StreamCounts:
        return StreamCounts(
            last_completion_ns=copy[at + memory.S_LAST_COMPLETION],
            last_success_ns=copy[at + memory.S_LAST_SUCCESS],
            sum_ns=copy[at + memory.S_SUM_NS],
            charged=copy[at + memory.S_CHARGED],
            errors=tuple(copy[at + memory.S_ERRORS : at + memory.S_ERRORS + memory.ERROR_WORDS]),
            buckets=tuple(copy[at + memory.STREAM_WORDS + copy[at + memory.S_EDGES] : at + copy[at + memory.S_WORDS]]),
            note=copy[at + memory.S_NOTE],
        )
