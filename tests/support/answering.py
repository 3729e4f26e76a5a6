"""A server that answers as a test says, to POST requests too, as Prometheus' queries are."""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Request(BaseHTTPRequestHandler):
    """A request, and the way to answer it."""

    body: bytes
    """What was posted."""

    def answer(self, body: bytes, *, status: int = 200, kind: str = "application/json") -> None:
        """All of an answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: many requests a second."""


Handle = Callable[[Request], None]


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that refuses the answer half-way is what a test may want: no traceback in its output."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def answering(handle: Handle, *, protocol: str = "HTTP/1.0", context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Its URL, for as long as the block lasts; ``handle`` is given each request, its body read.

    ``protocol``: with ``HTTP/1.1`` connections are kept, and each answer needs its length. ``context``: with TLS.
    """

    class Handler(Request):
        protocol_version = protocol

        def do_POST(self) -> None:
            self.body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            handle(self)

        do_GET = do_DELETE = do_POST  # noqa: N815

    with _Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http{'s' if context else ''}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
