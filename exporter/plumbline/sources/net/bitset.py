"""Ethtool's bitsets, in the compact form that :data:`.ethnl.FLAG_COMPACT_BITSETS` asks for.

https://docs.kernel.org/networking/ethtool-netlink.html#bit-sets

A bitset has a size, a value and sometimes a mask. Value and mask are 32-bit words in native order, bit 0 first. Here
they are Python integers: link modes no longer fit in 64 bits (Linux 6.18 has 121).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from plumbline.errors import ParseError
from plumbline.sources.net.netlink import attributes

_VALUE, _MASK = 4, 5


@dataclass(frozen=True, slots=True)
class Bitset:
    """``mask`` is ``None`` for a plain list of bits."""

    value: int
    mask: int | None


def parse_bitset(data: bytes, start: int, end: int, *, source: str) -> Bitset:
    """Parse the nested attribute in ``data[start:end]``; :class:`ParseError` when it is not compact."""
    found = {
        kind: words(data, *span, source=source)
        for kind, *span in attributes(data, start, end, source=source)
        if kind in (_VALUE, _MASK)
    }
    if _VALUE not in found:
        raise ParseError(source, "a bit set without its value")
    return Bitset(found[_VALUE], found.get(_MASK))


def words(data: bytes, start: int, end: int, *, source: str) -> int:
    """Join 32-bit words into one integer, lowest first; :class:`ParseError` unless the length is a multiple of 4."""
    if (end - start) % 4:
        raise ParseError(source, f"a bit set of {end - start} bytes")
    number = 0
    for place, (word,) in enumerate(struct.iter_unpack("=I", data[start:end])):
        number |= word << (32 * place)
    return number
