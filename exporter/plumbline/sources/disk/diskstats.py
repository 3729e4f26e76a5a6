"""Counters of every disk: ``/proc/diskstats`` (Documentation/admin-guide/iostats.rst, block/genhd.c).

    254       0 vda 52100 7929 2869506 13647 13822 15027 2865696 6475 0 7772 20537 4046 43 521760 335 1710 78

Columns: major, minor, name; completed, merged, sectors, ms of reads, then of writes; in flight, ms busy, ms weighted;
since Linux 4.18 the same four of discards; since 5.5 completed and ms of flushes.
Times are sums over requests in 32-bit milliseconds; they wrap, which Prometheus handles as a counter reset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from plumbline.core.jsontext import decoder
from plumbline.core.kernel import TABLE, read_kernel
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.disk.block import is_hidden
from plumbline.sources.kernel.sysfs import link_text, read_text

_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")
SECTOR_BYTES = 512  # whatever the disk's own sector size
_NUMBERS = frozenset({11, 15, 17})  # columns after the name: until 4.17, until 5.4, since 5.5
Count = Annotated[int, msgspec.Meta(ge=0)]


class DiskStats(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line; ``None``: not counted by this kernel. ``in_flight`` is a gauge, all others are counters. A line is
    nearly a JSON array, and msgspec decodes it three times as fast as split, int and a named tuple."""

    name: str
    reads: Count
    reads_merged: Count
    sectors_read: Count
    reading_ms: Count
    writes: Count
    writes_merged: Count
    sectors_written: Count
    writing_ms: Count
    in_flight: Count
    busy_ms: Count
    weighted_ms: Count
    discards: Count | None = None
    discards_merged: Count | None = None
    sectors_discarded: Count | None = None
    discarding_ms: Count | None = None
    flushes: Count | None = None
    flushing_ms: Count | None = None


class DiskStatsReading(tuple[DiskStats, ...]):
    """The lines of the reported disks."""


_decode = decoder(DiskStats).decode


def parse_diskstats(
    text: str, *, keep: Callable[[str], bool], source: str = "/proc/diskstats"
) -> tuple[DiskStats, ...]:
    """The lines whose device name ``keep`` accepts, in the kernel's order; of duplicate names, the later line. Columns
    that newer kernels may append are ignored; a malformed line that is kept raises :class:`ParseError`."""
    disks: dict[str, DiskStats] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line:
            continue
        try:
            _, _, name, counters = line.split(None, 3)
            if not keep(name):
                continue
            disks[name] = _decode(f'["{name}",{counters.replace(" ", ",")}]')
        except (ValueError, msgspec.DecodeError) as error:
            raise ParseError(source, f"not a diskstats line: {line[:120]!r}", line=number) from error
        if (count := counters.count(" ") + 1) < 17 and count not in _NUMBERS:
            raise ParseError(source, f"{count + 3} columns, expected 14, 18 or 20", line=number)
    return tuple(disks.values())


def read_diskstats(roots: Roots, *, keep: Callable[[str], bool]) -> tuple[DiskStats, ...]:
    """Read and parse the file once; ``keep`` is usually a :class:`WholeDisks`. ``Unavailable`` without the file."""
    path = f"{roots.proc}/diskstats"
    try:
        data = read_kernel(path, TABLE)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}; is procfs mounted there?") from error
    return parse_diskstats(data.decode("utf-8", "replace"), keep=keep, source=path)


