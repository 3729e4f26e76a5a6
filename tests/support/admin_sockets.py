"""Admin sockets as Ceph's daemons serve them, in threads of the test: answers given, or one of the ways to give none.

The protocol is that of ``src/common/admin_socket.cc``: JSON and a NUL in, a big-endian length and the answer out.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class AdminSocket:
    """One daemon's. ``answers``: prefix → what it says; ``asked``: the commands that came, decoded."""

    def __init__(self, path: Path, answers: Mapping[str, bytes], *, silent: bool = False) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answers, self._silent = answers, silent
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(str(path))
        self._listening.listen(64)
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Ends it; the file stays, as after a crash."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        for each in (self._listening, *self._open):
            each.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._answer(self._listening.accept()[0])

    def _answer(self, client: socket.socket) -> None:
        self._open.append(client)
        received = b""
        while not received.endswith(b"\0"):
            received += client.recv(4096)
        command = json.loads(received[:-1])
        self.asked.append(command)
        if self._silent:
            return
        answer = self.framed(self._answers.get(command["prefix"], b"{}"))
        with contextlib.suppress(OSError):
            client.sendall(answer)
        client.close()

    def framed(self, answer: bytes) -> bytes:
        """What goes over the wire."""
        return struct.pack(">I", len(answer)) + answer


class Garbled(AdminSocket):
    """Sends its answers as they are: without a length."""

    def framed(self, answer: bytes) -> bytes:
        return answer


@contextlib.contextmanager
def serving(path: Path, answers: Mapping[str, bytes], **how: bool) -> Iterator[AdminSocket]:
    """One socket for as long as the block lasts."""
    server = AdminSocket(path, answers, **how)
    try:
        yield server
    finally:
        server.close()
