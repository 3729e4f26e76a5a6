"""Forward error correction (FEC) in force (``ethtool --show-fec``): ``FEC_GET`` (Linux 5.13) or its ioctl.

https://docs.kernel.org/networking/ethtool-netlink.html#fec-get

From 25 Gb/s on, both ends must use the same FEC; otherwise the link stays down, or comes up and loses frames. The
reply gives the active mode as a link-mode bit; without a link there is no active mode.
"""

from __future__ import annotations

import struct

from plumbline.sources.net.ethnl import fields
from plumbline.sources.net.ethtool import SOURCE, Structure, need
from plumbline.sources.net.netlink import Message, unsigned

_ACTIVE = 4
_FECPARAM = struct.Struct("=4I")  # struct ethtool_fecparam: cmd, active, configured, reserved
_BY_LINK_MODE = {49: "off", 50: "rs", 51: "baser", 74: "llrs"}  # ETHTOOL_LINK_MODE_FEC_*_BIT
_BY_FLAG = {1 << 2: "off", 1 << 3: "rs", 1 << 4: "baser", 1 << 5: "llrs"}  # ETHTOOL_FEC_*


def parse_fec(message: Message, *, source: str = "ethtool netlink: FEC_GET") -> tuple[int, str | None]:
    """Parse a ``FEC_GET`` reply → interface index and active mode, named as in ``ethtool --set-fec``.

    Modes: off, rs, baser, llrs. ``None``: no active mode (no link), or one newer than this program.
    """
    ifindex, found = fields(message, source=source)
    if _ACTIVE not in found:
        return ifindex, None
    return ifindex, _BY_LINK_MODE.get(unsigned(message.data, *found[_ACTIVE], source=source))


def parse_fec_structure(data: bytes, *, source: str = SOURCE) -> str | None:
    """Parse ``struct ethtool_fecparam``; ``None`` when several modes are set."""
    need(data, _FECPARAM.size, source, "GFECPARAM")
    _cmd, active, _configured, _reserved = _FECPARAM.unpack_from(data)
    return _BY_FLAG.get(active)


GFECPARAM = Structure(0x50, _FECPARAM.size, parse_fec_structure)
