"""A server that answers as a test says, to POST requests too, as Prometheus' queries are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

Handle = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(handle: Handle) -> Iterator[str]:
    """Its URL, for as long as the block lasts; ``handle`` is given each request, its body read."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            handle(self)

        do_GET = do_POST  # noqa: N815  (after a redirection)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
