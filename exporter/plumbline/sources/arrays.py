"""The arrays of disks and of paths: md, ZFS and multipath. Each is read independently."""

from msgspec import Struct

from plumbline.sources.disk.md import MdReading
from plumbline.sources.disk.multipath import MultipathDisk
from plumbline.sources.disk.zfs import PoolStatus, ZfsReading


class Arrays(Struct, frozen=True):
    """``None``: absent, or unreadable."""

    md: MdReading | None = None
    zfs: ZfsReading | None = None
    zpools: tuple[PoolStatus, ...] | None = None
    multipath: tuple[MultipathDisk, ...] | None = None
