"""Carries HTTP requests to the site: one thread per connection, everything bounded, stopped within a second.

The guard defines TLS, passwords and headers. Each connection does its handshake and password check in its own thread,
so that no client waits for another. :mod:`.connections` decides which connections stay when there are too many.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, cast

from plumbline.core import threads
from plumbline.core.log_limit import LogLimit
from plumbline.errors import PlumblineError
from plumbline.web.connections import Connection, ConnectionPool, RequestSlots, counted_as
from plumbline.web.guard import Guard
from plumbline.web.http1 import BadRequest, HeadReader, TlsRefused, linger, send
from plumbline.web.routes import Request, Response, Route, text_response

if TYPE_CHECKING:
    import ssl

_SPARE_CONNECTIONS = 64  # idle keep-alive connections, beyond the requests in progress
_UNCOUNTED = "/-/"  # an orchestrator must not kill a daemon for being busy
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_LOG_EVERY_S = 600.0
_LOG_FAILURE_EVERY_S = 60.0  # somebody may ask in turn for what works and for what fails
# Several answers of a large host. The kernel would let it grow to megabytes for each client that does not read.
_SEND_BUFFER = 256 * 1024
_THREAD_TRIES, _THREAD_WAIT_S = 5, 0.05


class Refusal(Enum):
    """Why requests and connections were refused."""

    AUTHENTICATION = "authentication"  # missing or wrong password
    TLS = "tls"  # failed handshake, or no acceptable certificate
    RATE = "rate"  # too many requests, or passwords to check
    BUSY = "busy"  # max_requests were in progress
    MALFORMED = "malformed"  # not HTTP, or too long
    SLOW = "slow"  # the request did not arrive in time
    CROWDED = "crowded"  # connections evicted or not admitted because there were too many


class _Shortage(Enum):
    """What the system may run out of. A crowd of clients makes it so again and again."""

    DESCRIPTORS = "descriptors"
    THREADS = "threads"


_BY_STATUS = {401: Refusal.AUTHENTICATION, 408: Refusal.SLOW, 429: Refusal.RATE}
_LOGGED = frozenset({Refusal.AUTHENTICATION, Refusal.TLS})  # a person may have to fix these


class Server:
    """At most ``max_requests`` are in progress at once; one more gets 503. ``timeout_s`` bounds the handshake,
    receiving a request's head and sending a response. ``idle_s``: how long a connection is kept between requests,
    longer than scrape intervals, or each scrape would have to connect anew."""

    def __init__(
        self,
        host: str,
        port: int,
        respond: Callable[[Request], Response],
        *,
        logger: logging.Logger,
        guard: Guard | None = None,
        max_requests: int = 40,
        timeout_s: float = 10.0,
        idle_s: float = 150.0,
    ) -> None:
        self._requested = (host, port)
        self._respond = respond
        self._log = logger
        self._guard = guard or Guard()
        self._max_requests = max_requests
        self._slots = RequestSlots(max_requests)
        self._timeout_s = timeout_s
        self._idle_s = idle_s
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self._address = format_address(host, port)
        self._stopping = threading.Event()
        self._connections = ConnectionPool(max_requests + _SPARE_CONNECTIONS)
        self._failing: set[Route] = set()
        self._counting = threading.Lock()
        self._refused: Counter[Refusal] = Counter()
        self._log_limit, self._failure_limit = LogLimit(_LOG_EVERY_S), LogLimit(_LOG_FAILURE_EVERY_S)

    @property
    def address(self) -> str:
        """``host:port``; once started, the real port where 0 was asked for."""
        return self._address

    @property
    def refused(self) -> Mapping[Refusal, int]:
        """How many requests and connections were refused since the start, for every reason."""
        return {reason: self._refused[reason] for reason in Refusal} | {Refusal.CROWDED: self._connections.rejected}

    def use(self, guard: Guard) -> None:
        """Use this guard from now on; waiting connections accepted under other certificates have to reconnect."""
        self._guard = guard
        self._connections.end_outdated(guard, self._timeout_s)

    def start(self) -> None:
        """Bind and serve. Raises :class:`PlumblineError` when the address can't be bound."""
        self._listener = _listen(*self._requested)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)  # accepted sockets inherit it
        self._address = format_address(*self._listener.getsockname()[:2])
        self._acceptor = threads.start("http", partial(self._accept, self._listener), until=self._stopping)

    def stop(self, timeout_s: float = 0.8) -> None:
        """Refuse new connections, close idle ones, let requests in progress finish for up to ``timeout_s``."""
        self._stopping.set()
        if self._listener is None or self._acceptor is None:
            return
        with contextlib.suppress(OSError):  # it may be closed already
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._listener.close()
        self._acceptor.join(timeout_s)
        self._connections.end(timeout_s)

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                sock, address = listener.accept()
            except OSError as error:
                if error.errno in _EXHAUSTED and not self._stopping.is_set():
                    if self._log_limit.due(_Shortage.DESCRIPTORS):
                        self._log.warning("cannot accept connections: %s", error.strerror)
                    self._stopping.wait(0.2)  # accept() would fail again at once, and spin
                continue
            self._admit(Connection(sock, counted_as(address), self._guard))

    def _admit(self, connection: Connection) -> None:
        before = self._connections.rejected
        if not self._connections.admit(connection):
            connection.sock.close()
        elif not self._start(connection):
            if self._log_limit.due(_Shortage.THREADS):
                self._log.warning("cannot serve a connection: the system allows no more threads; raise TasksMax=")
            self._connections.leave(connection)
        if self._connections.rejected > before:
            self._log_refusal(Refusal.CROWDED, connection)

    def _start(self, connection: Connection) -> bool:
        for _ in range(_THREAD_TRIES):
            try:
                threads.start("http-request", partial(self._serve, connection), died=self._log_mistake)
            except RuntimeError:  # the system allows no more threads: another connection has to free its own
                self._connections.make_room(connection)
                self._stopping.wait(_THREAD_WAIT_S)
            else:
                return True
        return False

    def _serve(self, connection: Connection) -> None:
        guard = self._guard
        connection.guard = guard
        try:
            # the last, short packet of a response must not wait for the peer's delayed acknowledgement
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if guard.context is not None:
                self._encrypt(connection, guard.context, guard.sans)
                connection.authenticated = guard.asks_certificate
            reader = HeadReader(connection.sock, timeout_s=self._timeout_s, idle_s=self._idle_s)
            while self._serve_one(connection, reader):
                connection.waits()
        except TlsRefused as why:
            self._count(Refusal.TLS, connection, str(why))
        except (OSError, ValueError) as error:  # closed or too slow; ValueError: the TLS socket was shut meanwhile
            self._log.debug("connection ended: %s", error)
        finally:
            self._connections.leave(connection)

    def _encrypt(self, connection: Connection, context: ssl.SSLContext, sans: tuple[str, ...] | None) -> None:
        from plumbline.web.tls import await_hello, handshake, wrap  # noqa: PLC0415

        plain = connection.sock
        await_hello(plain, timeout_s=self._timeout_s)
        if self._connections.swap(connection, lambda: wrap(plain, context)):
            handshake(cast("ssl.SSLSocket", connection.sock), sans, timeout_s=self._timeout_s)

    def _serve_one(self, connection: Connection, reader: HeadReader) -> bool:
        """Serve the next request; ``False`` when the connection is to be closed."""
        sock = connection.sock
        try:
            head = reader.head()
            if head is None:
                return False
        except BadRequest as bad:
            self._count(_BY_STATUS.get(bad.status, Refusal.MALFORMED), connection)
            response = text_response(bad.status, bad.text)
            headers = self._guard.headers
            send(sock, response, body=True, keep=False, timeout_s=self._timeout_s, headers=headers)
            linger(sock)
            return False
        guard = self._guard
        if connection.outdated(guard, self._timeout_s):
            return False
        refused = guard.refuse(head.request, connection.peer, lambda: connection.evicted)
        keep = head.keep and refused is None and not self._stopping.is_set()
        keep = keep and connection.guard.context is guard.context
        if refused is None:
            connection.authenticated = guard.authenticates
            connection.begins()
            response = self._answer_in_slot(head.request, connection)
        else:
            self._count(_BY_STATUS[refused.status], connection)
            response = refused
        # sending takes no slot: a slow reader must not keep others from being answered
        connection.sends()
        send(
            sock,
            response,
            body=head.request.method != "HEAD",
            keep=keep,
            timeout_s=self._timeout_s,
            headers=guard.headers,
        )
        if head.with_body:
            linger(sock)
        return keep

    def _answer_in_slot(self, request: Request, connection: Connection) -> Response:
        if request.target.startswith(_UNCOUNTED):
            return self._answer(request)
        with self._slots.slot(connection.peer) as free:
            if free:
                return self._answer(request)
        self._count(Refusal.BUSY, connection)
        text = f"{self._max_requests} requests are already in progress; raise web.max_requests if this is normal here"
        return text_response(503, text, ("Retry-After", "1"))

    def _answer(self, request: Request) -> Response:
        """The site's answer; 500 when it fails, logged once per route until that works again, at most once a minute."""
        try:
            response = self._respond(request)
        except Exception as error:  # noqa: BLE001  (the client gets an answer, and other connections continue)
            route = Route.of(request.target)
            if route not in self._failing and self._failure_limit.due(route):
                self._failing.add(route)
                self._log.error("answering %s: %s", route.value, type(error).__name__, exc_info=error)
            return text_response(500, "internal error; see the plumbline log")
        if self._failing:
            self._failing.discard(Route.of(request.target))
        return response

    def _log_mistake(self, error: Exception) -> None:
        """Log what ended a connection's thread: every connection has one, and clients open as many as they like."""
        if self._failure_limit.due(Route.UNKNOWN):
            self._log.error("serving a connection: %s", type(error).__name__, exc_info=error)

    def _count(self, why: Refusal, connection: Connection, detail: str = "") -> None:
        with self._counting:
            self._refused[why] += 1
        if why in _LOGGED:
            self._log_refusal(why, connection, detail)

    def _log_refusal(self, why: Refusal, connection: Connection, detail: str = "") -> None:
        """Log at most once per interval and reason, and nothing that the client sent."""
        if not self._log_limit.due(why):
            return
        self._log.warning(
            "refused a client from %s (%s%s); plumbline_web_requests_refused_total counts them",
            connection.peer,
            why.value,
            f": {detail}" if detail else "",
        )


def format_address(host: str, port: int) -> str:
    """``127.0.0.1:10047``, ``[::1]:10047``, ``:10047`` for all addresses."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    where = format_address(host, port)
    try:
        if host in ("", "::") and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
        name = host.encode() if host.isascii() else host  # to encode a str, Python loads the tables of Unicode
        infos = socket.getaddrinfo(name or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = infos[0]
        return socket.create_server(address, family=family, backlog=128)
    except OSError as error:
        raise PlumblineError(f"{where}: {_why(error)}") from error


def _why(error: OSError) -> str:
    change = "choose another with --web.listen-address"
    if isinstance(error, socket.gaierror):
        return f"{error.strerror}; {change}"
    reasons = {
        errno.EADDRINUSE: "address already in use",
        errno.EADDRNOTAVAIL: "this host does not have that address",
        errno.EACCES: "no permission to listen there (ports below 1024 need CAP_NET_BIND_SERVICE)",
    }
    return f"{reasons.get(error.errno or 0, f'cannot listen there: {error.strerror or error}')}; {change}"
