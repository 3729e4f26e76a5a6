"""Disks as samples: the kernel's counters, what each disk is, who uses it, and whether it is still there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import MetricSpec, Sample, counter, gauge, known
from plumbline.probes.state import DiskSeen
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.diskstats import DiskStats, WholeDisks, read_whole_disks
from plumbline.sources.disk.diskusers import DiskUsers

_SECTOR_BYTES = 512  # the unit of /proc/diskstats, whatever the disk's own sector size
_OPERATION = ("device", "operation")

IO = counter("plumbline_disk_io_total", "Requests completed, by operation.", _OPERATION)
IO_BYTES = counter("plumbline_disk_io_bytes_total", "Bytes read, written or discarded.", _OPERATION)
IO_SECONDS = counter(
    "plumbline_disk_io_seconds_total",
    "Time from submission to completion, summed over requests; divided by requests it is their mean latency.",
    _OPERATION,
)
BUSY_SECONDS = counter(
    "plumbline_disk_busy_seconds_total",
    "Time with at least one request in flight; says nothing of saturation where a disk works in parallel.",
    ("device",),
)
QUEUE_LENGTH = gauge("plumbline_disk_queue_length", "Requests in flight now.", ("device",))
WEIGHTED_SECONDS = counter(
    "plumbline_disk_weighted_io_seconds_total",
    "Time weighted by the requests in flight; its rate is the mean queue length.",
    ("device",),
)
IO_MERGED = counter(
    "plumbline_disk_io_merged_total",
    "Requests that were joined to one already waiting, and are not counted by themselves.",
    _OPERATION,
)
SPECS: tuple[MetricSpec, ...] = (IO, IO_MERGED, IO_BYTES, IO_SECONDS, BUSY_SECONDS, QUEUE_LENGTH, WEIGHTED_SECONDS)

INFO = gauge(
    "plumbline_disk_info",
    "What the disk is; always 1, an empty label is not known.",
    ("device", "model", "serial", "firmware", "rotational", "transport", "device_class", "osd"),
)
SIZE = gauge("plumbline_disk_size_bytes", "Capacity of the disk.", ("device",))
LOGICAL_BLOCK = gauge("plumbline_disk_logical_block_bytes", "Smallest unit the disk can be addressed in.", ("device",))
PHYSICAL_BLOCK = gauge(
    "plumbline_disk_physical_block_bytes",
    "Smallest unit the disk writes at once; less, or unaligned, and it reads first.",
    ("device",),
)
QUEUE_DEPTH = gauge("plumbline_disk_queue_depth", "Commands a SCSI, SAS or SATA disk takes at once.", ("device",))
ZONED = gauge(
    "plumbline_disk_zoned_info",
    "A disk (SMR, ZNS) with zones: host-managed (must be written in order), host-aware (should be).",
    ("device", "model"),
)
DEVICE_SPECS: tuple[MetricSpec, ...] = (INFO, SIZE, LOGICAL_BLOCK, PHYSICAL_BLOCK, QUEUE_DEPTH, ZONED)

USE = gauge(
    "plumbline_disk_use_info",
    "Who uses the disk, its partitions or what stands on them: kind osd (its data), osd-db, osd-wal, lvm, dm, md, zfs,"
    " bcache, filesystem, swap; an empty name: it is not told whose.",
    ("device", "kind", "name"),
)
RELATION = gauge(
    "plumbline_disk_relation_info",
    "device (dm, md, bcache) stands on lower: what goes to device counts on lower once more.",
    ("device", "lower"),
)
USE_SPECS: tuple[MetricSpec, ...] = (USE, RELATION)

_SEEN = ("device", "serial")
PRESENT = gauge(
    "plumbline_disk_present",
    "0: the disk was here within the last 7 days and is not any more. Built-in disks only (no software or removable"
    " devices), and none that are excluded.",
    _SEEN,
)
LAST_SEEN = gauge("plumbline_disk_last_seen_timestamp_seconds", "When the disk was last here, Unix time.", _SEEN)
PRESENCE_SPECS: tuple[MetricSpec, ...] = (PRESENT, LAST_SEEN)


def samples(disks: Iterable[DiskStats]) -> Iterator[Sample]:
    """Discards and flushes have no series on kernels that don't count them."""
    for disk in disks:
        device, read, write = (disk.name,), (disk.name, "read"), (disk.name, "write")
        yield IO, read, disk.reads
        yield IO, write, disk.writes
        yield IO_MERGED, read, disk.reads_merged
        yield IO_MERGED, write, disk.writes_merged
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
            if disk.discards_merged is not None:
                yield IO_MERGED, discard, disk.discards_merged
            yield IO_BYTES, discard, disk.sectors_discarded * _SECTOR_BYTES
            yield IO_SECONDS, discard, disk.discarding_ms / 1000
        if disk.flushes is not None and disk.flushing_ms is not None:
            flush = (disk.name, "flush")
            yield IO, flush, disk.flushes
            yield IO_SECONDS, flush, disk.flushing_ms / 1000


