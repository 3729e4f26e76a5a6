"""Readings of the disk layer outside the scrape: each part has its own slot and its own job.

A disk that hangs delays only the job that queried it; the others continue, and the scrape shows each slot's age.
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
"""The kernel reports disks that appear or disappear, but not mounts or swap."""
QUEUES, QUEUES_EVERY_S = "disk queues", 60.0
"""Settings only change when an admin does it, so a minute's delay does not matter."""
PCIE, PCIE_EVERY_S = "pcie", 60.0
"""Error counters should be fresh, but each pass costs the devices some hundred register reads; rules look back five
minutes or more, so their window covers several passes."""
ARRAYS_EVERY_S = 15.0
"""For a rebuild's progress or a lost path: a usual scrape interval."""
ZPOOL_EVERY_S = 60.0
"""Each reading starts a process; errors may be a minute old."""


class StorageWatch:
    """The latest reading of each part. Slots are replaced as a whole, so any thread may read them.

    ``zpool`` runs the tool of that name; with ``None`` it is not run. Without ``health`` no disk's health is queried.
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
        """The jobs that fill the slots; each limits its own run time."""
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
        """Every disk's health; :class:`Unavailable` if there is no disk to query or health is not queried."""
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
