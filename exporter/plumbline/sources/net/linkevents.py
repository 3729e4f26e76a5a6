"""Reports when network links change: appear, vanish, go up or down, or get a new name or new settings.

https://man7.org/linux/man-pages/man7/rtnetlink.7.html (multicast group ``RTNLGRP_LINK``)
https://docs.kernel.org/networking/ethtool-netlink.html (multicast group ``monitor``: rings, channels, coalescing …
changed by ``ethtool``; most drivers send no link event for these)
"""

import errno
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress

from plumbline.errors import PlumblineError
from plumbline.sources.kernel.events import EventListener
from plumbline.sources.net.netlink import NETLINK_GENERIC, NETLINK_ROUTE

_RTNLGRP_LINK = 1
_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP = 270, 1


class LinkEvents(EventListener):
    """Listens in the network namespace of the thread that calls :meth:`start`."""

    def __init__(
        self, on_change: Callable[[], None], *, settings_group: Callable[[], int] | None = None, settle_s: float = 1.0
    ) -> None:
        """``settings_group`` returns ethtool's multicast group, to listen there as well; called by :meth:`start`."""
        super().__init__("link-events", on_change, settle_s)
        self._settings_group = settings_group

    def start(self) -> None:
        """Begin to listen; ``OSError`` when the kernel refuses the socket. No event after this is missed."""
        if self._thread is not None:
            return
        with ExitStack() as opened:
            sockets = [opened.enter_context(_join(NETLINK_ROUTE, _RTNLGRP_LINK))]
            if self._settings_group is not None:
                # without it (before Linux 5.6), the periodic refresh finds changed settings
                with suppress(PlumblineError, OSError):
                    sockets.append(opened.enter_context(_join(NETLINK_GENERIC, self._settings_group())))
            descriptors = [sock.fileno() for sock in sockets]
            self._listen(descriptors, lambda: sum(map(_drain, sockets)) > 0, opened.pop_all())


def _join(protocol: int, group: int) -> socket.socket:
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    try:
        sock.setblocking(False)
        sock.bind((0, 0))
        sock.setsockopt(_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, group)
    except OSError:
        sock.close()
        raise
    return sock


def _drain(sock: socket.socket) -> bool:
    seen = False
    while True:
        try:
            sock.recv(65536)
        except BlockingIOError:
            return seen
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
        seen = True
