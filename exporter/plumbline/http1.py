"""HTTP/1.1 on one socket: a request's head in, a response out, each with a deadline.

Parsing is the standard library's (``BaseHTTPRequestHandler.parse_request``, 15 µs a request). What it lacks stands
here: one deadline and one size limit for the whole head, where it has a timeout for each read of a client that may
send a byte at a time.
"""

from __future__ import annotations

import io
import re
import socket
import ssl
import time
from collections.abc import Sequence
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, cast

from plumbline import __version__
from plumbline.site import Headers, Request, Response

Fields = Sequence[tuple[str, str]]

MAX_HEAD = 16 * 1024
_RECEIVE = 16 * 1024
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_END_LENGTH = 4
_LINGER_READS = 16
_RECORD = 16 * 1024
"""The most that one record of TLS carries."""


class BadRequest(Exception):
    """Answered with ``status``, after which the connection is closed."""

    def __init__(self, status: int, text: str) -> None:
        self.status, self.text = status, text
        super().__init__(text)


class HeadReader:
    """Takes request heads off a socket; what follows a head waits for the next call."""

    def __init__(self, sock: socket.socket, *, timeout_s: float, idle_s: float) -> None:
        """``timeout_s``: from a head's first byte to its last; ``idle_s``: until the first byte."""
        self._sock = sock
        self._timeout_s = timeout_s
        self._idle_s = idle_s
        self._received = bytearray()

    def read(self) -> bytes | None:
        """The next head with its empty line; ``None`` when the peer closed or sent nothing for ``idle_s``.

        :class:`BadRequest` for one that is too long or too slow.
        """
        deadline: float | None = None
        searched = 0
        while True:
            if self._received.startswith((b"\r", b"\n")):  # RFC 9112, 2.2: empty lines before a request don't count
                self._received = self._received.lstrip(b"\r\n")
            end = _HEAD_END.search(self._received, searched)
            if end and end.end() <= MAX_HEAD:
                head = bytes(self._received[: end.end()])
                del self._received[: end.end()]
                return head
            if len(self._received) > MAX_HEAD:
                raise BadRequest(431, f"the request's head is longer than {MAX_HEAD} bytes")
            searched = max(0, len(self._received) - _END_LENGTH)
            if self._received and deadline is None:
                deadline = time.monotonic() + self._timeout_s
            data = self._receive(deadline)
            if not data:
                return None
            self._received += data

    def _receive(self, deadline: float | None) -> bytes:
        """What arrives next; nothing when the peer closed, or stayed silent between requests."""
        wait_s = self._idle_s if deadline is None else deadline - time.monotonic()
        try:
            if wait_s > 0:
                self._sock.settimeout(wait_s)
                return self._sock.recv(_RECEIVE)
        except TimeoutError:
            if deadline is None:
                return b""
        raise BadRequest(408, f"the request's head took longer than {self._timeout_s:g} s")


class Head(BaseHTTPRequestHandler):
    """A parsed head. ``keep``: the client wants the connection kept, and it can be: no body follows."""

    protocol_version = "HTTP/1.1"

    def __init__(self, head: bytes) -> None:
        """:class:`BadRequest` for what is no HTTP/1 request. (Not ``super()``: that would serve a socket.)"""
        self.rfile = io.BytesIO(head)
        self.raw_requestline = self.rfile.readline()
        self._failed = HTTPStatus.BAD_REQUEST
        if not self.parse_request():
            raise BadRequest(self._failed, self._failed.phrase)
        self.request = Request(self.command, self.path, cast("Headers", self.headers))
        with_body = "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0").strip() != "0"
        # HTTP/1.0 clients would have to be told that it stays open; no scraper is one
        self.keep = not (self.close_connection or with_body or self.request_version < "HTTP/1.1")
        self.with_body = with_body

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Called by ``parse_request``; the server sends."""
        self._failed = HTTPStatus(code)

    def handle_expect_100(self) -> bool:
        """No body is ever wanted."""
        return True

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


def send(
    sock: socket.socket, response: Response, *, body: bool, keep: bool, timeout_s: float, headers: Fields = ()
) -> None:
    """Send a response, in one piece and within ``timeout_s``; without its body for HEAD.

    ``headers`` are added to those that the response does not have by itself.
    """
    own = {name.lower() for name, _ in response.headers}
    lines = [
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        f"Server: plumbline/{__version__}",
        f"Date: {formatdate(usegmt=True)}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
        *(f"{name}: {value}" for name, value in response.headers),
        *(f"{name}: {value}" for name, value in headers if name.lower() not in own),
        *(() if keep else ("Connection: close",)),
    ]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    _send_all(sock, head + response.body if body else head, timeout_s)


def _send_all(sock: socket.socket, data: bytes, timeout_s: float) -> None:
    sock.settimeout(timeout_s)
    if not isinstance(sock, ssl.SSLSocket):
        sock.sendall(data)  # which counts its timeout over all parts
        return
    deadline = time.monotonic() + timeout_s
    for start in range(0, len(data), _RECORD):  # that of an SSLSocket begins anew with each part
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        sock.sendall(memoryview(data)[start : start + _RECORD])


def linger(sock: socket.socket) -> None:
    """Read away what the peer still sends: closing with unread data would reset the connection, response and all."""
    sock.shutdown(socket.SHUT_WR)
    sock.settimeout(0.5)
    for _ in range(_LINGER_READS):
        if not sock.recv(_RECEIVE):
            return
