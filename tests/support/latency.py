"""Disk latencies of a real device during something: our histograms beside what diskstats counted."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest

from plumbline.core.capabilities import Capability, effective
from plumbline.core.roots import Roots
from plumbline.sources.disk.blocklatency import BlockLatency, LatencyReading
from plumbline.sources.disk.diskstats import DiskStats, read_diskstats
from plumbline.sources.disk.latencymaps import OPERATIONS, Histogram

HERE = Roots.under(Path("/"))


@dataclass(frozen=True, slots=True)
class During:
    """What was added while something went on. ``counted`` are diskstats' requests by operation."""

    device: dict[str, Histogram]
    queue: dict[str, Histogram]
    untimed: dict[str, int]
    counted: dict[str, int]
    ticks_ms: dict[str, int]
    """Diskstats' time of reads, writes, discards, flushes."""

    @property
    def timed(self) -> dict[str, int]:
        """Requests in the device histograms, by operation."""
        return {operation: sum(self.device[operation].counts) for operation in OPERATIONS}


class Watch:
    """An open :class:`BlockLatency`, looked at before and after."""

    def __init__(self, latency: BlockLatency) -> None:
        self._latency = latency

    def during(self, device: str, work: Callable[[], object], *, settle: bool = True) -> During:
        """Do ``work`` and wait until the device rests, if it ever does."""
        self._latency.refresh()
        before, counted_before = self._latency.value, _stats(device)
        work()
        counted = _settled(device) if settle else _stats(device)
        after = self._latency.value
        (old,) = [each for each in before.disks if each.device == device]
        (new,) = [each for each in after.disks if each.device == device]
        return During(
            {name: _less(new.times[name].device, old.times[name].device) for name in OPERATIONS},
            {name: _less(new.times[name].queue, old.times[name].queue) for name in OPERATIONS},
            {reason: count - before.untimed[reason] for reason, count in after.untimed.items()},
            {name: _requests(counted)[name] - _requests(counted_before)[name] for name in OPERATIONS},
            {name: _ticks(counted)[name] - _ticks(counted_before)[name] for name in OPERATIONS},
        )

    def refresh(self) -> None:
        """Look which disks there are."""
        self._latency.refresh()

    def reading(self) -> LatencyReading:
        """All of it."""
        return self._latency.value


@contextmanager
def watching(only: str = "", *, own_notes: bool = False, foreseen: bool = True) -> Iterator[Watch]:
    """The program in the kernel; skips the test where it can't be loaded for want of rights or packages.

    ``own_notes``: as on a queue where the kernel does not note the issue, which no setting brings about on the devices
    there are here; ``foreseen``: sysfs tells. ``only``: one disk, instead of all.
    """
    if os.geteuid() != 0 or Capability.BPF not in effective(HERE):
        pytest.skip("loading a BPF program needs root")
    latency = BlockLatency(
        HERE, keep=lambda name: only in ("", name), own_notes=own_notes, notes=lambda *_: not (own_notes and foreseen)
    )
    latency.open()
    try:
        _ = latency.value
        yield Watch(latency)
    finally:
        latency.close()


def bucket(histogram: Histogram, quantile: float) -> int:
    """Its number."""
    total = sum(histogram.counts)
    return next(k for k, cumulative in enumerate(accumulate(histogram.counts)) if cumulative >= quantile * total)


def bucket_of(ns: float) -> int:
    """The number of the bucket that a time belongs to."""
    return next(k for k in range(28) if k == 27 or ns <= 1000 * 2**k)


def run(*argv: str | Path) -> str:
    """A command that has to succeed; its output."""
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout


def _stats(device: str) -> DiskStats:
    (found,) = read_diskstats(HERE, keep=lambda name: name == device)
    return found


def _settled(device: str) -> DiskStats:
    """Once nothing is in flight and nothing has been counted for a moment."""
    deadline = time.monotonic() + 30
    last = _stats(device)
    while time.monotonic() < deadline:
        time.sleep(0.1)
        now = _stats(device)
        if now.in_flight == 0 and _requests(now) == _requests(last):
            return now
        last = now
    raise AssertionError(f"{device} does not come to rest")


def _requests(stats: DiskStats) -> dict[str, int]:
    return {
        "read": stats.reads,
        "write": stats.writes,
        "discard": stats.discards or 0,
        "flush": stats.flushes or 0,
    }


def _ticks(stats: DiskStats) -> dict[str, int]:
    return {
        "read": stats.reading_ms,
        "write": stats.writing_ms,
        "discard": stats.discarding_ms or 0,
        "flush": stats.flushing_ms or 0,
    }


def _less(new: Histogram, old: Histogram) -> Histogram:
    return Histogram(tuple(a - b for a, b in zip(new.counts, old.counts, strict=True)), new.sum_ns - old.sum_ns)
