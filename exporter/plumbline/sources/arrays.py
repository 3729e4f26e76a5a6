"""The arrays of disks and of paths: md, ZFS and multipath. Each is read independently."""

from dataclasses import dataclass

from plumbline.sources.disk.md import MdReading
from plumbline.sources.disk.multipath import MultipathDisk
from plumbline.sources.disk.zfs import PoolStatus, ZfsReading


@dataclass(frozen=True, slots=True)
class Arrays:
    """``None``: absent, or unreadable."""

    md: MdReading | None
    zfs: ZfsReading | None
    zpools: tuple[PoolStatus, ...] | None
    multipath: tuple[MultipathDisk, ...] | None
