"""Disks as samples: ``samples`` maps the kernel's counters, ``device_samples`` what each disk is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plumbline.catalogue import Kind, MetricSpec, Sample
from plumbline.sources.block import BlockDevice
from plumbline.sources.diskstats import DiskStats

_SECTOR_BYTES = 512  # /proc/diskstats counts these, whatever the disk's own sector is
_OPERATION = ("device", "operation")

IO = MetricSpec("plumbline_disk_io_total", Kind.COUNTER, "Requests completed, by operation.", _OPERATION)
IO_BYTES = MetricSpec("plumbline_disk_io_bytes_total", Kind.COUNTER, "Bytes read, written or discarded.", _OPERATION)
IO_SECONDS = MetricSpec(
    "plumbline_disk_io_seconds_total",
    Kind.COUNTER,
    "Time from submission to completion, summed over requests; divided by requests it is their mean latency.",
    _OPERATION,
)
BUSY_SECONDS = MetricSpec(
    "plumbline_disk_busy_seconds_total",
    Kind.COUNTER,
    "Time with at least one request in flight; says nothing of saturation where a disk works in parallel.",
    ("device",),
)
QUEUE_LENGTH = MetricSpec("plumbline_disk_queue_length", Kind.GAUGE, "Requests in flight now.", ("device",))
WEIGHTED_SECONDS = MetricSpec(
    "plumbline_disk_weighted_io_seconds_total",
    Kind.COUNTER,
    "Time weighted by the requests in flight; its rate is the mean queue length.",
    ("device",),
)
SPECS: tuple[MetricSpec, ...] = (IO, IO_BYTES, IO_SECONDS, BUSY_SECONDS, QUEUE_LENGTH, WEIGHTED_SECONDS)

INFO = MetricSpec(
    "plumbline_disk_info",
    Kind.GAUGE,
    "What the disk is; always 1, an empty label is not known.",
    ("device", "model", "serial", "firmware", "rotational", "transport", "device_class", "osd"),
)
SIZE = MetricSpec("plumbline_disk_size_bytes", Kind.GAUGE, "Capacity of the disk.", ("device",))
DEVICE_SPECS: tuple[MetricSpec, ...] = (INFO, SIZE)


def samples(disks: Iterable[DiskStats]) -> Iterator[Sample]:
    """Discards and flushes have no series on kernels that don't count them."""
    for disk in disks:
        device, read, write = (disk.name,), (disk.name, "read"), (disk.name, "write")
        yield IO, read, disk.reads
        yield IO, write, disk.writes
        yield IO_BYTES, read, disk.sectors_read * _SECTOR_BYTES
        yield IO_BYTES, write, disk.sectors_written * _SECTOR_BYTES
        yield IO_SECONDS, read, disk.reading_ms / 1000
        yield IO_SECONDS, write, disk.writing_ms / 1000
        yield BUSY_SECONDS, device, disk.busy_ms / 1000
        # Before Linux 5.0 requests that straddled a change of iostats made this negative, printed unsigned;
        # since then the kernel itself shows such a value as 0.
        yield QUEUE_LENGTH, device, disk.in_flight if disk.in_flight < 2**31 else 0
        yield WEIGHTED_SECONDS, device, disk.weighted_ms / 1000
        if disk.discards is not None and disk.sectors_discarded is not None and disk.discarding_ms is not None:
            discard = (disk.name, "discard")
            yield IO, discard, disk.discards
            yield IO_BYTES, discard, disk.sectors_discarded * _SECTOR_BYTES
            yield IO_SECONDS, discard, disk.discarding_ms / 1000
        if disk.flushes is not None and disk.flushing_ms is not None:
            flush = (disk.name, "flush")
            yield IO, flush, disk.flushes
            yield IO_SECONDS, flush, disk.flushing_ms / 1000


def device_samples(devices: Iterable[BlockDevice]) -> Iterator[Sample]:
    """One info and one size a disk. ``rotational`` is the kernel's flag, 0 or 1; judge by ``device_class``."""
    for device in devices:
        labels = (
            device.name,
            device.model or "",
            device.serial or "",
            device.firmware or "",
            "" if device.rotational is None else str(int(device.rotational)),
            device.transport or "",
            device.device_class or "",
            "",  # the OSD comes with Ceph
        )
        yield INFO, labels, 1
        yield SIZE, (device.name,), device.size_bytes
