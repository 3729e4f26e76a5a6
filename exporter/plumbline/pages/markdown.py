"""A document as Markdown for a wiki or a ticket. Text is escaped, so names can't break it; tables are GitHub's."""

import html
import re
from collections.abc import Iterator, Sequence

from plumbline.core.escape import visible
from plumbline.pages.document import Block, Document, Listing, Paragraph, Plot, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]|~#!$])")


def markdown(document: Document) -> str:
    """The whole document. A plot is rendered as the table of its data."""
    return "\n".join(_document(document)) + "\n"


def escaped(text: str) -> str:
    """Escaped text in one line: no name in it can produce markup, HTML, a link or the end of a cell."""
    text = _SPECIAL.sub(r"\\\1", html.escape(visible(" ".join(text.split())), quote=False))
    # a bare address would become a link
    return text.replace("://", ":&#8203;//").replace("@", "&#64;")


def _document(document: Document) -> Iterator[str]:
    yield from (f"# {escaped(document.title)}", "")
    for sentence in document.lead:
        yield from (escaped(sentence), "")
    if document.points:
        yield from ("## What matters", "")
        for point in document.points:
            yield f"- **{escaped(point.question)}** {escaped(' '.join((point.answer, *point.more)))}"
        yield ""
    for section in document.sections:
        yield from (f"## {escaped(section.title)}", "")
        if section.about:
            yield from (escaped(section.about), "")
        for block in section.blocks:
            yield from _block(block)
    if document.glossary:
        yield from ("## Words", "")
        yield from (f"- **{escaped(term)}**: {escaped(meaning)}" for term, meaning in document.glossary)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph():
            yield from (*map(escaped, (block.text, *block.more)), "")
        case Listing():
            for number, item in enumerate(block.items, start=1):
                yield f"{number}. {escaped(item)}" if block.numbered else f"- {escaped(item)}"
            yield ""
        case Table():
            if block.title:
                yield from (f"### {escaped(block.title)}", "")
            yield from _table(block.heads, block.rows)
        case Plot(picture_only=False):
            yield from (f"### {escaped(block.title)}", "")
            if about := f"{block.about} The figures are weekly medians." if block.weekly else block.about:
                yield from (escaped(about), "")
            yield from _table(block.heads, block.rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(map(escaped, heads)) + " |"
    yield "|" + " --- |" * len(heads)
    for row in rows:
        yield "| " + " | ".join(map(escaped, row)) + " |"
    yield ""
