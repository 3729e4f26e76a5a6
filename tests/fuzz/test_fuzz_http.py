"""What comes from the network: any header is answered, any request head is parsed or refused."""

from __future__ import annotations

import socket
from html.parser import HTMLParser

import httptools
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.metrics.negotiation import accepts_gzip, choose_format
from plumbline.metrics.rendering import Format
from plumbline.status.model import NicRow, ProbeRow, StatusModel
from plumbline.status.page import render_status
from plumbline.web.http1 import BadRequest, Head, HeadReader, parse_head

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
    assert isinstance(found := ours(data + b"\r\n\r\n"), Head) or 400 <= found <= 505


TOKEN = "!#$%&'*+-.^_`|~09azAZ"
"""Letters of names, by the grammar."""
odd = st.sampled_from([b"\0", b"\x0b", b"\x0c", b"\r", b"\n", b"\r\n", b"\x7f", b"\xe9", b" ", b"\t", b":", b";", b","])
names = st.one_of(
    st.sampled_from(("Host", "host", "Content-Length", "CONTENT-LENGTH", "Transfer-Encoding", "Connection", "Upgrade",
                     "Expect", "Accept", "Authorization", "Keep-Alive", "Proxy-Connection", "TE")),
    st.text(TOKEN, min_size=1, max_size=6),
).map(str.encode)  # fmt: skip
values = st.one_of(
    st.sampled_from(("x", "0", "00", "5", "5, 5", "+0", "chunked", "gzip, chunked", "Chunked", "close", "keep-alive",
                     "keep-alive, close", "upgrade", "h2c", "100-continue", "", "websocket", "*/*")).map(str.encode),
    st.text("\t ~a,;\"\xe9", max_size=8).map(lambda text: text.encode("latin-1")),
)  # fmt: skip
fields = st.lists(st.tuples(names, st.sampled_from((b":", b": ", b":\t ", b" :")), values), max_size=6)
targets = st.one_of(
    st.sampled_from((b"/", b"/metrics?name[]=a&name[]=b", b"*", b"http://x/metrics", b"https://[::1]:1/", b"//", b"x")),
    st.text('/?#%&=[]a.~;@:!|^\\"<>{}`', max_size=8).map(lambda text: b"/" + text.encode()),
)


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    """Mostly good ones; some with something odd at any place."""
    method = draw(st.sampled_from((b"GET", b"HEAD", b"POST", b"OPTIONS", b"TRACE", b"get", b"CONNECT", b"PRI", b"M")))
    version = draw(st.sampled_from((b"1.1", b"1.1", b"1.1", b"1.0", b"2.0", b"0.9", b"1.2")))
    host = draw(st.sampled_from((b"Host: x\r\n", b"Host: x\r\n", b"")))
    lines = b"".join(name + colon + value + b"\r\n" for name, colon, value in draw(fields))
    head = method + b" " + draw(targets) + b" HTTP/" + version + b"\r\n" + host + lines
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        at = draw(st.integers(0, len(head)))
        head = head[:at] + draw(odd) + head[at:]
    return head + b"\r\n"


def ours(head: bytes) -> Head | int:
    """Parsed, or the status of its refusal."""
    try:
        return parse_head(head)
    except BadRequest as bad:
        return bad.status


class Theirs:
    """What llhttp, by which Node.js serves, makes of the same bytes and a second request behind them."""

    def __init__(self, data: bytes) -> None:
        self.target, self.fields = b"", list[tuple[bytes, bytes]]()
        self.requests, self.body = 0, b""
        self.method, self.version, self.keep = b"", "", False
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.requests += 1

    def on_url(self, url: bytes) -> None:
        if self.requests == 1:
            self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.requests == 1:
            self.fields.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self.requests == 1:
            self.method, self.version = self.parser.get_method(), self.parser.get_http_version()
            self.keep = self.parser.should_keep_alive()


SECOND = b"GET /second HTTP/1.1\r\nHost: x\r\n\r\n"


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(heads())
def test_what_is_accepted_llhttp_accepts_with_the_same_meaning(data: bytes) -> None:
    """So nobody who forwards to us or is fed by us may see another request in the same bytes."""
    head = ours(data)
    if isinstance(head, int):
        return
    try:
        theirs = Theirs(data)
    except httptools.HttpParserUpgrade:
        assert not head.keep, "after an upgrade nothing is HTTP"
        return
    assert theirs.requests == 1
    assert (head.request.method, head.request.target) == (theirs.method.decode(), theirs.target.decode())
    for name, _ in theirs.fields:
        (first, *_) = [value for each, value in theirs.fields if each == name]
        assert (head.request.headers.get(name.decode()) or "").strip() == first.decode("latin-1").strip()
    if head.keep:
        assert (theirs.keep, theirs.version) == (True, "1.1")
        assert Theirs(data + SECOND).requests == 2, "what follows is a request for both"


def test_the_property_meets_good_heads_and_odd_ones() -> None:
    """Or it would hold of nothing."""
    kept = ours(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: a\r\n\r\n")
    assert isinstance(kept, Head)
    assert kept.keep
    assert ours(b"GET /metrics HTTP/1.1\r\nHost : x\r\n\r\n") == 400


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=300), lines), st.integers(1, 40))
def test_heads_come_out_however_the_bytes_arrive(data: bytes, size: int) -> None:
    """In pieces of any size the same heads are found as in one piece."""

    def found(pieces: list[bytes]) -> list[bytes]:
        near, far = socket.socketpair()
        with near, far:
            for piece in pieces:
                far.sendall(piece)
            far.shutdown(socket.SHUT_WR)
            reader = HeadReader(near, timeout_s=5, idle_s=5)
            return list(iter(reader.read, None))

    assert found([data[i : i + size] for i in range(0, len(data), size)]) == found([data])


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
