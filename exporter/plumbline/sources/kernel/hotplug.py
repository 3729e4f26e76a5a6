"""Reports added and removed disks: the kernel's uevents of the block subsystem, through pyudev.

An event is only a hint. Events get lost (ENOBUFS when a shelf of disks appears at once, containers without udev's
socket), so listeners must also rescan on a timer. For the same reason, the content of events is not passed on.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

import pyudev

from plumbline.core import threads
from plumbline.core.roots import Roots
from plumbline.errors import Unavailable

_log = logging.getLogger(__name__)


class _Monitor(Protocol):
    """The parts of ``pyudev.Monitor`` in use; pyudev has no types of its own."""

    def filter_by(self, subsystem: str) -> None: ...
    def set_receive_buffer_size(self, size: int) -> None: ...
    def start(self) -> None: ...
    def fileno(self) -> int: ...
    def poll(self, timeout: float) -> object | None: ...


class BlockHotplug:
    """Calls ``on_change()`` in its own thread, soon after block devices were added, removed or changed.

    A burst results in one call: after the first event, the watcher waits ``settle_s`` and collects further events. Lost
    events count as a change. ``on_change`` must be quick and not raise; best is to set a :class:`threading.Event`.
    """

    def __init__(
        self,
        roots: Roots,
        on_change: Callable[[], None],
        *,
        settle_s: float = 0.5,
        receive_buffer_bytes: int = 16 * 2**20,
    ) -> None:
        self._roots, self._on_change, self._settle_s = roots, on_change, settle_s
        self._receive_buffer_bytes = receive_buffer_bytes
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._wake: socket.socket | None = None
        self._woken: socket.socket | None = None

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
            monitor: _Monitor = pyudev.Monitor.from_netlink(context, source=self.source)  # type: ignore[no-untyped-call]
            monitor.filter_by("block")
            self._enlarge(monitor)
            monitor.start()
        except (ImportError, OSError) as error:
            raise Unavailable(f"block device events: {error}; new disks are found by the periodic rescan") from error
        self._stopping.clear()
        self._wake, self._woken = socket.socketpair()
        self._thread = threads.start("hotplug", partial(self._run, monitor, self._woken), until=self._stopping)

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Stop listening; True when the thread has ended (False only while ``on_change`` blocks)."""
        thread, wake = self._thread, self._wake
        if thread is None or wake is None:
            return True
        self._stopping.set()
        wake.close()  # makes the other end readable from here on
        thread.join(timeout_s)
        self._thread = self._wake = None
        if thread.is_alive():
            return False
        if self._woken is not None:
            self._woken.close()
        return True

    def _enlarge(self, monitor: _Monitor) -> None:
        """A buffer above net.core.rmem_max needs CAP_NET_ADMIN; without it, use as much as the limit allows."""
        try:
            monitor.set_receive_buffer_size(self._receive_buffer_bytes)
        except OSError:
            with suppress(OSError), socket.socket(fileno=os.dup(monitor.fileno())) as netlink:
                netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)

    def _run(self, monitor: _Monitor, woken: socket.socket) -> None:
        poll = select.poll()
        poll.register(monitor.fileno(), select.POLLIN)
        poll.register(woken.fileno(), select.POLLIN)
        while not self._stopping.is_set():
            poll.poll()
            if not self._drain(monitor):
                continue
            if self._stopping.wait(self._settle_s):
                return
            self._drain(monitor)
            self._on_change()

    def _drain(self, monitor: _Monitor) -> bool:
        """Consume all pending events; True when there was one, or when some were lost."""
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
