"""Which licences may come with the daemon, and what an installed package says of its own."""

from __future__ import annotations

from collections.abc import Mapping
from email.message import Message
from typing import Any

from license_expression import ExpressionError, Licensing

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
    ``AND``: both must be. Raise :class:`LicenceError` for what is none."""
    grammar = Licensing()
    try:
        parsed = grammar.parse(expression)
    except ExpressionError as error:
        raise LicenceError(f"{expression!r}: {error}") from None
    if parsed is None:
        raise LicenceError("an empty expression")

    def may(part: Any) -> bool:
        if isinstance(part, grammar.AND):
            return all(map(may, part.args))
        return any(map(may, part.args)) if isinstance(part, grammar.OR) else str(part) in ALLOWED

    return may(parsed)
