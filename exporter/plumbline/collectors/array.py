"""Arrays and paths as metrics: md, ZFS, multipath; sizes in bytes, progress as a ratio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plumbline.collectors.host import Host, slot_value
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, known
from plumbline.sources.arrays import Arrays
from plumbline.sources.disk.md import MdArray, MdReading
from plumbline.sources.disk.multipath import MultipathDisk
from plumbline.sources.disk.zfs import NO_ZFS, ZfsReading
from plumbline.sources.disk.zpool_status import PoolStatus

_DEVICE = ("device",)

MD_INFO = gauge(
    "plumbline_md_info",
    "A software RAID; level container holds the disks of arrays with external metadata, state is the kernel's"
    " array_state.",
    ("device", "level", "state"),
)
MD_DISKS = gauge("plumbline_md_disks", "Disks that the array is made of when it is whole.", _DEVICE)
MD_DEGRADED = gauge(
    "plumbline_md_degraded_disks",
    "Disks that the array misses, also while a new one is being filled. Absent for raid0 and linear.",
    _DEVICE,
)
MD_REDUNDANT = gauge(
    "plumbline_md_redundant_disks",
    "Disks that the array may miss without loss of data, whichever they are: raid5 1, raid6 2, raid0 0.",
    _DEVICE,
)
MD_SYNC_INFO = gauge(
    "plumbline_md_sync_info",
    "What the array is doing to itself: idle, resync, recover, check, repair, reshape, frozen.",
    ("device", "action"),
)
MD_SYNC_RATIO = gauge(
    "plumbline_md_sync_ratio", "How much of that is done, 0 to 1; only while it is under way.", _DEVICE
)
MD_SYNC_RATE = gauge("plumbline_md_sync_bytes_per_second", "How fast that goes; only while it is under way.", _DEVICE)
MD_MISMATCHES = gauge(
    "plumbline_md_mismatch_sectors",
    "512-byte sectors, by whole units of I/O, that did not agree in the last check or repair. On raid1 and raid10 swap"
    " and mapped files make harmless ones.",
    _DEVICE,
)
MD_MEMBER_INFO = gauge(
    "plumbline_md_member_info",
    "A member: the kernel's words for its state (in_sync, faulty, spare …) and the slot it fills (none: a spare).",
    ("device", "member", "state", "slot"),
)
MD_MEMBER_ERRORS = gauge(
    "plumbline_md_member_errors",
    "Read errors on this member that were corrected from the others; about, as the array remembers them.",
    ("device", "member"),
)
POOL_INFO = gauge("plumbline_zfs_pool_info", "A ZFS pool and its state.", ("pool", "state"))
POOL_HEALTHY = gauge("plumbline_zfs_pool_healthy", "1: the pool's state is ONLINE.", ("pool",))
POOL_DATA_ERRORS = gauge(
    "plumbline_zfs_pool_data_errors", "Damaged files and metadata that zpool status counts.", ("pool",)
)
STATUS_AVAILABLE = gauge(
    "plumbline_zfs_status_available",
    "1: zpool status answers. 0: it is not there, not allowed or hangs; devices' states and errors are not known.",
)
VDEV_ERRORS = counter(
    "plumbline_zfs_vdev_errors_total",
    "Errors since the pool was imported or cleared. vdev is the path below the pool (raidz1-0/sdb), kind read, write"
    " or checksum.",
    ("pool", "vdev", "kind"),
)
VDEV_HEALTHY = gauge("plumbline_zfs_vdev_healthy", "1: ONLINE, or a spare that is AVAIL or INUSE.", ("pool", "vdev"))
ARC_HITS = counter("plumbline_zfs_arc_hits_total", "Reads that ZFS's cache answered: no disk saw them.")
ARC_MISSES = counter("plumbline_zfs_arc_misses_total", "Reads that had to go to the disks.")
ARC_BYTES = gauge("plumbline_zfs_arc_bytes", "Memory that ZFS's cache holds.")
ARC_MAX = gauge("plumbline_zfs_arc_max_bytes", "What the cache may grow to.")
MULTIPATH_INFO = gauge(
    "plumbline_multipath_info",
    "A disk with several paths; name is device-mapper's (mpatha) or the NVMe subsystem's.",
    ("device", "name"),
)
PATHS = gauge("plumbline_multipath_paths", "Paths that the kernel has to the disk.", _DEVICE)
PATHS_USABLE = gauge("plumbline_multipath_paths_usable", "Those of them that I/O can take now.", _DEVICE)
PATH_INFO = gauge(
    "plumbline_multipath_path_info",
    "A path and its state: running, offline, transport-offline … of SCSI; live, connecting … and ANA's optimized,"
    " inaccessible … of NVMe.",
    ("device", "path", "state", "transport", "address"),
)
SPECS = declared(globals())

_KIB = 1024
_ONLINE = "ONLINE"


def md_samples(reading: MdReading) -> Iterator[Sample]:
    """About six samples per array and two per member."""
    for array in reading.arrays:
        yield from _array_samples(array)


def _array_samples(array: MdArray) -> Iterator[Sample]:
    labels = (array.device,)
    yield MD_INFO, (array.device, array.level, array.state), 1
    yield from known(
        labels,
        (MD_DISKS, array.disks),
        (MD_DEGRADED, array.degraded_disks),
        (MD_REDUNDANT, array.redundant_disks),
        (MD_MISMATCHES, array.mismatch_sectors),
    )
    if array.sync_action:
        yield MD_SYNC_INFO, (array.device, array.sync_action), 1
    if array.sync_ratio is not None:
        yield MD_SYNC_RATIO, labels, array.sync_ratio
        if array.sync_speed_kib_per_second is not None:
            yield MD_SYNC_RATE, labels, array.sync_speed_kib_per_second * _KIB
    for member in array.members:
        yield MD_MEMBER_INFO, (array.device, member.device, member.state, member.slot), 1
        yield from known((array.device, member.device), (MD_MEMBER_ERRORS, member.errors))


def zfs_samples(reading: ZfsReading, statuses: Iterable[PoolStatus] | None) -> Iterator[Sample]:
    """Pools' states from the module (from the tool where the module is too old to report them), devices from the tool.

    ``statuses`` is ``None`` when the tool does not answer.
    """
    said = {status.name: status for status in statuses or () if status.name in reading.pools}
    if reading.pools:
        yield STATUS_AVAILABLE, (), 0 if statuses is None else 1
    for pool, now in reading.pools.items():
        state = now or (said[pool].state if pool in said else "")
        if state:
            yield POOL_INFO, (pool, state), 1
            yield POOL_HEALTHY, (pool,), 1 if state == _ONLINE else 0
    for status in said.values():
        yield from known((status.name,), (POOL_DATA_ERRORS, status.data_errors))
        for vdev in status.vdevs:
            labels = (status.name, vdev.path)
            if vdev.healthy is not None:
                yield VDEV_HEALTHY, labels, int(vdev.healthy)
            for kind, count in vdev.errors.items():
                yield VDEV_ERRORS, (*labels, kind), count
    arc = reading.arc
    if arc is not None:
        yield from known(
            (), (ARC_HITS, arc.hits), (ARC_MISSES, arc.misses), (ARC_BYTES, arc.size_bytes), (ARC_MAX, arc.max_bytes)
        )


def multipath_samples(disks: Iterable[MultipathDisk]) -> Iterator[Sample]:
    """Three samples per disk and one per path."""
    for disk in disks:
        labels = (disk.device,)
        yield MULTIPATH_INFO, (disk.device, disk.name), 1
        yield PATHS, labels, len(disk.paths)
        yield PATHS_USABLE, labels, disk.usable
        for path in disk.paths:
            yield PATH_INFO, (disk.device, path.name, path.state, path.transport, path.address), 1


def _samples(arrays: Arrays) -> Iterator[Sample]:
    yield from md_samples(arrays.md or MdReading(()))
    yield from zfs_samples(arrays.zfs or NO_ZFS, arrays.zpools)
    yield from multipath_samples(arrays.multipath or ())


def _read(host: Host, skip: SkipHook) -> Arrays:
    """Reads each kind separately: an array that hangs must not hide the pools."""
    storage = host.parts.storage
    md = slot_value(storage.md, "md arrays", skip)
    for item, reason in md.skipped if md else ():
        skip(item, reason)
    return Arrays(
        md,
        slot_value(storage.zfs, "ZFS pools", skip),
        slot_value(storage.zpools, "zpool status", skip),
        slot_value(storage.multipath, "multipath disks", skip),
    )


COLLECTOR = Collector(
    "array",
    SPECS,
    _read,
    _samples,
    skip_reasons=ITEM_REASONS,
    origin="`/sys/block/md*/md`, `/proc/spl/kstat/zfs`, `zpool status`, device-mapper and NVMe multipath in sysfs",
    sized_by=("software array, multipath disk",),
)
