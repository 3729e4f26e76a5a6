"""What medium the kernel takes a disk for: everything above it decides by one flag."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks import disk_fixes
from plumbline.checks.disk.facts import Disks
from plumbline.checks.model import Check, Severity, Verdict


def _rotational_flag(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        if not disk.physical or not disk.names_flash or disk.block.rotational is None:
            continue
        is_ = f"{int(disk.block.rotational)} on {disk.block.model}"
        should = "0: nothing in it turns"
        if not disk.block.rotational:
            yield Verdict(disk.device, is_, should)
            continue
        caution = ""
        if disk.osds:
            caution = (
                "The OSD keeps the class and the settings it started with: restart it, and look at `ceph osd tree`"
                " whether it is still classed as hdd."
            )
        fix = disk_fixes.queue(disk, "rotational", 0, caution=caution)
        severity = Severity.WARNING if disk.osds else Severity.INFO
        because = f"{disk.user} is on it." if disk.osds else ""
        yield Verdict(disk.device, is_, should, fix, severity, because)


ROTATIONAL_FLAG = Check(
    "disk.rotational-flag",
    "Let the kernel know that an SSD does not rotate.",
    "Disks of this host whose model's name says SSD (RAID controllers and bridges often hide the rest). Without a "
    "second source beside the flag nothing is said: not of hypervisors' disks (virtio has 1 whatever lies below), not "
    "of controllers' volumes without a name.",
    "Ceph classes an OSD by this flag and sizes its queues, sleeps and allocations for a hard disk, and the kernel "
    "feeds its random numbers from it.",
    "Fujitsu, SDC 2013, Intel PCIe-SSD 910: rotational 0; Documentation/ABI/stable/sysfs-block; Ceph: bluestore, "
    "CRUSH device classes",
    Severity.WARNING,
    _rotational_flag,
    "echo 0 > /sys/block/<device>/queue/rotational",
)

CHECKS = (ROTATIONAL_FLAG,)
