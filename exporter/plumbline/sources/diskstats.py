"""Counters of every disk: ``/proc/diskstats`` (Documentation/admin-guide/iostats.rst, block/genhd.c).

    254       0 vda 52100 7929 2869506 13647 13822 15027 2865696 6475 0 7772 20537 4046 43 521760 335 1710 78

major, minor, name; completed, merged, sectors, ms of reads and then of writes; in flight, ms busy, ms weighted;
since Linux 4.18 the four of discards; since 5.5 completed and ms of flushes. A sector is 512 bytes here, whatever
the disk's own is. Times are summed over requests and printed as 32-bit milliseconds: they wrap, after 49.7 days of
one request at a time, and Prometheus takes a wrap for the counter reset it knows how to handle.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from plumbline.errors import ParseError, Unavailable
from plumbline.roots import Roots

_NUMBERS = frozenset({11, 15, 17})  # after the name: to 4.17, to 5.4, since 5.5
Count = Annotated[int, msgspec.Meta(ge=0)]


class DiskStats(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line. ``None``: this kernel doesn't count it. ``in_flight`` is a gauge, all else are counters.

    A msgspec struct because this is the hot path: the kernel's line is three characters short of a JSON array, and
    msgspec's strict decoder turns it into this three times faster than split, int and a named tuple do.
    """

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


_decode = msgspec.json.Decoder(DiskStats).decode


def parse_diskstats(
    text: str, *, keep: Callable[[str], bool], source: str = "/proc/diskstats"
) -> tuple[DiskStats, ...]:
    """The lines whose device name ``keep`` accepts, in the kernel's order.

    Columns that newer kernels may append are ignored; a kept line that is no diskstats line raises
    :class:`ParseError`. Lines that are not kept cost no more than their name.
    """
    disks = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line:
            continue
        try:
            _, _, name, counters = line.split(None, 3)
            if not keep(name):
                continue
            disks.append(_decode(f'["{name}",{counters.replace(" ", ",")}]'))
        except (ValueError, msgspec.DecodeError) as error:
            raise ParseError(source, f"not a diskstats line: {line[:120]!r}", line=number) from error
        if (count := counters.count(" ") + 1) < 17 and count not in _NUMBERS:
            raise ParseError(source, f"{count + 3} columns, expected 14, 18 or 20", line=number)
    return tuple(disks)


def read_diskstats(roots: Roots, *, keep: Callable[[str], bool]) -> tuple[DiskStats, ...]:
    """Read once, parse once; ``keep`` as a rule is a :class:`WholeDisks`. :class:`Unavailable` without the file."""
    path = roots.proc / "diskstats"
    try:
        with path.open("rb") as file:
            data = file.read()
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}; is procfs mounted there?") from error
    return parse_diskstats(data.decode("utf-8", "replace"), keep=keep, source=str(path))


class WholeDisks:
    """Remembers which names are whole disks (not partitions) that ``exclude`` doesn't match as a whole.

    Only sysfs knows: ``xvda1`` and ``mmcblk0`` are disks, ``nvme0n1p1`` and ``sda1`` are not. A name is looked up
    when it is first seen and then costs one dictionary lookup a scrape. What is neither disk nor partition yet
    (just being plugged in) is asked again next time.
    """

    def __init__(self, roots: Roots, *, exclude: re.Pattern[str]) -> None:
        self._sys, self._exclude = roots.sys, exclude
        self._known: dict[str, bool] = {}

    def __call__(self, name: str) -> bool:
        known = self._known.get(name)
        return self._look_up(name) if known is None else known

    def _look_up(self, name: str) -> bool:
        if self._exclude.fullmatch(name):
            self._known[name] = False
            return False
        entry = name.replace("/", "!")
        if _exists(self._sys / "block" / entry):
            self._known[name] = True
            return True
        if _exists(self._sys / "class" / "block" / entry / "partition"):
            self._known[name] = False
        elif not _exists(self._sys / "block"):
            raise Unavailable(f"{self._sys / 'block'}: not there, so disks and partitions look alike; mount sysfs")
        return False


def _exists(path: Path) -> bool:
    """As ``Path.exists``, for names that no path can have too (a NUL in a broken line)."""
    try:
        return path.exists()
    except ValueError:
        return False
