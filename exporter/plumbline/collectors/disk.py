"""Disks as samples: the kernel's counters, what each disk is, who uses it, and whether it is still there."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, gauge, known
from plumbline.probes.run.state import DisksSeen
from plumbline.sources.disk.block import BlockDevices, DevicesReading
from plumbline.sources.disk.diskstats import SECTOR_BYTES, DiskStats, DiskStatsReading, read_whole_disks
from plumbline.sources.disk.diskusers import DiskUsesReading

_OPERATION = ("device", "operation")

IO = counter("plumbline_disk_ios_total", "Requests completed, by operation.", _OPERATION)
IO_BYTES = counter("plumbline_disk_io_bytes_total", "Bytes read, written or discarded.", _OPERATION)
IO_SECONDS = counter(
    "plumbline_disk_io_seconds_total",
    "Time from submission to completion, summed over requests; divided by requests: their mean latency.",
    _OPERATION,
)
BUSY_SECONDS = counter(
    "plumbline_disk_busy_seconds_total",
    "Time with at least one request in flight; no sign of saturation on parallel disks.",
    ("device",),
)
QUEUE_LENGTH = gauge("plumbline_disk_queue_length", "Requests in flight now.", ("device",))
WEIGHTED_SECONDS = counter(
    "plumbline_disk_io_weighted_seconds_total", "Time weighted by requests in flight; rate: mean queue.", ("device",)
)
IO_MERGED = counter("plumbline_disk_ios_merged_total", "Requests merged into one already waiting.", _OPERATION)

INFO = gauge(
    "plumbline_disk_info",
    "Identity of the disk, always 1; empty labels are unknown.",
    ("device", "model", "serial", "firmware", "rotational", "transport", "device_class", "osd"),
)
SIZE = gauge("plumbline_disk_size_bytes", "Capacity of the disk.", ("device",))
LOGICAL_BLOCK = gauge("plumbline_disk_logical_block_bytes", "Smallest unit the disk can be addressed in.", ("device",))
PHYSICAL_BLOCK = gauge("plumbline_disk_physical_block_bytes", "Smallest write without reading first.", ("device",))
QUEUE_DEPTH = gauge("plumbline_disk_queue_depth", "Commands a SCSI, SAS or SATA disk takes at once.", ("device",))
ZONED = gauge(
    "plumbline_disk_zoned_info",
    "A zoned disk (SMR, ZNS): host-managed (must be written in order) or host-aware (should be).",
    ("device", "zone_model"),
)

USE = gauge(
    "plumbline_disk_use_info",
    "Who uses the disk or its partitions. use: osd (data), osd-db, osd-wal, lvm, dm, md, zfs, bcache,"
    " filesystem, swap; an empty user: unknown.",
    ("device", "use", "user"),
)
RELATION = gauge("plumbline_disk_relation_info", "device uses lower; I/O counts on both.", ("device", "lower"))

_SEEN = ("device", "serial")
PRESENT = gauge("plumbline_disk_present", "0: gone within the last 7 days. Built-in, non-excluded disks only.", _SEEN)
LAST_SEEN = gauge("plumbline_disk_last_seen_timestamp_seconds", "When the disk was last present, Unix time.", _SEEN)


def samples(disks: DiskStatsReading) -> Iterator[Sample]:
    """Discards and flushes have no series on kernels that don't count them."""
    for disk in disks:
        device = (disk.name,)
        yield BUSY_SECONDS, device, disk.busy_ms / 1000
        yield QUEUE_LENGTH, device, in_flight(disk)
        yield WEIGHTED_SECONDS, device, disk.weighted_ms / 1000
        for operation, requests, merged, sectors, ms in (
            ("read", disk.reads, disk.reads_merged, disk.sectors_read, disk.reading_ms),
            ("write", disk.writes, disk.writes_merged, disk.sectors_written, disk.writing_ms),
            ("discard", disk.discards, disk.discards_merged, disk.sectors_discarded, disk.discarding_ms),
            ("flush", disk.flushes, None, None, disk.flushing_ms),
        ):
            if requests is None or ms is None:
                continue
            labels = (disk.name, operation)
            yield IO, labels, requests
            yield IO_SECONDS, labels, ms / 1000
            if merged is not None:
                yield IO_MERGED, labels, merged
            if sectors is not None:
                yield IO_BYTES, labels, sectors * SECTOR_BYTES


def in_flight(disk: DiskStats) -> int:
    """Before Linux 5.0 requests that straddled a change of iostats made this negative, printed unsigned; since then the
    kernel itself shows such a value as 0."""
    return disk.in_flight if disk.in_flight < 2**31 else 0


def device_samples(reading: DevicesReading) -> Iterator[Sample]:
    """What each disk is. ``rotational``: the kernel's flag, 0 or 1; judge by ``device_class``."""
    for device in reading.devices:
        name = device.name
        labels = (
            name,
            device.model or "",
            device.serial or "",
            device.firmware or "",
            "" if device.rotational is None else str(int(device.rotational)),
            device.transport or "",
            device.device_class or "",
            reading.osds.get(name, ""),
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


def use_samples(reading: DiskUsesReading) -> Iterator[Sample]:
    users, keep = reading
    for device, kind, name in users.uses:
        if keep(device):
            yield USE, (device, kind, name), 1
    for device, lower in users.tree.relations():
        if keep(device) and keep(lower):
            yield RELATION, (device, lower), 1


def presence_samples(disks: DisksSeen) -> Iterator[Sample]:
    for disk in disks:
        labels = (disk.device, disk.serial)
        yield PRESENT, labels, int(disk.present)
        yield LAST_SEEN, labels, disk.last_seen_ts


def _read_devices(host: Host, _skip: SkipHook) -> DevicesReading:
    devices = tuple(device for device in host.parts.latest(BlockDevices) if host.disks(device.name))
    osds = host.parts.storage.osds
    return DevicesReading(devices, {device.name: osds[device.name] for device in devices if device.name in osds})


DISK: Collector[Host, DiskStatsReading] = Collector(
    "disk",
    (IO, IO_MERGED, IO_BYTES, IO_SECONDS, BUSY_SECONDS, QUEUE_LENGTH, WEIGHTED_SECONDS),
    lambda host, _skip: read_whole_disks(host.parts.roots, host.counted),
    samples,
    origin="`/proc/diskstats`",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
DEVICE = Collector(
    "device",
    (INFO, SIZE, LOGICAL_BLOCK, PHYSICAL_BLOCK, QUEUE_DEPTH, ZONED),
    _read_devices,
    device_samples,
    origin="`/sys/block`, udev's database",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
DISKUSE: Collector[Host, DiskUsesReading] = Collector(
    "diskuse",
    (USE, RELATION),
    lambda host, _skip: DiskUsesReading(host.parts.storage.users.value, host.disks),
    use_samples,
    origin="`/sys/block/*/holders`, device-mapper names, LVM's tags, `/var/lib/ceph/osd`, mounts, `/proc/swaps`",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
DISKPRESENCE: Collector[Host, DisksSeen] = Collector(
    "diskpresence",
    (PRESENT, LAST_SEEN),
    lambda host, _skip: host.parts.latest(DisksSeen),
    presence_samples,
    origin="`/sys/block` against the daemon's own memory of a week",
    sized_by=("disk or volume: counters, identity, queue, users",),
)
