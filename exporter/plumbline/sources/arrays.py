"""Everything that stands on several disks or paths: md, ZFS and multipath, each read for itself."""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.sources.disk.md import MdReading
from plumbline.sources.disk.multipath import MultipathDisk
from plumbline.sources.disk.zfs import ZfsReading
from plumbline.sources.disk.zpool_status import PoolStatus


@dataclass(frozen=True, slots=True)
class Arrays:
    """``None``: could not be read, or is not there."""

    md: MdReading | None
    zfs: ZfsReading | None
    zpools: tuple[PoolStatus, ...] | None
    multipath: tuple[MultipathDisk, ...] | None
