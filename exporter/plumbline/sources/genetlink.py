"""Where the kernel keeps a generic-netlink family: its number differs from boot to boot. Asked through pyroute2.

Slow tier only: the library is asked once per start, what a scrape sends is :mod:`plumbline.sources.netlink`'s.
"""

from __future__ import annotations

import errno

from pyroute2.netlink import genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

from plumbline.sources.netlink import Refused, raise_errno


def resolve_family(name: str) -> int:
    """The message type of a generic-netlink family, e.g. ``ethtool`` (Linux 5.6).

    :class:`~plumbline.errors.Unavailable` when this kernel does not have it.
    """
    source = f"generic netlink family {name}"
    try:
        with GenericNetlinkSocket() as sock:  # type: ignore[no-untyped-call]
            sock.bind(name, genlmsg)
            return int(sock.prid)
    except NetlinkError as error:
        raise_errno(int(error.code), source)
        raise
    except OSError as error:
        raise Refused(error.errno or errno.EIO, source) from error
