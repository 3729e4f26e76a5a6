"""What comes from the network: any header is answered, any request head is parsed or refused."""

from __future__ import annotations

import socket
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.http1 import BadRequest, Head, HeadReader
from plumbline.negotiation import accepts_gzip, choose_format
from plumbline.rendering import Format
from plumbline.status import render_status
from plumbline.status_model import NicRow, ProbeRow, StatusModel

WORDS = ("application/openmetrics-text", "text/plain", "*/*", "version=", "1.0.0", "q=", "0.5", "1", "escaping=")
pieces = st.sampled_from([*WORDS, ";", ",", '"', " ", "=", "\x00", "é"])
headers = st.one_of(st.text(max_size=80), st.lists(pieces, max_size=25).map("".join))


@given(headers)
def test_any_accept_header_gets_a_format(header: str) -> None:
    answer = choose_format(header)
    assert answer.content_type.isascii()
    assert answer.content_type.isprintable()
    assert answer.content_type.startswith(
        "application/" if answer.form is Format.OPENMETRICS else "text/plain; version="
    )


@given(headers)
def test_any_accept_encoding_is_answered(header: str) -> None:
    assert accepts_gzip(header) in (True, False)


REQUEST = (b"GET ", b"/", b"HEAD", b" HTTP/1.1", b" HTTP/1.0", b"HTTP/9", b"Host: x", b": ", b"Content-Length: ")
lines = st.lists(st.sampled_from([*REQUEST, b"\r\n", b"\n", b"5", b"\x00", b"\xff"]), max_size=20).map(b"".join)


@given(st.one_of(st.binary(max_size=200), lines))
def test_any_head_is_parsed_or_refused(data: bytes) -> None:
    try:
        head = Head(data + b"\r\n\r\n")
    except BadRequest as bad:
        status = bad.status
    else:
        assert head.request.method
        assert head.request.target
        return
    assert 400 <= status <= 505


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=300), lines), st.integers(1, 40))
def test_heads_come_out_however_the_bytes_arrive(data: bytes, size: int) -> None:
    """In pieces of any size the same heads are found as in one piece."""

    def heads(pieces: list[bytes]) -> list[bytes]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for piece in pieces:
                theirs.sendall(piece)
            theirs.shutdown(socket.SHUT_WR)
            reader = HeadReader(ours, timeout_s=5, idle_s=5)
            return list(iter(reader.read, None))

    assert heads([data[i : i + size] for i in range(0, len(data), size)]) == heads([data])


class Texts(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


@settings(deadline=None)
@given(st.text(min_size=1, max_size=20))
def test_no_name_changes_the_page(name: str) -> None:
    def page(word: str) -> list[str]:
        probe = ProbeRow(word, word, word, word, word, True, 1.0, message=word, baseline=word)
        return Texts(render_status(StatusModel(word, word, 0.0, 0.0, probes=(probe,), nics=(NicRow(word, word),)))).tags

    assert page(name) == page("eth0")
