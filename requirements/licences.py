"""Which licences may come with the daemon, and what an installed package says of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.message import Message

ALLOWED: Mapping[str, str] = {
    "MIT": "permissive",
    "BSD-2-Clause": "permissive",
    "BSD-3-Clause": "permissive",
    "BSD License": "permissive; the classifier does not say which of the two",
    "Apache-2.0": "our own licence",
    "ISC": "permissive",
    "PSF-2.0": "permissive, Python's own",
    "LGPL-2.1-or-later": "a library imported as it is, in files of its own that anybody may replace (pyudev)",
}
"""SPDX identifiers (or a classifier's words, where a package says no more) → why they are no trouble."""

_CLASSIFIERS = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
}
_TOKEN = re.compile(r"\(|\)|[^\s()]+")


class LicenceError(Exception):
    """An expression that can't be read."""


def declared(metadata: Message) -> tuple[str, ...]:
    """What a package's metadata declares: one SPDX expression, or the classifiers' licences, of which the taker may
    choose only where the package says so, so that all of them have to be allowed. Empty: it declares nothing.

    ``License-Expression`` is the field of the core metadata 2.4; ``License`` is free text and counts only when it is
    nothing but an identifier.
    """
    expression = metadata.get("License-Expression")
    if expression:
        return (str(expression),)
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in metadata.get_all("Classifier") or []
        if each.startswith("License :: OSI Approved :: ")
    ]
    if classifiers:
        return tuple(sorted(_CLASSIFIERS.get(each, each) for each in classifiers))
    words = str(metadata.get("License") or "").strip()
    return (words,) if words in ALLOWED else ()


def allowed(expression: str) -> bool:
    """Whether an SPDX expression, or a classifier's words, leaves a way that is allowed. ``OR``: one side is enough,
    ``AND``: both must be; AND binds closer (SPDX 2.3, annex D)."""
    if expression in ALLOWED:
        return True
    tokens = _TOKEN.findall(expression)
    value, rest = _either(tokens)
    if rest:
        raise LicenceError(f"{expression!r}: {rest[0]!r} is not expected")
    return value


def _either(tokens: list[str]) -> tuple[bool, list[str]]:
    value, rest = _both(tokens)
    while rest[:1] == ["OR"]:
        other, rest = _both(rest[1:])
        value = value or other
    return value, rest


def _both(tokens: list[str]) -> tuple[bool, list[str]]:
    value, rest = _one(tokens)
    while rest[:1] == ["AND"]:
        other, rest = _one(rest[1:])
        value = value and other
    return value, rest


def _one(tokens: list[str]) -> tuple[bool, list[str]]:
    if not tokens or tokens[0] in (")", "AND", "OR"):
        raise LicenceError(f"a licence is missing before {' '.join(tokens) or 'the end'!r}")
    if tokens[0] != "(":
        return tokens[0] in ALLOWED, tokens[1:]
    value, rest = _either(tokens[1:])
    if rest[:1] != [")"]:
        raise LicenceError("a parenthesis is not closed")
    return value, rest[1:]
