"""Disks and their queues: what a disk is, how the kernel runs its requests, who uses it, and the checks."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

from plumbline.checks.fixes import glob_free, udev
from plumbline.checks.model import Fix, Keep, Severity, Verdict, check
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.block import BlockDevice, DevicesReading
from plumbline.sources.disk.diskusers import DiskUsesReading
from plumbline.sources.disk.queuesettings import WRITE_BACK, QueueReading, QueueSettings

REAL_TRANSPORTS = frozenset({"sata", "sas", "scsi", "nvme"})
"""Attached to this host itself. Not software devices, a hypervisor's, an array's over a network, USB and cards: those
are set elsewhere, or serve no storage."""

# SSD models: the word itself, and names of Samsung, Micron and HGST without it. Not hybrids (SSHD).
_FLASH_BY_NAME = re.compile(r"\b(?:NVMe|Solid State)\b|SSD|\b(?:MZ7|MZILS|MZILT|MTFD|HUSM[HMR])", re.IGNORECASE)
_OSD_KINDS = frozenset({"osd", "osd-db", "osd-wal"})


class Disk(Struct, frozen=True):
    """One whole block device, hardware or not."""

    block: BlockDevice
    queue: QueueSettings
    osds: frozenset[str] = frozenset()  # ceph daemons with data, database or log on it

    @property
    def device(self) -> str:
        return self.block.name

    @property
    def volatile_cache(self) -> bool | None:
        """Whether the disk itself reports a volatile cache; only SCSI and ATA disks report it."""
        return None if self.queue.device_cache is None else self.queue.device_cache == WRITE_BACK

    @property
    def physical(self) -> bool:
        return self.block.transport in REAL_TRANSPORTS and self.block.device_class in ("nvme", "ssd", "hdd")

    @property
    def controller(self) -> bool:
        """Whether it may be a RAID controller's volume, which may reorder: it shows no SAS or SATA port of its own."""
        return self.block.transport == "scsi"

    @property
    def names_flash(self) -> bool:
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
    queues = {queue.device: queue for queue in readings.or_empty(QueueReading).queues}
    osds: dict[str, set[str]] = defaultdict(set)
    for device, kind, name in readings.or_empty(DiskUsesReading).users.uses:
        if kind in _OSD_KINDS:
            osds[device].add(name)
    reading = readings.or_empty(DevicesReading)
    for device, names in reading.osds.items():
        osds[device].update(filter(None, names.split(",")))
    return tuple(
        Disk(block, queues.get(block.name, QueueSettings(block.name)), frozenset(osds[block.name]))
        for block in reading.devices
    )


# --- what medium the kernel takes a disk for: everything above it decides by one flag

_RESTART = (
    "The OSD keeps the class and the settings it started with: restart it, then check in `ceph osd tree`"
    " whether it is still classed as hdd."
)


