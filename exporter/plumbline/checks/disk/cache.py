"""When is a write done: in a cache that a power cut empties, or beyond it?

Two settings look alike. ``/sys/block/sdb/queue/write_cache`` tells the *kernel*: "write through" there ends its flushes
and changes nothing in the disk. ``/sys/block/sdb/device/scsi_disk/*/cache_type``, ``hdparm -W``, ``sdparm`` and
``smartctl -s wcache`` set the *disk*. A fix here never writes "write through" to the first.
"""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.checks import disk_fixes
from plumbline.checks.disk.facts import Disks
from plumbline.checks.model import Check, Severity, Verdict
from plumbline.sources.disk.queuesettings import WRITE_BACK

# Not volumes of a RAID controller: their cache may have a battery, and the controller's tool sets it
_OWN_CACHE = ("sata", "sas")
_MEASURE = (
    "Measure first and after: fio --direct=1 --fsync=1 --rw=randwrite --bs=4k --iodepth=1 on a disk without data."
    " A disk without power-loss protection gets slower; keep its cache then. hdparm -W 0 or sdparm --clear=WCE do the"
    " same. Never `write through` into queue/write_cache: that ends the flushes and leaves the cache on."
)


def _write_cache(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        if not disk.physical or disk.block.transport not in _OWN_CACHE or not disk.osds or disk.volatile_cache is None:
            continue
        should = "write through, where measuring shows that this is faster"
        if disk.volatile_cache:
            fix = disk_fixes.device_cache_off(disk, caution=_MEASURE)
            because = f"{disk.user} waits for a flush at each commit."
            yield Verdict(disk.device, "write back: the disk's cache is volatile", should, fix, None, because)
        else:
            yield Verdict(disk.device, "write through", should)


WRITE_CACHE = Check(
    "disk.write-cache",
    "Try an OSD's disk without its volatile write cache.",
    "SATA and SAS disks of an OSD whose cache the disk itself calls volatile. Not NVMe: with power-loss protection "
    "they say they have no volatile cache, without it they need theirs. Not volumes of RAID controllers.",
    "Many disks for servers commit small synchronous writes much faster so: each is done when it is in the protected "
    "buffer, instead of at a flush of everything.",
    "Ceph: hardware recommendations, Write Caches; Documentation/ABI/stable/sysfs-block (write_cache)",
    Severity.INFO,
    _write_cache,
    "echo 'write through' | tee /sys/block/<device>/device/scsi_disk/*/cache_type",
)


def _flushes_omitted(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        if not disk.physical or disk.block.transport not in _OWN_CACHE:
            continue
        if not disk.volatile_cache or disk.queue.write_cache is None:
            continue
        should = "flushes, as long as the disk's cache is volatile"
        if disk.queue.write_cache == WRITE_BACK:
            yield Verdict(disk.device, "the kernel sends flushes", should)
            continue
        caution = (
            "Look for what set it, a udev rule or a tuning profile, and take it out there. With power-loss protection"
            " in the disk no data was in danger; then have the disk itself say so (disk.write-cache)."
        )
        fix = disk_fixes.flush_again(disk, caution=caution)
        yield Verdict(disk.device, "no flushes, and the disk's own cache is on and volatile", should, fix)


FLUSHES_OMITTED = Check(
    "disk.flushes-omitted",
    "Never switch off the flushes alone.",
    "SATA and SAS disks that say their cache is volatile.",
    "A write that was acknowledged, an fsync even, is lost when the power fails: the kernel was told that there is no "
    "cache, the disk was not.",
    "Documentation/ABI/stable/sysfs-block (write_cache: eliminates cache flushes); drivers/scsi/sd.c (cache_type)",
    Severity.WARNING,
    _flushes_omitted,
    "echo 'write back' > /sys/block/<device>/queue/write_cache",
)

CHECKS = (WRITE_CACHE, FLUSHES_OMITTED)
