"""A review as Markdown for a wiki or a ticket: the same words and tables; of a plot, its figures by the week."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.pages.markdown import escaped, table
from plumbline.review.document import Block, Document, Paragraph, Table, TimePlot
from plumbline.review.time_plot import plot_table


def render_markdown(document: Document) -> str:
    """The whole text, in the tables of GitHub's Markdown."""
    return "\n".join(_lines(document)).rstrip() + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield f"# {escaped(document.title)}"
    yield ""
    for sentence in document.lead:
        yield escaped(sentence)
        yield ""
    yield "## What matters"
    yield ""
    for point in document.points:
        yield f"- **{escaped(point.question)}** {escaped(' '.join((point.answer, *point.more)))}"
    yield ""
    for section in document.sections:
        yield f"## {escaped(section.title)}"
        yield ""
        yield escaped(section.about)
        yield ""
        for block in section.blocks:
            yield from _block(block)
    yield "## Words"
    yield ""
    for term, meaning in document.glossary:
        yield f"- **{escaped(term)}**: {escaped(meaning)}"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph():
            yield escaped(block.text)
            yield ""
        case Table():
            yield f"### {escaped(block.title)}"
            yield ""
            yield from table(block.heads, block.rows)
        case TimePlot(picture_only=True):
            pass
        case TimePlot():
            yield f"### {escaped(block.title)}"
            yield ""
            yield escaped(f"{block.about} The figures are medians of weeks.")
            yield ""
            yield from table(*plot_table(block))