@check(
    "disk.rotational-flag",
    "Let the kernel know that an SSD does not rotate.",
    "Disks of this host whose model name says SSD (RAID controllers and bridges often hide other signs). Disks without "
    "a second source beside the flag are not judged: a hypervisor's (virtio always has 1), and a controller's volumes "
    "without a name.",
    "Ceph classes an OSD by this flag and sizes its queues, sleeps and allocations for a hard disk; the kernel uses "
    "such a disk as a source of randomness.",
    "Fujitsu, SDC 2013, Intel PCIe-SSD 910: rotational 0; Documentation/ABI/stable/sysfs-block; Ceph: bluestore, "
    "CRUSH device classes",
    Severity.WARNING,
    "echo 0 > /sys/block/<device>/queue/rotational",
)
def rotational_flag(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        if not disk.physical or not disk.names_flash or disk.block.rotational is None:
            continue
        actual, expected = f"{int(disk.block.rotational)} on {disk.block.model}", "0: an SSD has no rotating parts"
        if not disk.block.rotational:
            yield Verdict(disk.device, actual, expected)
            continue
        fix = _set_queue(disk, "rotational", 0, caution=_RESTART if disk.osds else "")
        severity = Severity.WARNING if disk.osds else Severity.INFO
        because = f"{disk.user} is on it." if disk.osds else ""
        yield Verdict(disk.device, actual, expected, fix, severity, because)


# --- how requests wait for a disk: in which order, how many, and what is read ahead

# Today's scheduler → its counterpart in kernels with the older kind of queue (up to 4.20)
_SINGLE_QUEUE = {"none": "noop", "mq-deadline": "deadline", "bfq": "cfq"}
_FLASH = frozenset({"none", "mq-deadline", "kyber", "noop", "deadline"})
_ROTATING = frozenset({"mq-deadline", "bfq", "deadline", "cfq"})
# VM_READAHEAD_PAGES, include/linux/mm.h
_DEFAULT_READ_AHEAD_KIB = 128
# Twice BLKDEV_DEFAULT_RQ, as schedulers get: blk_mq_init_sched(), block/blk-mq-sched.c
_DEFAULT_REQUESTS = 256


@check(
    "disk.scheduler",
    "Sort requests for hard disks, not for SSDs.",
    "SSDs and NVMe: none or mq-deadline (kyber is as good); hard disks: mq-deadline or bfq, but volumes of a RAID "
    "controller, which sorts requests itself, may have none. Kernels before 5.0 with the older kind of queue: noop for "
    "none, deadline, cfq for bfq. Not a hypervisor's disks, nor stacked ones.",
    "On an SSD, sorting and waiting for neighbours costs CPU time and latency and gains nothing; a hard disk seeks "
    "less.",
    "Fujitsu, SDC 2013, Intel PCIe-SSD 910: scheduler noop (since blk-mq: none); "
    "Documentation/block/switching-sched.rst, Documentation/block/bfq-iosched.rst, "
    "Documentation/block/kyber-iosched.rst",
    Severity.WARNING,
    "echo <scheduler> > /sys/block/<device>/queue/scheduler",
)
def scheduler(disks: Disks) -> Iterator[Verdict]:
    caution = "The queue is emptied first: requests to the disk wait for a moment."
    for disk in disks:
        current = disk.queue.scheduler
        if current is None or disk.medium is None:
            continue
        best, good, severity, because = _advised(disk)
        names = [_SINGLE_QUEUE[name] for name in best] if current in ("noop", "deadline", "cfq") else best
        expected = " or ".join(names)
        if current in good:
            yield Verdict(disk.device, current, expected)
        else:
            fix = _set_queue(disk, "scheduler", names[0], caution=caution)
            yield Verdict(disk.device, current, expected, fix, severity, because)


def _advised(disk: Disk) -> tuple[list[str], frozenset[str], Severity, str]:
    """What to set, the best first; what is as good; the severity of anything else, and why."""
    if disk.medium == "flash":
        because = "According to its documentation it takes some CPU time for each request, which limits the rate."
        return ["none", "mq-deadline"], _FLASH, Severity.WARNING, because
    if disk.queue.zoned == "host-managed":
        because = "Before Linux 6.10 only mq-deadline keeps the writes to a zone in order."
        return ["mq-deadline"], frozenset({"mq-deadline"}), Severity.WARNING, because
    good = _ROTATING | {"none", "noop"} if disk.controller else _ROTATING
    because = "The disk's own queue sorts too, but holds few requests and lets writes displace reads."
    return ["mq-deadline", "bfq"], good, Severity.INFO, because


@check(
    "disk.read-ahead",
    "Do not read far ahead on an SSD.",
    "SSDs and NVMe. On an OSD's disk any value is accepted: BlueStore bypasses the page cache, or disables read-ahead "
    "(POSIX_FADV_RANDOM); in 2013 OSDs kept their data in XFS. Clients' rbd devices are software and are not judged: "
    "the right value depends on their content.",
    "Read-ahead hides seeks, which an SSD does not have; data read in vain takes bandwidth and page cache.",
    "Fujitsu, SDC 2013, Intel PCIe-SSD 910: read_ahead_kb 0; Documentation/ABI/stable/sysfs-block; Ceph: "
    "src/blk/kernel/KernelDevice.cc",
    Severity.INFO,
    "echo 128 > /sys/block/<device>/queue/read_ahead_kb",
)
def read_ahead(disks: Disks) -> Iterator[Verdict]:
    caution = (
        "A backup or a scrub that reads files in sequence gets slower: measure it before and after."
        " Use 0 only for purely random reads."
    )
    for disk in disks:
        size_kib = disk.queue.read_ahead_kib
        if size_kib is None or disk.medium != "flash":
            continue
        actual, expected = f"{size_kib:,} KiB", "0 for purely random reads, the kernel's 128 KiB for files"
        if disk.osds:
            yield Verdict(disk.device, actual, f"any: {disk.user} reads without read-ahead")
            continue
        fix = _set_queue(disk, "read_ahead_kb", _DEFAULT_READ_AHEAD_KIB, caution=caution)
        yield Verdict(disk.device, actual, expected, fix if size_kib > _DEFAULT_READ_AHEAD_KIB else None)


@check(
    "disk.nr-requests",
    "Let as many requests wait as the disk takes at once.",
    "SSDs, NVMe and hard disks whose own queue depth is known; 256, the kernel's choice for deep queues, is enough.",
    "With fewer, the disk never has enough requests to sort or process in parallel, and writers wait for a free one.",
    "Documentation/ABI/stable/sysfs-block (nr_requests), Documentation/scsi/scsi_mid_low_api.rst (queue depth)",
    Severity.INFO,
    "echo <number> > /sys/block/<device>/queue/nr_requests",
)
def nr_requests(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        requests, depth = disk.queue.requests, disk.block.queue_depth
        if disk.medium is None or not requests or not depth:
            continue
        least = min(depth, _DEFAULT_REQUESTS)
        fix = None if requests >= least else _set_queue(disk, "nr_requests", least)
        yield Verdict(disk.device, f"{requests:,}", f"at least {least:,}; the disk takes {depth:,} at once", fix)


# --- how a disk completes a request: on which CPU, and at what extra cost


@check(
    "disk.rq-affinity",
    "Complete a request near the CPU that submitted it.",
    "Disks of this host; 1 is the kernel's default. 2, the submitting CPU itself, suits disks with fewer interrupt "
    "vectors than CPUs where one CPU completes for many and is overloaded; it costs one more interrupt between CPUs. "
    "Both are accepted.",
    "The data that a completion touches is in that CPU's cache, and no single CPU has to complete everything.",
    "Fujitsu, SDC 2013, Intel PCIe-SSD 910: rq_affinity 1; Documentation/ABI/stable/sysfs-block",
    Severity.INFO,
    "echo 1 > /sys/block/<device>/queue/rq_affinity",
)
def rq_affinity(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        affinity = disk.queue.rq_affinity
        if disk.medium is not None and affinity is not None:
            fix = None if affinity else _set_queue(disk, "rq_affinity", 1)
            yield Verdict(disk.device, str(affinity), "1 or 2", fix)


@check(
    "disk.add-random",
    "Do not gather randomness from an SSD.",
    "SSDs and NVMe. The kernel itself sets 0 for disks it recognises as SSDs: 1 comes from a wrong rotational flag, or "
    "was set by hand.",
    "It costs time at each completion, and the timing of an SSD, without seeks, provides little randomness.",
    "Documentation/ABI/stable/sysfs-block (add_random); drivers/scsi/sd.c",
    Severity.INFO,
    "echo 0 > /sys/block/<device>/queue/add_random",
)
def add_random(disks: Disks) -> Iterator[Verdict]:
    for disk in disks:
        on = disk.queue.add_random
        if disk.medium == "flash" and on is not None:
            yield Verdict(disk.device, str(int(on)), "0", _set_queue(disk, "add_random", 0) if on else None)


# --- when is a write done: in a cache that a power cut empties, or beyond it?
#
# Two settings look alike. `/sys/block/sdb/queue/write_cache` tells the *kernel*: "write through" there ends its
# flushes and changes nothing in the disk. `/sys/block/sdb/device/scsi_disk/*/cache_type`, `hdparm -W`, `sdparm` and
# `smartctl -s wcache` set the *disk*. A fix here never writes "write through" to the first.

_MEASURE = (
    "Measure before and after: fio --direct=1 --fsync=1 --rw=randwrite --bs=4k --iodepth=1 on a disk without data."
    " A disk without power-loss protection gets slower; keep its cache then. hdparm -W 0 or sdparm --clear=WCE do the"
    " same. Never write `write through` to queue/write_cache: that ends the flushes and leaves the cache on."
)
_FIND_CAUSE = (
    "Find what set it, a udev rule or a tuning profile, and remove it there. With power-loss protection in the disk no"
    " data was in danger; then turn the cache off in the disk itself (disk.write-cache)."
)


def _own_cache(disk: Disk) -> bool:
    """Not volumes of a RAID controller: their cache may have a battery, and the controller's tool sets it."""
    return disk.physical and disk.block.transport in ("sata", "sas")


@check(
    "disk.write-cache",
    "Try an OSD's disk without its volatile write cache.",
    "SATA and SAS disks of an OSD that report a volatile cache. Not NVMe: with power-loss protection they report no "
    "volatile cache, without it they need theirs. Not volumes of RAID controllers.",
    "Many server disks then commit small synchronous writes much faster: each is done once it is in the protected "
    "buffer, instead of at a flush of everything.",
    "Ceph: hardware recommendations, Write Caches; Documentation/ABI/stable/sysfs-block (write_cache)",
    Severity.INFO,
    "echo 'write through' | tee /sys/block/<device>/device/scsi_disk/*/cache_type",
)
def write_cache(disks: Disks) -> Iterator[Verdict]:
    expected = "write through, where measurements show that it is faster"
    for disk in disks:
        if not _own_cache(disk) or not disk.osds or disk.volatile_cache is None:
            continue
        if disk.volatile_cache:
            fix = _device_cache_off(disk, caution=_MEASURE)
            because = f"{disk.user} waits for a flush at each commit."
            yield Verdict(disk.device, "write back: the disk's cache is volatile", expected, fix, because=because)
        else:
            yield Verdict(disk.device, "write through", expected)


@check(
    "disk.flushes-omitted",
    "Never switch off the flushes alone.",
    "SATA and SAS disks that report a volatile cache.",
    "An acknowledged write, even an fsync, is lost in a power failure: the kernel was told that there is no cache, the "
    "disk was not.",
    "Documentation/ABI/stable/sysfs-block (write_cache: eliminates cache flushes); drivers/scsi/sd.c (cache_type)",
    Severity.WARNING,
    "echo 'write back' > /sys/block/<device>/queue/write_cache",
)
def flushes_omitted(disks: Disks) -> Iterator[Verdict]:
    expected = "flushes, as long as the disk's cache is volatile"
    for disk in disks:
        if not _own_cache(disk) or not disk.volatile_cache or disk.queue.write_cache is None:
            continue
        if disk.queue.write_cache == WRITE_BACK:
            yield Verdict(disk.device, "the kernel sends flushes", expected)
        else:
            fix = _flush_again(disk, caution=_FIND_CAUSE)
            yield Verdict(disk.device, "no flushes, although the disk's volatile cache is on", expected, fix)


# --- how to change a setting, now and permanently, on Debian 12
#
# The permanent part is a udev rule that matches the disk by its serial number: `sda` may be another disk after a
# reboot. Its file is read after `60-persistent-storage.rules`, which finds the serial numbers.

DEVICE_CACHE = "device/scsi_disk/*/cache_type"
"""Writing here sets the disk and reads it back; ``queue/write_cache`` sets only the kernel's view."""


def _set_queue(disk: Disk, setting: str, value: str | int, *, caution: str = "") -> Fix:
    """``echo <value> > /sys/block/<disk>/queue/<setting>``, and the rule that does so whenever the disk appears."""
    return Fix(_echo(disk, setting, value), _rule(disk, f"queue/{setting}", value), caution)


def _flush_again(disk: Disk, *, caution: str) -> Fix:
    """Make the kernel send flushes. Not permanent: at the next boot the kernel asks the disk itself."""
    return Fix(_echo(disk, "write_cache", "write back"), None, caution)


def _device_cache_off(disk: Disk, *, caution: str) -> Fix:
    """Make the disk switch off its volatile write cache. Uses ``tee``: sh expands no ``*`` after ``>``."""
    path = f"{shlex.quote(_directory(disk))}/{DEVICE_CACHE}"
    return Fix(f"echo 'write through' | tee {path}", _rule(disk, DEVICE_CACHE, "write through"), caution)


def _echo(disk: Disk, setting: str, value: str | int) -> str:
    path = shlex.quote(f"{_directory(disk)}/queue/{setting}")
    return f"echo {shlex.quote(str(value))} > {path}"


def _directory(disk: Disk) -> str:
    return f"/sys/block/{disk.device.replace('/', '!')}"


def _rule(disk: Disk, attribute: str, value: str | int) -> Keep:
    lines = (
        f'ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", {match}, ATTR{{{attribute}}}="{value}"'
        for match in _matches(disk)
    )
    return udev("disks", "\n".join(lines))


def _matches(disk: Disk) -> tuple[str, ...]:
    """How udev matches the disk. SAS disks have their serial number in a separate property (``ID_SERIAL_SHORT`` is
    their WWN), SATA disks behind the same controller don't: so there is a rule for each."""
    if not disk.block.serial:
        return (f'KERNEL=="{_pattern(disk.device.replace("/", "!"))}"',)
    serial = _pattern(disk.block.serial)
    if disk.block.transport in ("sas", "scsi"):
        return (f'ENV{{ID_SCSI_SERIAL}}=="{serial}"', f'ENV{{ID_SERIAL_SHORT}}=="{serial}"')
    return (f'ENV{{ID_SERIAL_SHORT}}=="{serial}"',)


def _pattern(text: str) -> str:
    """A udev pattern for this text alone; blanks match any one character, as udev writes an underscore there."""
    return "".join(letter if letter.isprintable() and letter != " " else "?" for letter in glob_free(text))


CHECKS = (rotational_flag, scheduler, read_ahead, nr_requests, rq_affinity, add_random, write_cache, flushes_omitted)
"""In the order of a request's life: medium, queue, completion, cache."""
