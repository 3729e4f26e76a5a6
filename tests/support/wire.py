"""A wire between two network namespaces that is as slow, lossy or narrow as a test wants: two TUN devices, a thread.

The kernel of a test host may have neither netem nor packet filters; TUN it has.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from .netns import Namespace

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x1, 0x1000
DEVICE = "wire0"


@contextmanager
def wire(
    one: Namespace,
    other: Namespace,
    *,
    delay_s: float | Callable[[], float] = 0.0,
    carries: Callable[[bytes], bool] = lambda _packet: True,
) -> Iterator[None]:
    """``wire0`` in both, down and without addresses. Each IP packet takes ``delay_s``; what is not carried is lost."""
    ends = (one.run(_open_tun), other.run(_open_tun))
    delay = delay_s if callable(delay_s) else lambda: delay_s
    stop_read, stop_write = os.pipe()

    def carry() -> None:
        with suppress(PermissionError):  # a wire is not slower on a busy machine
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -15)
        due: list[tuple[float, int, int, bytes]] = []
        number = 0
        while True:
            now = time.monotonic()
            while due and due[0][0] <= now:
                _, _, to, packet = heapq.heappop(due)
                with suppress(OSError):  # to an end that is down: lost
                    os.write(to, packet)
            wait = max(0.0, due[0][0] - now) if due else None
            ready, _, _ = select.select([*ends, stop_read], [], [], wait)
            if stop_read in ready:
                return
            for end in ready:
                packet = os.read(end, 1 << 16)
                if carries(packet):
                    number += 1
                    heapq.heappush(due, (time.monotonic() + delay(), number, ends[end == ends[0]], packet))

    thread = threading.Thread(target=carry)
    thread.start()
    try:
        yield
    finally:
        os.write(stop_write, b"x")
        thread.join()
        for descriptor in (*ends, stop_read, stop_write):
            os.close(descriptor)


def _open_tun() -> int:
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
    return tun
