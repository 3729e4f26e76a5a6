r"""Structs as JSON and back, for any text and any input.

Names of disks and files need not be UTF-8. Python holds the undecodable bytes as lone surrogates, which JSON can't
carry. Such a character is written as NUL and its four hexadecimal digits (``sd\xff``: ``"sd\u0000dcff"``), NUL itself
as ``\u00000000``. An earlier release reads the result as an ordinary name.

Here is also the only way from plain data or JSON to a type of msgspec, for one thread at a time: msgspec 0.22 learns
the fields of a struct when it first needs them and runs Python code meanwhile, during which another thread finds the
half-built type. Both end in a segmentation fault.
"""

import re
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from plumbline.core.foreign import Limits, decode_json
from plumbline.errors import ParseError

T = TypeVar("T")

_LIMITS = Limits(64 << 20)  # whoever reads a file bounds it first
_ODD = re.compile("[\0\ud800-\udfff]")
_WRITTEN = re.compile("\0([0-9a-f]{4})")

_building = threading.RLock()  # hooks convert, too
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(kind: type[T], *, strict: bool = True, hook: Any = None) -> msgspec.json.Decoder[T]:
    """A decoder of JSON for ``kind``, built once; ``strict`` and ``hook`` as msgspec's ``strict`` and ``dec_hook``."""
    key = kind, strict, hook
    if (known := _decoders.get(key)) is None:
        with _building:
            known = _decoders[key] = msgspec.json.Decoder(kind, strict=strict, dec_hook=hook)
    return known


def convert(data: Any, kind: type[T], *, hook: Any = None, str_keys: bool = False) -> T:
    """Plain data as ``kind``; :class:`msgspec.ValidationError` if it is none."""
    with _building:
        return msgspec.convert(data, kind, dec_hook=hook, str_keys=str_keys)


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