class WholeDisks:
    """Remembers which names are whole disks (not partitions) that ``exclude`` doesn't fully match. Only sysfs
    distinguishes these: ``xvda1`` and ``mmcblk0`` are disks, ``nvme0n1p1`` and ``sda1`` are not. A name is looked up
    once, unless it is neither yet (just being plugged in). Hidden paths of an NVMe disk with native multipath are not
    disks, but have counters of their own. Before Linux 6.4 the disk has none (its ``queue/iostats`` is 0): then
    :attr:`paths` gives its disk for a path. Since then it counts, but until 6.9 its number of requests in flight is not
    lowered when a path fails over: that number is taken from the paths in :attr:`queues`, whose requests are the
    driver's own."""

    def __init__(self, roots: Roots, *, exclude: re.Pattern[str], partitions: bool = False) -> None:
        """``partitions``: also accept the partitions of accepted disks."""
        self._roots, self._exclude, self._partitions = roots, exclude, partitions
        self._known: dict[str, bool] = {}
        self.paths: dict[str, str] = {}  # hidden path → the disk that its counters belong to
        self.queues: dict[str, str] = {}  # hidden path → the disk that counts the same requests

    def with_partitions(self) -> WholeDisks:
        """The same disks, with their partitions."""
        return WholeDisks(self._roots, exclude=self._exclude, partitions=True)

    def __call__(self, name: str) -> bool:
        known = self._known.get(name)
        return self._look_up(name) if known is None else known

    def _look_up(self, name: str) -> bool:
        if self._exclude.fullmatch(name):
            return self._known.setdefault(name, False)
        blocks, entry = self._roots.sys / "block", name.replace("/", "!")
        if _exists(blocks / entry):
            return self._known.setdefault(name, not is_hidden(blocks / entry) or self._counts_for_its_disk(name))
        partition = self._roots.sys / "class" / "block" / entry
        if _exists(partition / "partition"):
            disk = (link_text(partition) or "").split("/")[-2:][0].replace("!", "/")
            return self._known.setdefault(name, self._partitions and self(disk))
        if not _exists(blocks):
            raise Unavailable(f"{blocks}: missing, so disks and partitions look alike; mount sysfs")
        return False

    def _counts_for_its_disk(self, name: str) -> bool:
        """The kernel names paths after disk and controller: ``nvme1c0n1`` is a path of ``nvme1n1``."""
        match = _PATH.fullmatch(name)
        disk = f"{match[1]}{match[2]}" if match else ""
        if not disk or not self(disk):
            return False
        counts = read_text(self._roots.sys / "block" / disk / "queue/iostats") != "0"
        (self.queues if counts else self.paths)[name] = disk
        return True


def read_whole_disks(roots: Roots, disks: WholeDisks) -> DiskStatsReading:
    """As :func:`read_diskstats`, with the counters of hidden paths added to those of their disk."""
    stats = read_diskstats(roots, keep=disks)
    return DiskStatsReading(merge_paths(merge_queues(stats, disks.queues), disks.paths))


def merge_queues(disks: tuple[DiskStats, ...], queues: Mapping[str, str]) -> tuple[DiskStats, ...]:
    """``disks`` without the hidden paths in ``queues`` (path → disk). A disk has in flight what its paths have."""
    if not queues:
        return disks
    in_flight: dict[str, int] = {}
    for path in disks:
        if (head := queues.get(path.name)) is not None:
            in_flight[head] = in_flight.get(head, 0) + path.in_flight
    return tuple(
        msgspec.structs.replace(disk, in_flight=in_flight.get(disk.name, disk.in_flight))
        for disk in disks
        if disk.name not in queues
    )


def merge_paths(disks: tuple[DiskStats, ...], paths: Mapping[str, str]) -> tuple[DiskStats, ...]:
    """``disks`` without the hidden ``paths`` (path → disk), whose counters are added to their disk's: a request takes
    one path. Only busy time may exceed elapsed time, when several paths work at once."""
    if not paths:
        return disks
    merged = {disk.name: disk for disk in disks if disk.name not in paths}
    for path in disks:
        head = merged.get(paths.get(path.name, ""))
        if head is not None:
            pairs = zip(_counts(head), _counts(path), strict=True)
            sums = (value if other is None else other if value is None else value + other for value, other in pairs)
            merged[head.name] = DiskStats(head.name, *sums)  # type: ignore[arg-type]
    return tuple(merged.values())


def _counts(disk: DiskStats) -> tuple[int | None, ...]:
    return tuple(getattr(disk, name) for name in disk.__struct_fields__[1:])


def _exists(path: Path) -> bool:
    """As ``Path.exists``, also for invalid path names (a NUL in a broken line)."""
    try:
        return path.exists()
    except ValueError:
        return False
