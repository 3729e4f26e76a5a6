"""A Prometheus that means no good, asked over real HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from plumbline.errors import ParseError, PlumblineError
from plumbline.sources import prometheus

Handle = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(handle: Handle) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            handle(self)

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


def test_a_huge_answer_is_cut() -> None:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        piece = b" " * (1 << 20)
        try:
            for _ in range(200):
                request.wfile.write(piece)
        except OSError:
            return  # it has hung up
        raise AssertionError("all of it was taken")

    with answering(handle) as url, pytest.raises(ParseError, match=f"more than {prometheus.MAX_BYTES} bytes"):
        prometheus.read_vector(url, "up", timeout_s=30)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "data:text/plain,x"])
def test_it_can_not_be_sent_to_local_files(location: str) -> None:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", location)
        request.end_headers()

    with answering(handle) as url, pytest.raises(PlumblineError) as caught:
        prometheus.read_vector(url, "up", timeout_s=30)
    assert "root:" not in str(caught.value)


def test_a_password_that_it_wants_is_said() -> None:
    def handle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(401)
        request.end_headers()

    with answering(handle) as url, pytest.raises(PlumblineError, match=r"it asks for a password; see docs/web\.md"):
        prometheus.read_vector(url, "up", timeout_s=30)


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(PlumblineError) as caught:
        prometheus.read_vector("http://ops:hunter2@127.0.0.1:9", "up", timeout_s=1)
    assert "hunter2" not in str(caught.value)
    assert "every user of this host could read it" in str(caught.value)
