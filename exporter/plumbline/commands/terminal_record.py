"""``plumbline baseline record`` on the terminal: one bar over everything, then what was recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from plumbline.baseline.record.statistics import EntryRecord
from plumbline.baseline.record.walk import Progress
from plumbline.baseline.site import SiteEntry
from plumbline.baseline.units import Quantity
from plumbline.commands.recording import Recording
from plumbline.core.console import Step, line, progress, table
from plumbline.core.units import duration_text, si


def print_record(console: Console, done: Recording) -> None:
    """What was recorded, its notes, and where it was written."""
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
    """On a terminal a bar with layer, probe, run and the time left; elsewhere one line per run.

    It advances by time, not by runs: a run of one probe takes a second, of another five minutes.
    """
    began = time.monotonic()

    def step(now: Progress) -> Step:
        spent, left, text = time.monotonic() - began, left_text(now.left_s), progress_text(now)
        counted = "" if now.done == now.total else f" ({now.done + 1} of {now.total}{f', {left}' if left else ''})"
        more = " ".join(filter(None, (left, now.stage, now.figures)))
        return Step(text, spent / ((spent + now.left_s) or 1.0), more=more, line=text + counted)

    with progress(console, "reading this host") as show:
        yield lambda now: show(step(now))


def progress_text(now: Progress) -> str:
    """``disk: fio-a, run 2 of 5``."""
    if now.done == now.total:
        return f"{now.total} runs done"
    return f"{now.layer}: {now.step}, run {now.run} of {now.runs}"


def left_text(seconds: float) -> str:
    """``about 4 min left``."""
    return f"about {duration_text(seconds)} left" if seconds >= 1 else ""
