"""A Prometheus that means no good, asked over real HTTP."""

from __future__ import annotations

import queue

import pytest

from plumbline.errors import ParseError, PlumblineError
from plumbline.sources.prometheus import api
from support.answering import Request, answering


def test_a_huge_answer_is_cut() -> None:
    ends: queue.Queue[str] = queue.Queue()

    def handle(request: Request) -> None:
        request.send_response(200)
        request.end_headers()
        piece = b" " * (1 << 20)
        try:
            for _ in range(200):
                request.wfile.write(piece)
        except OSError:
            ends.put("it hung up")
        else:
            ends.put("all of it was taken")

    with answering(handle) as url, pytest.raises(ParseError, match=f"more than {api.MAX_BYTES} bytes"):
        api.read_vector(url, "up", timeout_s=30)
    assert ends.get(timeout=30) == "it hung up"


@pytest.mark.parametrize("location", ["file:///etc/passwd", "data:text/plain,x"])
def test_it_can_not_be_sent_to_local_files(location: str) -> None:
    def handle(request: Request) -> None:
        request.send_response(302)
        request.send_header("Location", location)
        request.end_headers()

    with answering(handle) as url, pytest.raises(PlumblineError) as caught:
        api.read_vector(url, "up", timeout_s=30)
    assert "root:" not in str(caught.value)


def test_a_password_that_it_wants_is_said() -> None:
    def handle(request: Request) -> None:
        request.send_response(401)
        request.end_headers()

    with (
        answering(handle) as url,
        pytest.raises(PlumblineError, match=r"it requires credentials: --http\.config\.file"),
    ):
        api.read_vector(url, "up", timeout_s=30)


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(PlumblineError) as caught:
        api.read_vector("http://ops:hunter2@127.0.0.1:9", "up", timeout_s=1)
    assert "hunter2" not in str(caught.value)
    assert "every user of this host can read" in str(caught.value)
