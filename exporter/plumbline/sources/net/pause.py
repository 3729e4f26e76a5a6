"""Flow control settings and counters, from ``ETHTOOL_MSG_PAUSE_GET`` with statistics (Linux 5.10).

https://docs.kernel.org/networking/ethtool-netlink.html#pause-get

Pause frames are hidden loss: a port that sends them has run out of buffer and makes the sender wait, and no drop
counter increases. Only some drivers count them here (ixgbe, mlx5, bnxt …; in 6.12 not i40e, ice, igb); for the others,
the driver table names their ``ethtool -S`` counters.
"""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.sources.net.ethnl import fields
from plumbline.sources.net.ethtool import PauseConfig
from plumbline.sources.net.netlink import Message, attributes, unsigned

_AUTONEG, _RX, _TX, _STATS = 2, 3, 4, 5
_STAT_TX_FRAMES, _STAT_RX_FRAMES = 2, 3


@dataclass(frozen=True, slots=True)
class PauseState:
    """One port. Counters are frames since the driver reset them; ``None``: this driver does not report them here."""

    config: PauseConfig
    receive_frames: int | None = None
    transmit_frames: int | None = None


def parse_pause(message: Message, *, source: str = "ethtool netlink: PAUSE_GET") -> tuple[int, PauseState]:
    """Parse a ``PAUSE_GET`` reply → interface index and flow control."""
    ifindex, found = fields(message, source=source)
    data = message.data

    def flag(kind: int) -> bool | None:
        return unsigned(data, *found[kind], source=source) != 0 if kind in found else None

    frames: dict[int, int] = {}
    if _STATS in found:
        for kind, start, end in attributes(data, *found[_STATS], source=source):
            if kind in (_STAT_TX_FRAMES, _STAT_RX_FRAMES):
                frames[kind] = unsigned(data, start, end, source=source)
    config = PauseConfig(flag(_AUTONEG), flag(_RX), flag(_TX))
    return ifindex, PauseState(config, frames.get(_STAT_RX_FRAMES), frames.get(_STAT_TX_FRAMES))


def parse_pause_config(message: Message, *, source: str = "ethtool netlink: PAUSE_GET") -> tuple[int, PauseConfig]:
    """As :func:`parse_pause`, without the counters."""
    ifindex, state = parse_pause(message, source=source)
    return ifindex, state.config
