"""Tells when network links changed: appeared, vanished, went up or down, were renamed.

https://man7.org/linux/man-pages/man7/rtnetlink.7.html (multicast group ``RTNLGRP_LINK``)

Only *that* something changed, never what: whoever is told looks for himself. So a burst is one call, and when the
kernel's queue runs over (``ENOBUFS``) nothing is lost that matters. An event is a hint; the owner refreshes on a
timer as well.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import socket
import threading
from collections.abc import Callable

_RTMGRP_LINK = 1
_LOG = logging.getLogger(__name__)


class LinkEvents:
    """A thread between :meth:`start` and :meth:`stop`, of this network namespace."""

    def __init__(self, on_change: Callable[[], None], *, settle_s: float = 1.0) -> None:
        """``on_change`` is called in the thread, ``settle_s`` after the first event of a burst."""
        self._on_change, self._settle_s = on_change, settle_s
        self._thread: threading.Thread | None = None
        self._wake: int | None = None

    def start(self) -> None:
        """Begin to listen; ``OSError`` when the kernel refuses the socket. Events from now on are seen."""
        if self._thread is not None:
            return
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        try:
            sock.setblocking(False)
            sock.bind((0, _RTMGRP_LINK))
            wake_read, self._wake = os.pipe2(os.O_CLOEXEC)
        except OSError:
            sock.close()
            raise
        self._thread = threading.Thread(target=self._run, args=(sock, wake_read), name="link-events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, at once (unless it is inside ``on_change``, which it waits for)."""
        if self._thread is None or self._wake is None:
            return
        os.close(self._wake)  # the other end becomes readable
        self._thread.join()
        self._thread, self._wake = None, None

    def _run(self, sock: socket.socket, wake: int) -> None:
        with sock, contextlib.closing(os.fdopen(wake, "rb", buffering=0)):
            while True:
                ready, _, _ = select.select([sock.fileno(), wake], [], [])
                if wake in ready:
                    return
                _drain(sock)
                if select.select([wake], [], [], self._settle_s)[0]:
                    return
                _drain(sock)
                try:
                    self._on_change()
                except Exception:  # noqa: BLE001  (a listener that fails must not end the listening)
                    _LOG.exception("a link change could not be handled")


def _drain(sock: socket.socket) -> None:
    while True:
        try:
            sock.recv(65536)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
