"""Readings of the disk layer outside the scrape: each part has its own slot and its own job.

A disk that hangs delays only the job that queried it; the others continue, and the scrape shows each slot's age.
"""

import logging
from collections.abc import Callable, Mapping

from plumbline.background.health import LOOK_EVERY_S, HealthWatch
from plumbline.background.mounts import MOUNTS, MOUNTS_EVERY_S, MountWatch
from plumbline.core.process import Completed, ProcessRunner
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.core.slot import PeriodicSlot
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.command import printed
from plumbline.sources.disk.diskhealth import HealthReading
from plumbline.sources.disk.diskusers import read_disk_users
from plumbline.sources.disk.md import read_md
from plumbline.sources.disk.multipath import MultipathDisk, read_multipath
from plumbline.sources.disk.queuesettings import read_queue_settings
from plumbline.sources.disk.zfs import SUSPENDED, ZPOOL_STATUS, PoolStatus, parse_text, read_zfs
from plumbline.sources.pci.pcidevices import PciReading, read_pci

log = logging.getLogger(__name__)

HEALTH, DISK_USERS, QUEUES, PCIE = "disk health", "disk users", "disk queues", "pcie"
ARRAYS_EVERY_S = 15.0  # for a rebuild's progress or a lost path: a usual scrape interval
ZPOOL_WITHIN_S = 10.0

# OpenZFS 0.8 prints exact counts, older versions round them.
_ZPOOL_OPTIONS: tuple[tuple[str, ...], ...] = (("-p",), ())
_USAGE = 2  # exit status


class StorageWatch:
    """The latest reading of each part. Slots are replaced as a whole, so any thread may read them. ``zpool`` runs the
    tool of that name; with ``None`` it is not run. Without ``health`` no disk's health is queried. ``multipath``: reads
    the multipath disks."""

    def __init__(
        self,
        roots: Roots,
        *,
        zpool: ProcessRunner | None = None,
        health: HealthWatch | None = None,
        multipath: Callable[[Roots], tuple[MultipathDisk, ...]] = read_multipath,
    ) -> None:
        self._roots, self._health = roots, health
        self._unreadable_pci: frozenset[str] = frozenset()
        self._ports: set[str] = set()
        """PCI ports seen above a device: where one has gone, its port's errors say why."""
        # the kernel reports disks that appear or disappear, but not mounts or swap
        self.users = PeriodicSlot(DISK_USERS, 60.0, "the users of the disks", lambda: read_disk_users(roots))
        # only an admin changes settings, so a minute's delay does not matter
        self.queues = PeriodicSlot(
            QUEUES, 60.0, "disk queue settings", lambda: read_queue_settings(roots), serves=("queue",)
        )
        # Error counters should be fresh, but each pass costs the devices some hundred register reads; rules look back
        # five minutes or more, so their window covers several passes.
        self.pcie = PeriodicSlot(PCIE, 60.0, "PCI devices", self._read_pci, serves=("pcie",))
        array = ("array",)
        self.md = PeriodicSlot("md arrays", ARRAYS_EVERY_S, "md arrays", lambda: read_md(roots), serves=array)
        self.zfs = PeriodicSlot("ZFS pools", ARRAYS_EVERY_S, "ZFS pools", lambda: read_zfs(roots), serves=array)
        self.multipath = PeriodicSlot(
            "multipath disks", ARRAYS_EVERY_S, "multipath disks", lambda: multipath(roots), serves=array
        )
        # each reading starts a process; errors may be a minute old
        read_zpools = ZpoolStatus(roots, zpool).read if zpool else tuple[PoolStatus, ...]
        ends = zpool.stop if zpool else lambda: None
        self.zpools = PeriodicSlot("zpool status", 60.0, "zpool status", read_zpools, serves=array, cancel=ends)
        self.mounts = MountWatch(roots)

    def jobs(self) -> list[Job]:
        """The jobs that fill the slots; each limits its own run time."""
        slots = (self.users, self.queues, self.pcie, self.md, self.zfs, self.zpools, self.multipath)
        mounts = Job(MOUNTS, MOUNTS_EVERY_S, 0.0, self.mounts.refresh, serves=("mount",))
        if self._health is None:
            return [mounts, *(slot.job for slot in slots)]
        health = Job(HEALTH, LOOK_EVERY_S, 0.0, self._health.refresh, serves=("health",))
        return [health, mounts, *(slot.job for slot in slots)]

    @property
    def osds(self) -> Mapping[str, str]:
        """Disk → its OSDs as last read, however long ago: a label must not change because a disk hangs."""
        return {} if self.users.last is None else self.users.last.osds()

    @property
    def health(self) -> HealthReading:
        """Every disk's health; :class:`Unavailable` if there is no disk to query or health is not queried."""
        if self._health is None:
            raise Unavailable("disks are not queried for their health")
        return HealthReading(self._health.states)

    def _read_pci(self) -> PciReading:
        reading = read_pci(self._roots, sorted(self._ports))
        self._ports.update(function.upstream for function in reading.functions if function.upstream)
        unreadable = frozenset(function.missing for function in reading.functions if function.missing)
        if unreadable != self._unreadable_pci:
            self._unreadable_pci = unreadable
            log.debug("%s: %s", PCIE, "; ".join(sorted(unreadable)) or "everything can be read")
        return reading


class ZpoolStatus:
    """Runs ``zpool status`` for the pools that can answer. For one thread at a time; ``runner`` must run nothing else.
    For a pool whose devices are gone the tool waits in the kernel, where no signal reaches it. So a suspended pool is
    not queried, and no command is started while an earlier one hangs: one stuck process, not one a minute."""

    def __init__(self, roots: Roots, runner: ProcessRunner) -> None:
        self._roots, self._runner = roots, runner
        self._options = _ZPOOL_OPTIONS

    def read(self) -> tuple[PoolStatus, ...]:
        """All pools except suspended ones; empty without ZFS. :class:`Unavailable`: no tool or no permission;
        :class:`PlumblineError`: no answer, or one that names no pool."""
        pools = [name for name, state in read_zfs(self._roots).pools.items() if state != SUSPENDED]
        if not pools:
            return ()
        if self._runner.stuck():
            raise PlumblineError("zpool status: the last command still hangs in the kernel; see dmesg and zpool events")
        done = self._run(pools)
        hint = "; see dmesg and zpool events"
        output = printed(done, "zpool status", ZPOOL_WITHIN_S, needs="the right to ask ZFS", hint=hint)
        text = output.decode("utf-8", "replace")
        if not (answer := parse_text(text)) and text.strip() != "no pools available":
            raise ParseError(ZPOOL_STATUS, f"names no pool: {text[:40]!r}")
        return answer

    def _run(self, pools: list[str]) -> Completed:
        """Use the newest options that this version accepts, and remember them."""
        while True:
            done = self._runner.run(("zpool", "status", *self._options[0], *pools), timeout_s=ZPOOL_WITHIN_S)
            if done.returncode != _USAGE or len(self._options) == 1:
                return done
            self._options = self._options[1:]
