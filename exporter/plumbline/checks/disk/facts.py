"""What the disk checks need to know: what a disk is, how the kernel runs its requests, and who uses it."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from plumbline.checks.readings import Readings
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.queuesettings import WRITE_BACK, QueueSettings

REAL_TRANSPORTS = frozenset({"sata", "sas", "scsi", "nvme"})
"""Attached to this host itself. Not software devices, a hypervisor's, an array's over a network, USB and cards: those
are set elsewhere, or serve no storage."""

# SSD models: the word itself, and names of Samsung, Micron and HGST without it. Not hybrids (SSHD).
_FLASH_BY_NAME = re.compile(r"\b(?:NVMe|Solid State)\b|SSD|\b(?:MZ7|MZILS|MZILT|MTFD|HUSM[HMR])", re.IGNORECASE)
_OSD_KINDS = frozenset({"osd", "osd-db", "osd-wal"})


@dataclass(frozen=True, slots=True)
class Disk:
    """One whole block device, hardware or not."""

    block: BlockDevice
    queue: QueueSettings
    osds: frozenset[str] = frozenset()
    """Ceph daemons with data, database or log on it."""

    @property
    def device(self) -> str:
        """The kernel's name."""
        return self.block.name

    @property
    def volatile_cache(self) -> bool | None:
        """Whether the disk itself reports a volatile cache; only SCSI and ATA disks report it."""
        return None if self.queue.device_cache is None else self.queue.device_cache == WRITE_BACK

    @property
    def physical(self) -> bool:
        """Whether it is hardware in or at this host."""
        return self.block.transport in REAL_TRANSPORTS and self.block.device_class in ("nvme", "ssd", "hdd")

    @property
    def controller(self) -> bool:
        """Whether it may be a RAID controller's volume, which may reorder: it shows no SAS or SATA port of its own."""
        return self.block.transport == "scsi"

    @property
    def names_flash(self) -> bool:
        """Whether its model name says that it is flash."""
        return _FLASH_BY_NAME.search(self.block.model or "") is not None

    @property
    def medium(self) -> str | None:
        """``flash`` or ``rotating``, for a physical disk; its model name overrides the kernel's flag."""
        if not self.physical:
            return None
        return "rotating" if self.block.device_class == "hdd" and not self.names_flash else "flash"

    @property
    def user(self) -> str:
        """``osd.3, osd.4``, for display; empty where no OSD uses it."""
        return ", ".join(sorted(self.osds))


Disks = tuple[Disk, ...]


def disk_facts(readings: Readings) -> Disks:
    """The facts of all disks."""
    queues = {queue.device: queue for queue in readings.queues}
    osds: dict[str, set[str]] = defaultdict(set)
    for device, kind, name in readings.disk_uses:
        if kind in _OSD_KINDS:
            osds[device].add(name)
    for device, names in readings.osds.items():
        osds[device].update(filter(None, names.split(",")))
    return tuple(
        Disk(block, queues.get(block.name, QueueSettings(block.name)), frozenset(osds[block.name]))
        for block in readings.devices
    )
