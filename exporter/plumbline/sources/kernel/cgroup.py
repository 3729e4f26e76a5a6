"""Limits of a process's control group: on its I/O above the block layer, and on its CPU time.

https://docs.kernel.org/admin-guide/cgroup-v1/blkio-controller.html (``blkio.throttle.*``)
https://docs.kernel.org/admin-guide/cgroup-v2.html (``io.max``, ``cpu.max``, ``cpu.stat``)
https://docs.kernel.org/scheduler/sched-bwc.html (periods and throttled periods, the same names in both versions)

::

    /proc/<pid>/cgroup              7:blkio:/ceph/osd.1     0::/system.slice/ceph-osd@1.service
    blkio.throttle.write_iops_device                        io.max
    8:16 30                                                 8:16 rbps=max wbps=max riops=max wiops=30
    cpu.cfs_quota_us                                        cpu.max
    50000                                                   50000 100000
    cpu.stat                        nr_periods 1200
                                    nr_throttled 480

A limit of a group holds for all groups below it, so each group up to the root is read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TypeVar

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs

T = TypeVar("T")

IOPS, BPS = "iops", "bps"
_DEVICE = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")
_MAX = re.compile(r"([rw])(iops|bps)=(max|[0-9]{1,20})")
_OPERATIONS = {"r": "read", "w": "write"}


class IoLimit(Struct, frozen=True):
    """The most that one group may do to one device."""

    group: str  # its path below the hierarchy's root
    device: str  # the kernel's name, or ``major:minor`` where sysfs has none
    operation: str  # ``read`` or ``write``
    unit: str  # ``iops`` or ``bps`` (bytes a second)
    limit: int


class CpuQuota(Struct, frozen=True):
    """Counters of a group that has a quota. A throttled period is one in which it had to wait for the next."""

    group: str
    periods: int
    throttled: int


class GroupLimits(Struct, frozen=True):
    """Of several groups on the way to the root: the lowest limit of each kind, the quota of the innermost group."""

    io: tuple[IoLimit, ...] = ()
    cpu: CpuQuota | None = None


def parse_membership(text: str) -> dict[str, PurePosixPath]:
    """``/proc/<pid>/cgroup``: path by controllers as the kernel joins them (``cpu,cpuacct``); ``""`` is version 2.

    Paths outside of this process's control group namespace (``/../…``) are left out, and so are malformed lines.
    """
    paths = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and parts[2].startswith("/") and ".." not in parts[2].split("/"):
            paths[parts[1]] = PurePosixPath(parts[2].removesuffix(" (deleted)"))
    return paths


def parse_throttle(text: str, *, source: str) -> dict[str, int]:
    """One file of ``blkio.throttle``: limit by ``major:minor``; :class:`ParseError` for a malformed line."""
    limits = {}
    for number, line in enumerate(text.splitlines(), start=1):
        device, _, limit = line.partition(" ")
        if not _DEVICE.fullmatch(device) or not re.fullmatch(r"[0-9]{1,20}", limit):
            raise ParseError(source, f"not a limit of a device: {line[:80]!r}", line=number)
        limits[device] = int(limit)
    return limits


def parse_io_max(text: str, *, source: str) -> dict[tuple[str, str, str], int]:
    """``io.max``: limit by (``major:minor``, operation, unit); unknown keys are skipped."""
    limits = {}
    for number, line in enumerate(text.splitlines(), start=1):
        device, _, settings = line.partition(" ")
        if not _DEVICE.fullmatch(device):
            raise ParseError(source, f"not a limit of a device: {line[:80]!r}", line=number)
        for setting in settings.split():
            match = _MAX.fullmatch(setting)
            if match is None:
                if setting.partition("=")[0] in ("rbps", "wbps", "riops", "wiops"):
                    raise ParseError(source, f"not a limit: {setting[:40]!r}", line=number)
            elif match[3] != "max":
                limits[device, _OPERATIONS[match[1]], match[2]] = int(match[3])
    return limits


def parse_quota(text: str, *, source: str) -> bool:
    """Whether ``cpu.max`` (``50000 100000``) or ``cpu.cfs_quota_us`` (``50000``) sets a quota: ``max`` and -1 don't."""
    quota = text.strip().partition(" ")[0]
    if not re.fullmatch(r"max|-?[0-9]{1,20}", quota):
        raise ParseError(source, f"not a quota: {text[:40]!r}")
    return quota != "max" and int(quota) > 0


