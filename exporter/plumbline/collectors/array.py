"""Arrays and paths as metrics: md, ZFS, multipath; sizes in bytes, progress as a ratio."""

from collections.abc import Iterable, Iterator

from plumbline.collectors.host import Host, slot_value
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, known
from plumbline.sources.arrays import Arrays
from plumbline.sources.disk.md import MdReading
from plumbline.sources.disk.multipath import MultipathDisk
from plumbline.sources.disk.zfs import NO_ZFS, PoolStatus, ZfsReading

_DEVICE = ("device",)

MD_INFO = gauge(
    "plumbline_md_info",
    "A software RAID. raid_level container holds disks of arrays with external metadata; state is array_state.",
    ("device", "raid_level", "state"),
)
MD_DISKS = gauge("plumbline_md_disks", "Number of disks in the complete array.", _DEVICE)
MD_DEGRADED = gauge(
    "plumbline_md_degraded_disks", "Missing disks, including one being rebuilt. Absent for raid0 and linear.", _DEVICE
)
MD_REDUNDANT = gauge("plumbline_md_redundant_disks", "Disks that may fail without loss: raid5 1, raid6 2.", _DEVICE)
MD_SYNC_INFO = gauge(
    "plumbline_md_sync_info", "Action: idle, resync, recover, check, repair, reshape, frozen.", ("device", "action")
)
MD_SYNC_RATIO = gauge("plumbline_md_sync_ratio", "Progress of the current action, 0 to 1; only while it runs.", _DEVICE)
MD_SYNC_RATE = gauge("plumbline_md_sync_bytes_per_second", "Speed of the current action; only while it runs.", _DEVICE)
MD_MISMATCHES = gauge(
    "plumbline_md_mismatch_sectors",
    "512-byte sectors that disagreed in the last check or repair. Swap and mapped files cause harmless ones on"
    " mirrors.",
    _DEVICE,
)
MD_MEMBER_INFO = gauge(
    "plumbline_md_member_info",
    "A member with the kernel's state (in_sync, faulty, spare …) and its raid_slot (none: a spare).",
    ("device", "member", "state", "raid_slot"),
)
MD_MEMBER_ERRORS = gauge(
    "plumbline_md_member_errors", "Approximate number of read errors corrected from other disks.", ("device", "member")
)
POOL_INFO = gauge("plumbline_zfs_pool_info", "A ZFS pool and its state.", ("pool", "state"))
POOL_HEALTHY = gauge("plumbline_zfs_pool_healthy", "1: the pool's state is ONLINE.", ("pool",))
POOL_DATA_ERRORS = gauge("plumbline_zfs_pool_data_errors", "Damaged files and metadata (zpool status).", ("pool",))
STATUS_AVAILABLE = gauge(
    "plumbline_zfs_status_available",
    "1: zpool status answers. 0: it is missing, not permitted or hangs; device states and errors are unknown.",
)
VDEV_ERRORS = counter(
    "plumbline_zfs_vdev_errors_total",
    "Errors since import or clear. vdev is the path in the pool (raidz1-0/sdb); error is read, write or checksum.",
    ("pool", "vdev", "error"),
)
VDEV_HEALTHY = gauge("plumbline_zfs_vdev_healthy", "1: ONLINE, or a spare that is AVAIL or INUSE.", ("pool", "vdev"))
ARC_HITS = counter("plumbline_zfs_arc_hits_total", "Reads served from ZFS's cache, without a disk access.")
ARC_MISSES = counter("plumbline_zfs_arc_misses_total", "Reads that needed a disk access.")
ARC_BYTES = gauge("plumbline_zfs_arc_bytes", "Memory used by ZFS's cache.")
ARC_MAX = gauge("plumbline_zfs_arc_max_bytes", "Maximum size of the cache.")
MULTIPATH_INFO = gauge(
    "plumbline_multipath_info",
    "A multipath disk; multipath_name from device-mapper or the NVMe subsystem.",
    ("device", "multipath_name"),
)
PATHS = gauge("plumbline_multipath_paths", "Paths to the disk, with those that disappeared within a week.", _DEVICE)
PATHS_USABLE = gauge("plumbline_multipath_usable_paths", "Paths that can take I/O now.", _DEVICE)
PATHS_LOST = gauge(
    "plumbline_multipath_lost_paths",
    "Paths that are broken or disappeared. A path on an array's passive side (ANA inaccessible) is neither lost nor"
    " usable.",
    _DEVICE,
)
PATH_INFO = gauge(
    "plumbline_multipath_path_info",
    "A path and its SCSI state (running, offline …), NVMe state (live, connecting …) or ANA state (optimized …); gone:"
    " it disappeared.",
    ("device", "path", "state", "transport", "path_address"),
)

_KIB = 1024
_ONLINE = "ONLINE"


def md_samples(reading: MdReading) -> Iterator[Sample]:
    for array in reading.arrays:
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
    """Pools' states come from the module, or from the tool where the module is too old to report them; devices come
    from the tool. ``statuses``: ``None`` when the tool does not answer."""
    answers = {status.name: status for status in statuses or () if status.name in reading.pools}
    if reading.pools:
        yield STATUS_AVAILABLE, (), 0 if statuses is None else 1
    for pool, now in reading.pools.items():
        state = now or (answers[pool].state if pool in answers else "")
        if state:
            yield POOL_INFO, (pool, state), 1
            yield POOL_HEALTHY, (pool,), 1 if state == _ONLINE else 0
    for status in answers.values():
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
    for disk in disks:
        labels = (disk.device,)
        yield MULTIPATH_INFO, (disk.device, disk.name), 1
        yield PATHS, labels, len(disk.paths)
        yield PATHS_USABLE, labels, disk.usable
        yield PATHS_LOST, labels, len(disk.lost)
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
    declared(globals()),
    _read,
    _samples,
    skip_reasons=ITEM_REASONS,
    origin="`/sys/block/md*/md`, `/proc/spl/kstat/zfs`, `zpool status`, device-mapper and NVMe multipath in sysfs",
    sized_by=("software array, multipath disk",),
)
