"""Arrays and paths: the readings, with ZFS pools merged from the module and the tool, and the checks."""

import shlex
from collections.abc import Iterable, Iterator

from msgspec import Struct

from plumbline.checks import fixes
from plumbline.checks.model import Fix, Severity, Verdict, check
from plumbline.checks.text import plural
from plumbline.core.words import first_few
from plumbline.metrics.snapshot import Readings
from plumbline.sources.arrays import Arrays
from plumbline.sources.disk.md import MdArray
from plumbline.sources.disk.multipath import UNREADABLE, DiskPath, MultipathDisk
from plumbline.sources.disk.zfs import PoolStatus, Vdev


class ZfsPool(Struct, frozen=True):
    """A ZFS pool. ``errors`` and ``unhealthy`` are ``None`` where zpool status could not be read."""

    name: str
    state: str
    data_errors: int | None = None
    errors: tuple[Vdev, ...] | None = None  # innermost devices that have counted errors
    unhealthy: tuple[str, ...] | None = None  # innermost devices that are neither ONLINE nor a usable spare


class ArrayFacts(Struct, frozen=True):
    raids: tuple[MdArray, ...] = ()
    pools: tuple[ZfsPool, ...] = ()
    multipaths: tuple[MultipathDisk, ...] = ()


def array_facts(readings: Readings) -> ArrayFacts:
    arrays = readings.or_empty(Arrays)
    return ArrayFacts(arrays.md.arrays if arrays.md else (), tuple(_pools(arrays)), arrays.multipath or ())


def _pools(arrays: Arrays) -> Iterator[ZfsPool]:
    statuses = {status.name: status for status in arrays.zpools or ()}
    for name, now in arrays.zfs.pools.items() if arrays.zfs else ():
        status = statuses.get(name)
        state = now or (status.state if status else "")
        if state:
            yield _pool(name, state, status)


def _pool(name: str, state: str, status: PoolStatus | None) -> ZfsPool:
    if status is None or all(vdev.healthy is None for vdev in status.vdevs):
        return ZfsPool(name, state, status.data_errors if status else None)
    errors = _innermost(vdev for vdev in status.vdevs if any(vdev.errors.values()))
    unhealthy = _innermost(vdev for vdev in status.vdevs if vdev.healthy is False)
    return ZfsPool(name, state, status.data_errors, tuple(errors), tuple(vdev.path for vdev in unhealthy))


def _innermost(vdevs: Iterable[Vdev]) -> Iterator[Vdev]:
    """Without groups whose members are more specific. Names may contain slashes (files), so compare up to a slash."""
    every = list(vdevs)
    for vdev in every:
        if not any(other.path.startswith(f"{vdev.path}/") for other in every):
            yield vdev


# --- software RAID: is every disk there, and do the copies agree?

_REBUILDS = frozenset({"recover", "resync", "reshape"})
_MIRRORS = frozenset({"raid1", "raid10"})
_PARITIES = frozenset({"raid4", "raid5", "raid6"})


@check(
    "array.md-degraded",
    "Have every disk of a software RAID in place.",
    "md arrays with redundancy, and those that do not run. Containers and stopped arrays are not judged.",
    "An array with a missing disk is slower and has lost redundancy.",
    "Documentation/admin-guide/md.rst (array_state, degraded); mdadm(8)",
    Severity.WARNING,
    "mdadm --detail /dev/<array>",
)
def degraded(facts: ArrayFacts) -> Iterator[Verdict]:
    for raid in facts.raids:
        if raid.level == "container" or raid.state == "clear":
            continue  # a container holds disks and no data; a cleared array is no longer one
        if raid.state in ("inactive", "broken"):
            caution = "This only shows. Once the missing disks are back: mdadm --stop, then mdadm --assemble --scan."
            actual, because = f"{raid.state}, with {plural(len(raid.members), 'disk')} present", "It cannot be read."
            fix = Fix(f"mdadm --detail {_device(raid)}", caution=caution)
            yield Verdict(raid.device, actual, "running", fix, Severity.CRITICAL, because)
        elif raid.degraded_disks is not None:
            yield _missing(raid, raid.degraded_disks)


def _missing(raid: MdArray, missing: int) -> Verdict:
    whole = "all disks in place" if raid.disks is None else f"all {plural(raid.disks, 'disk')} in place"
    if not missing:
        return Verdict(raid.device, whole, whole)
    faulty = [member.device for member in raid.members if member.faulty]
    actual = f"{raid.level}, {plural(missing, 'disk')} missing"
    if faulty:
        actual += f" (faulty: {first_few(faulty)})"
    severity, because = Severity.WARNING, ""
    if raid.redundant_disks is not None:
        left = raid.redundant_disks - missing
        if left <= 0:
            severity, because = Severity.CRITICAL, "Losing one more disk can lose the data."
        else:
            because = f"It can lose {left} more."
    if raid.sync_action in _REBUILDS:
        done = "" if raid.sync_ratio is None else f", {raid.sync_ratio:.1%} done"
        actual += f"; {raid.sync_action}{done}"
        fix = Fix("cat /proc/mdstat", caution="This only shows: the array is being rebuilt; no action is needed.")
    else:
        fix = _refill(raid, faulty)
    return Verdict(raid.device, actual, whole, fix, severity, because)


