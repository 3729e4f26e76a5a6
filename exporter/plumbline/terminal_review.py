"""``plumbline report`` on the terminal: a bar over the queries, and nothing where nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def progress(console: Console) -> Iterator[Callable[[int, int, str], None]]:
    """What is told of the queries: done, of all, what. In a pipe or a log it says nothing: what counts is the page."""
    if not console.is_terminal:
        yield lambda _done, _all, _what: None
        return
    columns = (
        TextColumn("asking Prometheus"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("")
        yield lambda done, of, what: bar.update(task, completed=done, total=of, description=what)
