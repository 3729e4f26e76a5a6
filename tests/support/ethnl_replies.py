"""Ethtool netlink replies, made attribute by attribute."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from plumbline.sources.net.netlink import Message, attribute, parse_messages

from .replay_network import message

FAMILY = 21


def reply(ifindex: int, *attributes: bytes) -> bytes:
    """A whole message about one interface."""
    header = attribute(1 | 0x8000, attribute(1, struct.pack("=I", ifindex)) + attribute(2, b"eth0\0"))
    return message(FAMILY, b"\x10\x01\0\0" + header + b"".join(attributes))


def u8(kind: int, value: int) -> bytes:
    """A byte, which is how ethtool sends booleans."""
    return attribute(kind, bytes((value,)))


def u32(kind: int, value: int) -> bytes:
    """A number."""
    return attribute(kind, struct.pack("=I", value))


def u64(kind: int, value: int) -> bytes:
    """A counter."""
    return attribute(kind, struct.pack("=Q", value))


def bits(kind: int, value: Iterable[int] | int, mask: Iterable[int] | None = None, size: int = 256) -> bytes:
    """A compact bitset of bit numbers."""
    parts = u32(2, size) + attribute(4, _words(value, size))
    if mask is None:
        parts += attribute(1, b"")
    else:
        parts += attribute(5, _words(mask, size))
    return attribute(kind | 0x8000, parts)


def strings(kind: int, names: Iterable[str]) -> bytes:
    """A string set's reply (without interface), unused strings being empty."""
    each = b"".join(
        attribute(1 | 0x8000, u32(1, index) + attribute(2, name.encode() + b"\0")) for index, name in enumerate(names)
    )
    string_set = attribute(1 | 0x8000, u32(1, kind) + attribute(3 | 0x8000, each))
    return message(FAMILY, b"\x01\x01\0\0" + attribute(2 | 0x8000, string_set), flags=0)


def only(data: bytes) -> Message:
    """The one message in it."""
    (found,) = parse_messages(data, source="test")
    return found


def _words(numbers: Iterable[int] | int, size: int) -> bytes:
    value = numbers if isinstance(numbers, int) else sum(1 << bit for bit in numbers)
    return b"".join(struct.pack("=I", value >> shift & 0xFFFFFFFF) for shift in range(0, size, 32))
