"""Link speed: ``ETHTOOL_MSG_LINKMODES_GET`` (Linux 5.6), or sysfs where that is missing.

https://docs.kernel.org/networking/ethtool-netlink.html#linkmodes-get

Slow tier: many drivers ask their firmware or the PHY for it. The number is 32 bits wide, so 100G and 800G are right;
the older ``ETHTOOL_GSET`` is blind beyond its 32 link-mode bits.
"""

from __future__ import annotations

import os

from plumbline.errors import ParseError
from plumbline.roots import Roots
from plumbline.sources.ethnl import fields
from plumbline.sources.netlink import Message, unsigned

_SPEED = 5
_UNKNOWN = 0xFFFFFFFF


def parse_speed(message: Message, *, source: str = "ethtool netlink: LINKMODES_GET") -> tuple[int, int | None]:
    """A reply → interface index and speed in Mb/s; ``None``: no link, or the driver does not know.

    Some drivers say 0 instead of "unknown" while the link is down; nothing runs at 0.
    """
    ifindex, found = fields(message, source=source)
    span = found.get(_SPEED)
    if span is None:
        return ifindex, None
    speed = unsigned(message.data, *span, source=source)
    return ifindex, None if speed in (0, _UNKNOWN) else speed


def parse_sysfs_speed(text: str, *, source: str) -> int | None:
    """``/sys/class/net/<device>/speed``: Mb/s, ``-1`` for unknown."""
    try:
        speed = int(text)
    except ValueError:
        raise ParseError(source, f"{text[:20]!r} is not a speed", line=1) from None
    return speed if speed > 0 else None


def read_sysfs_speed(roots: Roots, device: bytes) -> int | None:
    """``None`` also when the file can't be read: the kernel answers EINVAL while the link is down."""
    path = roots.sys / "class" / "net" / os.fsdecode(device) / "speed"
    try:
        text = path.read_text("ascii", "replace")
    except OSError:
        return None
    return parse_sysfs_speed(text, source=str(path))
