"""Clients that mean no good, on real sockets: each kind takes what it can get for as long as the test runs."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

Address = tuple[str, int]
Attack = Callable[[Address, threading.Event], None]
Step = Callable[[socket.socket], object]
CROWD = 60
"""Connections of one kind; several kinds together are more than a daemon keeps."""


def idle(address: Address, ended: threading.Event) -> None:
    """Connections that say nothing."""
    _keep(address, ended, lambda _sock: None)


def slow_heads(address: Address, ended: threading.Event) -> None:
    """Slowloris: a byte of a head now and then."""
    _keep(address, ended, lambda sock: sock.send(b"X"), first=b"GET /metrics HTTP/1.1\r\nX-Slow: ")


def half_open_tls(address: Address, ended: threading.Event) -> None:
    """The beginning of a handshake."""
    _keep(address, ended, lambda _sock: None, first=b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")


def slow_readers(address: Address, ended: threading.Event) -> None:
    """Ask for one page after the other, and read none; from an address of their own, as they ask for all there is."""
    page = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    _keep(address, ended, lambda sock: sock.send(page), first=page * 100, source="127.0.0.2")


def huge_heads(address: Address, ended: threading.Event) -> None:
    """Heads without end, one after the other."""
    while not ended.wait(0.02):
        with contextlib.suppress(OSError), _connect(address) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000)


def guessing(context: ssl.SSLContext) -> Attack:
    """Wrong passwords over TLS, one after the other."""

    def guess(address: Address, ended: threading.Event) -> None:
        number = 0
        while not ended.wait(0.01):
            number += 1
            with (
                contextlib.suppress(OSError),
                _connect(address) as sock,
                context.wrap_socket(sock, server_hostname="localhost") as tls,
            ):
                tls.sendall(f"GET / HTTP/1.1\r\nAuthorization: Basic {number:08d}OmFiYw==\r\n\r\n".encode())
                tls.recv(1000)

    return guess


@contextlib.contextmanager
def attacked(address: Address, *attacks: Attack) -> Iterator[None]:
    """While the block runs, all of them at once."""
    ended = threading.Event()
    threads = [threading.Thread(target=attack, args=(address, ended)) for attack in attacks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)


def _keep(address: Address, ended: threading.Event, go_on: Step, first: bytes = b"", source: str = "") -> None:
    """A crowd of connections; those that the other side ends are opened anew."""
    socks: list[socket.socket] = []
    try:
        while not ended.wait(0.05):
            alive = []
            for sock in socks:
                try:
                    sock.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        go_on(sock)
                    alive.append(sock)
                except OSError:
                    sock.close()
            socks = alive
            for _ in range(CROWD - len(socks)):
                with contextlib.suppress(OSError):
                    sock = _connect(address, source)
                    sock.sendall(first)
                    socks.append(sock)
    finally:
        for sock in socks:
            sock.close()


def _connect(address: Address, source: str = "") -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(5)
    try:
        sock.bind((source, 0))
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock
