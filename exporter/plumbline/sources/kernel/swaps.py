r"""Swap areas: ``/proc/swaps`` (https://man7.org/linux/man-pages/man5/proc_swaps.5.html, mm/swapfile.c).

Filename				Type		Size		Used		Priority
/dev/dm-1                               partition	8388604		0		-2
/swap\040file                           file		2097148		0		-3
"""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel.mounts import unescape
from plumbline.sources.kernel.sysfs import read_bytes


@dataclass(frozen=True, slots=True)
class Swap:
    """One swap area: a block device or a file."""

    path: str
    is_file: bool


def parse_swaps(text: str, *, source: str = "/proc/swaps") -> tuple[Swap, ...]:
    """Parse all lines but the heading; :class:`ParseError` for a line without a type."""
    swaps = []
    for number, line in enumerate(text.split("\n")[1:], start=2):
        fields = line.split()
        if not fields:
            continue
        if len(fields) < 2:
            raise ParseError(source, f"not a swap area: {line[:80]!r}", line=number)
        swaps.append(Swap(unescape(fields[0]), fields[1] == "file"))
    return tuple(swaps)


def read_swaps(roots: Roots) -> tuple[Swap, ...]:
    """All swap areas; empty when the kernel has no swap or the file can't be read."""
    path = roots.proc / "swaps"
    data = read_bytes(path)
    return () if data is None else parse_swaps(data.decode("utf-8", "surrogateescape"), source=str(path))
