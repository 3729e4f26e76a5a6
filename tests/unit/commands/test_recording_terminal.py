"""A recording on the terminal: the bar, the lines for a pipe, the table at the end."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from plumbline.baseline.model import Target
from plumbline.baseline.record.statistics import RunFigures, summarise
from plumbline.baseline.record.walk import Progress, file_of
from plumbline.baseline.site import SiteFile
from plumbline.commands import recording
from plumbline.commands.recording import Recording
from plumbline.core.console import make_console

TARGET = Target("canary", "disk", "nvme", "randread-4k-qd1-j1", "read", "0123456789ab", None, "nvme0n1")


def piped(act):
    stream = io.StringIO()
    act(make_console(stream))
    return stream.getvalue()


def recorded() -> Recording:
    figures = RunFigures(
        probe="canary", workload=TARGET.workload, operation="read", latency={"p50": 0.0001234, "p99": 0.0002},
        throughput=202.4e6, iops=51600.0,
    )  # fmt: skip
    sought = RunFigures(
        probe="canary", workload=TARGET.workload, operation="read", iops=1234.0, sought=(0.002, 99.0), depth=9
    )
    record = summarise([TARGET], {TARGET: [figures, figures, sought]}, lambda _histogram, _q: None)
    file = file_of(SiteFile(schema_version=1, entries=()), [record], ["only 2 runs"])
    return Recording(file, (record,), Path("/s/baseline.yaml"), Path("/s/baseline.yaml.bak"), {})


def test_the_result_of_a_recording():
    lines = piped(lambda console: recording.print_record(console, recorded())).splitlines()
    heads, row = lines[0].split(), lines[1].split()
    assert heads[:8] == ["Layer", "Probe", "Workload", "Operation", "Class", "p50", "p99", "IOPS"]
    assert row[:5] == ["disk", "canary", "randread-4k-qd1-j1", "read", "nvme"]
    assert "  ".join(("123 µs", "200 µs", "51600", "202 MB/s", "")) in lines[1]
    assert "1234 IOPS at 2ms (p99), 9 in flight" in lines[1]
    assert row[-3:] == ["±0.0%", "×1.00", "×1.25"]
    assert lines[2:] == ["note: only 2 runs", "written to /s/baseline.yaml; the old one is /s/baseline.yaml.bak"]


def test_progress_into_a_pipe_is_a_line_a_run():
    def act(console):
        with recording.record_progress(console) as show:
            show(Progress(0, 2, "disk", "canary", 1, 2, 24.0))
            show(Progress(0, 2, "disk", "canary", 1, 2, 24.0, "measuring", "p50 1 ms"))
            show(Progress(1, 2, "disk", "canary", 2, 2, 12.0))
            show(Progress(2, 2, "", "", 0, 0, 0.0))

    assert piped(act) == (
        "disk: canary, run 1 of 2 (1 of 2, about 24 s left)\n"
        "disk: canary, run 2 of 2 (2 of 2, about 12 s left)\n"
        "2 runs done\n"
    )


def test_progress_on_a_terminal_shows_layer_probe_run_stage_and_the_time_that_is_left():
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=True, width=160, color_system=None, highlight=False, markup=False,
        _environ={"TERM": "xterm"},  # whatever this run's own terminal is
    )  # fmt: skip
    with recording.record_progress(console) as show:
        show(Progress(1, 4, "rbd", "rbd-write", 2, 5, 600.0, "measuring", "sda 9 reads/s"))
    text = stream.getvalue()
    for part in ("rbd: rbd-write, run 2 of 5", "about 10 min left", "measuring sda 9 reads/s"):
        assert part in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, ""), (42.4, "about 42 s left"), (600.0, "about 10 min left"), (9000.0, "about 2 h 30 min left")],
)
def test_the_time_that_is_left(seconds: float, text: str):
    assert recording.left_text(seconds) == text
