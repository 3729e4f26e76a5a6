"""Interrupt coalescing (``ethtool -c``): ``COALESCE_GET`` (Linux 5.7) or its ioctl.

https://docs.kernel.org/networking/ethtool-netlink.html#coalesce-get

A port raises an interrupt after a delay (microseconds) or a number of frames, whichever comes first. In adaptive mode
the driver (or the kernel's DIM) changes both; they are then reported as either the current or the initial value.

A reply omits settings that the driver lacks. The ioctl reports 0 for these, which looks the same as a real 0, so an
ioctl's 0 is treated as unknown.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from plumbline.sources.net.ethnl import fields
from plumbline.sources.net.ethtool import SOURCE, Structure, need
from plumbline.sources.net.netlink import Message, unsigned

_RX_US, _RX_FRAMES, _TX_US, _TX_FRAMES, _RX_ADAPTIVE, _TX_ADAPTIVE = 2, 3, 6, 7, 11, 12
_COALESCE = struct.Struct("=23I")  # struct ethtool_coalesce: cmd, then its fields in the order of the attributes above


@dataclass(frozen=True, slots=True)
class Moderation:
    """One direction; ``None``: the driver has no such setting."""

    delay_us: int | None = None
    frames: int | None = None
    adaptive: bool | None = None


@dataclass(frozen=True, slots=True)
class Coalescing:
    """One port."""

    receive: Moderation
    transmit: Moderation


def parse_coalesce(message: Message, *, source: str = "ethtool netlink: COALESCE_GET") -> tuple[int, Coalescing]:
    """Parse a ``COALESCE_GET`` reply → interface index and settings."""
    ifindex, found = fields(message, source=source)

    def number(kind: int) -> int | None:
        return unsigned(message.data, *found[kind], source=source) if kind in found else None

    def direction(delay: int, frames: int, adaptive: int) -> Moderation:
        flag = number(adaptive)
        return Moderation(number(delay), number(frames), None if flag is None else flag != 0)

    return ifindex, Coalescing(direction(_RX_US, _RX_FRAMES, _RX_ADAPTIVE), direction(_TX_US, _TX_FRAMES, _TX_ADAPTIVE))


def parse_coalesce_structure(data: bytes, *, source: str = SOURCE) -> Coalescing:
    """Parse ``struct ethtool_coalesce``; 0 is treated as unknown."""
    need(data, _COALESCE.size, source, "GCOALESCE")
    values = _COALESCE.unpack_from(data)
    # the structure has the attributes' order, and attributes start at 2
    rx_us, rx_frames, tx_us, tx_frames, rx_adaptive, tx_adaptive = (
        values[kind - 1] or None for kind in (_RX_US, _RX_FRAMES, _TX_US, _TX_FRAMES, _RX_ADAPTIVE, _TX_ADAPTIVE)
    )
    return Coalescing(
        Moderation(rx_us, rx_frames, True if rx_adaptive else None),
        Moderation(tx_us, tx_frames, True if tx_adaptive else None),
    )


GCOALESCE = Structure(0x0E, _COALESCE.size, parse_coalesce_structure)
