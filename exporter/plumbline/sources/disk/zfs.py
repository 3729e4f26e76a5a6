"""ZFS pools and the read cache (ARC), from the module's statistics: no command runs, and no read waits for a disk.

https://openzfs.github.io/openzfs-docs/man/master/8/zpool-status.8.html (the states)
https://github.com/openzfs/zfs/blob/zfs-2.2.0/module/zfs/spa_stats.c (``state`` takes no lock that a hung pool holds)

::

    /proc/spl/kstat/zfs/tank/state         ONLINE | DEGRADED | FAULTED | UNAVAIL | SUSPENDED …
    /proc/spl/kstat/zfs/arcstats           13 1 0x01 123 33456 11580513411 4318927348129
                                           name                            type data
                                           hits                            4    161230
                                           misses                          4    4501
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs

SUSPENDED = "SUSPENDED"
"""A pool that lost its devices: all reads and writes wait until ``zpool clear``."""

_HEADER_LINES = 2
_KSTAT_UINT64 = "4"


@dataclass(frozen=True, slots=True)
class Arc:
    """The read cache since the module was loaded. ``None``: not reported by this version."""

    hits: int | None
    misses: int | None
    size_bytes: int | None
    max_bytes: int | None


@dataclass(frozen=True, slots=True)
class ZfsReading:
    """The module's statistics. A pool's state is ``""`` where not reported (before 0.8)."""

    pools: Mapping[str, str]
    arc: Arc | None


NO_ZFS = ZfsReading({}, None)


def parse_kstat(text: str, *, source: str) -> dict[str, int]:
    """The unsigned 64-bit values of a named kstat, by name; others are omitted. :class:`ParseError` if malformed."""
    lines = text.splitlines()
    if len(lines) < _HEADER_LINES or lines[1].split() != ["name", "type", "data"]:
        raise ParseError(source, "the second line is not 'name type data'", line=2)
    values = {}
    for number, line in enumerate(lines[_HEADER_LINES:], start=_HEADER_LINES + 1):
        fields = line.split()
        if len(fields) != 3:
            raise ParseError(source, f"not name, type and data: {line[:60]!r}", line=number)
        if fields[1] == _KSTAT_UINT64:
            if not re.fullmatch(r"[0-9]{1,20}", fields[2]):
                raise ParseError(source, f"not a number: {fields[2][:40]!r}", line=number)
            values[fields[0]] = int(fields[2])
    return values


def read_zfs(roots: Roots) -> ZfsReading:
    """Pools by name, and the cache; all empty when the module is not loaded."""
    root = roots.proc / "spl" / "kstat" / "zfs"
    names = sysfs.entries(root)
    pools = {name: sysfs.read_text(root / name / "state") or "" for name in names if _is_pool(root / name)}
    return ZfsReading(pools, _read_arc(root / "arcstats"))


def _is_pool(path: Path) -> bool:
    """Every imported pool has a directory; everything else there is a file."""
    return path.is_dir()


def _read_arc(path: Path) -> Arc | None:
    data = sysfs.read_bytes(path)
    if data is None:
        return None
    values = parse_kstat(data.decode("utf-8", "replace"), source=str(path))
    return Arc(values.get("hits"), values.get("misses"), values.get("size"), values.get("c_max"))
