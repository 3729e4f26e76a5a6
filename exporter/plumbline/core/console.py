"""Lines, tables and progress on the terminal, for everything that prints there.

On a terminal tables are drawn and wrapped to its width; into a pipe or a file they are plain text in aligned columns,
one row a line, so that ``grep`` and ``less -S`` work. The daemon never imports this: it never loads ``rich``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from rich.console import Console, ConsoleRenderable, RichCast
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from plumbline.core.escape import visible

Cell = str | Text | Sequence[Text]
"""Of several texts each is a line of its own; in a pipe commas stand between them."""


def make_console(file: IO[str] | None = None) -> Console:
    """A console for ``file`` (standard output); rich sees by itself whether it is a terminal, and NO_COLOR."""
    return Console(file=file or sys.stdout, highlight=False, markup=False, emoji=False)


def line(console: Console, text: str, style: str = "") -> None:
    """One line, wrapped on a terminal only."""
    console.print(Text(clean(text), style=style), soft_wrap=not console.is_terminal)


def table(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, wraps: Mapping[str, int] | None = None
) -> None:
    """Drawn on a terminal, aligned columns anywhere else; a :class:`Text` keeps its colour where there is one."""
    if console.is_terminal:
        console.print(drawn(heads, rows, wraps=wraps))
        return
    plain = [tuple(heads), *(tuple(_text(cell, ", ").plain for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*plain, strict=True)]
    for words in plain:
        line(console, "  ".join(word.ljust(width) for word, width in zip(words, widths, strict=True)).rstrip())


def drawn(heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, wraps: Mapping[str, int] | None = None) -> Table:
    """The table of a terminal. ``wraps``: the only columns that wrap, with their least width (all of them)."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    for head in heads:
        whole = wraps is not None and head not in wraps
        made.add_column(
            head, no_wrap=whole, min_width=(wraps or {}).get(head), overflow="ellipsis" if whole else "fold"
        )
    for row in rows:
        made.add_row(*map(_text, row))
    return made


def clean(text: str) -> str:
    """Names come from files and devices: nothing in them may steer the terminal."""
    return visible(text.replace("\N{NO-BREAK SPACE}", " "))


def _text(cell: Cell, between: str = "\n") -> Text:
    if isinstance(cell, str):
        return Text(clean(cell))
    if isinstance(cell, Text):
        return Text(clean(cell.plain), style=cell.style)
    return Text(between).join(map(_text, cell))


@dataclass(frozen=True, slots=True)
class Step:
    """How far something is. ``done``: from 0 to 1; without it, ``lasts_s`` lets the bar go by the clock."""

    text: str
    done: float | None = None
    lasts_s: float | None = None
    more: str = ""
    """Behind the bar."""
    line: str = ""
    """For a pipe, once for each ``text`` (the text)."""


@contextmanager
def progress(console: Console, begin: str, *, piped: bool = True) -> Iterator[Callable[[Step], None]]:
    """A bar on a terminal; anywhere else a line for each new text, or nothing where it is not ``piped``.

    What is yielded may be called from any thread.
    """
    if not console.is_terminal:
        yield _Lines(console) if piped else lambda _step: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[more]}", markup=False),
    )
    with _Bar(*columns, console=console, transient=True, refresh_per_second=5) as bar:
        bar.add_task(clean(begin), total=None, more="")
        yield bar.show


class _Bar(Progress):
    _TASK = TaskID(0)
    _step = Step("")
    _began = 0.0

    def show(self, step: Step) -> None:
        if step.text != self._step.text:
            self._began = time.monotonic()
        self._step = step
        self.update(self._TASK, description=clean(step.text), more=clean(step.more))

    def get_renderable(self) -> ConsoleRenderable | RichCast | str:
        """Asked before each redraw."""
        done = self._step.done
        if done is None and self._step.lasts_s:
            done = min(0.99, (time.monotonic() - self._began) / self._step.lasts_s)
        if self.tasks:
            self.update(self._TASK, total=None if done is None else 1.0, completed=done or 0.0)
        return super().get_renderable()


class _Lines:
    """For pipes and files: nothing that moves."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, ""

    def __call__(self, step: Step) -> None:
        if step.text != self._last:
            self._last = step.text
            line(self._console, step.line or step.text)
            self._console.file.flush()  # a pipe is read by somebody who waits for it
