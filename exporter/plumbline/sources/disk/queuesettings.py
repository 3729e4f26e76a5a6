"""The settings of each block device's request queue, from sysfs.

https://docs.kernel.org/admin-guide/abi-stable.html#abi-file-stable-sysfs-block (the meaning of each file)
https://github.com/torvalds/linux/blob/v6.12/block/blk-sysfs.c (the file formats)
https://github.com/torvalds/linux/blob/v6.12/drivers/scsi/sd.c (``cache_type``: reported by the disk itself)

::

    /sys/block/sdb/queue/scheduler          none [mq-deadline] kyber bfq
    /sys/block/sdb/queue/rq_affinity        1
    /sys/block/sdb/queue/nr_requests        256
    /sys/block/sdb/queue/read_ahead_kb      128
    /sys/block/sdb/queue/write_cache        write back
    /sys/block/sdb/queue/wbt_lat_usec       75000
    /sys/block/sdb/device/scsi_disk/0:0:1:0/cache_type   write back

Up to Linux 4.20, a queue may be of the older kind: ``noop deadline [cfq]``. A queue without a choice contains ``none``.

Reading takes the queue's lock. A process that changes the scheduler holds that lock until all requests are finished, so
on a hanging disk these reads may hang too; a scrape does not do them.
"""

import re
from pathlib import Path

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.disk.block import required_entries
from plumbline.sources.kernel import sysfs

WRITE_BACK, WRITE_THROUGH = "write back", "write through"

# one path of an NVMe multipath namespace: it can't be opened; the disk is its head, ``nvme1n1``
_HIDDEN_PATH = re.compile(r"nvme[0-9]+c[0-9]+n[0-9]+")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")  # scheduler name: ELV_NAME_MAX is 16


class QueueSettings(Struct, frozen=True):
    """One device's queue. ``None``: the kernel or the device has no such setting."""

    device: str  # the kernel's name, as in /proc/diskstats
    scheduler: str | None = None  # the active scheduler; ``none`` is a valid one
    write_cache: str | None = None  # the kernel's view: ``write back`` (sends flushes), ``write through`` (sends none)
    device_cache: str | None = None  # as the SCSI or ATA disk reports it: ``write back`` is volatile
    zoned: str | None = None  # ``none``, ``host-aware`` or ``host-managed``
    requests: int | None = None  # queued or in flight at once (per queue and direction, on the older kind)
    read_ahead_kib: int | None = None
    rq_affinity: int | None = None  # completion on 0: the interrupted CPU; 1: near the requesting CPU; 2: that CPU
    nomerges: int | None = None  # 0: all merges; 1: only cheap merges; 2: no merges
    add_random: bool | None = None  # completions feed the kernel's entropy pool
    max_io_kib: int | None = None  # the largest request that the kernel issues
    writeback_throttle_us: int | None = None  # writes are throttled to keep reads below this; 0: no throttling
    io_poll: bool | None = None  # whether completions may be polled for


class QueueReading(Struct, frozen=True):
    """All whole devices that have a queue, by name."""

    queues: tuple[QueueSettings, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()  # devices that were skipped, and why


def parse_scheduler(text: str, *, source: str) -> str:
    """``none [mq-deadline] kyber`` → ``mq-deadline``; ``none`` alone → ``none``."""
    match = re.search(r"\[([^\]]*)\]", text)
    name = match[1] if match else text
    if not _NAME.fullmatch(name):
        raise ParseError(source, f"no active scheduler: {text[:60]!r}")
    return name


def parse_cache(text: str, *, source: str) -> str:
    """``write back`` or ``write through``; ``cache_type`` may add words about the read cache, which are ignored."""
    if text == WRITE_BACK or text.startswith(f"{WRITE_BACK}, "):  # "write back, no read (daft)"
        return WRITE_BACK
    if text in (WRITE_THROUGH, "none"):
        return WRITE_THROUGH
    raise ParseError(source, f"not a cache type: {text[:40]!r}")


def parse_zoned(text: str, *, source: str) -> str:
    """``none``, ``host-aware`` or ``host-managed``; ``drive-managed`` disks report ``none``."""
    return sysfs.matched("none|host-aware|host-managed", text, "a zone model", source)[0]


def parse_switch(text: str, *, source: str) -> bool:
    """``0`` or ``1``."""
    if text not in ("0", "1"):
        raise ParseError(source, f"neither 0 nor 1: {text[:40]!r}")
    return text == "1"


def parse_throttle(text: str, *, source: str) -> int | None:
    """Microseconds; ``None`` for a negative number, which means the kernel's own choice."""
    number = int(sysfs.matched(r"-?[0-9]{1,19}", text, "a number", source)[0])
    return number if number >= 0 else None


def read_queue_settings(roots: Roots) -> QueueReading:
    """Every whole device's queue; a malformed one is skipped. :class:`Unavailable` without sysfs."""
    root = roots.sys / "block"
    queues: list[QueueSettings] = []
    skipped: list[tuple[str, str]] = []
    for name in required_entries(root):
        device = name.replace("!", "/")
        try:
            if not _HIDDEN_PATH.fullmatch(name) and (root / name / "queue").is_dir():
                queues.append(_read_queue(device, root / name))
        except ParseError:
            skipped.append((device, "malformed"))
    return QueueReading(tuple(queues), tuple(skipped))


def _read_queue(device: str, directory: Path) -> QueueSettings:
    queue = directory / "queue"
    return QueueSettings(
        device=device,
        scheduler=sysfs.read_parsed(queue / "scheduler", parse_scheduler),
        write_cache=sysfs.read_parsed(queue / "write_cache", parse_cache),
        device_cache=_read_device_cache(directory / "device" / "scsi_disk"),
        zoned=sysfs.read_parsed(queue / "zoned", parse_zoned),
        requests=sysfs.read_number(queue / "nr_requests"),
        read_ahead_kib=sysfs.read_number(queue / "read_ahead_kb"),
        rq_affinity=sysfs.read_number(queue / "rq_affinity"),
        nomerges=sysfs.read_number(queue / "nomerges"),
        add_random=sysfs.read_parsed(queue / "add_random", parse_switch),
        max_io_kib=sysfs.read_number(queue / "max_sectors_kb"),
        writeback_throttle_us=sysfs.read_parsed(queue / "wbt_lat_usec", parse_throttle),
        io_poll=sysfs.read_parsed(queue / "io_poll", parse_switch),
    )


def _read_device_cache(directory: Path) -> str | None:
    address = next(iter(sysfs.entries(directory)), None)
    return None if address is None else sysfs.read_parsed(directory / address / "cache_type", parse_cache)
