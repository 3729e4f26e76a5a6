"""``plumbline probe`` on the terminal: the list, a run's progress, and its figures beside the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from plumbline.baseline.compare.beside import Beside
from plumbline.commands.probe_list import CONTINUOUS, Listed
from plumbline.core.console import Step, line, progress, table
from plumbline.core.units import degradation_text, figure_text, seconds_text
from plumbline.probes.model import Progress
from plumbline.probes.run_now import OperationReport, Report
from plumbline.status.model import how_to_get_one

_GOOD, _BAD, _NOTE = "green", "bold red", "yellow"


def print_probes(
    console: Console, rows: Sequence[Listed], *, now: float, daemon: bool, mismatched: Sequence[str] = ()
) -> None:
    """``plumbline probe list``. ``mismatched``: baselines with other parameters, one sentence each."""
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
    """One run: one line on how it went, then each figure beside the baseline's."""
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
    # an operation without figures (path-mtu) is judged without a baseline
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
    """On a terminal a bar with stage and live figures, elsewhere one line per stage."""
    # before its first report, the run asks locks and gates
    with progress(console, f"{probe}: locks and gates") as show:
        yield lambda now: show(Step(f"{probe}: {now.stage}", now.done, now.lasts_s, now.figures))
