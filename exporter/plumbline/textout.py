"""Lines and tables on the terminal, for everything that prints there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text


def make_console(file: IO[str] | None = None) -> Console:
    """A console for ``file`` (standard output); rich sees by itself whether it is a terminal, and NO_COLOR."""
    return Console(file=file or sys.stdout, highlight=False, markup=False, emoji=False)


def table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> None:
    """Drawn on a terminal, aligned columns anywhere else; a :class:`Text` keeps its colour where there is one."""
    cells = [tuple(_text(cell) for cell in row) for row in rows]
    if console.is_terminal:
        drawn = Table(*heads, box=None, pad_edge=False, header_style="dim")
        for row in cells:
            drawn.add_row(*row)
        console.print(drawn)
        return
    plain = [tuple(heads), *(tuple(cell.plain for cell in row) for row in cells)]
    widths = [max(map(len, column)) for column in zip(*plain, strict=True)]
    for words in plain:
        line(console, "  ".join(word.ljust(width) for word, width in zip(words, widths, strict=True)).rstrip())


def line(console: Console, text: str, style: str = "") -> None:
    """One line, wrapped on a terminal only."""
    console.print(Text(clean(text), style=style), soft_wrap=not console.is_terminal)


def _text(cell: str | Text) -> Text:
    return Text(clean(cell)) if isinstance(cell, str) else Text(clean(cell.plain), style=cell.style)


def clean(text: str) -> str:
    """Names come from files and devices: nothing in them may steer the terminal."""
    plain = text.replace("\N{NO-BREAK SPACE}", " ")
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in plain)