def _refill(raid: MdArray, faulty: list[str]) -> Fix:
    """A disk that merely dropped out can be re-added; only a faulty member shows which one it was."""
    device = _device(raid)
    if not faulty:
        caution = (
            "This only shows what is missing. Bring back a disk that dropped out with mdadm "
            f"{device} --re-add /dev/<disk>; use --add for a new one."
        )
        return Fix(f"mdadm --detail {device}", caution=caution)
    names = " ".join(shlex.quote(f"/dev/{name.replace('!', '/')}") for name in faulty)
    return Fix(
        f"mdadm {device} --remove {names} && mdadm {device} --re-add {names}",
        caution="Only if the disk itself is healthy (smartctl -H, dmesg): otherwise replace it, and --add the new one.",
    )


@check(
    "array.md-mismatch",
    "Have copies and parity agree.",
    "md arrays of level raid1, raid4, raid5, raid6 and raid10, after a check or repair.",
    "Where they disagree, the data read depends on the disk, and a rebuild may write the wrong data.",
    "Documentation/admin-guide/md.rst (mismatch_cnt); md(4) (scrubbing and mismatches)",
    Severity.WARNING,
    "echo repair > /sys/block/<array>/md/sync_action",
)
def mismatch(facts: ArrayFacts) -> Iterator[Verdict]:
    expected = "no sectors that disagree"
    for raid in facts.raids:
        mirror = raid.level in _MIRRORS
        if raid.mismatch_sectors is None or not (mirror or raid.level in _PARITIES):
            continue
        if not raid.mismatch_sectors:
            yield Verdict(raid.device, expected, expected)
            continue
        caution = (
            "First look for a failing disk (smartctl, dmesg). A mirror keeps one copy without knowing whether it is "
            "the right one; parity is computed anew from the data."
        )
        fix = Fix(f"echo repair > /sys/block/{shlex.quote(raid.device)}/md/sync_action", caution=caution)
        actual = f"{raid.level}, {plural(raid.mismatch_sectors, 'sector')} disagree"
        because = (
            "On mirrors, swap and memory-mapped files cause harmless ones: pages that changed while they were being "
            "written, and are never read again."
        )
        yield Verdict(
            raid.device, actual, expected, fix, Severity.INFO if mirror else Severity.WARNING, because if mirror else ""
        )


def _device(raid: MdArray) -> str:
    return shlex.quote(f"/dev/{raid.device}")


# --- ZFS pools: do they work, and have their devices counted errors?

_ONLINE = "ONLINE"


@check(
    "array.zfs-pool",
    "Have every ZFS pool and its devices online.",
    "Imported pools; their devices too where zpool status is available.",
    "A degraded pool has lost redundancy; a faulted or suspended one blocks every process that uses it.",
    "zpoolconcepts(7) (device failure and recovery); zpool-status(8)",
    Severity.WARNING,
    "zpool status -v <pool>",
)
def pool_state(facts: ArrayFacts) -> Iterator[Verdict]:
    for pool in facts.pools:
        if pool.state == _ONLINE and not pool.unhealthy:
            yield Verdict(pool.name, _ONLINE, _ONLINE)
            continue
        actual = f"{pool.state}, not working: {first_few(pool.unhealthy)}" if pool.unhealthy else pool.state
        name = shlex.quote(pool.name)
        if pool.state == "SUSPENDED":
            caution = "Only once its devices are back (dmesg, cables): until then all reads and writes wait."
            fix = Fix(f"zpool clear {name}", caution=caution)
        else:
            caution = "This only shows. For a device that came back: zpool online; for a broken one: zpool replace."
            fix = Fix(f"zpool status -v {name}", caution=caution)
        serves = pool.state in (_ONLINE, "DEGRADED")
        because = "" if serves else "It serves nothing until its devices are back."
        yield Verdict(pool.name, actual, _ONLINE, fix, Severity.WARNING if serves else Severity.CRITICAL, because)


@check(
    "array.zfs-errors",
    "Have no errors on a pool's devices.",
    "Pools whose devices' error counts are known (zpool status).",
    "ZFS repaired what it could; a device with errors tends to produce more.",
    "zpool-status(8); zpool-clear(8)",
    Severity.WARNING,
    "zpool status -v <pool>",
)
def pool_errors(facts: ArrayFacts) -> Iterator[Verdict]:
    expected = "no errors counted"
    for pool in facts.pools:
        if pool.errors is None:
            continue
        if not pool.errors and not pool.data_errors:
            yield Verdict(pool.name, expected, expected)
            continue
        caution = (
            "This only shows, including the damaged files. Then: check cables and smartctl, zpool replace or zpool "
            "clear, zpool scrub."
        )
        fix = Fix(f"zpool status -v {shlex.quote(pool.name)}", caution=caution)
        severity = Severity.CRITICAL if pool.data_errors else Severity.WARNING
        because = "Redundancy was not enough: restore the damaged data from a backup." if pool.data_errors else ""
        yield Verdict(pool.name, "; ".join(_counted(pool)), expected, fix, severity, because)


