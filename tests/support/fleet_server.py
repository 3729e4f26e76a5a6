"""Many scrape targets behind one address: an HTTP proxy that answers for hosts that exist only here.

Prometheus scrapes ``stor01:10047`` by its ``proxy_url``, so targets have the names, labels and hashes of a real fleet.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Answer = Callable[[], bytes | None]
"""A target's page now; ``None``: it can't be reached."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


@contextlib.contextmanager
def serving(targets: Mapping[str, Answer]) -> Iterator[str]:
    """``targets``: host and port → its page. Gives the proxy's URL for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = targets.get(urlsplit(self.path).netloc)
            body = answer() if answer is not None else None
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
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
