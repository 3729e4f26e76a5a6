r"""Structs as JSON and back, for any text and any input.

Names of disks and files need not be UTF-8. Python holds the undecodable bytes as lone surrogates, which JSON can't
carry. Such a character is written as NUL and its four hexadecimal digits (``sd\xff``: ``"sd\u0000dcff"``), NUL itself
as ``\u00000000``. An earlier release reads the result as an ordinary name.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from plumbline.core.foreign import Limits, decode_json
from plumbline.core.structs import convert
from plumbline.errors import ParseError

T = TypeVar("T")

_LIMITS = Limits(64 << 20)  # whoever reads a file bounds it first
_ODD = re.compile("[\0\ud800-\udfff]")
_WRITTEN = re.compile("\0([0-9a-f]{4})")


def encode(value: msgspec.Struct) -> bytes:
    """The struct as JSON; odd characters are escaped as described above."""
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        data = b"\\u0000"
    if b"\\u0000" not in data:
        return data
    return msgspec.json.encode(_each_text(msgspec.to_builtins(value, str_keys=True), _escaped))


def decode(data: bytes, kind: type[T]) -> T:
    """The struct that :func:`encode` wrote; :class:`msgspec.DecodeError` for any other input."""
    try:
        value = decode_json(data, kind, source="", what="", limits=_LIMITS)
    except ParseError as error:
        raise msgspec.DecodeError(error.reason.removeprefix(": ")) from None
    if b"\\u0000" in data:
        value = convert(_each_text(msgspec.to_builtins(value, str_keys=True), _read), kind, str_keys=True)
    return value


def _escaped(text: str) -> str:
    return _ODD.sub(lambda match: f"\0{ord(match[0]):04x}", text)


def _read(text: str) -> str:
    return _WRITTEN.sub(lambda match: chr(int(match[1], 16)), text)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The same tree with ``change`` applied to every text, including keys."""
    match value:
        case str():
            return change(value)
        case dict():
            return {_each_text(key, change): _each_text(item, change) for key, item in value.items()}
        case list() | tuple():
            return [_each_text(item, change) for item in value]
    return value
