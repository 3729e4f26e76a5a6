"""One question over HTTP or HTTPS, bounded in time and size. A status that is an error is an answer, too.

The time bounds the whole exchange, with the name server, TLS, a proxy, redirects and the last byte of the answer: a
timeout for each read would let a server that sends a byte a second hold us for ever. A redirect is followed only to the
same host and port (another port for HTTPS only), and never from HTTPS to HTTP.
"""

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from plumbline.core import threads
from plumbline.core.foreign import one_line
from plumbline.errors import Unavailable
from plumbline.sources.prometheus.access import OPEN, Access

MAX_BYTES = 64 << 20  # a large node's page of metrics has some MB
NO_ANSWER = (OSError, HTTPException, ValueError)


class Page(Struct, frozen=True):
    status: int
    body: bytes
    reason: str = ""

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


def read_page(url: str, *, timeout_s: float, access: Access = OPEN, proxies: bool = True) -> Page:
    """GET ``url``. ``proxies``: those of the environment are used. :class:`Unavailable` without an answer, and for one
    of more than :data:`MAX_BYTES`."""
    try:
        if urlsplit(url).scheme not in ("http", "https"):
            raise Unavailable(f"{url}: not the address of a page; it begins with http:// or https://")
        page = exchange(url, None, timeout_s=timeout_s, access=access, max_bytes=MAX_BYTES + 1, proxies=proxies)
    except NO_ANSWER as error:
        raise Unavailable(f"{url}: {why(error)}") from error
    if len(page.body) > MAX_BYTES:
        raise Unavailable(f"{url}: the answer has more than {MAX_BYTES} bytes; is this the right address?")
    return page


def exchange(
    url: str,
    body: bytes | None,
    *,
    timeout_s: float,
    access: Access,
    max_bytes: int,
    proxies: bool = True,
    method: str | None = None,
    content_type: str | None = None,
) -> Page:
    """The answer to a GET, or to a POST of ``body`` (of a form, without ``content_type``), or to another ``method``,
    cut at ``max_bytes``; raises one of :data:`NO_ANSWER`, after at most ``timeout_s``. The scheme of ``url`` is the
    caller's to check."""
    request = urllib.request.Request(url, data=body, method=method)  # noqa: S310
    if body is not None and content_type is not None:
        request.add_header("Content-Type", content_type)
    if access.authorization is not None:
        request.add_unredirected_header("Authorization", access.authorization)  # not for the target of a redirect
    connections = _Connections(timeout_s)
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(None if proxies else {}),
        _Http(connections),
        _Https(connections, access),
        _SameHost(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return _in_time(partial(_answer, opener, request, timeout_s + 1.0, max_bytes), connections)


def _answer(opener: urllib.request.OpenerDirector, request: urllib.request.Request, s: float, max_bytes: int) -> Page:
    try:
        with opener.open(request, timeout=s) as response:
            return Page(response.status, response.read(max_bytes), response.reason)
    except urllib.error.HTTPError as error:
        with error:
            return Page(error.code, error.read(max_bytes), str(error.reason))


class _Connections:
    """The connections of one exchange. A thread that waits for one of them is woken by :meth:`end`."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._lock, self._ended = threading.Lock(), False
        self._copies: list[socket.socket] = []  # descriptors of their own: TLS takes the original out of its object

    def open(self, *arguments: Any, **settings: Any) -> socket.socket:
        """As :func:`socket.create_connection`."""
        connection = socket.create_connection(*arguments, **settings)
        with self._lock:
            self._copies.append(connection.dup())
            if not self._ended:
                return connection
        connection.close()
        raise TimeoutError("the time is over")

    def end(self) -> None:
        with self._lock:
            self._ended = True
            for copy in self._copies:
                with suppress(OSError):
                    copy.shutdown(socket.SHUT_RDWR)
                copy.close()
            self._copies.clear()


def _in_time(call: Callable[[], Page], connections: _Connections) -> Page:
    """What ``call`` returns or raises; :class:`TimeoutError` when the time is over, wherever it waits."""
    outcome: list[Page | BaseException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:  # noqa: BLE001  (raised below)
            outcome.append(error)

    thread = threads.start("exchange", run)
    try:
        thread.join(connections.timeout_s)
        late = thread.is_alive()
    finally:
        connections.end()
    if late or not outcome:
        raise TimeoutError(f"no complete answer within {connections.timeout_s:g} s")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


class _Http(urllib.request.HTTPHandler):
    def __init__(self, connections: _Connections) -> None:
        super().__init__()
        self._connections = connections

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(partial(_connection, HTTPConnection, self._connections), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, connections: _Connections, access: Access) -> None:
        super().__init__()
        self._connections, self._access = connections, access

    def https_open(self, req: urllib.request.Request) -> Any:
        connection = partial(_connection, HTTPSConnection, self._connections)
        return self.do_open(connection, req, context=self._access.context)


def _connection(kind: type[HTTPConnection], connections: _Connections, host: str, **settings: Any) -> HTTPConnection:
    made = kind(host, **settings)
    made._create_connection = connections.open  # type: ignore[attr-defined]
    return made


class _SameHost(urllib.request.HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917  (as the base class has it)
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        same = after.hostname == before.hostname and (after.port == before.port or after.scheme != before.scheme)
        if not same or after.scheme not in {"https", before.scheme}:
            raise urllib.error.URLError(f"it redirects to {one_line(newurl)}; if that is right, give that address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def why(error: Exception) -> str:
    """The reason of one of :data:`NO_ANSWER` in words, on one line."""
    reason = getattr(error, "reason", None) or error
    return one_line(reason) or type(reason).__name__
