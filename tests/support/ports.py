"""Ports for servers that tests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A TCP port on loopback that nobody listens on at the moment."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
