"""``plumbline baseline``: record this node's figures, list and show what is known."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.commands.shared import Parser, add_world, duration, print_json, roots

if TYPE_CHECKING:
    from plumbline.node import Node


def add(commands: argparse._SubParsersAction[Parser]) -> None:
    """The parser of ``plumbline baseline``."""
    baseline = commands.add_parser("baseline", help="record, list and show baselines")
    actions = baseline.add_subparsers(required=True, metavar="ACTION")

    record = actions.add_parser(
        "record",
        help="measure this node while it is known to be good",
        description="Run this node's probes a few times, and write median, spread and percentiles to a file that "
        "judges it from then on. A running daemon goes on and takes the new file by itself.",
    )
    add_world(record)
    record.add_argument("--output", type=Path, metavar="FILE", help="write here instead of into the storage path")
    record.add_argument("--probe", action="append", default=[], metavar="NAME", help="only this probe (repeatable)")
    record.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each probe (5)")
    record.add_argument("--run-duration", metavar="TIME", help="of one run, such as 6s (a minute for all together)")
    record.add_argument(
        "--force", action="store_true", help="replace an existing file (kept as .bak); accept a restless host"
    )
    record.set_defaults(run=_record)

    listing = actions.add_parser("list", help="all baselines known here, and what each may judge")
    show = actions.add_parser("show", help="one baseline, every figure as printed and in base units")
    show.add_argument("name", help="as `plumbline baseline list` names it")
    show.add_argument("--layer", help="only this layer")
    show.add_argument("--device-class", help="only this device class")
    for parser, run in ((listing, _list), (show, _show)):
        add_world(parser)
        parser.add_argument("--json", action="store_true", help="machine-readable")
        parser.set_defaults(run=run)


def _record(options: argparse.Namespace) -> int:
    from plumbline import recording, terminal  # noqa: PLC0415  (rich and the probes: only who needs them)
    from plumbline.node import look  # noqa: PLC0415

    here = look(config_file=options.config_file, storage_path_flag=options.storage_path, roots=roots(options))
    console = terminal.make_console()
    with terminal.record_progress(console) as progress:
        done = recording.record_here(
            here.plan,
            storage=here.storage,
            output=options.output,
            host=here.host,
            roots=roots(options),
            environment=os.environ,
            only=options.probe,
            runs=options.runs,
            run_duration_s=duration(options.run_duration, "--run-duration"),
            force=options.force,
            progress=progress,
        )
    terminal.print_record(console, done.recorded, path=done.path, kept=done.kept)
    for line in done.left_out:
        print(f"left out: {line}", file=sys.stderr)
    return 0


def _list(options: argparse.Namespace) -> int:
    from plumbline import terminal  # noqa: PLC0415
    from plumbline.baseline import describe  # noqa: PLC0415
    from plumbline.node import look  # noqa: PLC0415

    here = look(config_file=options.config_file, storage_path_flag=options.storage_path, roots=roots(options))
    found = describe.summaries(here.profiles, here.sites, here.config.baseline.judge)
    if options.json:
        print_json(found)
    else:
        terminal.print_list(terminal.make_console(), found)
        for sentence in _standing(here, options):
            terminal.print_note(terminal.make_console(), sentence)
    return 0


def _standing(here: Node, options: argparse.Namespace) -> list[str]:
    """What no longer fits between the baselines and this node, a sentence each."""
    from plumbline.baseline import standing  # noqa: PLC0415
    from plumbline.fingerprinting import read_fingerprint  # noqa: PLC0415

    book = here.book(str(options.config_file or "configuration"))
    found = list(standing.mismatched(book.selection))
    if book.measured_on:
        now = read_fingerprint(roots(options), environment=os.environ, ceph=here.config.ceph)
        found += standing.outdated(book.measured_on, now)
    return found


def _show(options: argparse.Namespace) -> int:
    from plumbline import terminal  # noqa: PLC0415
    from plumbline.baseline import describe  # noqa: PLC0415
    from plumbline.node import look  # noqa: PLC0415

    here = look(config_file=options.config_file, storage_path_flag=options.storage_path, roots=roots(options))
    shown = describe.show(
        options.name, here.profiles, here.sites, layer=options.layer, device_class=options.device_class
    )
    if options.json:
        print_json(shown)
    else:
        terminal.print_show(terminal.make_console(), shown)
    return 0
