"""Losses of the receive path, made on purpose in the network namespace of whoever calls: on loopback, or unseen."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .netns import Namespace

SO_ATTACH_FILTER = 26
UDP_SEGMENT = 103
ETH_P_IP = 0x0800
UNHANDLED = 0x88B5  # IEEE 802 local experimental: no protocol takes it


@contextmanager
def setting(name: str, value: str) -> Iterator[None]:
    """A kernel setting of the whole host, for a moment."""
    path = Path("/proc/sys") / name
    before = path.read_text()
    path.write_text(value)
    try:
        yield
    finally:
        path.write_text(before)


@contextmanager
def going_on(ns: Namespace, loss: Callable[[], object], *, pause_s: float = 0.0) -> Iterator[None]:
    """``loss()`` in the namespace again and again, on one CPU, for as long as the context lasts; at least once."""
    ended = threading.Event()
    failed: list[BaseException] = []

    def again_and_again() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        while True:
            loss()
            if ended.wait(pause_s):
                return

    def enter() -> None:
        try:
            ns.run(again_and_again)
        except BaseException as error:  # noqa: BLE001  (told below)
            failed.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failed:
        raise failed[0]


def flood() -> None:
    """A tenth of a second of datagrams over loopback: each passes a CPU's backlog."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
    ):
        sink.bind(("127.0.0.1", 0))
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            for _ in range(50):
                out.sendto(b"x", sink.getsockname())


def segment_in_the_stack() -> None:
    """From now on loopback's datagrams are cut by the stack, under one lock, and not by a device that never has to."""
    subprocess.run(["ethtool", "-K", "lo", "tx-udp-segmentation", "off"], check=True, capture_output=True)


def send_bursts(count: int) -> None:
    """So many times 64 datagrams at once: they are all in the CPU's backlog before it takes the first one out.

    Only after :func:`segment_in_the_stack`.
    """
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
    ):
        sink.bind(("127.0.0.1", 0))
        out.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 10)
        for _ in range(count):
            out.sendto(bytes(640), sink.getsockname())


def receive_slowly() -> None:
    """Ten bursts, each datagram of which runs through 40 long filters: many ticks of one receive loop."""
    divide, give_up = struct.pack("=HBBI", 0x34, 0, 0, 3), struct.pack("=HBBI", 0x06, 0, 0, 0)
    program = ctypes.create_string_buffer(divide * 4095 + give_up, 8 * 4096)
    filter_ = struct.pack("@HL", 4096, ctypes.addressof(program))
    segment_in_the_stack()
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            tap = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
            tap.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filter_)
            tap.bind(("lo", ETH_P_IP))
        send_bursts(10)


def overfill_a_socket() -> None:
    """Half a megabyte that was promised room, sent to a socket whose buffer has shrunk since, and that nobody reads."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        client.setblocking(False)
        peer, _ = server.accept()
        with peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            for _ in range(8):
                with contextlib.suppress(BlockingIOError):
                    client.send(bytes(65536))
            time.sleep(0.05)


def send_frames(device: str, count: int, size: int) -> None:
    """Broadcasts that no protocol takes."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((device, 0))
        frame = b"\xff" * 6 + b"\x02\0\0\0\0\x01" + UNHANDLED.to_bytes(2, "big")
        for _ in range(count):
            sock.send(frame.ljust(size, b"\0"))
