"""Heads that two parsers may read in two ways: the real server answers 400 or nothing, and never what comes behind."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

from plumbline.web.routes import Request, Response, text_response
from plumbline.web.server import Refusal, Server

START = b"GET /first HTTP/1.1\r\nHost: x\r\n"
SECOND = b"GET /second HTTP/1.1\r\nHost: x\r\n\r\n"
ODD: dict[str, bytes] = {
    "two equal lengths": START + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "two lengths": START + b"Content-Length: 0\r\nContent-Length: 37\r\n\r\n",
    "two lengths in one field": START + b"Content-Length: 0, 0\r\n\r\n",
    "two lengths, other cases": START + b"Content-Length: 0\r\ncontent-LENGTH: 0\r\n\r\n",
    "a length with a sign": START + b"Content-Length: +0\r\n\r\n",
    "a negative length": START + b"Content-Length: -1\r\n\r\n",
    "a length in hexadecimal": START + b"Content-Length: 0x0\r\n\r\n",
    "an empty length": START + b"Content-Length:\r\n\r\n",
    "a length with an underscore": START + b"Content-Length: 0_0\r\n\r\n",
    "a length of 30 digits": START + b"Content-Length: " + b"0" * 30 + b"\r\n\r\n",
    "a length and chunks": START + b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": START + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "chunks twice": START + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and more": START + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunks with a letter of another script": START + b"Transfer-Encoding: chun\xe2\x84\xaaed\r\n\r\n0\r\n\r\n",
    "chunks behind a vertical tab": START + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "chunks of HTTP/1.0": b"GET /first HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another coding": START + b"Transfer-Encoding: gzip\r\n\r\n",
    "a space before the colon": START + b"Content-Length : 0\r\n\r\n",
    "a tab before the colon": START + b"Content-Length\t: 0\r\n\r\n",
    "a space before the name": START + b" Content-Length: 0\r\n\r\n",
    "a folded line": START + b"X: a\r\n b\r\n\r\n",
    "a folded length": START + b"Content-Length:\r\n 0\r\n\r\n",
    "a line folded at once": b"GET /first HTTP/1.1\r\n Host: x\r\n\r\n",
    "a line without a colon": START + b"nonsense\r\nContent-Length: 0\r\n\r\n",
    "a line without a name": START + b": x\r\n\r\n",
    "a name that is not ASCII": START + b"Content-L\xc3\xa9ngth: 0\r\n\r\n",
    "a name in Latin-1": START + b"X\xe9: 0\r\n\r\n",
    "a name with a slash": START + b"X/Y: 0\r\n\r\n",
    "a NUL in a name": START + b"Content-Length\0: 0\r\n\r\n",
    "a NUL in a value": START + b"X: a\0b\r\n\r\n",
    "a vertical tab in a value": START + b"X: a\x0bb\r\n\r\n",
    "a form feed in a value": START + b"X: a\x0cb\r\n\r\n",
    "DEL in a value": START + b"X: a\x7fb\r\n\r\n",
    "a bare CR in a value": START + b"X: a\rContent-Length: 0\r\n\r\n",
    "a bare CR at a line's end": START + b"X: a\r\r\n\r\n",
    "a bare CR before the end": START + b"X: a\r\n\r\r\n\r\n",
    "a bare LF in the head": START + b"X: a\nContent-Length: 0\r\n\r\n",
    "a bare LF at the end": START + b"X: a\r\n\n",
    "nothing but bare LF": b"GET /first HTTP/1.1\nHost: x\n\n",
    "bare LF before the request": b"\n" + START + b"\r\n",
    "bare CR before the request": b"\r" + START + b"\r\n",
    "no host": b"GET /first HTTP/1.1\r\n\r\n",
    "two hosts": START + b"Host: y\r\n\r\n",
    "two equal hosts": START + b"Host: x\r\n\r\n",
    "two blanks in the request line": b"GET  /first HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tab in the request line": b"GET\t/first HTTP/1.1\r\nHost: x\r\n\r\n",
    "a blank in the target": b"GET /first x HTTP/1.1\r\nHost: x\r\n\r\n",
    "a blank at the request line's end": b"GET /first HTTP/1.1 \r\nHost: x\r\n\r\n",
    "a blank before the method": b" GET /first HTTP/1.1\r\nHost: x\r\n\r\n",
    "a target that is not ASCII": b"GET /f\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a target without a slash": b"GET first HTTP/1.1\r\nHost: x\r\n\r\n",
    "HTTP/0.9": b"GET /first\r\n\r\n",
    "HTTP/1.2": b"GET /first HTTP/1.2\r\nHost: x\r\n\r\n",
    "HTTP/01.1": b"GET /first HTTP/01.1\r\nHost: x\r\n\r\n",
    "http in small letters": b"GET /first http/1.1\r\nHost: x\r\n\r\n",
    "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a method that there is not": b"GTE /first HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
}
ENDS: dict[str, bytes] = {
    "a body": START + b"Content-Length: 39\r\n\r\n",
    "chunks": START + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another protocol": START + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n",
    "an old proxy's close": START + b"Proxy-Connection: close\r\n\r\n",
    "close among others": START + b"Connection: x\r\nConnection: y, Close\r\n\r\n",
}
"""Good requests after which the connection ends, whatever follows."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server("127.0.0.1", 0, target, logger=logging.getLogger("test"), idle_s=2.0)
    made.start()
    yield made
    made.stop()


def target(request: Request) -> Response:
    return text_response(200, f"answered {request.target}")


def exchange(server: Server, *parts: bytes) -> bytes:
    """Everything the server says until it closes, which it must."""
    with socket.create_connection(("127.0.0.1", int(server.address.rpartition(":")[2])), timeout=30) as sock:
        for part in parts:
            sock.sendall(part)
        return b"".join(iter(lambda: sock.recv(65536), b""))


@pytest.mark.parametrize("form", ODD)
def test_an_odd_head_ends_the_connection(server: Server, form: str) -> None:
    before = server.refused[Refusal.MALFORMED]
    got = exchange(server, ODD[form] + SECOND)
    assert got.count(b"HTTP/1.1 ") == 1
    assert got.split(b" ")[1] in (b"400", b"501", b"505")
    assert b"\r\nConnection: close\r\n" in got
    assert b"answered" not in got
    assert server.refused[Refusal.MALFORMED] == before + 1


@pytest.mark.parametrize("form", ENDS)
def test_what_follows_a_body_or_an_end_is_not_answered(server: Server, form: str) -> None:
    got = exchange(server, ENDS[form] + SECOND)
    assert got.count(b"HTTP/1.1 ") == 1
    assert got.endswith(b"answered /first\n")
    assert b"\r\nConnection: close\r\n" in got


def test_good_ones_are_answered_one_after_the_other(server: Server) -> None:
    """Or nothing above would show anything."""
    last = b"GET /third HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    got = exchange(server, START + b"Content-Length: 0\r\n\r\n", b"\r\n\r\n" + SECOND, last)
    assert got.count(b"HTTP/1.1 200 ") == 3
    assert got.index(b"/first") < got.index(b"/second") < got.index(b"/third")


def test_an_odd_head_in_pieces_is_as_odd(server: Server) -> None:
    odd = ODD["a space before the colon"]
    got = exchange(server, odd[:25], odd[25:], SECOND)
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"answered" not in got
