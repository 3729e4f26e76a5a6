"""Ports for servers that tests start."""

from __future__ import annotations

import os
import secrets
import socket

_ALL = range(12_000, 32_000)
"""Below those that the kernel gives to connections (from 32,768 on): nobody takes one between the look and the start
of the server, or while the server is stopped for a while."""


def _of_this_process() -> range:
    """Workers of one run draw from different parts: a server may bind long after its port was drawn."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    size = len(_ALL) // workers
    return _ALL[number * size : (number + 1) * size]


def free_port() -> int:
    """A TCP port on loopback that nobody listens on at the moment."""
    return free_ports(1).start


def free_ports(count: int) -> range:
    """So many in a row; drawn at random, because other processes draw at the same time."""
    ours = _of_this_process()
    while True:
        first = ours.start + secrets.randbelow(len(ours) - count)
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
