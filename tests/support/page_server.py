"""A small HTTP server whose pages a test makes as they are asked for; also a proxy that answers for hosts by itself."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Page = Callable[[str], bytes | None]
"""What is asked for (a path; a proxy is asked for a whole URL) → the body now; ``None``: it can't be had, 502."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024


@contextlib.contextmanager
def serving(page: Page) -> Iterator[str]:
    """Serve on loopback for as long as the block lasts; gives ``127.0.0.1:port``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = page(self.path)
            if body is None:
                self.send_error(502)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: many scrapes a second."""

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
