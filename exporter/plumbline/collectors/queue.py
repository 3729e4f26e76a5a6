"""Settings of block device queues as metrics, in bytes and seconds."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, declared, gauge, known
from plumbline.sources.disk.queuesettings import WRITE_BACK, QueueReading

_DEVICE = ("device",)

INFO = gauge(
    "plumbline_disk_queue_info",
    "Queue settings, always 1. write_cache: write back, the kernel sends flushes; write through, it sends none."
    " Empty: unknown.",
    ("device", "scheduler", "write_cache", "zoned"),
)
VOLATILE_CACHE = gauge(
    "plumbline_disk_volatile_cache_enabled",
    "1: the SCSI or ATA disk reports a write cache that a power cut empties.",
    _DEVICE,
)
REQUESTS = gauge("plumbline_disk_queue_requests", "Requests that may be queued or in flight (nr_requests).", _DEVICE)
READ_AHEAD = gauge("plumbline_disk_read_ahead_bytes", "Maximum read-ahead of sequential buffered reads.", _DEVICE)
RQ_AFFINITY = gauge(
    "plumbline_disk_rq_affinity",
    "CPU that completes a request: 0 the interrupted one, 1 one sharing the submitter's cache, 2 the submitter.",
    _DEVICE,
)
NOMERGES = gauge("plumbline_disk_nomerges", "Merging of adjacent requests: 0 all, 1 simple ones, 2 none.", _DEVICE)
ADD_RANDOM = gauge("plumbline_disk_add_random_enabled", "1: completions feed the kernel's random numbers.", _DEVICE)
MAX_IO = gauge("plumbline_disk_io_max_bytes", "The largest request the kernel makes (max_sectors_kb).", _DEVICE)
WRITEBACK_THROTTLE = gauge(
    "plumbline_disk_writeback_throttle_seconds",
    "Read latency that background writes must not exceed (wbt_lat_usec); 0: off.",
    _DEVICE,
)
IO_POLL = gauge("plumbline_disk_io_poll_enabled", "1: completions may be polled.", _DEVICE)

_KIB = 1024
_US_PER_S = 1_000_000


def samples(reading: QueueReading) -> Iterator[Sample]:
    for queue in reading.queues:
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
        yield from known(device, (IO_POLL, queue.io_poll))


def _scaled(number: int | None, factor: int) -> int | None:
    return None if number is None else number * factor


def _read(host: Host, skip: SkipHook) -> QueueReading:
    reading = host.parts.storage.queues.value
    for device, reason in reading.skipped:
        if host.disks(device):
            skip(device, reason)
    return QueueReading(tuple(queue for queue in reading.queues if host.disks(queue.device)))


COLLECTOR = Collector(
    "queue",
    declared(globals()),
    _read,
    samples,
    skip_reasons=ITEM_REASONS,
    origin="`/sys/block/*/queue`",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
