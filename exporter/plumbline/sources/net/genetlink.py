"""The numbers of a generic-netlink family, which differ from boot to boot. Uses pyroute2.

Slow tier only: pyroute2 is used once per start; a scrape uses :mod:`plumbline.sources.net.netlink`.
"""

import errno
from collections.abc import Callable

from pyroute2.netlink import genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

from plumbline.sources.net.netlink import Refused, raise_errno


def resolve_family(name: str) -> int:
    """The message type of a generic-netlink family, e.g. ``ethtool`` (Linux 5.6); ``Unavailable`` if it is lacking."""
    return _ask(name, lambda sock: int(sock.prid))


def settings_group() -> int:
    """The multicast group that announces changed ethtool settings; ``Unavailable`` when this kernel lacks it."""
    return _ask("ethtool", lambda sock: int(sock.mcast_groups["monitor"]))


def _ask(name: str, answer: Callable[[GenericNetlinkSocket], int]) -> int:
    source = f"generic netlink family {name}"
    try:
        with GenericNetlinkSocket() as sock:  # type: ignore[no-untyped-call]
            sock.bind(name, genlmsg)
            return answer(sock)
    except KeyError as error:
        raise Refused(errno.ENOENT, f"{source}: group {error.args[0]}") from None
    except NetlinkError as error:
        raise_errno(int(error.code), source)
        raise
    except OSError as error:
        raise Refused(error.errno or errno.EIO, source) from error
