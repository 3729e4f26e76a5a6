"""``plumbline probe list`` and ``plumbline probe run``.

Exit codes of ``run``: 0 every run succeeded, 1 one failed, 2 one was refused (and none failed), 3 the configuration,
the name or the storage path does not allow it; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from plumbline.commands.shared import (
    INTERRUPTED,
    Parser,
    add_world,
    complain,
    print_json,
    roots,
    show,
    this_node,
    until_told,
)
from plumbline.errors import PlumblineError

if TYPE_CHECKING:
    from rich.console import Console

    from plumbline.probes.run_now import Report

DONE, FAILED, REFUSED, MISCONFIGURED = 0, 1, 2, 3
_RUN_EPILOG = (
    "Exit code: 0 every run succeeded, 1 one failed, 2 one was refused (a gate, a lock, the guard),"
    " 3 the configuration, the name or the storage path does not allow it, 130 stopped by Ctrl-C."
)


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the parser of ``plumbline probe``."""
    probe = commands.add_parser("probe", help="list this node's probes, or run one now")
    actions = probe.add_subparsers(required=True, metavar="ACTION")

    probe_list = actions.add_parser(
        "list",
        help="every probe with schedule, last result and next start",
        description="Every probe of the configuration, and what the daemon on the same storage path remembers of it.",
    )
    add_world(probe_list)
    probe_list.add_argument("--json", action="store_true", help="machine-readable")
    probe_list.set_defaults(run=_list)

    run = actions.add_parser(
        "run",
        help="run probes now, beside the daemon or without one",
        description="Run probes one after the other, with the locks, gates and limits that hold for the daemon too,"
        " and show the figures beside the baseline. A canary is looked at for a minute.",
        epilog=_RUN_EPILOG,
    )
    run.add_argument("names", nargs="+", metavar="NAME", help="as configured (with all its targets), or NAME/TARGET")
    add_world(run)
    run.add_argument("--json", action="store_true", help="machine-readable; progress goes to standard error")
    run.add_argument(
        "--force",
        action="store_true",
        help="although the node or the disk is busy; guard, locks, quiet hours and the cluster's health hold always",
    )
    run.set_defaults(run=_run)


def _list(options: argparse.Namespace) -> int:
    from plumbline.baseline.compare import standing  # noqa: PLC0415
    from plumbline.commands import probe_list, terminal_probes  # noqa: PLC0415  (only these need rich)
    from plumbline.probes.state import read_state  # noqa: PLC0415

    here = this_node(options)
    now, daemon = time.time(), probe_list.daemon_runs(here.storage, roots(options))
    rows = probe_list.list_probes(here.plan, read_state(here.storage), host=here.host, now=now, daemon=daemon)

    def draw(console: Console) -> None:
        wrong = tuple(standing.mismatched(here.book(str(options.config_file or "configuration")).selection))
        terminal_probes.print_probes(console, rows, now=now, daemon=daemon, mismatched=wrong)

    show(options, probe_list.as_data(rows, host=here.host, daemon=daemon), draw)
    return DONE


def _run(options: argparse.Namespace) -> int:
    from plumbline.commands import terminal_probes  # noqa: PLC0415
    from plumbline.core.console import make_console  # noqa: PLC0415
    from plumbline.probes import run_now as ondemand  # noqa: PLC0415
    from plumbline.probes.ceph.cluster import CephGuard  # noqa: PLC0415

    stopping = threading.Event()
    try:
        here = this_node(options)
        items = ondemand.pick(here.plan, options.names)
        ondemand.check_storage(here.storage)
        cluster = CephGuard(here.config.ceph, here.config.gates, host=here.host)
        engine = ondemand.OnDemand(
            storage=here.storage,
            roots=roots(options),
            environment=os.environ,
            rules=here.config.gates,
            book=here.book(str(options.config_file or "configuration")),
            cluster=cluster,
            stopping=stopping,
        )
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return MISCONFIGURED
    console, watching = make_console(), make_console(sys.stderr if options.json else sys.stdout)
    reports: list[Report] = []
    with until_told(stopping), closing(cluster):
        for group in ondemand.together(items):
            if stopping.is_set():
                break
            with terminal_probes.run_progress(watching, ondemand.group_name(group)) as progress:
                done = engine.run(group, force=options.force, progress=progress)
            reports += done
            if not options.json:
                for report in done:
                    terminal_probes.print_report(console, report)
    if options.json:
        print_json({"host": here.host, "runs": reports})
    return INTERRUPTED if stopping.is_set() else _exit_code(reports)


def _exit_code(reports: Sequence[Report]) -> int:
    outcomes = {report.outcome for report in reports}
    if outcomes & {"failure", "timeout"}:
        return FAILED
    return REFUSED if "refused" in outcomes else DONE
