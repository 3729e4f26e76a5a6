"""Which whole physical disks the names in a configuration mean on this host."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.probes.model import Host
from plumbline.sources.disk.block import BlockDevice

OSD = "osd"
"""In the configuration: every disk that holds an OSD's data."""
_STACKED = ("dm-", "md", "bcache")
_MAX_STACK = 16  # more levels than anybody builds


def raw_disks(names: Sequence[str], host: Host) -> tuple[tuple[str, BlockDevice | None], ...]:
    """(Name, what is known about it) of every disk meant, each once, ordered by name.

    Volumes, multipath and encrypted devices stand for the disks below them: only a whole physical disk is read. A disk
    that the kernel does not show keeps its name with ``None``: it may come back.
    """
    known = {disk.name: disk for disk in host.disks()}
    wanted: list[str] = []
    for name in names:
        # a volume whose disk is gone has no disk below it any more
        wanted += [each for each in host.osd_disks() if not _afloat(each, known)] if name == OSD else [_kernel(name)]
    lowest: dict[str, BlockDevice | None] = {}
    for name in wanted:
        for each in _lowest(name, known):
            lowest[each] = known.get(each)
    return tuple(sorted(lowest.items()))


def _kernel(name: str) -> str:
    """``cciss!c0d0`` is sysfs' spelling of the kernel's ``cciss/c0d0``."""
    return name.replace("!", "/")


def _afloat(name: str, known: dict[str, BlockDevice]) -> bool:
    return name.startswith(_STACKED) and not (name in known and known[name].lower)


def _lowest(name: str, known: dict[str, BlockDevice]) -> list[str]:
    level = [name]
    for _ in range(_MAX_STACK):
        level = [lower for each in level for lower in ((known[each].lower if each in known else ()) or (each,))]
    return level
