"""The memory that the canary's worker writes and the daemon reads: its layout, and the worker's side of it.

One anonymous shared mapping per canary, no locks. Everything is an unsigned 64-bit word in native byte order, read and
written whole. The daemon writes the plan, and resets the memory between two workers; while a worker lives only the
worker writes, except for the words ``H_GO`` and ``H_LEAVE``. The daemon never waits for the worker, which may hang in
the kernel for hours.

Consistency comes from a *sequence lock*: the worker makes the sequence odd, changes counts, makes it even; a copy with
the same even sequence before and after is consistent. Start times of operations are outside of it: they are single
words that must be visible while, not after, an operation runs.

Light modules only: the worker imports this.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from errno import errorcode
from time import time_ns

from plumbline.probes.canary.pacing import charge

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from plumbline.probes.canary.pacing import Charge

MAGIC = int.from_bytes(b"PLUMBCAN", "little")
VERSION = 3
WORD_BYTES = 8
MILLION = 10**6

# header: words from the start
H_MAGIC, H_VERSION, H_STREAMS, H_FILE_BYTES, H_RATE, H_MAX_BUSY = range(6)  # rates and ratios in millionths
H_SEQUENCE, H_STATE, H_RATE_NOW, H_HEALTHY_NS, H_PREPARING_SINCE, H_TEXT_BYTES, H_REFUSALS = range(6, 13)
H_GO, H_LEAVE = 13, 14  # Set by the daemon while a worker lives: it may begin; this canary is over
TEXT_AT = 15
TEXT_WORDS = 64
HEADER_WORDS = TEXT_AT + TEXT_WORDS

# stream: words from the stream's start; then come its edges, then its buckets
S_WORDS, S_FLAGS, S_BLOCK_BYTES, S_SHARE, S_EDGES = range(5)
S_NOTE = 5  # A number that the worker sets for this stream alone; 0: none
S_IN_FLIGHT_SINCE, S_LAST_COMPLETION, S_LAST_SUCCESS, S_SUM_NS, S_CHARGED, S_ERRORS = range(6, 12)
ERRORS = ("EIO", "ENOSPC", "EROFS", "ETIMEDOUT", "short", "other")
"""Kinds of failed operations, by errno; ``short``: fewer bytes than requested."""
NAMES = {"ESHUTDOWN": "blocklisted"}
"""Errno → kind, where librados means something else by it (EBLOCKLISTED in Ceph's include/types.h)."""
ERROR_WORDS = 7
"""Kinds of failed operations that a stream has room for; a canary may have fewer."""
STREAM_WORDS = S_ERRORS + ERROR_WORDS

WRITE, SEQUENTIAL, DSYNC = 1, 2, 4  # Bits of a stream's flags

STARTING, PREPARING, RUNNING, REFUSED = range(4)  # The worker's state
EXIT_REFUSED = 3  # The worker's exit status after it reported REFUSED
OUTDATED = "outdated"  # The reason besides RUNNING if the configuration now means other targets than the worker's


def error_index(error: OSError | None, errors: tuple[str, ...] = ERRORS) -> int:
    """Index into ``errors`` for a failed operation; ``None`` means a short one. An error without an errno may have its
    kind as an attribute."""
    kind = "short" if error is None else getattr(error, "kind", "") or errorcode.get(error.errno or 0, "")
    kind = NAMES.get(kind, kind)
    return errors.index(kind if kind in errors else "other")


class MappedWords:
    """The mapping as words. Raises ``ValueError`` if ``fd`` holds anything else."""

    def __init__(self, fd: int) -> None:
        self.words = memoryview(mmap.mmap(fd, 0)).cast("Q")
        if len(self.words) < HEADER_WORDS or (self.words[H_MAGIC], self.words[H_VERSION]) != (MAGIC, VERSION):
            raise ValueError("not a canary's memory of this version")

    def stream_starts(self) -> list[int]:
        """Index of each stream's first word."""
        starts, at = [], HEADER_WORDS
        for _ in range(self.words[H_STREAMS]):
            starts.append(at)
            at += self.words[at + S_WORDS]
        return starts


class WorkerStream:
    """One operation of one workload: its parameters and its counters."""

    def __init__(self, words: memoryview[int], at: int) -> None:
        flags, edges = words[at + S_FLAGS], words[at + S_EDGES]
        self.write, self.sequential, self.dsync = bool(flags & WRITE), bool(flags & SEQUENTIAL), bool(flags & DSYNC)
        self.block_bytes = words[at + S_BLOCK_BYTES]
        self.share = words[at + S_SHARE] / MILLION
        self.edges_ns = words[at + STREAM_WORDS : at + STREAM_WORDS + edges].tolist()
        self._words, self._at = words, at
        self._buckets = at + STREAM_WORDS + edges

    def note(self, number: int) -> None:
        self._words[self._at + S_NOTE] = number

    def started(self, now_ns: int) -> None:
        """An operation begins (monotonic ns), or is over (0)."""
        self._words[self._at + S_IN_FLIGHT_SINCE] = now_ns

    def count(self, bucket: int, latency_ns: int, wall_ns: int) -> None:
        words, at = self._words, self._at
        words[self._buckets + bucket] += 1
        words[at + S_SUM_NS] += latency_ns
        words[at + S_LAST_COMPLETION] = words[at + S_LAST_SUCCESS] = wall_ns

    def count_error(self, index: int, wall_ns: int) -> None:
        self._words[self._at + S_ERRORS + index] += 1
        self._words[self._at + S_LAST_COMPLETION] = wall_ns

    def count_charge(self, charge: Charge) -> None:
        for bucket, count in charge.buckets.items():
            self._words[self._buckets + bucket] += count
        self._words[self._at + S_SUM_NS] += charge.sum_ns
        self._words[self._at + S_CHARGED] += charge.total


class WorkerMemory(MappedWords):
    """The worker's side. Only one worker exists at a time."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self.file_bytes = self.words[H_FILE_BYTES]
        self.rate = self.words[H_RATE] / MILLION
        self.max_busy_ratio = self.words[H_MAX_BUSY] / MILLION
        self.streams = [WorkerStream(self.words, at) for at in self.stream_starts()]

    @property
    def healthy_ns(self) -> int:
        """The healthy latency so far, including earlier workers'; 0 if there is none yet."""
        return self.words[H_HEALTHY_NS]

    @property
    def go(self) -> bool:
        """Whether the daemon has finished setting up the new worker."""
        return bool(self.words[H_GO])

    @property
    def leaving(self) -> bool:
        """Whether this canary is over, while others in the same worker go on."""
        return bool(self.words[H_LEAVE])

    def account(
        self,
        stream: WorkerStream,
        latency_ns: int,
        error: int | None,
        rate: float,
        random: Random,
        *,
        streams: Sequence[WorkerStream],
    ) -> None:
        """Count an operation, and the arrivals that met it: ``rate`` a second over ``streams``. ``error``: the index of
        its kind, if it failed."""
        now = time_ns()
        charges = [(other, charge(random, rate * other.share, latency_ns, other.edges_ns)) for other in streams]
        self.begin()
        if error is None:
            stream.count(bisect_left(stream.edges_ns, latency_ns), latency_ns, now)
        else:
            stream.count_error(error, now)
        for other, charged in charges:
            if charged.total:
                other.count_charge(charged)
        self.end()

    def begin(self) -> None:
        """Counts are about to change."""
        self.words[H_SEQUENCE] += 1

    def end(self) -> None:
        """Counts are consistent again."""
        self.words[H_SEQUENCE] += 1

    def preparing(self, now_ns: int) -> None:
        """A preparation step begins (monotonic ns), or is over (0)."""
        self.words[H_PREPARING_SINCE] = now_ns

    def pace(self, rate: float, healthy_ns: int) -> None:
        self.words[H_RATE_NOW], self.words[H_HEALTHY_NS] = round(rate * MILLION), healthy_ns

    def say(self, state: int, text: str = "") -> None:
        """Set the state; after a refusal, with a reason word and a message (separated by a newline)."""
        raw = text.encode("utf-8", "replace")[: TEXT_WORDS * WORD_BYTES]
        self.begin()
        self.words.cast("B")[TEXT_AT * WORD_BYTES : TEXT_AT * WORD_BYTES + len(raw)] = raw
        self.words[H_TEXT_BYTES], self.words[H_STATE] = len(raw), state
        self.words[H_REFUSALS] += state == REFUSED
        self.end()
