"""Settings of block device queues as metrics, in bytes and seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, declared, gauge, known
from plumbline.sources.disk.queuesettings import WRITE_BACK, QueueSettings

_DEVICE = ("device",)

INFO = gauge(
    "plumbline_disk_queue_info",
    "How the kernel runs the device's queue; always 1. write_cache is what the kernel goes by: write back, it sends"
    " flushes; write through, it sends none. An empty label is not known or not there.",
    ("device", "scheduler", "write_cache", "zoned"),
)
VOLATILE_CACHE = gauge(
    "plumbline_disk_volatile_cache",
    "What the SCSI or ATA disk itself said: 1, a write is done when it is in a cache that a power cut empties.",
    _DEVICE,
)
REQUESTS = gauge("plumbline_disk_queue_requests", "Requests that may wait and be in flight (nr_requests).", _DEVICE)
READ_AHEAD = gauge("plumbline_disk_read_ahead_bytes", "How far buffered reads in sequence read ahead at most.", _DEVICE)
RQ_AFFINITY = gauge(
    "plumbline_disk_rq_affinity",
    "Where a request completes: 0 on the interrupted CPU, 1 on one that shares a cache with the CPU that asked,"
    " 2 on that CPU itself.",
    _DEVICE,
)
NOMERGES = gauge("plumbline_disk_nomerges", "Merging of neighbouring requests: 0 all, 1 the cheap, 2 none.", _DEVICE)
ADD_RANDOM = gauge("plumbline_disk_add_random", "1: each completion feeds the kernel's random numbers.", _DEVICE)
MAX_IO = gauge("plumbline_disk_max_io_bytes", "The largest request the kernel makes (max_sectors_kb).", _DEVICE)
WRITEBACK_THROTTLE = gauge(
    "plumbline_disk_writeback_throttle_seconds",
    "Background writes are held back to keep reads below this; 0: they are not (wbt_lat_usec).",
    _DEVICE,
)
IO_POLL = gauge("plumbline_disk_io_poll", "1: completions may be polled for.", _DEVICE)
SPECS = declared(globals())

_KIB = 1024
_US_PER_S = 1_000_000


def samples(queues: Iterable[QueueSettings]) -> Iterator[Sample]:
    """At most ten samples per device; none for what the kernel or the device lacks."""
    for queue in queues:
        device = (queue.device,)
        labels = (*device, queue.scheduler or "", queue.write_cache or "", queue.zoned or "")
        yield INFO, labels, 1
        if queue.device_cache is not None:
            yield VOLATILE_CACHE, device, int(queue.device_cache == WRITE_BACK)
        yield from known(
            device,
            (REQUESTS, queue.requests),
            (READ_AHEAD, _scaled(queue.read_ahead_kib, _KIB)),
            (RQ_AFFINITY, queue.rq_affinity),
            (NOMERGES, queue.nomerges),
            (ADD_RANDOM, queue.add_random),
            (MAX_IO, _scaled(queue.max_io_kib, _KIB)),
        )
        if queue.writeback_throttle_us is not None:
            yield WRITEBACK_THROTTLE, device, queue.writeback_throttle_us / _US_PER_S
        if queue.io_poll is not None:
            yield IO_POLL, device, int(queue.io_poll)


def _scaled(number: int | None, factor: int) -> int | None:
    return None if number is None else number * factor


def _read(host: Host, skip: SkipHook) -> tuple[QueueSettings, ...]:
    reading = host.parts.storage.queues.value
    for device, reason in reading.skipped:
        if host.disks(device):
            skip(device, reason)
    return tuple(each for each in reading.queues if host.disks(each.device))


COLLECTOR = Collector(
    "queue",
    SPECS,
    _read,
    samples,
    skip_reasons=ITEM_REASONS,
    origin="`/sys/block/*/queue`",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
