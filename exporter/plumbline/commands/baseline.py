"""``plumbline baseline``: record this node's figures; list, show, compare and report baselines.

Exit codes of ``compare``: 0 nothing is worse beyond its tolerance, 1 something is, 3 it could not be compared.
"""

from __future__ import annotations

import argparse
import os
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.commands.shared import (
    INTERRUPTED,
    Parser,
    add_page,
    add_world,
    complain,
    duration,
    page_form,
    roots,
    show,
    this_node,
    until_told,
    write_page,
)
from plumbline.config.workloads import LAYERS
from plumbline.errors import PlumblineError

if TYPE_CHECKING:
    from plumbline.commands.node import Node


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the parser of ``plumbline baseline``."""
    baseline = commands.add_parser("baseline", help="record, list and show baselines")
    actions = baseline.add_subparsers(required=True, metavar="ACTION")

    record = actions.add_parser(
        "record",
        help="measure this node while it is known to be good",
        description="Run this node's probes a few times, the lowest layer first, and write median, spread and"
        " percentiles to a file that judges it from then on. A running daemon goes on and takes the new file by itself."
        " What is interrupted goes on where it ended with the next record.",
        epilog="Exit code: 0 written, 1 refused or failed (finished runs are kept), 130 stopped by Ctrl-C or SIGTERM.",
    )
    add_world(record)
    record.add_argument("--output", type=Path, metavar="FILE", help="write here instead of into the storage path")
    record.add_argument("--layer", action="append", default=[], choices=LAYERS, help="only this layer (repeatable)")
    record.add_argument(
        "--probe", action="append", default=[], metavar="NAME", help="only this probe, or NAME/TARGET (repeatable)"
    )
    record.add_argument(
        "--without", action="append", default=[], metavar="NAME", help="leave this one out, and say so (repeatable)"
    )
    record.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each probe (5); fewer are noted")
    record.add_argument(
        "--run-duration", metavar="TIME", help="of one run, such as 6s, where time bounds it (the probe's own; noted)"
    )
    record.add_argument(
        "--latency-target",
        metavar="TIME",
        help="look for the most IOPS that keep this latency, such as 2ms: random fio on disks and images, uncapped",
    )
    record.add_argument(
        "--latency-percentile", type=float, default=99.0, metavar="P", help="so many of 100 operations keep it (99)"
    )
    record.add_argument("--restart", action="store_true", help="throw away the runs that an earlier record kept")
    record.add_argument("--replace", action="store_true", help="replace an existing file (kept as .bak)")
    record.add_argument(
        "--force",
        action="store_true",
        help="as --replace; and accept a busy or restless host and figures that can't be true, with a note in the file",
    )
    record.set_defaults(run=_record)

    listing = actions.add_parser("list", help="all baselines known here, and what each may judge")
    showing = actions.add_parser("show", help="one baseline, every figure as printed and in base units")
    showing.add_argument("name", help="as `plumbline baseline list` names it")
    showing.add_argument("--layer", help="only this layer")
    showing.add_argument("--device-class", help="only this device class")
    showing.add_argument("--workload", help="only this workload; a pattern may be quoted: 'randwrite-*'")
    for parser, run in ((listing, _list), (showing, _show)):
        add_world(parser)
        parser.add_argument("--json", action="store_true", help="machine-readable")
        parser.set_defaults(run=run)
    _add_compare(actions)
    _add_report(actions)


def _add_compare(actions: argparse._SubParsersAction[Parser]) -> None:
    compare = actions.add_parser(
        "compare",
        help="two baselines beside each other, or a baseline and now",
        description="Hold one baseline against another, or against what the daemon measured last: only what was "
        "measured with the same parameters, as a degradation ratio (1 is as accepted, 2 is twice as bad).",
        epilog="Exit code: 0 nothing is worse beyond its tolerance, 1 something is, 3 it could not be compared.",
    )
    compare.add_argument("a", metavar="A", help="what was accepted: as `plumbline baseline list` names it, or a file")
    compare.add_argument("b", metavar="B", nargs="?", default="now", help="another one, or `now` (now)")
    compare.add_argument(
        "--as",
        dest="classes",
        action="append",
        default=[],
        metavar="CLASS=CLASS",
        help="hold a device class of A against another of B on purpose, such as ssd=nvme (repeatable)",
    )
    add_world(compare)
    compare.add_argument("--json", action="store_true", help="machine-readable")
    compare.set_defaults(run=_compare)


def _add_report(actions: argparse._SubParsersAction[Parser]) -> None:
    report = actions.add_parser(
        "report",
        help="baselines with tables and plots: one HTML page, or Markdown for a wiki",
        description="Write what was accepted as one document: what it was measured on, every figure as printed and in "
        "base units, and plots over queue depth, over block size and by pool. Several baselines stand beside each "
        "other.",
    )
    report.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="as `plumbline baseline list` names it, or a file (what was measured here, and what may judge here)",
    )
    report.add_argument("--title", metavar="TEXT", help="the site's or cluster's name (this host's)")
    add_page(report)
    add_world(report)
    report.set_defaults(run=_report)


def _record(options: argparse.Namespace) -> int:
    # imported here: only this command needs rich and the probes
    from plumbline.commands import recording, recording_steps, terminal_record  # noqa: PLC0415
    from plumbline.core.console import make_console  # noqa: PLC0415
    from plumbline.probes.ceph.cluster import CephGuard  # noqa: PLC0415

    wanted = recording_steps.Wanted(
        layers=options.layer,
        probes=options.probe,
        without=options.without,
        runs=options.runs,
        run_duration_s=duration(options.run_duration, "--run-duration"),
        latency_target_s=duration(options.latency_target, "--latency-target"),
        latency_percentile=options.latency_percentile,
        force=options.force,
    )
    here = this_node(options, lambda config: recording_steps.with_run_duration(config, wanted.run_duration_s))
    stopping, console = threading.Event(), make_console()
    cluster = CephGuard(here.config.ceph, here.config.gates, host=here.host)
    with until_told(stopping), closing(cluster):
        try:
            with terminal_record.record_progress(console) as progress:
                done = recording.record_here(
                    recording.Here(
                        config=here.config,
                        plan=here.plan,
                        storage=here.storage,
                        host=here.host,
                        roots=roots(options),
                        environment=os.environ,
                        cluster=cluster,
                    ),
                    wanted,
                    output=options.output,
                    replace=options.replace,
                    restart=options.restart,
                    stopping=stopping,
                    progress=progress,
                    say=complain,
                )
        except recording.Stopped as stopped:
            complain(f"plumbline: {stopped}")
            return INTERRUPTED
    terminal_record.print_record(console, done)
    for name, why in done.left_out.items():
        complain(f"left out: {name}: {why}")
    return 0


def _list(options: argparse.Namespace) -> int:
    from plumbline.baseline import describe  # noqa: PLC0415
    from plumbline.commands import terminal_baselines  # noqa: PLC0415

    here = this_node(options)
    found = describe.summaries(here.profiles, here.sites, here.config.baseline.judge)
    show(options, found, lambda console: terminal_baselines.print_list(console, found, _standing(here, options)))
    return 0


def _standing(here: Node, options: argparse.Namespace) -> list[str]:
    """Mismatches between the baselines and this node, one sentence each."""
    from plumbline.background.fingerprint import read_fingerprint  # noqa: PLC0415
    from plumbline.baseline.compare import standing  # noqa: PLC0415

    book = here.book(str(options.config_file or "configuration"))
    found = list(standing.mismatched(book.selection))
    if book.measured_on:
        now = read_fingerprint(roots(options), environment=os.environ, ceph=here.config.ceph)
        found += standing.outdated(book.measured_on, now)
    return found


def _show(options: argparse.Namespace) -> int:
    from plumbline.baseline import describe  # noqa: PLC0415
    from plumbline.commands import terminal_baselines  # noqa: PLC0415

    here = this_node(options)
    shown = describe.show(
        options.name,
        here.profiles,
        here.sites,
        layer=options.layer,
        device_class=options.device_class,
        workload=options.workload,
    )
    show(options, shown, lambda console: terminal_baselines.print_show(console, shown))
    return 0


def _compare(options: argparse.Namespace) -> int:
    from plumbline.baseline.compare.comparison import NOT_COMPARED  # noqa: PLC0415
    from plumbline.commands import comparing  # noqa: PLC0415
    from plumbline.commands.terminal_compare import print_comparison  # noqa: PLC0415

    try:
        here = this_node(options)
        found = comparing.compare_here(options.a, options.b, node=here, roots=roots(options), classes=options.classes)
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return NOT_COMPARED
    show(options, comparing.as_data(found), lambda console: print_comparison(console, found))
    return found.exit_code


def _report(options: argparse.Namespace) -> int:
    from plumbline.commands import reporting  # noqa: PLC0415

    form = page_form(options)
    text = reporting.report(options.names, node=this_node(options), form=form, title=options.title)
    return write_page(options, text)
