"""Lines, tables and progress: drawn on a terminal, plain in a pipe, and no name steers either."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from plumbline.core.console import Step, make_console, progress, table

HOSTILE = "[red]\x1b[2J"
SHOWN = "[red]\\x1b[2J"


def terminal(width: int = 100) -> tuple[io.StringIO, Console]:
    stream = io.StringIO()
    return stream, Console(file=stream, force_terminal=True, width=width, color_system=None, _environ={"TERM": "xterm"})


def test_progress_shows_names_as_they_are() -> None:
    stream, console = terminal()
    with progress(console, f"{HOSTILE} begins") as show:
        show(Step(HOSTILE, 0.5, more=f"{HOSTILE} reads"))
    text = stream.getvalue()
    assert "\x1b[2J" not in text
    for part in (f"{SHOWN} begins", f"{SHOWN} ", " 50 %", f"{SHOWN} reads"):
        assert part in text


def test_a_stage_whose_length_alone_is_known_goes_by_the_clock_and_never_ends_early() -> None:
    stream, console = terminal()
    with progress(console, "begin") as show:
        show(Step("measuring", lasts_s=1e-9))
    assert " 99 %" in stream.getvalue()


def test_progress_into_a_pipe_is_a_line_for_each_text() -> None:
    stream = io.StringIO()
    with progress(make_console(stream), "begin") as show:
        for step in (Step("a", 0.1), Step("a", 0.2), Step("b", line=f"b {HOSTILE}")):
            show(step)
    assert stream.getvalue() == f"a\nb {SHOWN}\n"


@pytest.mark.parametrize("width", [20, 200])
def test_a_table_on_a_terminal_cuts_no_name(width: int) -> None:
    stream, console = terminal(width)
    table(console, ("A", "B"), [("k" * 30, [Text("one"), Text(HOSTILE)])])
    text = stream.getvalue()
    assert text.count("k") == 30
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= width


def test_a_table_in_a_pipe_has_a_line_a_row() -> None:
    stream = io.StringIO()
    table(make_console(stream), ("A", "B"), [("x", [Text("one"), Text("two")]), ("long", "1\N{NO-BREAK SPACE}s")])
    assert stream.getvalue() == "A     B\nx     one, two\nlong  1 s\n"