def parse_periods(text: str, *, source: str) -> tuple[int, int] | None:
    """Periods and throttled periods of ``cpu.stat``; ``None`` without them."""
    counts = {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, _, value = line.partition(" ")
        if name in ("nr_periods", "nr_throttled"):
            if not re.fullmatch(r"[0-9]{1,20}", value):
                raise ParseError(source, f"not a number: {line[:80]!r}", line=number)
            counts[name] = int(value)
    return (counts["nr_periods"], counts["nr_throttled"]) if len(counts) == 2 else None


def read_limits(roots: Roots, pid: int) -> GroupLimits | None:
    """``None`` where the process's groups can't be seen: another user's under hidepid, another namespace's."""
    data = sysfs.read_bytes(roots.proc / str(pid) / "cgroup")
    groups = parse_membership(data.decode("utf-8", "replace")) if data is not None else {}
    if not groups:
        return None
    base = roots.sys / "fs" / "cgroup"
    io: list[IoLimit] = []
    cpu: CpuQuota | None = None
    for controllers, path in groups.items():
        names = controllers.split(",")
        mounts = [base / controllers, *(base / name for name in names)] if controllers else [base / "unified", base]
        mount = next((mount for mount in mounts if mount.is_dir()), None)
        if mount is None:
            continue
        if not controllers:
            io += _of_groups(mount, path, lambda folder, group: _io_max(roots, folder, group))
        elif "blkio" in names:
            io += _of_groups(mount, path, lambda folder, group: _throttle(roots, folder, group))
        if cpu is None and (not controllers or "cpu" in names):
            cpu = next(_of_groups(mount, path, _quota), None)
    return GroupLimits(_lowest(io), cpu)


def group_number(roots: Roots, pid: int) -> int | None:
    """Inode number of the process's version 2 control group, by which ``sock_diag`` names it; ``None`` where it can't
    be seen, or is the root."""
    data = sysfs.read_bytes(roots.proc / str(pid) / "cgroup")
    path = parse_membership(data.decode("utf-8", "replace")).get("") if data is not None else None
    if path is None or path == PurePosixPath("/"):
        return None
    base = roots.sys / "fs" / "cgroup"
    for mount in (base / "unified", base):
        try:
            return (mount / str(path).lstrip("/")).stat().st_ino
        except OSError:
            continue
    return None


def _of_groups(mount: Path, path: PurePosixPath, read: Callable[[Path, str], Iterable[T]]) -> Iterator[T]:
    """What ``read(folder, group)`` finds from the innermost group to the root, which has no limits of its own."""
    for group in (path, *path.parents):
        if group != PurePosixPath("/"):
            yield from read(mount / str(group).lstrip("/"), str(group))


def _throttle(roots: Roots, folder: Path, group: str) -> Iterator[IoLimit]:
    for operation in _OPERATIONS.values():
        for unit in (IOPS, BPS):
            file = folder / f"blkio.throttle.{operation}_{unit}_device"
            for device, limit in parse_throttle(_text(file), source=str(file)).items():
                yield IoLimit(group, _named(roots, device), operation, unit, limit)


def _io_max(roots: Roots, folder: Path, group: str) -> Iterator[IoLimit]:
    file = folder / "io.max"
    for (device, operation, unit), limit in parse_io_max(_text(file), source=str(file)).items():
        yield IoLimit(group, _named(roots, device), operation, unit, limit)


def _quota(folder: Path, group: str) -> Iterator[CpuQuota]:
    for name in ("cpu.max", "cpu.cfs_quota_us"):
        text = _text(folder / name)
        if text and parse_quota(text, source=str(folder / name)):
            stat = folder / "cpu.stat"
            periods = parse_periods(_text(stat), source=str(stat))
            if periods is not None:
                yield CpuQuota(group, *periods)


def _lowest(limits: Iterable[IoLimit]) -> tuple[IoLimit, ...]:
    lowest: dict[tuple[str, str, str], IoLimit] = {}
    for limit in sorted(limits, key=lambda limit: limit.limit):
        lowest.setdefault((limit.device, limit.operation, limit.unit), limit)
    return tuple(lowest[key] for key in sorted(lowest))


def _named(roots: Roots, number: str) -> str:
    link = sysfs.link_text(roots.sys / "dev" / "block" / number)
    return PurePosixPath(link).name if link else number


def _text(file: Path) -> str:
    return (sysfs.read_bytes(file) or b"").decode("ascii", "replace")
