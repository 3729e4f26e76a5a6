"""A link's speed, duplex and negotiation, and what its port supports: ``LINKMODES_GET`` (Linux 5.6) or its ioctl.

https://docs.kernel.org/networking/ethtool-netlink.html#linkmodes-get
https://github.com/torvalds/linux/blob/v6.18/include/uapi/linux/ethtool.h (``ETHTOOL_LINK_MODE_*_BIT``)

Slow tier: many drivers query their firmware or the PHY. Both forms are wide enough: the speed has 32 bits, and there
are as many modes as the kernel knows. The older ``ETHTOOL_GSET`` stops at 32 modes, so it misses all of 100G.
"""

import struct

from msgspec import Struct

from plumbline.sources.net.ethnl import parse_bitset, parse_reply, words
from plumbline.sources.net.ethtool import SOURCE, need, unpack
from plumbline.sources.net.netlink import Message

_AUTONEG, _OURS, _SPEED, _DUPLEX = 2, 3, 5, 6
_UNKNOWN_SPEED = 0xFFFFFFFF
_FULL_DUPLEX = {0: False, 1: True}  # 0xff is unknown
_SETTINGS = struct.Struct("=IIBBBBBBBb4x28x")  # struct ethtool_link_settings, then three sets of link modes

SPEEDS_MBPS = {
    10: (0, 1, 92, 99, 100, 101, 102),
    100: (2, 3, 67, 90, 91),
    1_000: (4, 5, 17, 41, 68),
    2_500: (15, 47),
    5_000: (48,),
    10_000: (12, 18, 19, 20, 42, 43, 44, 45, 46),
    20_000: (21, 22),
    25_000: (31, 32, 33),
    40_000: (23, 24, 25, 26),
    50_000: (34, 35, 40, 52, 53, 54, 55, 56),
    56_000: (27, 28, 29, 30),
    100_000: (36, 37, 38, 39, 57, 58, 59, 60, 61, 75, 76, 77, 78, 79),
    200_000: (62, 63, 64, 65, 66, 80, 81, 82, 83, 84, 103, 104, 105, 106, 107, 108),
    400_000: (69, 70, 71, 72, 73, 85, 86, 87, 88, 89, 109, 110, 111, 112, 113, 114),
    800_000: (93, 94, 95, 96, 97, 98, 115, 116, 117, 118, 119, 120),
}
"""Speed in Mb/s → bits of the modes with that speed, as of Linux 6.18. All other bits (media, pause, FEC, or newer than
this table) are ignored."""
_MASKS = tuple((mbps, sum(1 << bit for bit in bits)) for mbps, bits in sorted(SPEEDS_MBPS.items(), reverse=True))
_CAN_NEGOTIATE, _FIBRE = 1 << 6, 1 << 10


class LinkModes(Struct, frozen=True):
    """One link; ``None``: no such value, or unknown to the driver."""

    speed_mbps: int | None = None
    full_duplex: bool | None = None
    autonegotiation: bool | None = None  # On or off; None also where it is off because the port does not support it
    max_speed_mbps: int | None = None  # The fastest supported mode (maybe only of the plugged-in module)
    fibre: bool = False  # The port supports fibre
    port: int | None = None  # Connector (PORT_*); only the ioctl reports it here


def parse_linkmodes(message: Message) -> tuple[int, LinkModes]:
    """Parse a reply with compact bitsets → interface index and link. The mask of "our" modes is the supported modes."""
    ifindex, reply = parse_reply(message, source="ethtool netlink: LINKMODES_GET")
    supported = parse_bitset(reply.nested(_OURS)).mask or 0 if _OURS in reply.spans else 0
    speed, duplex, autoneg = (reply.number(kind) for kind in (_SPEED, _DUPLEX, _AUTONEG))
    return ifindex, _link_modes(speed, duplex, autoneg, supported)


def parse_link_settings(data: bytes) -> LinkModes:
    """Parse ``struct ethtool_link_settings`` and its three sets of modes, the first of which is the supported modes."""
    fields = unpack(_SETTINGS, data, "GLINKSETTINGS")
    _cmd, speed, duplex, port, _phy, autoneg, _mdio, _mdix, _mdix_set, count = fields
    size = 4 * max(count, 0)
    need(data, _SETTINGS.size + 3 * size, "GLINKSETTINGS")
    supported = words(data, _SETTINGS.size, _SETTINGS.size + size, source=SOURCE)
    return _link_modes(speed, duplex, autoneg, supported, port)


def link_modes_words(data: bytes) -> int:
    """Words in a set of modes: asked for 0 words, the kernel answers with that number, negated."""
    *_, count = unpack(_SETTINGS, data, "GLINKSETTINGS")
    return max(0, -int(count))


def link_settings_request(command: int, count: int) -> bytes:
    """The request for modes, in sets of ``count`` words."""
    return _SETTINGS.pack(command, 0, 0, 0, 0, 0, 0, 0, 0, count) + bytes(12 * count)


def _link_modes(
    speed: int | None, duplex: int | None, autoneg: int | None, supported: int, port: int | None = None
) -> LinkModes:
    # some drivers report 0 instead of "unknown" while the link is down; no link runs at 0
    return LinkModes(
        speed_mbps=None if speed in (None, 0, _UNKNOWN_SPEED) else speed,
        full_duplex=None if duplex is None else _FULL_DUPLEX.get(duplex),
        autonegotiation=None if autoneg is None or not (autoneg or supported & _CAN_NEGOTIATE) else autoneg != 0,
        max_speed_mbps=next((mbps for mbps, mask in _MASKS if supported & mask), None),
        fibre=bool(supported & _FIBRE),
        port=port,
    )
