"""Terminal output, as text a person or a pipe gets."""

from __future__ import annotations

import io

from rich.console import Console

from plumbline import terminal


def piped(act):
    stream = io.StringIO()
    act(terminal.make_console(stream))
    return stream.getvalue()


def on_a_terminal(act, width=100):
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=True,
        width=width,
        color_system=None,
        highlight=False,
        markup=False,
        _environ={"TERM": "xterm"},  # whatever this run's own terminal is
    )
    act(console)
    return stream.getvalue()