def _counted(pool: ZfsPool) -> Iterator[str]:
    if pool.data_errors:
        yield plural(pool.data_errors, "damaged object")
    if pool.errors:
        yield first_few(map(_of_vdev, pool.errors))


def _of_vdev(vdev: Vdev) -> str:
    return f"{vdev.path} ({', '.join(f'{count:,} {kind}' for kind, count in vdev.errors.items() if count)})"


# --- disks with several paths: is every path usable?


@check(
    "array.path-lost",
    "Have every path to a disk working.",
    "Disks of dm-multipath and NVMe multipath. An array's passive side (ANA inaccessible) counts as working; one "
    "path alone is not enough. The daemon remembers a path that disappeared for a week.",
    "With one path left, the next cable failure takes the disk away, and until then it has half the bandwidth.",
    "multipath(8); nvme-list-subsys(1); Documentation/admin-guide/nvme-multipath.rst",
    Severity.WARNING,
    "multipath -ll <name>",
)
def path_lost(facts: ArrayFacts) -> Iterator[Verdict]:
    for disk in facts.multipaths:
        unreadable = sum(path.state == UNREADABLE for path in disk.paths)
        lost = disk.lost
        if unreadable and not lost:
            continue  # an unreadable state means neither usable nor lost
        several = len(disk.paths) > 1
        expected = f"all {len(disk.paths)} paths working" if several else "two paths or more"
        if disk.usable and not lost:
            yield Verdict(disk.device, expected, expected) if several else _single_path(disk, expected)
            continue
        faults = (
            f"{disk.usable} of {len(disk.paths)} usable",
            first_few(map(_path_text, lost)) if lost else "",
            f"{unreadable} with an unreadable state" if unreadable else "",
        )
        none_left = not disk.usable and not unreadable
        severity = Severity.CRITICAL if none_left else Severity.WARNING
        because = "No path is left: I/O waits or fails." if none_left else ""
        yield Verdict(disk.device, "; ".join(filter(None, faults)), expected, _list_paths(disk), severity, because)


def _single_path(disk: MultipathDisk, expected: str) -> Verdict:
    """Whoever looks without the daemon's memory does not see that a path was removed.

    NVMe over fabrics commonly has one portal; device-mapper makes a map of two paths or more.
    """
    severity = Severity.INFO if disk.device.startswith("nvme") else Severity.WARNING
    because = "The others are gone, or were never set up."
    return Verdict(disk.device, "1 path", expected, _list_paths(disk), severity, because)


def _path_text(path: DiskPath) -> str:
    return f"{path.name} {path.state}{f' ({path.address})' if path.address else ''}"


def _list_paths(disk: MultipathDisk) -> Fix:
    caution = "This only shows. The fault is at the cable, the port, the switch or the array's controller."
    if disk.device.startswith("nvme"):
        return Fix(f"nvme list-subsys {shlex.quote(f'/dev/{disk.device}')}", caution=caution)
    return Fix(f"multipath -ll {shlex.quote(disk.name)}", caution=caution)


@check(
    "array.nvme-iopolicy",
    "Use all paths of an NVMe disk on a network.",
    "Disks of NVMe over fabrics with two usable paths or more. The path selector of device-mapper is not in sysfs: "
    "multipath-tools' default is the documented service-time, which uses all paths.",
    "With numa, the kernel's default, each NUMA node uses one path, and the other ports idle. round-robin and, since "
    "Linux 6.11, queue-depth use all optimized paths.",
    "Wroclaw 2017, 3 (DM-Multipath with service-time); Documentation/admin-guide/nvme-multipath.rst",
    Severity.INFO,
    "echo round-robin > /sys/class/nvme-subsystem/<subsystem>/iopolicy",
)
def nvme_policy(facts: ArrayFacts) -> Iterator[Verdict]:
    for disk in facts.multipaths:
        if not disk.policy or disk.usable < 2 or any(path.transport in ("", "pcie") for path in disk.paths):
            continue
        rule = 'ACTION=="add|change", SUBSYSTEM=="nvme-subsystem", ATTR{iopolicy}="round-robin"'
        fix = Fix(
            f"echo round-robin > {shlex.quote(f'/sys/class/nvme-subsystem/{disk.name}/iopolicy')}",
            fixes.udev("nvme", rule),
            "The rule is for every NVMe subsystem. Where the paths differ in speed, queue-depth is the better choice.",
        )
        yield Verdict(disk.device, disk.policy, "round-robin or queue-depth", fix if disk.policy == "numa" else None)


CHECKS = (degraded, mismatch, pool_state, pool_errors, path_lost, nvme_policy)
