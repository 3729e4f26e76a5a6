"""A wire that takes its time: what enters one of two TAP devices leaves the other a while later, or a share never does.

For kernels without netem. A TAP device takes whole frames: the kernel has cut and summed what a NIC would have.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

_TUNSETIFF, _TAP, _NO_PREFIX = 0x400454CA, 0x0002, 0x1000  # linux/if_tun.h
_LONGEST = 1 << 16
_READY = "ready\n"


@contextmanager
def slow_wire(one: str, other: str, delay_s: float, lost: float = 0.0) -> Iterator[None]:
    """Both TAP devices exist in this thread's network namespace, and are gone at the end.

    ``lost``: the share of frames that never arrive, in either direction; which ones is the same each time.
    """
    argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, __file__, one, other, str(delay_s), str(lost)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == _READY, f"no TAP devices {one} and {other}"
            yield
        finally:
            process.terminate()


def _tap(name: str) -> int:
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP | _NO_PREFIX))
    return fd


def _relay(one: int, other: int, delay_s: float, lost: float) -> None:
    chance = random.Random(1)
    under_way: deque[tuple[float, int, bytes]] = deque()  # when it is due, where it leaves; in the order of arrival
    while True:
        wait_s = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        for fd in select.select((one, other), (), (), wait_s)[0]:
            frame = os.read(fd, _LONGEST)
            if chance.random() < lost:
                continue
            under_way.append((time.monotonic() + delay_s, other if fd == one else one, frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, out, frame = under_way.popleft()
            os.write(out, frame)


if __name__ == "__main__":
    ends = (_tap(sys.argv[1]), _tap(sys.argv[2]))
    sys.stdout.write(_READY)
    sys.stdout.flush()
    _relay(*ends, float(sys.argv[3]), float(sys.argv[4]))
