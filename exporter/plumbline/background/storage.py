"""What is read of the disk layer outside the scrape: each part in a slot of its own, by a job of its own.

A disk that hangs holds back the one job that asked it; the others go on, and the scrape shows how old a slot is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from plumbline.background.health import LOOK_EVERY_S, HealthWatch
from plumbline.background.mounts import MOUNTS, MOUNTS_EVERY_S, MountWatch
from plumbline.background.zpool import ToolRunner, ZpoolStatus
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.core.slot import Slot
from plumbline.errors import Unavailable
from plumbline.sources.disk.diskhealth import DiskState
from plumbline.sources.disk.diskusers import DiskUsers, read_disk_users
from plumbline.sources.disk.md import MdReading, read_md
from plumbline.sources.disk.multipath import MultipathDisk, read_multipath
from plumbline.sources.disk.queuesettings import QueueReading, read_queue_settings
from plumbline.sources.disk.zfs import ZfsReading, read_zfs
from plumbline.sources.disk.zpool_status import PoolStatus
from plumbline.sources.pci.pcidevices import PciReading, read_pci

log = logging.getLogger(__name__)

HEALTH = "disk health"
DISK_USERS, DISK_USERS_EVERY_S = "disk users", 60.0
"""Disks that come and go tell so; what is mounted or swapped to doesn't."""
QUEUES, QUEUES_EVERY_S = "disk queues", 60.0
"""A setting changes when somebody changes it: a minute late is early enough."""
PCIE, PCIE_EVERY_S = "pcie", 60.0
"""Error counters want freshness, each pass costs the devices some hundred register reads; rules look back over five
minutes and more, so that several passes lie within their window."""
ARRAYS_EVERY_S = 15.0
"""A rebuild's progress, a lost path: as long as a usual scrape interval."""
ZPOOL_EVERY_S = 60.0
"""Each is a process; errors that are a minute old are early enough."""


class StorageWatch:
    """The latest reading of each part. Every slot is replaced whole, so anybody may look.

    ``zpool`` runs the tool of that name; ``None``: it is not asked. Without ``health`` no disk is asked for its own.
    """

    def __init__(self, roots: Roots, *, zpool: ToolRunner | None = None, health: HealthWatch | None = None) -> None:
        self._roots, self._health = roots, health
        self.users = Slot[DiskUsers](
            lambda: read_disk_users(roots), what="the users of the disks", stale_after_s=4 * DISK_USERS_EVERY_S
        )
        self.queues = Slot[QueueReading](
            lambda: read_queue_settings(roots), what="disk queue settings", stale_after_s=4 * QUEUES_EVERY_S
        )
        self._unread_pci: frozenset[str] = frozenset()
        self.pcie = Slot[PciReading](self._read_pci, what="PCI devices", stale_after_s=4 * PCIE_EVERY_S)
        self.md = Slot[MdReading](lambda: read_md(roots), what="md arrays", stale_after_s=4 * ARRAYS_EVERY_S)
        self.zfs = Slot[ZfsReading](lambda: read_zfs(roots), what="ZFS pools", stale_after_s=4 * ARRAYS_EVERY_S)
        self.multipath = Slot[tuple[MultipathDisk, ...]](
            lambda: read_multipath(roots), what="multipath disks", stale_after_s=4 * ARRAYS_EVERY_S
        )
        self.mounts = MountWatch(roots)
        self._zpool_runner = zpool
        self.zpools = Slot[tuple[PoolStatus, ...]](
            ZpoolStatus(roots, zpool).read if zpool else tuple, what="zpool status", stale_after_s=4 * ZPOOL_EVERY_S
        )

    def jobs(self) -> list[Job]:
        """What keeps the slots filled; each job is bounded by itself."""
        stop_zpool = self._zpool_runner.stop if self._zpool_runner else lambda: None
        health = [Job(HEALTH, LOOK_EVERY_S, 0.0, self._health.refresh)] if self._health is not None else []
        return [
            *health,
            Job(DISK_USERS, DISK_USERS_EVERY_S, 0.0, self.users.refresh),
            Job(MOUNTS, MOUNTS_EVERY_S, 0.0, self.mounts.refresh),
            Job(QUEUES, QUEUES_EVERY_S, 0.0, self.queues.refresh),
            Job(PCIE, PCIE_EVERY_S, 0.0, self.pcie.refresh),
            Job("md arrays", ARRAYS_EVERY_S, 0.0, self.md.refresh),
            Job("ZFS pools", ARRAYS_EVERY_S, 0.0, self.zfs.refresh),
            Job("zpool status", ZPOOL_EVERY_S, 0.0, self.zpools.refresh, cancel=stop_zpool),
            Job("multipath disks", ARRAYS_EVERY_S, 0.0, self.multipath.refresh),
        ]

    @property
    def osds(self) -> Mapping[str, str]:
        """Disk → its OSDs as last read, however long ago: a label must not change because a disk hangs."""
        return {} if self.users.last is None else self.users.last.osds()

    @property
    def health(self) -> tuple[DiskState, ...]:
        """Every disk's health; :class:`Unavailable` where there is none to ask, or nobody asks."""
        if self._health is None:
            raise Unavailable("nobody asks disks for their health")
        return self._health.states

    def _read_pci(self) -> PciReading:
        reading = read_pci(self._roots)
        unread = frozenset(each.missing for each in reading.functions if each.missing)
        if unread != self._unread_pci:
            self._unread_pci = unread
            log.debug("%s: %s", PCIE, "; ".join(sorted(unread)) or "everything can be read")
        return reading
