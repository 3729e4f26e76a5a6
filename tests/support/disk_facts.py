"""Disks that have nothing to be mended, to be changed one setting at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plumbline.checks.disk_facts import Disk, DiskFacts, DiskQueue
from plumbline.checks.model import Check, Finding

SSD = Disk(
    "sda",
    device_class="ssd",
    transport="sata",
    model="Samsung SSD 883 DCT 480GB",
    serial="S4EXAMPLE00001",
    rotational=False,
    volatile_cache=False,
    queue_depth=32,
    queue=DiskQueue("mq-deadline", False, "none", 64, 131072, 1, False),
)
NVME = Disk(
    "nvme0n1",
    device_class="nvme",
    transport="nvme",
    model="INTEL SSDPE2KX020T8",
    serial="PHLJEXAMPLE0012P0GN",
    rotational=False,
    queue=DiskQueue("none", False, "none", 1023, 131072, 1, False),
)
HDD = Disk(
    "sdb",
    device_class="hdd",
    transport="sas",
    model="ST4000NM0025",
    serial="ZC1EXAMPLE0000C8370001",
    rotational=True,
    volatile_cache=False,
    queue_depth=254,
    queue=DiskQueue("mq-deadline", False, "none", 256, 4194304, 1, True),
)
VIRTUAL = Disk(
    "vda",
    device_class="virtual",
    transport="virtio",
    rotational=True,
    queue=DiskQueue("mq-deadline", True, "none", 256, 8388608, 1, False),
)
LOOP = Disk("loop0", transport="loop", rotational=True, queue=DiskQueue("none", True, "none", 128, 2621440, 1, False))
STACK = Disk("dm-0", device_class="hdd", transport="dm", rotational=True, queue=DiskQueue("none", True, "none"))


def but(disk: Disk, *, queue: dict[str, Any] | None = None, **changes: Any) -> Disk:
    """The same disk with other facts, and its queue with other settings."""
    return replace(disk, queue=replace(disk.queue, **queue or {}), **changes)


def of(check: Check[DiskFacts], disk: Disk) -> Finding | None:
    """What a check says of one disk; ``None``: nothing."""
    found = list(check.findings(DiskFacts(None, (disk,))))
    assert len(found) <= 1
    return found[0] if found else None
