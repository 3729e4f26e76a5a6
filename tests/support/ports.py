"""Ports for servers that tests start."""

from __future__ import annotations

import secrets
import socket

_OURS = range(12_000, 32_000)
"""Below those that the kernel gives to connections (from 32,768 on): nobody takes one between the look and the start
of the server, or while the server is stopped for a while."""


def free_port() -> int:
    """A TCP port on loopback that nobody listens on at the moment."""
    return free_ports(1).start


def free_ports(count: int) -> range:
    """So many in a row; drawn at random, because other processes draw at the same time."""
    while True:
        first = _OURS.start + secrets.randbelow(len(_OURS) - count)
        found = range(first, first + count)
        if all(map(_is_free, found)):
            return found


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
