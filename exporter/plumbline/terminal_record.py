"""``plumbline baseline record`` on the terminal: one bar over everything, then what was recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from plumbline.baseline.record import Progress
from plumbline.baseline.record_statistics import EntryRecord
from plumbline.baseline.site import SiteEntry
from plumbline.baseline.units import Quantity
from plumbline.core.units import si
from plumbline.recording import Recording
from plumbline.textout import line, table

_REDRAW_S = 0.25


def print_record(console: Console, done: Recording) -> None:
    """What was recorded, what is to be known of it, and where it was written."""
    heads = (
        "Layer", "Probe", "Workload", "Operation", "Class", "p50", "p99", "IOPS", "Throughput", "At latency", "MAD",
        "Spread", "Tolerance",
    )  # fmt: skip
    table(console, heads, [_row(record) for record in done.records])
    for note in done.file.notes:
        line(console, f"note: {note}", "yellow")
    line(console, f"written to {done.path}" + (f"; the old one is {done.kept}" if done.kept else ""))


def _row(record: EntryRecord) -> tuple[str, ...]:
    entry, target = record.entry, record.targets[0]
    latency = dict(entry.latency.items())
    several = len(record.targets) > 1
    return (
        record.layer,
        f"{target.probe.partition('/')[0]} ({len(record.targets)})" if several else target.probe,
        entry.workload,
        entry.operation,
        entry.device_class,
        _short(latency.get("p50") or latency.get("mean"), "s"),
        _short(latency.get("p99"), "s"),
        f"{entry.iops.value:.0f}" if entry.iops else "",
        _short(entry.throughput, "B/s"),
        _at_latency(entry),
        f"±{entry.mad_ratio:.1%}" if entry.mad_ratio is not None else "",
        f"×{entry.spread_ratio:.2f}" if entry.spread_ratio else "",
        f"×{entry.tolerance_ratio:.2f}" if entry.tolerance_ratio else "",
    )


def _at_latency(entry: SiteEntry) -> str:
    found = entry.iops_at_latency
    if found is None:
        return ""
    return f"{found.iops.value:.0f} IOPS at {found.target.text} (p{found.percentile:g}), {found.queue_depth} in flight"


def _short(figure: Quantity | None, unit: str) -> str:
    return "" if figure is None else si(figure.value, unit)


@contextmanager
def record_progress(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A bar with layer, probe, run and the time that is left on a terminal; a line a run anywhere else."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[stage]}"),
    )
    with _Bar(*columns, console=console, transient=True, refresh_per_second=1 / _REDRAW_S) as bar:
        bar.begin()
        yield bar.show


def progress_text(now: Progress) -> str:
    """``disk: fio-a, run 2 of 5``."""
    if now.done == now.total:
        return f"{now.total} runs done"
    return f"{now.layer}: {now.step}, run {now.run} of {now.runs}"


def left_text(seconds: float) -> str:
    """``about 4 min left``."""
    if seconds < 1:
        return ""
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"


class _Bar(Bar):
    """By time, not by runs: a run of one probe takes a second, of another five minutes."""

    _task = TaskID(0)
    _began = 0.0

    def begin(self) -> None:
        """Before the first run is known."""
        self._began = time.monotonic()
        self._task = self.add_task("reading this host", total=None, left="", stage="")

    def show(self, now: Progress) -> None:
        """From any thread."""
        spent = time.monotonic() - self._began
        self.update(
            self._task,
            description=progress_text(now),
            total=spent + now.left_s,
            completed=spent,
            left=left_text(now.left_s),
            stage=" ".join(filter(None, (now.stage, now.figures))),
        )


class _Lines:
    """For pipes and files: a line for each run, nothing that moves."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, ""

    def __call__(self, now: Progress) -> None:
        text = progress_text(now)
        if text != self._last:
            self._last = text
            left = left_text(now.left_s)
            counted = "" if now.done == now.total else f" ({now.done + 1} of {now.total}{f', {left}' if left else ''})"
            line(self._console, text + counted)
            self._console.file.flush()  # a pipe is read by somebody who waits for it
