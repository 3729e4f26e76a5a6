"""Disk latency histograms as samples."""

import dataclasses
from collections.abc import Iterator
from itertools import accumulate

from msgspec.structs import replace

from plumbline.collectors.host import Host
from plumbline.core.histogram import Coarse, HistogramValue
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, histogram
from plumbline.sources.disk.blocklatency import LatencyReading
from plumbline.sources.disk.latencymaps import BUCKETS, Histogram, Times

_LABELS = ("device", "operation")

LATENCY = histogram("plumbline_disk_latency_seconds", "Time in disk and driver, (last) issue to completion.", _LABELS)
QUEUE = histogram(
    "plumbline_disk_queue_seconds",
    "Time a request waited in the kernel before (last) issue. Buckets only with devices.disk_queue_buckets.",
    _LABELS,
)
UNTIMED = counter(
    "plumbline_disk_latency_ios_untimed_total",
    "Completed requests that are in no histogram, by reason: issued_earlier (before the disk was observed),"
    " issue_not_seen, issue_not_noted (by kernel or daemon), completion_not_seen, interrupted.",
    ("reason",),
)
RESTART = gauge(
    "plumbline_disk_latency_restart_required",
    "1: restart the daemon to time some disks' requests: the kernel stopped noting when they are issued, and"
    " the daemon gave up the rights to do so instead.",
)
WITHOUT_ROOM = gauge(
    "plumbline_disk_latency_disks_without_room",
    "Present disks that are not timed, because the table of the BPF program is full: it holds up to about 1,000 disks.",
)

EDGES_S = tuple(2**k / 1e6 for k in range(BUCKETS - 1))  # 1 µs … 67.1 s
_NS = 1e9
_ALWAYS = frozenset({"read", "write"})
_COARSE = Coarse.of(EDGES_S, lambda edge: 3e-5 < edge < 2 or 8 < edge < 9)
"""No disk is faster, and one that takes longer is judged as hanging. The same of every operation: pages add them up."""


def operations(reading: LatencyReading) -> Iterator[tuple[str, str, Times]]:
    """(disk, operation, times); flushes and discards only for disks that have had some: most never do."""
    for disk in reading.disks:
        for operation, times in disk.times.items():
            if operation in _ALWAYS or any(times.device.counts):
                yield disk.device, operation, times


def samples(reading: LatencyReading) -> Iterator[Sample]:
    for device, operation, times in operations(reading):
        yield LATENCY, (device, operation), dataclasses.replace(histogram_value(times.device), coarse=_COARSE)
        queue = histogram_value(times.queue)
        if not reading.queue_buckets:
            queue = HistogramValue((), (), queue.count, queue.sum)
        yield QUEUE, (device, operation), queue
    for reason, count in reading.untimed.items():
        yield UNTIMED, (reason,), count
    yield RESTART, (), int(reading.restart_required)
    yield WITHOUT_ROOM, (), len(reading.without_room)


def histogram_value(histogram: Histogram) -> HistogramValue:
    """With cumulative counts, in seconds."""
    cumulative = tuple(accumulate(histogram.counts))
    return HistogramValue(EDGES_S, cumulative[:-1], cumulative[-1], histogram.sum_ns / _NS)


def _read(host: Host, _skip: SkipHook) -> LatencyReading:
    reading = host.parts.latest(LatencyReading)
    disks = tuple(disk for disk in reading.disks if host.disks(disk.device))
    return replace(reading, disks=disks, queue_buckets=host.queue_buckets)


COLLECTOR = Collector(
    "latency",
    declared(globals()),
    _read,
    samples,
    origin="a BPF program on `block_rq_issue` and `block_rq_complete`",
    sized_by=("disk, each operation: latency histograms",),
    needs_daemon=True,
)
