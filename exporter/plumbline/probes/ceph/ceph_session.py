"""A session with the cluster, from the daemon: requests to a worker process, each bounded in time.

The worker (``ceph_worker.py``) is started at the first request. One that does not answer in time is killed, and the
next is started after a growing pause; requests during the pause fail at once.
"""

import contextlib
import dataclasses
import errno
import json
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from plumbline.core.backoff import Backoff
from plumbline.core.foreign import parse_json, shaped
from plumbline.core.isolated import argv_of
from plumbline.core.process import Child
from plumbline.errors import ParseError
from plumbline.probes.ceph.librados import Access

log = logging.getLogger(__name__)

MARGIN_S = 3.0
"""Added to librados' own timeouts, for a busy machine."""
_MAX_ANSWER = 1 << 22


class CephSession:
    """May be used from any thread; requests are serialised."""

    def __init__(self, access: Access, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.access = access
        self._clock = clock
        self._turn = threading.Lock()
        self._process: Child | None = None
        self._socket: socket.socket | None = None
        self._connected = False
        self._backoff, self._retry_at = Backoff(), 0.0
        self._closed = False

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and not process.ended else None

    @property
    def limit_s(self) -> float:
        """Seconds that one request may take: to connect, for two operations, and the margin."""
        connecting_s = 0 if self._connected else self.access.connect_timeout_s
        return connecting_s + 2 * self.access.operation_timeout_s + MARGIN_S

    def ask(self, do: str, **arguments: object) -> Any:
        """The worker's answer; ``OSError`` with the cluster's reason, ``TimeoutError`` if there is none in time."""
        deadline = self._clock() + 2 * self.limit_s
        if not self._turn.acquire(timeout=max(0.0, deadline - self._clock())):
            raise TimeoutError(errno.ETIMEDOUT, "earlier requests to the cluster take too long")
        try:
            answer = self._exchange({"do": do, **arguments})
        finally:
            self._turn.release()
        if "error" in answer:
            raise OSError(answer["errno"], answer["error"])
        self._connected = True
        return answer["ok"]

    def close(self, timeout_s: float = 1.0) -> None:
        """End the worker; it releases its locks, if the cluster answers in time."""
        self._closed = True
        connection, process = self._socket, self._process
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        if process is not None:
            process.wait(timeout_s)
        if self._turn.acquire(timeout=0.2):
            try:
                self._end()
            finally:
                self._turn.release()

    def _exchange(self, request: dict[str, object]) -> dict[str, Any]:
        connection = self._start()
        try:
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = _parse(self._line(connection, self.limit_s))
        except (OSError, ParseError) as error:
            late = isinstance(error, TimeoutError)
            problem = f"no answer within {self.limit_s:g} s" if late else "the session with the cluster ended"
            self._end()
            self._connected = False
            self._retry_at = self._clock() + self._backoff.failed()
            raise TimeoutError(errno.ETIMEDOUT, f"{self.access}: {problem}; the session starts again") from error
        self._backoff.settled()
        return answer

    def _start(self) -> socket.socket:
        if self._closed:
            raise TimeoutError(errno.ESHUTDOWN, "the daemon is ending")
        if self._socket is not None:
            return self._socket
        wait_s = self._retry_at - self._clock()
        if wait_s > 0:
            raise TimeoutError(errno.ETIMEDOUT, f"{self.access}: no answer; next attempt in {wait_s:.0f} s")
        ours, theirs = socket.socketpair()
        try:
            worker = argv_of("plumbline.probes.ceph.ceph_worker", str(theirs.fileno()))
            self._process = Child(worker, tied=False, keep_fds=(theirs.fileno(),))
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._socket = ours
        ours.sendall(json.dumps(dataclasses.asdict(self.access)).encode() + b"\n")
        log.debug("session with %s started, pid %d", self.access, self._process.pid)
        return ours

    def _line(self, connection: socket.socket, limit_s: float) -> bytes:
        deadline = self._clock() + limit_s
        received = bytearray()
        while not received.endswith(b"\n"):
            left_s = deadline - self._clock()
            if left_s <= 0 or not select.select((connection,), (), (), left_s)[0]:
                raise TimeoutError
            part = connection.recv(1 << 16)
            if not part or len(received) > _MAX_ANSWER:
                raise ConnectionError
            received += part
        return bytes(received)

    def _end(self) -> None:
        """Kill the worker, and reap it unless it is stuck in the kernel."""
        connection, process = self._socket, self._process
        self._socket = self._process = None
        if connection is not None:
            connection.close()
        if process is not None:
            process.end(killed_within_s=1.0)


def _parse(line: bytes) -> dict[str, Any]:
    """``{"ok": …}``, or ``{"error": text, "errno": number}``; :class:`ParseError` for anything else."""
    source = "the session with the cluster"
    answer = parse_json(line, source=source)
    with shaped(source):
        return {"ok": answer["ok"]} if "ok" in answer else {"error": str(answer["error"]), "errno": answer["errno"]}


def strerror(error: OSError) -> str:
    """The error's message from the cluster or the session."""
    return error.strerror or os.strerror(error.errno or 0)
