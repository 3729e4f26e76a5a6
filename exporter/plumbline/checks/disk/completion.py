"""How a disk completes a request: on which CPU, and at what extra cost."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks import disk_fixes
from plumbline.checks.disk.facts import Disks
from plumbline.checks.model import Check, Severity, Verdict


def _rq_affinity(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        affinity = disk.queue.rq_affinity
        if disk.medium is None or affinity is None:
            continue
        should = "1, or 2"
        if affinity:
            yield Verdict(disk.device, str(affinity), should)
        else:
            yield Verdict(disk.device, "0", should, disk_fixes.queue(disk, "rq_affinity", 1))


RQ_AFFINITY = Check(
    "disk.rq-affinity",
    "Complete a request near the CPU that asked for it.",
    "Disks of this host; 1 is the kernel's default. 2, on that very CPU, is for those with fewer interrupt vectors "
    "than CPUs where one CPU completes for many and is full; it costs an interrupt between CPUs more, so both are met.",
    "The data that a completion touches is in that CPU's cache; and one CPU alone need not complete everything.",
    "Fujitsu, SDC 2013, Intel PCIe-SSD 910: rq_affinity 1; Documentation/ABI/stable/sysfs-block",
    Severity.INFO,
    _rq_affinity,
    "echo 1 > /sys/block/<device>/queue/rq_affinity",
)


def _add_random(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        if disk.medium != "flash" or disk.queue.add_random is None:
            continue
        if disk.queue.add_random:
            yield Verdict(disk.device, "1", "0", disk_fixes.queue(disk, "add_random", 0))
        else:
            yield Verdict(disk.device, "0", "0")


ADD_RANDOM = Check(
    "disk.add-random",
    "Don't gather randomness from an SSD.",
    "SSDs and NVMe. The kernel sets 0 by itself where it knows the disk for an SSD: 1 comes with a wrong rotational "
    "flag, or was set.",
    "Each completion pays for it, and an SSD's timing, without seeks, has little randomness to give.",
    "Documentation/ABI/stable/sysfs-block (add_random); drivers/scsi/sd.c",
    Severity.INFO,
    _add_random,
    "echo 0 > /sys/block/<device>/queue/add_random",
)

CHECKS = (RQ_AFFINITY, ADD_RANDOM)
