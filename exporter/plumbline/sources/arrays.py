"""Everything that stands on several disks or paths: md, ZFS and multipath, each read for itself."""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.sources.md import MdReading
from plumbline.sources.multipath import MultipathDisk
from plumbline.sources.zfs import ZfsReading
from plumbline.sources.zpool_status import PoolStatus


@dataclass(frozen=True, slots=True)
class Arrays:
    """``None``: could not be read, or is not there."""

    md: MdReading | None
    zfs: ZfsReading | None
    zpools: tuple[PoolStatus, ...] | None
    multipath: tuple[MultipathDisk, ...] | None
