"""Markdown that names can't break: text is escaped, tables are those of GitHub, which most wikis read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from plumbline.htmltext import joined

_SPECIAL = re.compile(r"([\\`*_{}\[\]|~#!$])")


def escaped(text: str) -> str:
    """Text that no name in it can turn into markup: one line, no HTML, no link, no cell's end."""
    plain = " ".join(text.split())
    text = _SPECIAL.sub(r"\\\1", joined(plain).replace("&quot;", '"').replace("&#x27;", "'"))
    # a bare address would become a link
    return text.replace("://", ":&#8203;//").replace("@", "&#64;")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Its lines, and an empty one after it."""
    yield "| " + " | ".join(map(escaped, heads)) + " |"
    yield "|" + " --- |" * len(heads)
    for row in rows:
        yield "| " + " | ".join(map(escaped, row)) + " |"
    yield ""
