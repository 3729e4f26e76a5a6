"""Disks that have nothing to be mended, to be changed one setting at a time."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from plumbline.checks.disk import Disk, Disks
from plumbline.checks.model import Check, Finding
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.queuesettings import QueueSettings


def disk(name: str, queue: QueueSettings | None = None, **known: Any) -> Disk:
    """A disk of which this is known."""
    return Disk(BlockDevice(name, 8, 0, size_bytes=1 << 40, **known), queue or QueueSettings(name))


def queue(
    scheduler: str,
    write_cache: str = "write through",
    requests: int | None = None,
    read_ahead_kib: int | None = None,
    *,
    device_cache: str | None = None,
    add_random: bool | None = False,
) -> QueueSettings:
    """How the kernel runs its requests."""
    return QueueSettings(
        "",
        scheduler=scheduler,
        write_cache=write_cache,
        device_cache=device_cache,
        zoned="none",
        requests=requests,
        read_ahead_kib=read_ahead_kib,
        rq_affinity=1,
        add_random=add_random,
    )


SSD = disk(
    "sda",
    queue("mq-deadline", requests=64, read_ahead_kib=128, device_cache="write through"),
    device_class="ssd",
    transport="sata",
    model="Samsung SSD 883 DCT 480GB",
    serial="S4EXAMPLE00001",
    rotational=False,
    queue_depth=32,
)
NVME = disk(
    "nvme0n1",
    queue("none", requests=1023, read_ahead_kib=128),
    device_class="nvme",
    transport="nvme",
    model="INTEL SSDPE2KX020T8",
    serial="PHLJEXAMPLE0012P0GN",
    rotational=False,
)
HDD = disk(
    "sdb",
    queue("mq-deadline", requests=256, read_ahead_kib=4096, device_cache="write through", add_random=True),
    device_class="hdd",
    transport="sas",
    model="ST4000NM0025",
    serial="ZC1EXAMPLE0000C8370001",
    rotational=True,
    queue_depth=254,
)
VIRTUAL = disk(
    "vda",
    queue("mq-deadline", "write back", 256, 8192),
    device_class="virtual",
    transport="virtio",
    rotational=True,
)
LOOP = disk("loop0", queue("none", "write back", 128, 2560), transport="loop", rotational=True)
STACK = disk(
    "dm-0",
    QueueSettings("dm-0", "none", "write back", zoned="none"),
    device_class="hdd",
    transport="dm",
    rotational=True,
)


def but(disk: Disk, *, queue: dict[str, Any] | None = None, osds: frozenset[str] | None = None, **changes: Any) -> Disk:
    """The same disk with other facts, and its queue with other settings."""
    return Disk(replace(disk.block, **changes), replace(disk.queue, **queue or {}), disk.osds if osds is None else osds)


def of(check: Check[Disks], disk: Disk) -> Finding | None:
    """What a check says of one disk; ``None``: nothing."""
    found = list(check.findings((disk,)))
    assert len(found) <= 1
    return found[0] if found else None
