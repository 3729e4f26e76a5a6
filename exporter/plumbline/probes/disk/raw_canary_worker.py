"""The worker of canaries on raw disks: like that of a canary in a file (:mod:`~plumbline.probes.canary.canary_worker`),
but for several disks, which it only reads.

Every disk has a thread of its own, so that a hung disk does not block the others; after a refusal, the thread tries its
disk again.

Light modules only.
"""

from __future__ import annotations

import _thread  # the threading module would cost a megabyte
import os
import sys
import time
from random import Random

from plumbline.core.backoff import Backoff
from plumbline.errors import ProbeRefused
from plumbline.probes.canary.canary_worker import FAILURES_IN_A_ROW, Operator, Reader, operate, read_order, settle
from plumbline.probes.canary.memory import PREPARING, REFUSED, RUNNING, WorkerMemory
from plumbline.probes.disk import raw_device

STACK_BYTES = 256 * 1024


def main(argv: list[str]) -> int:
    """Read until ended."""
    pause, order = settle(argv[0]), read_order(argv[1])
    disks = [(WorkerMemory(memory_fd), name) for memory_fd, name in order["targets"]]
    read_devices(disks, order["dev"], order["sys"], pause=pause)


def read_devices(disks: Sequence[tuple[WorkerMemory, str]], dev: str, sysfs: str, *, pause: Pause) -> NoReturn:
    """Start a thread per disk, after the daemon has set the I/O priority, which threads inherit."""
    while not all(memory.go for memory, _ in disks):
        pause(0.01)
    _thread.stack_size(STACK_BYTES)
    for memory, name in disks:
        _thread.start_new_thread(watch_device, (memory, name, dev, sysfs, pause))
    while True:
        pause(3600.0)


def watch_device(memory: WorkerMemory, name: str, dev: str, sysfs: str, pause: Pause) -> None:
    backoff = Backoff()
    try:
        while not memory.leaving:
            began = time.monotonic()
            try:
                read_device(memory, name, dev, sysfs, pause)
            except ProbeRefused as refusal:
                memory.preparing(0)
                memory.say(REFUSED, f"{refusal.reason}\n{refusal}")
                backoff.lasted(time.monotonic() - began)
                pause(backoff.failed())
    except BaseException:  # noqa: BLE001  (a mistake of ours ends the whole worker, and the daemon says what it was)
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


def read_device(memory: WorkerMemory, name: str, dev: str, sysfs: str, pause: Pause) -> None:
    """Open the disk for reading and read until its canary is over; raises :class:`ProbeRefused`."""
    memory.say(PREPARING)
    memory.preparing(time.monotonic_ns())
    block_bytes = max(stream.block_bytes for stream in memory.streams)
    device = raw_device.open_device(name, dev=dev, sys=sysfs, block_bytes=block_bytes)
    memory.preparing(0)
    try:
        memory.say(RUNNING)
        random = Random()  # noqa: S311
        readers = [Reader(stream, device.fd, device.size_bytes, random) for stream in memory.streams]

        def look(reader: Operator) -> None:
            if reader.failures:
                raw_device.check_still_there(device, name, sys=sysfs)
            if reader.failures >= FAILURES_IN_A_ROW:
                raise raw_device.refused("io-error", device.where, "returns fewer bytes than requested")

        operate(memory, readers, random, look=look, pause=pause)
    except OSError as error:
        raise raw_device.refused_by(error, device.where) from error
    finally:
        device.close()


TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    Pause = Callable[[float], None]
