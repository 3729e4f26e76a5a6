"""HTTP/1.1 on one socket: reads a request's head, sends a response, each within a deadline.

h11 parses, behind a strict grammar. This module adds what h11 lacks: one deadline and one size limit for the whole
head, because a client may send a byte at a time.
"""

import re
import socket
import time
from collections.abc import Sequence
from http import HTTPStatus

import h11
from msgspec import Struct

from plumbline import __version__
from plumbline.web.routes import Request, Response

Fields = Sequence[tuple[str, str]]

MAX_HEAD = 16 * 1024
_RECEIVE = 16 * 1024
MAX_FIELDS = 100
# Also matches ends that the grammar rejects: the client gets its error at once, not at the deadline
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_TARGET = rb"(?:/|https?://[0-9A-Za-z.\[\]:-]+/?)[!$%&'()*+,./0-9:;=?@A-Z\[\]_a-z~-]*"
_START = re.compile(rb"(?P<method>" + _TOKEN + rb") (?:" + _TARGET + rb"|\*) HTTP/(?P<version>[0-9]\.[0-9])\r\n")
_GRAMMAR = re.compile(_START.pattern + rb"(?:" + _TOKEN + rb":[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n")
_LENGTH = re.compile(rb"(?i)\ncontent-length:(.*)")
_CODING = re.compile(rb"(?i)\ntransfer-encoding:")
# GET and HEAD are served, the others get a 405; any other method's head may mean something unknown here
_METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE"})
_END_LENGTH = 4
_DATE = "%a, %d %b %Y %H:%M:%S GMT"  # RFC 9110, 5.6.7; Python does not set LC_TIME
_LINGER_READS = 16
# The most that one TLS record carries
_RECORD = 16 * 1024


class BadRequest(Exception):
    """Answered with ``status``, then the connection is closed."""

    def __init__(self, status: int, text: str) -> None:
        self.status, self.text = status, text
        super().__init__(text)


class TlsRefused(Exception):
    """The client is disconnected before its first request: no TLS, no common TLS, no certificate, or another name's."""


class Head(Struct, frozen=True):
    """A parsed head. ``keep``: the client wants the connection kept, and it can be, as no body follows."""

    request: Request
    keep: bool
    with_body: bool


class HeadReader:
    """Reads request heads from a socket; bytes after a head wait for the next call."""

    def __init__(self, sock: socket.socket, *, timeout_s: float, idle_s: float) -> None:
        """``timeout_s``: from a head's first byte to its last; ``idle_s``: until the first byte."""
        self._sock = sock
        self._timeout_s = timeout_s
        self._idle_s = idle_s
        self._received = bytearray()
        self._last: tuple[bytes, Head] | None = None

    def head(self) -> Head | None:
        """The next head, parsed; otherwise as :meth:`read`. A scraper sends the same bytes each time."""
        received = self.read()
        if received is None:
            return None
        if self._last is None or self._last[0] != received:
            self._last = received, parse_head(received)
        return self._last[1]

    def read(self) -> bytes | None:
        """The next head with its empty line; ``None`` when the peer closed or sent nothing for ``idle_s``.
        :class:`BadRequest` for a head that is too long or too slow."""
        deadline: float | None = None
        searched = 0
        while True:
            while self._received.startswith(b"\r\n"):  # RFC 9112, 2.2: empty lines before a request don't count
                del self._received[:2]
            end = _HEAD_END.search(self._received, searched)
            if end and end.end() <= MAX_HEAD:
                head = bytes(self._received[: end.end()])
                del self._received[: end.end()]
                return head
            if len(self._received) > MAX_HEAD:
                raise BadRequest(431, f"request head longer than {MAX_HEAD} bytes")
            searched = max(0, len(self._received) - _END_LENGTH)
            if self._received and deadline is None:
                deadline = time.monotonic() + self._timeout_s
            data = self._receive(deadline)
            if not data:
                return None
            self._received += data

    def _receive(self, deadline: float | None) -> bytes:
        """What arrives next; empty when the peer closed, or stayed silent between requests."""
        wait_s = self._idle_s if deadline is None else deadline - time.monotonic()
        try:
            if wait_s > 0:
                self._sock.settimeout(wait_s)
                return self._sock.recv(_RECEIVE)
        except TimeoutError:
            if deadline is None:
                return b""
        raise BadRequest(408, f"request head not received within {self._timeout_s:g} s")


def parse_head(head: bytes) -> Head:
    """Parse a head with its empty line; :class:`BadRequest` for anything another parser may read differently. The
    grammar of RFC 9112 comes first, to the letter: h11 is lax where old peers were. h11 then interprets the fields
    (framing, Host, whether the connection goes on)."""
    if not _GRAMMAR.fullmatch(head):
        raise BadRequest(400, "malformed or ambiguous request")
    start = _START.match(head)
    assert start is not None
    if start["version"] not in (b"1.0", b"1.1"):
        raise BadRequest(505, "only versions 1.0 and 1.1 are supported")
    if start["method"] not in _METHODS:
        raise BadRequest(501, "unknown method")
    lengths = _LENGTH.findall(head)
    coded = _CODING.search(head) is not None
    if len(lengths) > 1 or b"," in b"".join(lengths) or (coded and (lengths or start["version"] == b"1.0")):
        raise BadRequest(400, "ambiguous body length")
    if head.count(b"\n") > MAX_FIELDS + 2:
        raise BadRequest(431, f"more than {MAX_FIELDS} header fields")
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(head)
    try:
        request = connection.next_event()
        ended = connection.next_event()
    except h11.RemoteProtocolError as error:
        raise BadRequest(error.error_status_hint, str(error)) from None
    assert isinstance(request, h11.Request)
    # h11 gives names in lower case; of several fields with one name, the first counts
    fields = {name.decode(): value.decode("latin-1") for name, value in reversed(list(request.headers))}
    return Head(
        Request(request.method.decode(), request.target.decode(), fields),
        # kept for HTTP/1.1 only: no scraper speaks 1.0, whose clients need a header for it. Some peers take the old
        # proxies' Proxy-Connection for Connection, some don't
        keep=connection.their_state is h11.DONE and "proxy-connection" not in fields,
        with_body=not isinstance(ended, h11.EndOfMessage),
    )


def send(
    sock: socket.socket, response: Response, *, body: bool, keep: bool, timeout_s: float, headers: Fields = ()
) -> None:
    """Send a response in one piece within ``timeout_s``, without its body for HEAD; ``headers`` it lacks are added."""
    own = {name.lower() for name, _ in response.headers}
    lines = [
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        f"Server: plumbline/{__version__}",
        f"Date: {time.strftime(_DATE, time.gmtime())}",
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
    if type(sock) is socket.socket:
        sock.sendall(data)  # its timeout covers all parts
        return
    deadline = time.monotonic() + timeout_s
    for start in range(0, len(data), _RECORD):  # an SSLSocket's timeout starts anew with each part
        sock.settimeout(max(0.001, deadline - time.monotonic()))
        sock.sendall(memoryview(data)[start : start + _RECORD])


def linger(sock: socket.socket) -> None:
    """Read and discard what the peer still sends: closing with unread data would reset it and lose the response."""
    sock.shutdown(socket.SHUT_WR)
    sock.settimeout(0.5)
    for _ in range(_LINGER_READS):
        if not sock.recv(_RECEIVE):
            return
