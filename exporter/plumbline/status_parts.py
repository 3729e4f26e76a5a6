"""What the status page is made of: sections, tables, folded rests, words with their colour.

Every text is escaped by construction, see :mod:`plumbline.htmltext`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plumbline.htmltext import Html, joined, tag
from plumbline.status_model import Level

_MARKS = {Level.GOOD: "✔", Level.NOTE: "●", Level.BAD: "✖", Level.NEUTRAL: "○"}


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one line, the first heads it. ``ident``: what a link leads to."""

    cells: Sequence[str]
    ident: str = ""


def section(ident: str, title: str, about: str, *content: str) -> Html:
    """A part of the page with a heading of its own."""
    heading = tag("h2", title, id=f"{ident}-title")
    return tag(
        "section", heading, tag("p", about) if about else "", *content, id=ident, aria_labelledby=f"{ident}-title"
    )


def table(columns: Sequence[str], rows: Iterable[Row], *, label: str, class_: str = "") -> Html:
    """A table; ``#`` before a column's name makes its cells numbers.

    Roles stand on every element because the narrow layout changes ``display``, which would take the meaning away.
    """
    heads = [tag("th", name.lstrip("#"), scope="col", role="columnheader", class_=_class(name)) for name in columns]
    head = tag("thead", tag("tr", *heads, role="row"), role="rowgroup")
    named = [(name.lstrip("#"), _class(name)) for name in columns[1:]]
    lines = []
    for row in rows:
        first, *others = row.cells
        cells = [tag("th", first, scope="row", role="rowheader")]
        for (name, kind), cell in zip(named, others, strict=True):
            cells.append(tag("td", tag("div", cell) if cell else "", role="cell", data_label=name, class_=kind))
        lines.append(tag("tr", *cells, role="row", id=row.ident))
    return tag("table", head, tag("tbody", *lines, role="rowgroup"), role="table", aria_label=label, class_=class_)


def cut_table(columns: Sequence[str], rows: Sequence[Row], *, label: str, most: int, rest: str) -> Html:
    """The first ``most`` lines in view, the others folded away as ``rest``: ``48 more disks``."""
    if len(rows) <= most + 2:  # two lines are no more than what folds them
        return table(columns, rows, label=label) if rows else Html("")
    more = f"{len(rows) - most:,} more {rest}"
    return joined(
        table(columns, rows[:most], label=label), folded(more, table(columns, rows[most:], label=f"{label}: {more}"))
    )


def folded(summary: str, *content: str, unfolded: bool = False) -> Html:
    """What is behind a click, a key press or a search in the page."""
    return tag("details", tag("summary", summary), *content, open="open" if unfolded else "")


def word(level: Level, text: str) -> Html:
    """A word with its colour; the word alone says as much."""
    return tag("span", text, class_="" if level is Level.NEUTRAL else level)


def dim(text: str) -> Html:
    """What is there only for completeness."""
    return tag("span", text, class_="dim")


def small(text: str, *more: str) -> Html:
    """A line below, in small print."""
    return tag("small", text, *more)


def bullets(lines: Iterable[str]) -> Html:
    """A list."""
    return tag("ul", *(tag("li", line) for line in lines), role="list")


def link(target: str, text: str) -> Html:
    """To another page, or with ``#`` to a place on this one."""
    return tag("a", text, href=target)


def mark(level: Level) -> Html:
    """A sign for those who look; who listens has the word beside it."""
    return tag("span", _MARKS[level], class_="" if level is Level.NEUTRAL else level, aria_hidden="true")


def sign(level: Level) -> str:
    """The bare sign, for the tab's title."""
    return _MARKS[level]


def ident(kind: str, name: str) -> str:
    """A place on the page that stays the same from load to load: ``disk-sda``; other characters by their number."""
    return f"{kind}-" + re.sub(r"[^A-Za-z0-9.-]", lambda found: f"_{ord(found[0]):x}_", name)


def _class(column: str) -> str:
    return "number" if column.startswith("#") else ""
