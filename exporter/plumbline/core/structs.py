"""The only way from plain data or JSON to a struct: msgspec's types are built by one thread at a time.

msgspec 0.22 learns the fields of a struct when it is first needed. It runs Python code meanwhile, during which another
thread finds the half-built type, and both end in a segmentation fault. A process of many threads decodes the same
struct at the same time as soon as it asks two servers.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

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
