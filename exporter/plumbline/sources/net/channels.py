"""How many queues a port uses and how many it supports (``ethtool -l``): ``CHANNELS_GET`` (Linux 5.7) or its ioctl.

https://docs.kernel.org/networking/ethtool-netlink.html#channels-get

A channel is an interrupt with the queues it serves. Drivers have separate ``rx`` and ``tx`` channels or ``combined``
ones; ``other`` is for link changes and similar events. A maximum of 0 means the port has no channels of that type.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from plumbline.sources.net.ethnl import fields
from plumbline.sources.net.ethtool import SOURCE, Structure, need
from plumbline.sources.net.netlink import Message, unsigned

_NAMES = {
    2: "rx_max",
    3: "tx_max",
    4: "other_max",
    5: "combined_max",
    6: "rx",
    7: "tx",
    8: "other",
    9: "combined",
}
_CHANNELS = struct.Struct("=9I")  # struct ethtool_channels: cmd, four maxima, four settings


@dataclass(frozen=True, slots=True)
class Channels:
    """``None``: the port has no channels of that type. ``rx`` … are in force, ``*_max`` supported."""

    rx: int | None = None
    tx: int | None = None
    other: int | None = None
    combined: int | None = None
    rx_max: int | None = None
    tx_max: int | None = None
    other_max: int | None = None
    combined_max: int | None = None


def parse_channels(message: Message, *, source: str = "ethtool netlink: CHANNELS_GET") -> tuple[int, Channels]:
    """Parse a ``CHANNELS_GET`` reply → interface index and channels."""
    ifindex, found = fields(message, source=source)
    counts = {
        name: unsigned(message.data, *found[kind], source=source) for kind, name in _NAMES.items() if kind in found
    }
    return ifindex, Channels(**counts)


def parse_channels_structure(data: bytes, *, source: str = SOURCE) -> Channels:
    """Parse ``struct ethtool_channels``."""
    need(data, _CHANNELS.size, source, "GCHANNELS")
    _cmd, *counts = _CHANNELS.unpack_from(data)
    most, now = counts[:4], counts[4:]
    rx, tx, other, combined = (count if limit else None for count, limit in zip(now, most, strict=True))
    rx_max, tx_max, other_max, combined_max = (limit or None for limit in most)
    return Channels(rx, tx, other, combined, rx_max, tx_max, other_max, combined_max)


GCHANNELS = Structure(0x3C, _CHANNELS.size, parse_channels_structure)
