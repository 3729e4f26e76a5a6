"""Terminal output, as text a person or a pipe gets."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from plumbline import terminal
from plumbline.baseline.model import Target
from plumbline.baseline.record import Environment, Progress, RunFigures, record


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


TARGET = Target("canary", "disk", "nvme", "randread-4k-qd1-j1", "read", "0123456789ab", None, "nvme0n1")


def recorded():
    return record(
        [TARGET],
        measure=lambda group, seconds: [RunFigures(TARGET.workload, "read", latency={"p50": 0.0001234, "p99": 0.0002})],
        quantile=lambda histogram, q: None,
        environment=Environment("storage1", datetime(2025, 11, 3, tzinfo=UTC)),
        runs=2,
        busy=lambda device: f"{device} was 40 % busy",
        force=True,
    )


def test_the_result_of_a_recording():
    text = piped(
        lambda console: terminal.print_record(
            console, recorded(), path=Path("/s/baseline.yaml"), kept=Path("/s/baseline.yaml.bak")
        )
    )
    assert text == (
        "Probe   Workload            Operation  Device   p50    p99    IOPS  MAD    Spread  Tolerance\n"
        "canary  randread-4k-qd1-j1  read       nvme0n1  123us  200us        ±0.0%  ×1.00   ×1.25\n"
        "warning: canary, randread-4k-qd1-j1 read: before run 1, nvme0n1 was 40 % busy\n"
        "warning: canary, randread-4k-qd1-j1 read: before run 2, nvme0n1 was 40 % busy\n"
        "written to /s/baseline.yaml; the old one is /s/baseline.yaml.bak\n"
    )


def test_progress_into_a_pipe_is_a_line_a_run():
    def act(console):
        with terminal.record_progress(console) as show_progress:
            for now in (
                Progress(0, 2, "canary", 1, 6.0),
                Progress(1, 2, "canary", 2, 6.0),
                Progress(2, 2, "canary", 2, 6.0),
            ):
                show_progress(now)

    assert piped(act) == "canary: run 1, 6 s (1 of 2)\ncanary: run 2, 6 s (2 of 2)\n2 runs done\n"


def test_progress_on_a_terminal_leaves_nothing_behind():
    def act(console):
        with terminal.record_progress(console) as show_progress:
            show_progress(Progress(1, 2, "canary", 2, 6.0))

    assert "canary: run 2, 6 s (2 of 2)" in on_a_terminal(act)
