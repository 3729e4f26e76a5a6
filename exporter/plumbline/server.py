"""Carries HTTP requests to the site: a thread a connection, everything bounded, stopped within a second."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator

from plumbline.errors import PlumblineError
from plumbline.http1 import BadRequest, Head, HeadReader, linger, send
from plumbline.site import Request, Response, text_response

_SPARE_CONNECTIONS = 64  # idle keep-alive ones, above the requests under way
_UNCOUNTED = "/-/"  # an orchestrator must not kill a daemon for being busy
_MAX_FAILING = 32  # paths are the client's words
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Server:
    """Nothing happens before :meth:`start`.

    ``max_requests`` under way at once, one more gets 503. ``timeout_s`` bounds receiving a request's head and
    sending a response; ``idle_s`` is how long a connection is kept between requests (longer than scrape intervals
    are, or each scrape would have to connect anew). When connections run out, the longest idle one is closed.
    """

    def __init__(
        self,
        host: str,
        port: int,
        respond: Callable[[Request], Response],
        *,
        logger: logging.Logger,
        max_requests: int = 40,
        timeout_s: float = 10.0,
        idle_s: float = 150.0,
    ) -> None:
        self._wanted = (host, port)
        self._respond = respond
        self._log = logger
        self._max_requests = max_requests
        self._places = threading.BoundedSemaphore(max_requests)
        self._timeout_s = timeout_s
        self._idle_s = idle_s
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self._address = format_address(host, port)
        self._stopping = threading.Event()
        self._ended = threading.Condition()  # guards the connections
        self._connections: set[_Connection] = set()
        self._failing: set[str] = set()

    @property
    def address(self) -> str:
        """``host:port``; once started with the real port, where 0 was asked for."""
        return self._address

    def start(self) -> None:
        """Bind and serve. :class:`PlumblineError` when the address can't be had."""
        self._listener = _listen(*self._wanted)
        self._address = format_address(*self._listener.getsockname()[:2])
        self._acceptor = threading.Thread(target=self._accept, args=(self._listener,), name="http", daemon=True)
        self._acceptor.start()

    def stop(self, timeout_s: float = 0.8) -> None:
        """Refuse new connections, close idle ones, let requests under way finish for up to ``timeout_s``."""
        self._stopping.set()
        if self._listener is None or self._acceptor is None:
            return
        _shut(self._listener)  # wakes accept()
        self._listener.close()
        self._acceptor.join(timeout_s)
        with self._ended:
            for connection in self._connections:
                if not connection.busy:
                    _shut(connection.sock)
            self._ended.wait_for(lambda: not self._connections, timeout_s)
            for connection in self._connections:
                _shut(connection.sock)

    def _accept(self, listener: socket.socket) -> None:
        exhausted = False
        while not self._stopping.is_set():
            try:
                sock, _ = listener.accept()
            except OSError as error:
                if error.errno in _EXHAUSTED and not self._stopping.is_set():
                    if not exhausted:
                        self._log.warning("can't accept connections: %s", error.strerror)
                    exhausted = True
                    self._stopping.wait(0.2)  # accept() would fail again at once, and spin
                continue
            exhausted = False
            self._admit(_Connection(sock))

    def _admit(self, connection: _Connection) -> None:
        with self._ended:
            if len(self._connections) >= self._max_requests + _SPARE_CONNECTIONS:
                idle = [each for each in self._connections if not each.busy]
                if not idle:
                    connection.sock.close()
                    return
                longest = min(idle, key=lambda each: each.idle_since)
                _shut(longest.sock)
                self._connections.discard(longest)
            self._connections.add(connection)
        try:
            threading.Thread(target=self._serve, args=(connection,), name="http-request", daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads
            self._log.warning("can't serve a connection: %s", error)
            self._end(connection)

    def _serve(self, connection: _Connection) -> None:
        sock = connection.sock
        try:
            # the last, short packet of a response must not wait for the peer's delayed acknowledgement
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            reader = HeadReader(sock, timeout_s=self._timeout_s, idle_s=self._idle_s)
            while self._serve_one(connection, reader):
                connection.idle_since = time.monotonic()
                connection.busy = False
        except OSError as error:  # gone, or too slow
            self._log.debug("connection ended: %s", error)
        finally:
            self._end(connection)

    def _serve_one(self, connection: _Connection, reader: HeadReader) -> bool:
        """Serve the next request; ``False`` when the connection is to be closed."""
        sock = connection.sock
        try:
            received = reader.read()
            if received is None:
                return False
            connection.busy = True
            head = Head(received)
        except BadRequest as bad:
            response = text_response(bad.status, bad.text)
            send(sock, response, body=True, keep=False, timeout_s=self._timeout_s)
            linger(sock)
            return False
        keep = head.keep and not self._stopping.is_set()
        with self._place(head.request) as free:
            response = self._answer(head.request) if free else self._busy()
            send(sock, response, body=head.command != "HEAD", keep=keep, timeout_s=self._timeout_s)
        if head.with_body:
            linger(sock)
        return keep

    @contextlib.contextmanager
    def _place(self, request: Request) -> Iterator[bool]:
        """One of the places for requests under way, or ``False`` when all are taken."""
        if request.target.startswith(_UNCOUNTED):
            yield True
            return
        free = self._places.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._places.release()

    def _busy(self) -> Response:
        text = f"{self._max_requests} requests are under way already; raise web.max_requests if that is normal here"
        return text_response(503, text, ("Retry-After", "1"))

    def _answer(self, request: Request) -> Response:
        """The site's answer; 500 when it breaks, which is logged once a path until that works again."""
        path = request.target.partition("?")[0]
        try:
            response = self._respond(request)
        except Exception as error:  # noqa: BLE001  (the client is owed an answer, the others their connections)
            if path not in self._failing and len(self._failing) < _MAX_FAILING:
                self._failing.add(path)
                self._log.error("answering %s: %s", path, type(error).__name__, exc_info=error)
            return text_response(500, "a mistake in plumbline; its log says more")
        self._failing.discard(path)
        return response

    def _end(self, connection: _Connection) -> None:
        connection.sock.close()
        with self._ended:
            self._connections.discard(connection)
            self._ended.notify_all()


class _Connection:
    """What the server has to know of a connection while its thread serves it."""

    __slots__ = ("busy", "idle_since", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.busy = False
        self.idle_since = time.monotonic()


def format_address(host: str, port: int) -> str:
    """``127.0.0.1:10047``, ``[::1]:10047``, ``:10047`` for every address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    where = format_address(host, port)
    try:
        if host in ("", "::") and socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
        infos = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = infos[0]
        return socket.create_server(address, family=family, backlog=128)
    except OSError as error:
        raise PlumblineError(f"{where}: {_why(error)}") from error


def _why(error: OSError) -> str:
    change = "choose another with --web.listen-address"
    if isinstance(error, socket.gaierror):
        return f"{error.strerror}; {change}"
    match error.errno:
        case errno.EADDRINUSE:
            return f"address already in use; {change}"
        case errno.EADDRNOTAVAIL:
            return f"this host does not have that address; {change}"
        case errno.EACCES:
            return f"no permission to listen there (ports below 1024 need CAP_NET_BIND_SERVICE); {change}"
        case _:
            return f"can't listen there: {error.strerror or error}; {change}"


def _shut(sock: socket.socket) -> None:
    """Wake whatever waits on a socket; one that is closed already, or was never connected, is no mistake."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