def device_samples(devices: Iterable[BlockDevice], osds: Mapping[str, str]) -> Iterator[Sample]:
    """What each disk is. ``rotational``: the kernel's flag, 0 or 1; judge by ``device_class``. ``osds``: by disk."""
    for device in devices:
        name = device.name
        labels = (
            name,
            device.model or "",
            device.serial or "",
            device.firmware or "",
            "" if device.rotational is None else str(int(device.rotational)),
            device.transport or "",
            device.device_class or "",
            osds.get(name, ""),
        )
        yield INFO, labels, 1
        yield SIZE, (name,), device.size_bytes
        yield from known(
            (name,),
            (LOGICAL_BLOCK, device.logical_block_bytes),
            (PHYSICAL_BLOCK, device.physical_block_bytes),
            (QUEUE_DEPTH, device.queue_depth),
        )
        if device.zoned is not None:
            yield ZONED, (name, device.zoned), 1


def use_samples(users: DiskUsers, keep: Callable[[str], bool]) -> Iterator[Sample]:
    """Uses and relations of the disks for which ``keep`` holds."""
    for device, kind, name in users.uses:
        if keep(device):
            yield USE, (device, kind, name), 1
    for device, lower in users.tree.relations():
        if keep(device) and keep(lower):
            yield RELATION, (device, lower), 1


def presence_samples(disks: Iterable[DiskSeen]) -> Iterator[Sample]:
    """Two samples for each disk that is or was here."""
    for disk in disks:
        labels = (disk.device, disk.serial)
        yield PRESENT, labels, int(disk.present)
        yield LAST_SEEN, labels, disk.last_seen_ts


def _read_devices(host: Host, _skip: SkipHook) -> tuple[tuple[BlockDevice, ...], Mapping[str, str]]:
    parts = host.parts
    return tuple(each for each in parts.devices() if host.disks(each.name)), parts.storage.osds


DISK: Collector[Host, tuple[DiskStats, ...]] = Collector(
    "disk",
    SPECS,
    lambda host, _skip: read_whole_disks(host.parts.roots, host.counted),
    samples,
    origin="`/proc/diskstats`",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
DEVICE = Collector(
    "device",
    DEVICE_SPECS,
    _read_devices,
    lambda reading: device_samples(*reading),
    origin="`/sys/block`, udev's database",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
DISKUSE: Collector[Host, tuple[DiskUsers, WholeDisks]] = Collector(
    "diskuse",
    USE_SPECS,
    lambda host, _skip: (host.parts.storage.users.value, host.disks),
    lambda reading: use_samples(*reading),
    origin="`/sys/block/*/holders`, device-mapper names, LVM's tags, `/var/lib/ceph/osd`, mounts, `/proc/swaps`",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
DISKPRESENCE: Collector[Host, tuple[DiskSeen, ...]] = Collector(
    "diskpresence",
    PRESENCE_SPECS,
    lambda host, _skip: tuple(host.parts.disks_seen()),
    presence_samples,
    origin="`/sys/block` against the daemon's own memory of a week",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
