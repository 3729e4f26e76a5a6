"""Reports when network links change: appear, vanish, go up or down, or get a new name or new settings.

https://man7.org/linux/man-pages/man7/rtnetlink.7.html (multicast group ``RTNLGRP_LINK``)
https://docs.kernel.org/networking/ethtool-netlink.html (multicast group ``monitor``: rings, channels, coalescing …
changed by ``ethtool``; most drivers send no link event for these)

Only the fact of a change is reported, not its content: the receiver reads the state itself. So a burst results in one
call, and losing events to a full kernel queue (``ENOBUFS``) does no harm. An event is a hint; the owner also refreshes
on a timer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import threading
from collections.abc import Callable

from plumbline.core import threads
from plumbline.errors import PlumblineError
from plumbline.sources.net.netlink import NETLINK_GENERIC, NETLINK_ROUTE

_RTNLGRP_LINK = 1
_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP = 270, 1


class LinkEvents:
    """Listens in a thread between :meth:`start` and :meth:`stop`, in this network namespace."""

    def __init__(
        self,
        on_change: Callable[[], None],
        *,
        settings_group: Callable[[], int] | None = None,
        settle_s: float = 1.0,
    ) -> None:
        """``on_change`` is called in the thread, ``settle_s`` after the first event of a burst.

        ``settings_group`` returns ethtool's multicast group, to listen there as well; called by :meth:`start`.
        """
        self._on_change, self._settings_group, self._settle_s = on_change, settings_group, settle_s
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._wake: int | None = None
        self._woken = -1
        self._sockets: list[socket.socket] = []

    def start(self) -> None:
        """Begin to listen; ``OSError`` when the kernel refuses the socket. No event after this is missed."""
        if self._thread is not None:
            return
        with contextlib.ExitStack() as opened:
            sockets = [opened.enter_context(_listen(NETLINK_ROUTE, _RTNLGRP_LINK))]
            if self._settings_group is not None:
                # without it (before Linux 5.6), the periodic refresh finds changed settings
                with contextlib.suppress(PlumblineError, OSError):
                    sockets.append(opened.enter_context(_listen(NETLINK_GENERIC, self._settings_group())))
            wake_read, self._wake = os.pipe2(os.O_CLOEXEC)
            opened.pop_all()
        self._sockets, self._woken = sockets, wake_read
        self._stopping.clear()
        self._thread = threads.start("link-events", self._run, until=self._stopping)

    def stop(self) -> None:
        """Stop the thread at once; if it is inside ``on_change``, wait for that to return."""
        if self._thread is None or self._wake is None:
            return
        self._stopping.set()
        os.close(self._wake)  # makes the other end readable
        self._thread.join()
        self._thread, self._wake = None, None
        os.close(self._woken)
        for sock in self._sockets:
            sock.close()

    def _run(self) -> None:
        wake, sockets = self._woken, self._sockets
        while True:
            ready, _, _ = select.select([wake, *(sock.fileno() for sock in sockets)], [], [])
            if wake in ready:
                return
            _drain(sockets)
            if select.select([wake], [], [], self._settle_s)[0]:
                return
            _drain(sockets)
            self._on_change()


def _listen(protocol: int, group: int) -> socket.socket:
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    try:
        sock.setblocking(False)
        sock.bind((0, 0))
        sock.setsockopt(_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, group)
    except OSError:
        sock.close()
        raise
    return sock


def _drain(sockets: list[socket.socket]) -> None:
    for sock in sockets:
        while True:
            try:
                sock.recv(65536)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
