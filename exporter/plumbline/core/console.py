"""Lines, tables and progress bars for every command that prints to the terminal.

A terminal gets drawn tables, wrapped to its width; a pipe or file gets plain text in aligned columns, one row a line,
so that ``grep`` and ``less -S`` work. The daemon never imports this module, so it never loads ``rich``.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from msgspec import Struct
from rich.console import Console, ConsoleRenderable, RichCast
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from plumbline.core.escape import visible

Cell = str | Text | Sequence[Text]  # A sequence prints one text a line on a terminal, separated by commas in a pipe


def make_console(file: IO[str] | None = None) -> Console:
    """A console for ``file`` (default: standard output); rich itself detects a terminal and honours NO_COLOR."""
    return Console(file=file or sys.stdout, highlight=False, markup=False, emoji=False)


def line(console: Console, text: str, style: str = "") -> None:
    """Print one line; it wraps only on a terminal."""
    console.print(Text(clean(text), style=style), soft_wrap=not console.is_terminal)


def table(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, wraps: Mapping[str, int] | None = None
) -> None:
    """Print a table: drawn on a terminal, aligned columns elsewhere; a :class:`Text` keeps its colour on a terminal."""
    if console.is_terminal:
        console.print(drawn(heads, rows, wraps=wraps))
        return
    plain = [tuple(heads), *(tuple(_text(cell, ", ").plain for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*plain, strict=True)]
    for words in plain:
        line(console, "  ".join(word.ljust(width) for word, width in zip(words, widths, strict=True)).rstrip())


def drawn(heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, wraps: Mapping[str, int] | None = None) -> Table:
    """The table for a terminal. ``wraps``: the columns that may wrap → their minimum width; by default all may."""
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
    """Make a name from a file or device safe to print: it can't send control sequences to the terminal."""
    return visible(text.replace("\N{NO-BREAK SPACE}", " "))


def _text(cell: Cell, between: str = "\n") -> Text:
    if isinstance(cell, str):
        return Text(clean(cell))
    if isinstance(cell, Text):
        return Text(clean(cell.plain), style=cell.style)
    return Text(between).join(map(_text, cell))


class Step(Struct, frozen=True):
    """The state of a task. ``done`` is 0 to 1; without it the bar advances by the clock towards ``lasts_s`` seconds."""

    text: str
    done: float | None = None
    lasts_s: float | None = None
    more: str = ""  # Text after the bar
    line: str = ""  # Printed in a pipe, once for each ``text``; defaults to ``text``


@contextmanager
def progress(console: Console, begin: str, *, piped: bool = True) -> Iterator[Callable[[Step], None]]:
    """A progress bar on a terminal; elsewhere, if ``piped``, a line for each new text. Any thread may call it."""
    if not console.is_terminal:
        yield _lines(console) if piped else lambda _step: None
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
        """Called by rich before each redraw."""
        done = self._step.done
        if done is None and self._step.lasts_s:
            done = min(0.99, (time.monotonic() - self._began) / self._step.lasts_s)
        if self.tasks:
            self.update(self._TASK, total=None if done is None else 1.0, completed=done or 0.0)
        return super().get_renderable()


def _lines(console: Console) -> Callable[[Step], None]:
    """Progress in pipes and files: one line for each new text."""
    last = ""

    def show(step: Step) -> None:
        nonlocal last
        if step.text != last:
            last = step.text
            line(console, step.line or step.text)
            console.file.flush()  # the reader of a pipe waits for the line

    return show
