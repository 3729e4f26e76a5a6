"""A port's rings, channels, interrupt coalescing, flow control, FEC and connector, by ethtool netlink or its ioctls.

https://docs.kernel.org/networking/ethtool-netlink.html (``RINGS_GET``, ``CHANNELS_GET`` … and their attributes)

A netlink reply has attributes only for what the driver has. The ioctl reports 0 for the rest.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec import Struct

from plumbline.sources.net.ethnl import parse_reply
from plumbline.sources.net.ethtool import ETHTOOL_GPAUSEPARAM, ETHTOOL_GRINGPARAM, Structure, unpack
from plumbline.sources.net.netlink import Message

T = TypeVar("T")

_LIMITED = struct.Struct("=9I")  # struct ethtool_ringparam, ethtool_channels: cmd, four maxima, four settings
_COALESCE = struct.Struct("=23I")  # struct ethtool_coalesce: cmd, then its fields in the order of the attributes
_RECEIVE, _TRANSMIT = (2, 3, 11), (6, 7, 12)  # attributes: delay, frames, adaptive
_PAUSE = struct.Struct("=4I")  # struct ethtool_pauseparam: cmd, autoneg, rx, tx
_PAUSE_STATS, _STAT_TX_FRAMES, _STAT_RX_FRAMES = 5, 2, 3
_FECPARAM = struct.Struct("=4I")  # struct ethtool_fecparam: cmd, active, configured, reserved
_FEC_BY_LINK_MODE = {49: "off", 50: "rs", 51: "baser", 74: "llrs"}  # ETHTOOL_LINK_MODE_FEC_*_BIT
_FEC_BY_FLAG = {1 << 2: "off", 1 << 3: "rs", 1 << 4: "baser", 1 << 5: "llrs"}  # ETHTOOL_FEC_*
PORT_FIBRE, PORT_DA, PORT_NONE = 0x03, 0x05, 0xEF
# ixgbe_ethtool.c: PORT_NONE and FIBRE for ixgbe_sfp_type_not_present; bnx2x_ethtool.c: for ETH_PHY_NOT_PRESENT,
# which bnx2x_link.c sets when the module is removed
_NONE_IS_EMPTY = frozenset({"ixgbe", "bnx2x"})


class RingSizes(Struct, frozen=True):
    """Descriptors per ring; ``None``: the device has no such ring. ``rx`` … are in force, ``*_max`` supported."""

    rx: int | None = None
    rx_mini: int | None = None
    rx_jumbo: int | None = None
    tx: int | None = None
    rx_max: int | None = None
    rx_mini_max: int | None = None
    rx_jumbo_max: int | None = None
    tx_max: int | None = None


class Channels(Struct, frozen=True):
    """Interrupts with the queues they serve (``ethtool -l``), separate or ``combined``; ``other``: link changes and the
    like; ``None``: no channels of that type."""

    rx: int | None = None
    tx: int | None = None
    other: int | None = None
    combined: int | None = None
    rx_max: int | None = None
    tx_max: int | None = None
    other_max: int | None = None
    combined_max: int | None = None


class Moderation(Struct, frozen=True):
    """One direction's interrupts: sent after a delay or a number of frames; ``None``: no such setting. In adaptive mode
    the driver (or the kernel's DIM) changes both, and reports the current or the initial value."""

    delay_us: int | None = None
    frames: int | None = None
    adaptive: bool | None = None


class Coalescing(Struct, frozen=True):
    """One port's interrupt coalescing (``ethtool -c``)."""

    receive: Moderation
    transmit: Moderation


class PauseConfig(Struct, frozen=True):
    """IEEE 802.3x flow control as configured: honour pause frames (receive), send them (transmit)."""

    autonegotiate: bool | None
    receive: bool | None
    transmit: bool | None


class PauseState(Struct, frozen=True):
    """Flow control and its frames since the driver reset the counters; ``None``: not reported here. Pause frames are
    hidden loss: a port that sends them has run out of buffer, and no drop counter increases. Only some drivers count
    them here (ixgbe, mlx5, bnxt …; in 6.12 not i40e, ice, igb); for the others, the driver table names ``ethtool -S``
    counters."""

    config: PauseConfig
    receive_frames: int | None = None
    transmit_frames: int | None = None


def _limited(message: Message, make: Callable[..., T], command: str) -> tuple[int, T]:
    """Parse a reply → interface index and counts. Attributes 2 to 5 are the maxima, 6 to 9 the settings in force."""
    ifindex, reply = parse_reply(message, source=f"ethtool netlink: {command}")
    return ifindex, make(*map(reply.number, (6, 7, 8, 9, 2, 3, 4, 5)))


def _limited_structure(data: bytes, make: Callable[..., T], command: str) -> T:
    """A maximum of 0 means that there is no such ring or channel."""
    _cmd, *counts = unpack(_LIMITED, data, command)
    maxima = counts[:4]
    settings = (count if limit else None for count, limit in zip(counts[4:], maxima, strict=True))
    return make(*settings, *(limit or None for limit in maxima))


parse_rings = partial(_limited, make=RingSizes, command="RINGS_GET")  # Linux 5.6
parse_rings_structure = partial(_limited_structure, make=RingSizes, command="GRINGPARAM")
parse_channels = partial(_limited, make=Channels, command="CHANNELS_GET")  # Linux 5.7
parse_channels_structure = partial(_limited_structure, make=Channels, command="GCHANNELS")


def parse_coalesce(message: Message) -> tuple[int, Coalescing]:
    """Parse a ``COALESCE_GET`` reply (Linux 5.7) → interface index and settings."""
    ifindex, reply = parse_reply(message, source="ethtool netlink: COALESCE_GET")
    receive, transmit = (
        Moderation(reply.number(delay), reply.number(frames), reply.flag(adaptive))
        for delay, frames, adaptive in (_RECEIVE, _TRANSMIT)
    )
    return ifindex, Coalescing(receive, transmit)


def parse_coalesce_structure(data: bytes) -> Coalescing:
    """Parse ``struct ethtool_coalesce``. Its 0 may be real or stand for a missing setting, so it counts as unknown."""
    values = unpack(_COALESCE, data, "GCOALESCE")
    # attributes start at 2, fields after the command at 1
    receive, transmit = (
        Moderation(values[delay - 1] or None, values[frames - 1] or None, values[adaptive - 1] != 0 or None)
        for delay, frames, adaptive in (_RECEIVE, _TRANSMIT)
    )
    return Coalescing(receive, transmit)


def parse_pause(message: Message) -> tuple[int, PauseState]:
    """Parse a ``PAUSE_GET`` reply, with statistics since Linux 5.10 → interface index and flow control."""
    ifindex, reply = parse_reply(message, source="ethtool netlink: PAUSE_GET")
    frames = reply.nested(_PAUSE_STATS)
    config = PauseConfig(reply.flag(2), reply.flag(3), reply.flag(4))
    return ifindex, PauseState(config, frames.number(_STAT_RX_FRAMES), frames.number(_STAT_TX_FRAMES))


def parse_pause_config(message: Message) -> tuple[int, PauseConfig]:
    """As :func:`parse_pause`, without the counters."""
    ifindex, state = parse_pause(message)
    return ifindex, state.config


def parse_pause_structure(data: bytes) -> PauseConfig:
    """Parse ``struct ethtool_pauseparam``."""
    _cmd, autoneg, receive, transmit = unpack(_PAUSE, data, "GPAUSEPARAM")
    return PauseConfig(autoneg != 0, receive != 0, transmit != 0)


def parse_fec(message: Message) -> tuple[int, str | None]:
    """Parse a ``FEC_GET`` reply (Linux 5.13) → interface index and active mode, named as in ``ethtool --set-fec``: off,
    rs, baser, llrs; ``None``: none (no link), or one newer than this program. From 25 Gb/s on, both ends must use the
    same mode: otherwise the link stays down or loses frames."""
    ifindex, reply = parse_reply(message, source="ethtool netlink: FEC_GET")
    mode = reply.number(4)
    return ifindex, None if mode is None else _FEC_BY_LINK_MODE.get(mode)


def parse_fec_structure(data: bytes) -> str | None:
    """Parse ``struct ethtool_fecparam``; ``None`` when several modes are set."""
    _cmd, active, _configured, _reserved = unpack(_FECPARAM, data, "GFECPARAM")
    return _FEC_BY_FLAG.get(active)


def parse_port(message: Message) -> tuple[int, int | None]:
    """Parse a ``LINKINFO_GET`` reply (Linux 5.6) → interface index and connector (``PORT_*``)."""
    ifindex, reply = parse_reply(message, source="ethtool netlink: LINKINFO_GET")
    return ifindex, reply.number(2)


def transceiver_present(*, port: int | None, fibre: bool, carrier: bool | None, driver: str) -> bool | None:
    """Whether a transceiver is plugged in, ``None``: unknown; ``fibre``: the port supports the link mode of that name.
    Inferred, because the module's own EEPROM is read over I²C through the card's firmware and needs ``CAP_NET_ADMIN``,
    and only switch drivers answer ``MODULE_GET`` (mlxsw, Linux 6.12). A fibre or direct-attach port with a carrier must
    have a module or cable; connector "none" is an empty cage with ixgbe and bnx2x, but other drivers report it for
    backplanes and virtual functions (i40e, iavf, hns3) or always (amd-xgbe)."""
    if fibre and carrier and port in (PORT_FIBRE, PORT_DA):
        return True
    if fibre and port == PORT_NONE and driver in _NONE_IS_EMPTY:
        return False
    return None


GRINGPARAM = Structure(ETHTOOL_GRINGPARAM, _LIMITED.size, parse_rings_structure)
GPAUSEPARAM = Structure(ETHTOOL_GPAUSEPARAM, _PAUSE.size, parse_pause_structure)
GCHANNELS = Structure(0x3C, _LIMITED.size, parse_channels_structure)
GCOALESCE = Structure(0x0E, _COALESCE.size, parse_coalesce_structure)
GFECPARAM = Structure(0x50, _FECPARAM.size, parse_fec_structure)
