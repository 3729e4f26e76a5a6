"""``plumbline probe`` on the terminal: the list, a run's progress, and its figures beside the baseline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, ConsoleRenderable, RichCast
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from plumbline.baseline.beside import Beside
from plumbline.core.units import degradation_text, figure_text, seconds_text
from plumbline.listing import CONTINUOUS, Listed
from plumbline.ondemand import OperationReport, Report
from plumbline.probes.model import Progress
from plumbline.status_model import how_to_get_one
from plumbline.textout import line, table

_GOOD, _BAD, _NOTE = "green", "bold red", "yellow"
_REDRAW_S = 0.2


def print_probes(
    console: Console, rows: Sequence[Listed], *, now: float, daemon: bool, mismatched: Sequence[str] = ()
) -> None:
    """``plumbline probe list``. ``mismatched``: baselines of other parameters, a sentence each."""
    heads = ("Probe", "Type", "Layer", "Target", "Workload", "Schedule", "Last result", "Age", "Next start", "Skipped")
    table(
        console,
        heads,
        [
            (
                row.probe,
                row.type,
                " ".join(filter(None, (row.layer, row.device_class))),
                row.target,
                row.workload,
                row.schedule,
                _result(row),
                seconds_text(max(0.0, now - row.finished)) if row.finished is not None else "",
                _next(row, now, daemon),
                ", ".join(f"{reason} {count}" for reason, count in row.skipped.items()),
            )
            for row in rows
        ],
    )
    for row in rows:
        if row.message:
            line(console, f"{row.probe}: {row.message}")
    for sentence in mismatched:
        line(console, sentence, _NOTE)
    if not daemon:
        line(console, "no daemon runs on this storage path: nothing starts by itself", _NOTE)


def _result(row: Listed) -> Text:
    if row.schedule == CONTINUOUS:
        return Text("")
    if row.result is None:
        return Text("never ran", style=_NOTE)
    return Text(row.result, style=_GOOD if row.result == "success" else _BAD)


def _next(row: Listed, now: float, daemon: bool) -> str:
    if row.schedule == CONTINUOUS or not daemon:
        return ""
    if row.next_start is None:
        return "within 5 min"
    return f"in {seconds_text(max(0.0, row.next_start - now))}"


def print_report(console: Console, report: Report) -> None:
    """One run: how it went in a line, then each figure beside the baseline's."""
    where = " ".join(filter(None, (report.layer, report.device_class, report.target)))
    if report.outcome != "success":
        word = f"{report.outcome} ({report.reason})" if report.reason else report.outcome
        line(console, f"{report.probe}: {word}: {report.message}", _NOTE if report.outcome == "refused" else _BAD)
        return
    tool = " ".join(filter(None, (report.tool, report.tool_version)))
    line(console, f"{report.probe}: {report.workload} on {where}, {seconds_text(report.duration_s)} ({tool})", "bold")
    rows: list[tuple[str | Text, ...]] = []
    for operation in report.operations:
        rows += [_row(operation, figure) for figure in operation.figures]
        rows += [(operation.operation, name, _fact(name, value), "", "", "") for name, value in operation.facts.items()]
    table(console, ("Operation", "Figure", "Measured", "Baseline", "Compared", "Source"), rows)
    # what has no figures (path-mtu) is judged without a baseline
    without = ", ".join(one.operation for one in report.operations if one.figures and not one.baseline)
    if without:
        line(console, f"{without}: no baseline; {how_to_get_one(recordable=True)}", _NOTE)


def _row(operation: OperationReport, figure: Beside) -> tuple[str | Text, ...]:
    source = operation.baseline + ("" if operation.judges else " (shown only)") if figure.baseline is not None else ""
    return (
        operation.operation,
        figure.name.removeprefix("latency."),
        figure_text(figure.name, figure.measured),
        "" if figure.baseline is None else figure_text(figure.name, figure.baseline),
        compared(figure, operation.tolerance_ratio),
        source,
    )


def compared(figure: Beside, tolerance_ratio: float | None) -> Text:
    """The degradation ratio in words, green within the tolerance, red beyond it, plain where nothing judges."""
    word = degradation_text(figure.name, figure.ratio, tolerance_ratio)
    return Text(word, style={True: _GOOD, False: _BAD, None: ""}[figure.within])


def _fact(name: str, value: float) -> str:
    return f"{value:.2%}" if name == "loss_ratio" else f"{value:,.0f}"


@contextmanager
def run_progress(console: Console, probe: str) -> Iterator[Callable[[Progress], None]]:
    """A bar with stage and live figures on a terminal, a line a stage anywhere else."""
    if not console.is_terminal:
        yield _Lines(console, probe)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    with _Bar(*columns, console=console, transient=True, refresh_per_second=1 / _REDRAW_S) as bar:
        bar.begin(probe)
        yield bar.show


class _Bar(Bar):
    """Draws what a run says; where that is only how long a stage takes, it counts by the clock."""

    _probe = ""
    _task = TaskID(0)
    _stage: tuple[float, Progress] | None = None

    def begin(self, probe: str) -> None:
        """Before the run says anything, it asks locks and gates."""
        self._probe = probe
        self._task = self.add_task(f"{probe}: locks and gates", total=None, figures="")

    def show(self, now: Progress) -> None:
        """What the run says; from any thread."""
        same = self._stage is not None and self._stage[1].stage == now.stage
        self._stage = (self._stage[0] if same and self._stage else time.monotonic(), now)
        self.update(self._task, description=f"{self._probe}: {now.stage}", figures=now.figures)

    def get_renderable(self) -> ConsoleRenderable | RichCast | str:
        """Asked before each redraw."""
        if self._stage is not None:
            began, now = self._stage
            done = now.done
            if done is None and now.lasts_s:
                done = min(0.99, (time.monotonic() - began) / now.lasts_s)
            self.update(self._task, total=None if done is None else 1.0, completed=done or 0.0)
        return super().get_renderable()


class _Lines:
    """For pipes and files: nothing that moves."""

    def __init__(self, console: Console, probe: str) -> None:
        self._console, self._probe, self._stage = console, probe, ""

    def __call__(self, now: Progress) -> None:
        if now.stage != self._stage:
            self._stage = now.stage
            line(self._console, f"{self._probe}: {now.stage}")
