"""Which whole physical disks the names in a configuration mean on this host."""

from __future__ import annotations

from collections.abc import Sequence

from plumbline.probes.model import Host
from plumbline.sources.disk.block import BlockDevice

OSD = "osd"
"""In the configuration: every disk that holds an OSD's data."""
_STACKED = ("dm-", "md", "bcache")
_MAX_STACK = 16  # as many levels as anybody builds


def raw_disks(names: Sequence[str], host: Host) -> tuple[tuple[str, BlockDevice | None], ...]:
    """(Name, what is known of it) of every disk meant, each once, by name.

    Volumes, multipath and encrypted devices stand for the disks below them: only a whole physical disk is read. One
    that the kernel does not show keeps its name and has ``None``: it may come back.
    """
    known = {disk.name: disk for disk in host.disks()}
    wanted: list[str] = []
    for name in names:
        # a volume whose disk is gone stands on nothing any more
        wanted += [each for each in host.osd_disks() if not _afloat(each, known)] if name == OSD else [_kernel(name)]
    lowest: dict[str, BlockDevice | None] = {}
    for name in wanted:
        for each in _lowest(name, known):
            lowest[each] = known.get(each)
    return tuple(sorted(lowest.items()))


def _kernel(name: str) -> str:
    """``cciss!c0d0`` is how sysfs writes what the kernel calls ``cciss/c0d0``."""
    return name.replace("!", "/")


def _afloat(name: str, known: dict[str, BlockDevice]) -> bool:
    return name.startswith(_STACKED) and not (name in known and known[name].lower)


def _lowest(name: str, known: dict[str, BlockDevice]) -> list[str]:
    level = [name]
    for _ in range(_MAX_STACK):
        level = [lower for each in level for lower in ((known[each].lower if each in known else ()) or (each,))]
    return level
