"""JSON without the ``json`` package, whose regular expressions would add a tenth to the memory of a canary's worker.

CPython's own scanner (``Modules/_json.c``) does the work in both cases. Light: workers import it.
"""

from __future__ import annotations

from _json import make_scanner

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from typing import Any


class _Options:
    strict = True
    object_hook = object_pairs_hook = parse_constant = None
    parse_float, parse_int = float, int


def parse(text: str) -> object:
    """One JSON document without space around it; ``StopIteration`` or ``ValueError`` for anything else. Only for what
    the daemon itself wrote."""
    options: Any = _Options()
    value, end = make_scanner(options)(text, 0)
    if end != len(text):
        raise ValueError(f"text after the document: {text[end : end + 20]!r}")
    return value
