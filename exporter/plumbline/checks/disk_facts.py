"""What the disk checks ask about a host: pure data, every part of which may be unknown (``None``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

REAL_TRANSPORTS = frozenset({"sata", "sas", "scsi", "nvme"})
"""Attached to this host itself. Not what is made of software, a hypervisor's, an array's over a network, nor USB and
cards: those are set elsewhere, or serve no storage."""

_FLASH_BY_NAME = re.compile(r"\b(?:NVMe|Solid State)\b|SSD|\b(?:MZ7|MZILS|MZILT|MTFD|HUSM[HMR])", re.IGNORECASE)
"""Models of SSDs: the word itself, and those of Samsung, Micron and HGST that do without it. Not hybrids (SSHD)."""


@dataclass(frozen=True, slots=True)
class DiskQueue:
    """How the kernel runs a disk's requests."""

    scheduler: str | None = None
    write_back: bool | None = None
    """The kernel takes the disk's cache for volatile and sends flushes."""
    zoned: str | None = None
    """``none``, ``host-aware`` or ``host-managed``."""
    requests: int | None = None
    read_ahead_bytes: int | None = None
    rq_affinity: int | None = None
    add_random: bool | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """One whole block device, hardware or not."""

    device: str
    """The kernel's name."""
    device_class: str | None = None
    """``nvme``, ``ssd``, ``hdd`` (the last two by the kernel's rotational flag alone) or ``virtual``."""
    transport: str | None = None
    model: str = ""
    serial: str = ""
    rotational: bool | None = None
    """The kernel's flag, right or wrong."""
    osds: frozenset[str] = frozenset()
    """Ceph's daemons with data, database or log on it."""
    volatile_cache: bool | None = None
    """By the disk's own word its cache is volatile; only SCSI and ATA disks give it."""
    queue_depth: int | None = None
    """Requests that the disk itself takes at once."""
    queue: DiskQueue = DiskQueue()

    @property
    def physical(self) -> bool:
        """Hardware in or at this host."""
        return self.transport in REAL_TRANSPORTS and self.device_class in ("nvme", "ssd", "hdd")

    @property
    def controller(self) -> bool:
        """Perhaps a RAID controller's volume: no SAS or SATA port of its own is seen, so the controller may reorder."""
        return self.transport == "scsi"

    @property
    def names_flash(self) -> bool:
        """Its model's name says that nothing in it turns."""
        return _FLASH_BY_NAME.search(self.model) is not None

    @property
    def medium(self) -> str | None:
        """``flash`` or ``rotating``, where the disk is physical; its model's name stands above the kernel's flag."""
        if not self.physical:
            return None
        return "rotating" if self.device_class == "hdd" and not self.names_flash else "flash"

    @property
    def user(self) -> str:
        """``osd.3, osd.4``, for people; empty where it is no OSD's."""
        return ", ".join(sorted(self.osds))


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """One host's disks, looked at for ``window_s`` seconds (``None``: once)."""

    window_s: float | None = None
    disks: tuple[Disk, ...] = ()
