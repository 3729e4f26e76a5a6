# ruff: noqa: E501  (payloads, many a line)
"""Answers of a server, tool or node that lies: made from a valid one, and such as no format has."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from support.answering import Request

ANY: dict[str, bytes] = {
    "nothing": b"",
    "a space": b" ",
    "null": b"null",
    "true": b"true",
    "a list": b"[]",
    "a list of null": b"[null]",
    "an object": b"{}",
    "a text": b'"x"',
    "zero": b"0",
    "minus zero": b"-0",
    "1e999": b"1e999",
    "-1e999": b"-1e999",
    "a list of 1e999": b"[1e999]",
    "NaN": b"NaN",
    "-nan": b"-nan",
    "Infinity": b"[Infinity]",
    "2^64": b"18446744073709551616",
    "a long integer": b"9" * 5000,
    "a long exponent": b"1e" + b"9" * 5000,
    "deep lists": b"[" * 100_000,
    "deep closed lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep below an unknown key": b'{"unknown":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "many values": b"[" + b"0," * 6_000_000 + b"0]",
    "many objects": b"[" + b"{}," * 3_000_000 + b"{}]",
    "a long text": b'"' + b"x" * (1 << 20) + b'"',
    "not UTF-8": b'{"a": "\xff"}',
    "half a surrogate": b'{"a": "\\ud800"}',
    "a surrogate as bytes": b'"\xed\xa0\x80"',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": "{}".encode("utf-16"),
    "NUL": b"\0\0\0\0",
    "a page": b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>",
    "escape sequences": b'"\x1b[2J\x1b]0;x\x07"',
    "a line break in a key": b'{"a\\nplumbline: all is well\\n": 1}',
    "two documents": b"{}{}",
    "a comment": b"{/* x */}",
}
"""Name → an answer that is of no use to any reader."""

_INSTEAD = [
    b"null", b"true", b"[]", b"{}", b"[[]]", b'""', b'"x"', b'"+Inf"', b'"NaN"', b'"1e999"', b'"\\u001b[2J\\n\\u0000"', b"-1", b"-0",
    b"0.5", b"1e300", b"1e999", b"NaN", b"18446744073709551616", b"9223372036854775808", b"9" * 400, b'"' + b"y" * 100_000 + b'"',
    b"[" * 3000 + b"]" * 3000,
]  # fmt: skip
_HOLE = "plumbline-hole"


def mutations(valid: bytes) -> Iterator[tuple[str, bytes]]:
    """Name → the valid answer with one thing wrong: a value replaced, a key missing or repeated, cut short."""
    data = json.loads(valid)
    paths = list(_paths(data))
    for path in paths:
        at = ".".join(map(str, path)) or "all"
        holed = json.dumps(_with(data, path, _HOLE)).encode()
        for instead in _INSTEAD:
            yield f"{at} = {instead[:20].decode()}", holed.replace(f'"{_HOLE}"'.encode(), instead)
        if path and isinstance(path[-1], str):
            yield f"without {at}", json.dumps(_without(data, path)).encode()
            twice = f'{{{json.dumps(path[-1])}: "{_HOLE}", '.encode()
            yield f"{at} twice", json.dumps(data).encode().replace(b"{", twice, 1)
    for share in (0.25, 0.5, 0.75, 0.99):
        yield f"cut at {share}", valid[: int(len(valid) * share)]
    yield "repeated", valid + valid


def _paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = data.items() if isinstance(data, dict) else list(enumerate(data))[:2] if isinstance(data, list) else ()
    for key, value in inner:
        yield from _paths(value, (*path, key))


def _with(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = _with(data[path[0]], path[1:], value)
    return copy


def _without(data: Any, path: tuple[Any, ...]) -> Any:
    copy = dict(data) if isinstance(data, dict) else list(data)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = _without(data[path[0]], path[1:])
    return copy


def not_finite(value: Any) -> bool:
    """Whether there is a number that is not finite anywhere in what a reader returned."""
    match value:
        case float():
            return not math.isfinite(value)
        case dict():
            return any(not_finite(item) for pair in value.items() for item in pair)
        case list() | tuple() | set() | frozenset():
            return any(map(not_finite, value))
        case msgspec.Struct():
            return any(not_finite(getattr(value, name)) for name in value.__struct_fields__)
    return False


# -- over HTTP


def drip(request: Request) -> None:
    """A complete head, and then a byte a moment for ever."""
    request.send_response(200)
    request.end_headers()
    _drip(request, b" ")


def drip_head(request: Request) -> None:
    """A head that never ends."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _drip(request, b"x")


def endless(request: Request) -> None:
    request.send_response(200)
    request.end_headers()
    try:
        while True:
            request.wfile.write(b'[[["x"],' * (1 << 14))
    except OSError:
        pass


def raw(head: bytes, body: bytes = b"") -> Callable[[Request], None]:
    def handle(request: Request) -> None:
        request.wfile.write(head + b"\r\n\r\n" + body)

    return handle


def _drip(request: Request, byte: bytes) -> None:
    try:
        while True:
            request.wfile.write(byte)
            time.sleep(0.1)
    except OSError:
        pass


OVER_HTTP: dict[str, Callable[[Request], None]] = {
    "a byte a moment": drip,
    "a head without end": drip_head,
    "a body without end": endless,
    "a longer length": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100", b"{}"),
    "a negative length": raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1", b"{}"),
    "a huge length": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999", b"{}"),
    "no length": raw(b"HTTP/1.1 200 OK\r\nContent-Length: x", b"{}"),
    "broken chunks": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", b"zz\r\n{}\r\n"),
    "a huge chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", b"ffffffffffffffffffff\r\n{}\r\n"),
    "no HTTP": raw(b"SSH-2.0-OpenSSH_9.6"),
    "a status of letters": raw(b"HTTP/1.1 abc OK"),
    "a status beyond": raw(b"HTTP/1.1 999 \x1b[2J"),
    "a long head": raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000),
    "a long line": raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000),
    "to a file": raw(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd"),
    "to FTP": raw(b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/x"),
    "to another host": raw(b"HTTP/1.1 307 Found\r\nLocation: http://localhost:1/x"),
    "to itself": raw(b"HTTP/1.1 302 Found\r\nLocation: /x"),
    "to nothing": raw(b"HTTP/1.1 302 Found\r\nLocation: http://[::1"),
    "an end at once": lambda request: None,
    "compressed": raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03"),
    "a refusal": raw(b"HTTP/1.1 503 Down", b"[" * 100_000),
}
