"""The command line: argv in, exit code out. Only parsing and dispatch; each command is a function in a module of
:mod:`plumbline.commands`.

Exit codes: 0 success, 1 failure (one line on standard error says what failed and what to do), 2 wrong usage. ``check``
has its own, as monitoring plugins have: 0, 1 and 2 for what it found, 3 when it could not judge. ``probe run`` has its
own too, see :mod:`~plumbline.commands.probe_run`.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from plumbline import __version__
from plumbline.commands.flags import add_administrator, add_capacity, add_probe, add_questions, add_report
from plumbline.commands.fleet_flags import add_fleet, add_for_fleet
from plumbline.commands.shared import (
    CEPH_KEY_DIR,
    WRONG_USAGE,
    Commands,
    Parser,
    add_command,
    add_group,
    add_page,
    add_prometheus,
    complain,
    find_installation,
)
from plumbline.config.model import DEFAULT_LISTEN_ADDRESS
from plumbline.config.workloads import LAYERS
from plumbline.core.log_limit import JournalFormatter, VisibleFormatter, is_journal
from plumbline.errors import PlumblineError, UnknownName


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; never raises for anything a user can cause."""
    options = _parser().parse_args(argv)
    _set_up_logging(getattr(options, "log_level", "info"))
    module, _, function = options.run.rpartition(".")
    try:
        if getattr(options, "find", False):
            find_installation(options)
        return int(getattr(import_module(f"plumbline.commands.{module}"), function)(options))
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return WRONG_USAGE if isinstance(error, UnknownName) else 1
    except BrokenPipeError:
        # the reader of our output closed the pipe (| head), which is fine; the interpreter must not complain at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> Parser:
    parser = Parser(
        prog="plumbline",
        description="Does this storage node perform as on the day it was accepted? If not, which layer is to blame?",
    )
    parser.add_argument("--version", action="version", version=f"plumbline {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_check(commands)
    add_questions(commands)
    _add_baseline(commands)
    add_probe(commands)
    _add_nic(commands)
    _add_disk(commands)
    _add_ceph(commands)
    add_capacity(commands)
    add_report(commands)
    add_fleet(commands)
    _add_maintenance(commands)
    _add_config(commands)
    _add_uninstall(commands)
    return parser


def _add_serve(commands: Commands) -> None:
    serve = add_command(
        commands,
        "serve",
        "serve.serve",
        help="run the node daemon",
        description="Run the node daemon: metrics, status page, probes. Without a configuration file the embedded "
        "defaults hold: no root, no Ceph and no other program needed. SIGHUP, and a change of the file, reload it.",
    )
    serve.add_argument(
        "--web.listen-address",
        dest="listen_address",
        metavar="HOST:PORT",
        help=f"where to listen; overrides the file (default {DEFAULT_LISTEN_ADDRESS})",
    )
    _add_web_file(serve)
    serve.before_parsing = _add_collectors


def _add_collectors(serve: argparse.ArgumentParser) -> None:
    from plumbline.collectors.registry import NAMES  # noqa: PLC0415  (only the daemon pays for its imports)

    for name in NAMES:
        serve.add_argument(
            f"--collector.{name}",
            dest=f"collector_{name}",
            action=argparse.BooleanOptionalAction,
            help=f"switch the {name} collector on or off; overrides the file",
        )


def _add_check(commands: Commands) -> None:
    check = add_command(
        commands,
        "check",
        "check.check",
        json="machine-readable, everything",
        help="show which documented advice this host does not meet, and how to fix it",
        description="Look at this host twice and show which documented advice it does not meet, with the command that "
        "fixes it. Only reads; a daemon need not run.",
        epilog="Exit code: 0 no warning, 1 a warning, 2 something critical, 3 the host could not be judged.",
    )
    check.add_argument("--all", action="store_true", help="also show what is met")
    check.add_argument("--wait", default="2s", metavar="TIME", help="between the two looks, to see what grows (2s)")


def _add_baseline(commands: Commands) -> None:
    actions = add_group(commands, "baseline", "record, list, show, compare and report baselines")
    _add_record(actions)
    add_command(
        actions, "list", "baselines.run_list", json="machine-readable", help="all baselines known here, and their uses"
    )
    show = add_command(
        actions,
        "show",
        "baselines.run_show",
        json="machine-readable",
        help="one baseline, every figure as printed and in base units",
    )
    show.add_argument("name", help="as `plumbline baseline list` names it")
    show.add_argument("--layer", help="only this layer")
    show.add_argument("--device-class", help="only this device class")
    show.add_argument("--workload", help="only this workload; a pattern may be quoted: 'randwrite-*'")
    compare = add_command(
        actions,
        "compare",
        "compare.run",
        json="machine-readable",
        help="two baselines beside each other, or a baseline and now",
        description="Compare a baseline with another, or with the daemon's latest results: only what was "
        "measured with the same parameters, as a degradation ratio (1 is as accepted, 2 is twice as bad).",
        epilog="Exit code: 0 nothing is worse beyond its tolerance, 1 something is, 3 it could not be compared.",
    )
    add = compare.add_argument
    add("a", metavar="A", help="what was accepted: as `plumbline baseline list` names it, or a file")
    add("b", metavar="B", nargs="?", default="now", help="another baseline, or `now` (now)")
    text = "compare a device class of A with another of B on purpose, such as ssd=nvme (repeatable)"
    add("--as", dest="classes", action="append", default=[], metavar="CLASS=CLASS", help=text)
    report = add_command(
        actions,
        "report",
        "reporting.report_baselines",
        help="baselines with tables and plots: one HTML page, or Markdown for a wiki",
        description="Write what was accepted as one document: what it was measured on, every figure as printed and in "
        "base units, and plots over queue depth, over block size and by pool. Several baselines are shown side by "
        "side.",
    )
    text = "as `plumbline baseline list` names it, or a file (default: those measured here, and those that may judge)"
    report.add_argument("names", nargs="*", metavar="NAME", help=text)
    report.add_argument("--title", metavar="TEXT", help="the site's or cluster's name (this host's)")
    add_page(report)
    _add_advise(actions)
    add_for_fleet(actions)


def _add_advise(actions: Commands) -> None:
    advise = add_command(
        actions,
        "advise",
        "advise.run",
        json="machine-readable, everything",
        help="show which documented figures are comparable here, and the lines that configure them to judge",
        description="Look at disks, network and pools, and show which documented figures are comparable, and why.",
    )
    add = advise.add_argument
    add("--profile", metavar="NAME", help="the document to judge by, where several are comparable (the most rows)")
    add("--peer", action="append", default=[], metavar="HOST", help="another storage node (repeatable)")
    add("--device-class", metavar="CLASS", help="of disks whose medium the kernel can't know, such as virtual ones")
    add("--heavy", action="store_true", help="also probes that load the cluster or the network")


def _add_record(actions: Commands) -> None:
    record = add_command(
        actions,
        "record",
        "recording.run",
        help="measure this node while it is known to be good",
        description="Run this node's probes a few times, the lowest layer first, and write median, spread and"
        " percentiles to a file that judges this node from then on. A running daemon continues and reads the new file"
        " by itself. After an interruption, the next record continues with the runs that were finished.",
        epilog="Exit code: 0 written, 1 refused or failed (finished runs are kept), 130 stopped by Ctrl-C or SIGTERM.",
    )
    add = record.add_argument
    add("--output", type=Path, metavar="FILE", help="write to this file instead of into the storage path")
    add("--layer", action="append", default=[], choices=LAYERS, help="only this layer (repeatable)")
    text = "only this probe, or NAME/TARGET (repeatable)"
    add("--probe", action="append", default=[], metavar="NAME", help=text)
    text = "leave this probe out, and note it in the file (repeatable)"
    add("--without", action="append", default=[], metavar="NAME", help=text)
    add("--runs", type=int, default=5, metavar="N", help="runs of each probe (5); fewer are noted in the file")
    text = "length of one run, such as 6s, where time bounds it (default: the probe's own); noted in the file"
    add("--run-duration", metavar="TIME", help=text)
    text = "search for the most IOPS within this latency, such as 2ms: random fio on disks and images, without a cap"
    add("--latency-target", metavar="TIME", help=text)
    text = "percentage of operations that must be within it (99)"
    add("--latency-percentile", type=float, default=99.0, metavar="P", help=text)
    add("--restart", action="store_true", help="discard the runs that an earlier record kept")
    add("--replace", action="store_true", help="replace an existing file (kept as .bak)")
    text = "write it beside the one in force, which stays, for `plumbline fleet` to judge"
    add("--candidate", action="store_true", help=text)
    text = "model and role of this node in its fleet, written into the file"
    add("--class", dest="fleet_class", default="", metavar="NAME", help=text)
    text = "as --replace; and accept a busy or noisy host and implausible figures, with a note in the file"
    add("--force", action="store_true", help=text)


def _add_ceph(commands: Commands) -> None:
    actions = add_group(commands, "ceph", "prepare a Ceph cluster for probes, undo that, watch its OSDs")
    setup = add_command(
        actions,
        "setup",
        "ceph.admin.run_setup",
        host=False,
        help="show the commands that create pools and a user; with --apply, run them",
        description="Look at the cluster as its administrator and show the commands that create what probes need: a "
        "pool for objects, one for images, and a user that can reach nothing else. What exists already stays as it is; "
        "what has our names but not our mark is never changed.",
    )
    removal = add_command(
        actions,
        "remove",
        "ceph.admin.run_remove",
        host=False,
        help="show the commands that remove them; with --apply, run them",
        description="The reverse: pools, rules and users that carry our mark, and nothing else.",
    )
    for parser in (setup, removal):
        parser.set_defaults(find=True)
        add = parser.add_argument
        add("--config.file", dest="config_file", type=Path, metavar="FILE", help="Plumbline's configuration (YAML)")
        add_administrator(parser)
        add("--key-dir", default=CEPH_KEY_DIR, metavar="DIR", help=f"for the users' keys ({CEPH_KEY_DIR})")
        add("--apply", action="store_true", help="run the commands")
    add = setup.add_argument
    text = "also a pool on this device class only (repeatable)"
    add("--device-class", action="append", default=[], metavar="CLASS", help=text)
    add("--osd-bench", action="store_true", help="a user for osd-bench probes, with all rights on OSDs")
    add("--crush-root", default="default", metavar="NAME", help="for device classes (default)")
    add("--failure-domain", default="host", metavar="TYPE", help="for device classes (host)")
    add("--pg-num", type=int, metavar="N", help="placement groups of a pool for objects (4 for each OSD)")
    add("--blind", action="store_true", help="show all commands without looking at a cluster, to run them elsewhere")
    top = add_command(
        actions,
        "top",
        "ceph.top.run",
        json="machine-readable, once",
        help="the slowest OSDs, where their operations spend the time, and the suspected cause",
        description="The OSDs of this host by their admin sockets, over the last interval; with --prometheus also all "
        "other OSDs of the cluster, by the recording rules there, over five minutes. The slowest first. "
        "An operation's mean is queue, store (this OSD's own), peers (replicas and network) and the daemon's own work. "
        "Ctrl-C ends it; into a pipe or a file it prints once.",
        epilog="Admin sockets need the rights of the user ceph, or root: see docs/ceph.md.",
    )
    add_prometheus(top, asked=False)
    add = top.add_argument
    add("--cluster", metavar="NAME", help="the value of the label cluster, if that server has several clusters")
    add("--interval", default="5s", metavar="TIME", help="between two looks (5s)")
    add("--once", action="store_true", help="one interval, all OSDs, then end")
    text = "instead: which images, buckets, files and clients load this host's OSDs, or this one; once"
    add("--clients", nargs="?", const="", metavar="OSD", help=text)
    add_administrator(top)


def _add_nic(commands: Commands) -> None:
    nic = add_command(
        commands,
        "nic",
        "nic.run",
        json="machine-readable",
        help="explain where the numbers of a network device come from",
        description="For each network device: its driver, every drop and error figure with the counters it is made of, "
        "the counters left out and why, who counts pause frames, and the rings.",
    )
    nic.add_argument("device", nargs="?", help="only this device")
    nic.add_argument(
        "--fabric",
        action="store_true",
        help="instead, ask all switches and adapters of the InfiniBand fabric for ports with errors, and what is at "
        "the other end of each (root; ibqueryerrors)",
    )


def _add_disk(commands: Commands) -> None:
    disk = add_command(
        commands,
        "disk",
        "disk.run",
        json="machine-readable",
        help="show each disk and who uses it",
        description="Each disk with model, class, transport, size, scheduler and who uses it: OSDs, volumes, arrays, "
        "filesystems, swap. With a name, all details of that disk, and what is built on it as a tree. On many "
        "hosts only root may read which OSD uses a disk.",
    )
    disk.add_argument("device", nargs="?", help="only this disk, such as sda or /dev/nvme0n1")
    disk.add_argument("--locate", choices=("on", "off"), help="switch the light of its slot (root)")
    text = "does anything still need it? Exit code: 0 no, 1 yes; asks the cluster about OSDs on it, changes nothing"
    disk.add_argument("--safe-to-pull", action="store_true", help=text)
    add_administrator(disk)


def _add_maintenance(commands: Commands) -> None:
    actions = add_group(commands, "maintenance", "announce planned work on a host, so that nobody is woken for it")
    start = add_command(
        actions,
        "start",
        "maintenance.run_start",
        help="announce it",
        description="From now on the absence of that host is information: its daemon, its OSDs, canaries and links. "
        "Everything else is reported as always. It lapses by itself; a host that is down then is a page. Run this on "
        "the host itself or on any other node of the cluster. The command then waits until a scrape has seen it.",
        epilog="Exit code: 0 in force and scraped, 1 refused, 3 in force and not scraped yet.",
    )
    stop = add_command(actions, "end", "maintenance.run_end", help="end it early, on the node where it was started")
    for parser in (start, stop):
        parser.add_argument("host", nargs="?", metavar="HOST", help="as in the address that Prometheus scrapes")
        parser.add_argument("--cluster", action="store_true", help="all hosts instead of one")
    add = start.add_argument
    add("--for", dest="lasts", required=True, metavar="TIME", help="how long, such as 2h (at most 3d)")
    add("--why", required=True, metavar="TEXT", help="shown in alerts, on dashboards and on the status page")
    add("--wait", default="90s", metavar="TIME", help="for a scrape (90s)")
    add_command(
        actions,
        "list",
        "maintenance.run_list",
        json="machine-readable",
        help="what was started here, and was it scraped",
    )


def _add_config(commands: Commands) -> None:
    check = add_command(
        add_group(commands, "config", "check a configuration file"),
        "check",
        "serve.check_config",
        host=False,
        help="report what is wrong with a configuration file, if anything is",
        description="Check a configuration file, and the web configuration file that it or the flag names, with its "
        "certificates. Nothing is started.",
    )
    check.add_argument("file", type=Path, nargs="?")
    _add_web_file(check)


def _add_web_file(parser: argparse.ArgumentParser) -> None:
    text = "TLS, client certificates, users (the format that exporters share); overrides web.config_file"
    parser.add_argument("--web.config.file", dest="web_config_file", type=Path, metavar="FILE", help=text)


def _add_uninstall(commands: Commands) -> None:
    uninstall = add_command(
        commands,
        "uninstall",
        "uninstall.run",
        help="show what Plumbline has left on this node; with --apply, remove it",
        description="State, results, the recorded baseline, the canary's and fio's files: on this node, in the storage "
        "path and in the directories that the configuration gives to probes. What Plumbline did not make stays: "
        "marks and content decide, not names. Programs, units and configuration belong to the package: the last lines "
        "of the output say how to remove them.",
        epilog="Exit code: 0 shown or removed, 1 something is in the way or was left alone.",
    )
    text = "also the pools and users in the Ceph cluster: they serve all its nodes, so do this on the last node"
    uninstall.add_argument("--ceph", action="store_true", help=text)
    uninstall.add_argument("--apply", action="store_true", help="remove it")


def _set_up_logging(level: str) -> None:
    """Log one line per event to standard error, where systemd and containers collect it."""
    handler = logging.StreamHandler(sys.stderr)
    if is_journal(2, os.environ):
        handler.setFormatter(JournalFormatter("%(message)s"))
    else:
        handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)-7s %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
