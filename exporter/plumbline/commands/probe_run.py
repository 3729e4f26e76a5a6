"""``plumbline probe run``: run probes now, show their progress, and their figures beside the baseline.

Exit codes: 0 every run succeeded, 1 one failed, 2 wrong usage, 3 one was refused (and none failed), or the
configuration or the storage path does not allow it; 130 stopped by Ctrl-C.
"""

import argparse
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from rich.console import Console
from rich.text import Text

from plumbline.baseline.comparison import ReferenceFigure
from plumbline.checks.disk_flush import CHECKS, WORKLOAD, DurableWrites, course, disk_flush_facts
from plumbline.checks.model import judge
from plumbline.commands.node import this_node
from plumbline.commands.shared import INTERRUPTED, complain, print_json, set_by_signals
from plumbline.core.console import Step, line, make_console, progress, table
from plumbline.core.roots import Roots
from plumbline.core.units import degradation_text, figure_text, seconds_text
from plumbline.errors import PlumblineError, UnknownName
from plumbline.metrics.snapshot import Readings
from plumbline.probes.ceph.cluster import CephGuard
from plumbline.probes.run import run_now
from plumbline.probes.run.model import Progress
from plumbline.probes.run.run_now import OperationReport, Report
from plumbline.sources.disk.block import DevicesReading, read_block_devices
from plumbline.sources.disk.queuesettings import read_queue_settings
from plumbline.status.model import missing_baseline_hint

_DONE, _FAILED, _NOT_TRIED = 0, 1, 3
_GOOD, _BAD, _NOTE = "green", "bold red", "yellow"


def run(options: argparse.Namespace) -> int:
    stopping = threading.Event()
    try:
        node = this_node(options)
        items = run_now.pick(node.plan, options.names)
        run_now.check_storage(node.storage)
        cluster = CephGuard(node.config.ceph, node.config.gates, host=node.host)
        engine = run_now.OnDemand(node.run_once(cluster, stopping), node.book())
    except UnknownName:
        raise
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return _NOT_TRIED
    console, watching = make_console(), make_console(sys.stderr if options.json else sys.stdout)
    reports: list[Report] = []
    with set_by_signals(stopping), closing(cluster):
        for group in run_now.together(items):
            if stopping.is_set():
                break
            with run_progress(watching, run_now.group_name(group)) as show:
                done = engine.run(group, force=options.force, progress=show)
            reports += done
            if not options.json:
                for report in done:
                    print_report(console, report)
                    print_flushes(console, report, node.roots)
    if options.json:
        print_json({"host": node.host, "runs": reports})
    return INTERRUPTED if stopping.is_set() else _exit_code(reports)


def _exit_code(reports: Sequence[Report]) -> int:
    outcomes = {report.outcome for report in reports}
    if outcomes & {"failure", "timeout"}:
        return _FAILED
    return _NOT_TRIED if "refused" in outcomes else _DONE


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
    for operation in report.operations:
        if operation.documented:
            line(console, f"{operation.operation}: documented: {operation.documented}")
    # an operation without figures (path-mtu) is judged without a baseline
    without = [operation.operation for operation in report.operations if operation.figures and not operation.baseline]
    if without:
        line(console, f"{', '.join(without)}: no baseline; {missing_baseline_hint(recordable=True)}", _NOTE)


def print_flushes(console: Console, report: Report, here: Roots) -> None:
    """The course of a run of durable writes, and what the check of flushes says of its disk."""
    for operation in report.operations:
        run = course(operation.rates) if report.workload == WORKLOAD else None
        if run is None:
            continue
        devices = read_block_devices(here, on_skip=lambda _device, _reason: None)
        readings = Readings.of(DevicesReading(devices), read_queue_settings(here))
        findings = judge(CHECKS, disk_flush_facts(readings, [DurableWrites(report.device, operation.rates)]))
        if not findings:
            line(console, f"{operation.operation}: {run.text}; not judged: not a disk of this host itself")
        for finding in findings:
            style = _GOOD if finding.met else _NOTE
            line(console, f"{finding.subject}: {finding.actual}; expected: {finding.expected}", style)
            if finding.fix:
                line(console, f"  {finding.why} {finding.fix.caution}")
                line(console, f"  source: {finding.source}", "dim")


def _row(operation: OperationReport, figure: ReferenceFigure) -> tuple[str | Text, ...]:
    source = operation.baseline + ("" if operation.judges else " (shown only)") if figure.baseline is not None else ""
    return (
        operation.operation,
        figure.name.removeprefix("latency."),
        figure_text(figure.name, figure.measured),
        "" if figure.baseline is None else figure_text(figure.name, figure.baseline),
        compared(figure, operation.tolerance_ratio),
        source,
    )


def compared(figure: ReferenceFigure, tolerance_ratio: float | None) -> Text:
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
