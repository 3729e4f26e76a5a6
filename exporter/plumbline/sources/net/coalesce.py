"""Interrupt coalescing (``ethtool -c``): ``COALESCE_GET`` (Linux 5.7) or its ioctl.

https://docs.kernel.org/networking/ethtool-netlink.html#coalesce-get

How long (microseconds) and for how many frames a port waits before it interrupts; whichever is reached first. Adaptive:
the driver (or the kernel's DIM) moves these by itself, and what it reports then is the moment's or the starting value.

A reply leaves out what the driver does not have. The ioctl gives 0 for that, and cannot be told from a real 0: there
a 0 is taken as not known.
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
    """A ``COALESCE_GET`` reply → interface index and settings."""
    ifindex, found = fields(message, source=source)

    def number(kind: int) -> int | None:
        return unsigned(message.data, *found[kind], source=source) if kind in found else None

    def direction(delay: int, frames: int, adaptive: int) -> Moderation:
        flag = number(adaptive)
        return Moderation(number(delay), number(frames), None if flag is None else flag != 0)

    return ifindex, Coalescing(direction(_RX_US, _RX_FRAMES, _RX_ADAPTIVE), direction(_TX_US, _TX_FRAMES, _TX_ADAPTIVE))


def parse_coalesce_structure(data: bytes, *, source: str = SOURCE) -> Coalescing:
    """``struct ethtool_coalesce``; 0 is not known."""
    need(data, _COALESCE.size, source, "GCOALESCE")
    values = _COALESCE.unpack_from(data)
    # its fields stand in the order of the attributes, which begin at 2
    rx_us, rx_frames, tx_us, tx_frames, rx_adaptive, tx_adaptive = (
        values[kind - 1] or None for kind in (_RX_US, _RX_FRAMES, _TX_US, _TX_FRAMES, _RX_ADAPTIVE, _TX_ADAPTIVE)
    )
    return Coalescing(
        Moderation(rx_us, rx_frames, True if rx_adaptive else None),
        Moderation(tx_us, tx_frames, True if tx_adaptive else None),
    )


GCOALESCE = Structure(0x0E, _COALESCE.size, parse_coalesce_structure)
