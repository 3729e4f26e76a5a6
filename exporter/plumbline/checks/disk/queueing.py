"""How requests wait for a disk: in which order, how many, and what is read ahead."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks import disk_fixes
from plumbline.checks.disk.facts import Disk, Disks
from plumbline.checks.model import Check, Severity, Verdict

# Today's scheduler → its counterpart in kernels with the older kind of queue (up to 4.20)
_SINGLE_QUEUE = {"none": "noop", "mq-deadline": "deadline"}
_FLASH = frozenset({"none", "mq-deadline", "kyber", "noop", "deadline"})
_ROTATING = frozenset({"mq-deadline", "bfq", "deadline", "cfq"})
_SWITCHING = "The queue is emptied first: requests to the disk wait for a moment."
# VM_READAHEAD_PAGES, include/linux/mm.h
_DEFAULT_READ_AHEAD_KIB = 128
# Twice BLKDEV_DEFAULT_RQ, as schedulers get: blk_mq_init_sched(), block/blk-mq-sched.c
_DEFAULT_REQUESTS = 256


def _scheduler(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        scheduler = disk.queue.scheduler
        if scheduler is None or disk.medium is None:
            continue
        old = scheduler in ("noop", "deadline", "cfq")
        wanted, good, severity, because = _wanted(disk)
        names = [_SINGLE_QUEUE.get(name, "cfq") if old else name for name in wanted]
        should = " or ".join(names)
        if scheduler in good:
            yield Verdict(disk.device, scheduler, should)
        else:
            fix = disk_fixes.queue(disk, "scheduler", names[0], caution=_SWITCHING)
            yield Verdict(disk.device, scheduler, should, fix, severity, because)


def _wanted(disk: Disk) -> tuple[tuple[str, ...], frozenset[str], Severity, str]:
    """What to set, the best first; what is as good; the severity of anything else, and why."""
    if disk.medium == "flash":
        because = "Its documentation says what it costs: a share of each CPU for each request, which caps the rate."
        return ("none", "mq-deadline"), _FLASH, Severity.WARNING, because
    if disk.queue.zoned == "host-managed":
        because = "Before Linux 6.10 only mq-deadline keeps the writes to a zone in order."
        return ("mq-deadline",), frozenset({"mq-deadline"}), Severity.WARNING, because
    good = _ROTATING | {"none", "noop"} if disk.controller else _ROTATING
    because = "The disk's own queue sorts too, but holds few requests and lets writes push reads aside."
    return ("mq-deadline", "bfq"), good, Severity.INFO, because


SCHEDULER = Check(
    "disk.scheduler",
    "Sort requests for disks that turn, not for those that don't.",
    "SSDs and NVMe: none or mq-deadline (kyber is as good); hard disks: mq-deadline or bfq, but volumes of a RAID "
    "controller, which sorts by itself, may have none. Kernels before 5.0 with the older kind of queue: noop for none, "
    "deadline, cfq for bfq. Not hypervisors' disks, nor stacked ones.",
    "On an SSD sorting and waiting for neighbours costs CPU time and latency and gains nothing; a hard disk seeks "
    "less.",
    "Fujitsu, SDC 2013, Intel PCIe-SSD 910: scheduler noop (since blk-mq: none); "
    "Documentation/block/switching-sched.rst, Documentation/block/bfq-iosched.rst, "
    "Documentation/block/kyber-iosched.rst",
    Severity.WARNING,
    _scheduler,
    "echo <scheduler> > /sys/block/<device>/queue/scheduler",
)


def _read_ahead(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        size_kib = disk.queue.read_ahead_kib
        if size_kib is None or disk.medium != "flash":
            continue
        is_ = f"{size_kib:,} KiB"
        if disk.osds:
            yield Verdict(disk.device, is_, f"as it likes: {disk.user} reads without read-ahead")
            continue
        should = "0 for random reads alone, the kernel's 128 KiB for files"
        if size_kib <= _DEFAULT_READ_AHEAD_KIB:
            yield Verdict(disk.device, is_, should)
            continue
        caution = (
            "A backup or a scrub that reads files in sequence gets slower: measure it before and after."
            " 0 where nothing but random reads matters."
        )
        fix = disk_fixes.queue(disk, "read_ahead_kb", _DEFAULT_READ_AHEAD_KIB, caution=caution)
        yield Verdict(disk.device, is_, should, fix)


READ_AHEAD = Check(
    "disk.read-ahead",
    "Don't read far ahead on an SSD.",
    "SSDs and NVMe. Those of an OSD are met whatever is set: BlueStore reads past the page cache, and asks for no "
    "read-ahead (POSIX_FADV_RANDOM) where it does not; in 2013 OSDs kept their data in XFS. Clients' rbd devices are "
    "software and are not judged: what is right depends on what is on them.",
    "Read-ahead hides the seeks that an SSD doesn't have; what was read for nothing takes bandwidth and page cache.",
    "Fujitsu, SDC 2013, Intel PCIe-SSD 910: read_ahead_kb 0; Documentation/ABI/stable/sysfs-block; Ceph: "
    "src/blk/kernel/KernelDevice.cc",
    Severity.INFO,
    _read_ahead,
    "echo 128 > /sys/block/<device>/queue/read_ahead_kb",
)


def _nr_requests(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        requests, depth = disk.queue.requests, disk.block.queue_depth
        if disk.medium is None or not requests or not depth:
            continue
        least = min(depth, _DEFAULT_REQUESTS)
        is_, should = f"{requests:,}", f"at least {least:,}; the disk takes {depth:,} at once"
        if requests >= least:
            yield Verdict(disk.device, is_, should)
        else:
            yield Verdict(disk.device, is_, should, disk_fixes.queue(disk, "nr_requests", least))


NR_REQUESTS = Check(
    "disk.nr-requests",
    "Let as many requests wait as the disk takes at once.",
    "SSDs, NVMe and hard disks whose own queue depth is known; 256, the kernel's own choice for deep ones, is enough. "
    "Who has fewer set them.",
    "With fewer the disk never gets enough to do in parallel or to sort, and whoever writes waits for a free request.",
    "Documentation/ABI/stable/sysfs-block (nr_requests), Documentation/scsi/scsi_mid_low_api.rst (queue depth)",
    Severity.INFO,
    _nr_requests,
    "echo <number> > /sys/block/<device>/queue/nr_requests",
)

CHECKS = (SCHEDULER, READ_AHEAD, NR_REQUESTS)
