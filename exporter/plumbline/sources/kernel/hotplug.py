"""Reports added and removed disks: the kernel's uevents of the block subsystem, through pyudev.

Events also get lost in containers without udev's socket.
"""

import logging
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import pyudev

from plumbline.core.roots import Roots
from plumbline.errors import Unavailable
from plumbline.sources.kernel.events import EventListener

_log = logging.getLogger(__name__)


class BlockHotplug(EventListener):
    """Listens for block devices that are added, removed or changed."""

    def __init__(
        self,
        roots: Roots,
        on_change: Callable[[], None],
        *,
        settle_s: float = 0.5,
        receive_buffer_bytes: int = 16 * 2**20,
    ) -> None:
        super().__init__("hotplug", on_change, settle_s)
        self._roots, self._receive_buffer_bytes = roots, receive_buffer_bytes

    @property
    def source(self) -> str:
        """``udev`` (events arrive after its rules ran and its database is current) or, without udevd, ``kernel``."""
        return "udev" if (self._roots.udev / "control").exists() else "kernel"

    def start(self) -> None:
        """Start listening. :class:`Unavailable` without libudev or where netlink is forbidden."""
        if self._thread is not None:
            raise RuntimeError("already started")
        try:
            context = pyudev.Context()  # type: ignore[no-untyped-call]
            monitor = pyudev.Monitor.from_netlink(context, source=self.source)  # type: ignore[no-untyped-call]
            monitor.filter_by("block")
            self._enlarge(monitor)
            monitor.start()
        except (ImportError, OSError) as error:
            raise Unavailable(f"block device events: {error}; new disks are found by the periodic rescan") from error
        self._listen((monitor.fileno(),), partial(self._drain, monitor), ExitStack())

    def _enlarge(self, monitor: Any) -> None:
        """A buffer above net.core.rmem_max needs CAP_NET_ADMIN; without it, use as much as the limit allows."""
        try:
            monitor.set_receive_buffer_size(self._receive_buffer_bytes)
        except OSError:
            with suppress(OSError), socket.socket(fileno=os.dup(monitor.fileno())) as netlink:
                netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)

    def _drain(self, monitor: Any) -> bool:
        seen = False
        while not self._stopping.is_set():
            try:
                device = monitor.poll(timeout=0)
            except OSError as error:
                # ENOBUFS from reading, or POLLERR, which pyudev raises without reading: the kernel dropped
                # events. Reading SO_ERROR clears the condition; otherwise poll() would report it forever.
                _log.debug("block device events were lost: %s", error)
                with socket.socket(fileno=os.dup(monitor.fileno())) as netlink:
                    netlink.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                return True
            if device is None:
                return seen
            seen = True
        return seen
