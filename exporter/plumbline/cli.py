"""The command line: argv in, exit code out. Only parsing and dispatch.

Exit codes: 0 success, 1 failure (one line on standard error says what failed and what to do), 2 wrong usage. ``check``
has its own, as monitoring plugins have: 0, 1 and 2 for what it found, 3 when it could not judge. ``probe run`` has its
own too, see :mod:`~plumbline.commands.probe`.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from plumbline import __version__
from plumbline.commands import baseline, ceph, probe, report, uninstall
from plumbline.commands.shared import Parser, add_world, complain, duration, roots, show
from plumbline.config.model import DEFAULT_LISTEN_ADDRESS
from plumbline.core.escape import VisibleFormatter
from plumbline.errors import ConfigError, PlumblineError

COULD_NOT_JUDGE = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; never raises for anything a user can cause."""
    parser = _parser()
    options = parser.parse_args(argv)
    _set_up_logging(getattr(options, "log_level", "info"))
    try:
        return int(options.run(options))
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return 1
    except BrokenPipeError:
        # the reader of our output closed the pipe (| head), which is fine; the interpreter must not complain at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="plumbline",
        description="Does this storage node perform as on the day it was accepted? If not, which layer is to blame?",
    )
    parser.add_argument("--version", action="version", version=f"plumbline {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_check(commands)
    baseline.add(commands)
    probe.add(commands)
    _add_nic(commands)
    _add_disk(commands)
    ceph.add(commands)
    report.add(commands)
    _add_config(commands)
    uninstall.add(commands)
    return parser


def _add_serve(commands: argparse._SubParsersAction[Parser]) -> None:
    serve = commands.add_parser(
        "serve",
        help="run the node daemon",
        description="Run the node daemon: metrics, status page, probes. Without a configuration file the embedded "
        "defaults hold: no root, no Ceph and no other program needed. SIGHUP, and a change of the file, reload it.",
    )
    add_world(serve)
    serve.add_argument(
        "--web.listen-address",
        dest="listen_address",
        metavar="HOST:PORT",
        help=f"where to listen; overrides the file (default {DEFAULT_LISTEN_ADDRESS})",
    )
    _add_web_file(serve)
    serve.before_parsing = _add_collectors
    serve.set_defaults(run=_serve)


def _add_collectors(serve: argparse.ArgumentParser) -> None:
    from plumbline.collectors.registry import NAMES  # noqa: PLC0415  (only the daemon pays for its imports)

    for name in NAMES:
        serve.add_argument(
            f"--collector.{name}",
            dest=f"collector_{name}",
            action=argparse.BooleanOptionalAction,
            help=f"switch the {name} collector on or off; overrides the file",
        )


def _add_nic(commands: argparse._SubParsersAction[Parser]) -> None:
    nic = commands.add_parser(
        "nic",
        help="explain where the numbers of a network device come from",
        description="For each network device: its driver, every drop and error figure with the counters it is made of, "
        "the counters left out and why, who counts pause frames, and the rings.",
    )
    nic.add_argument("device", nargs="?", help="only this device")
    add_world(nic)
    nic.add_argument("--json", action="store_true", help="machine-readable")
    nic.set_defaults(run=_nic)


def _add_disk(commands: argparse._SubParsersAction[Parser]) -> None:
    disk = commands.add_parser(
        "disk",
        help="say what each disk is and who uses it",
        description="Each disk with model, class, transport, size, scheduler and who uses it: OSDs, volumes, arrays, "
        "filesystems, swap. With a name, everything about that one, and what stands on it as a tree. On many "
        "hosts only root may read which OSD it is.",
    )
    disk.add_argument("device", nargs="?", help="only this disk, such as sda or /dev/nvme0n1")
    add_world(disk)
    disk.add_argument("--json", action="store_true", help="machine-readable")
    disk.set_defaults(run=_disk)


def _add_check(commands: argparse._SubParsersAction[Parser]) -> None:
    check = commands.add_parser(
        "check",
        help="is this host set up as documented, and what mends it",
        description="Look at this host twice and say which documented advice is not met, with the command that mends "
        "it. Only reads; a daemon need not run.",
        epilog="Exit code: 0 no warning, 1 a warning, 2 something critical, 3 the host could not be judged.",
    )
    add_world(check)
    check.add_argument("--all", action="store_true", help="show what is met, too")
    check.add_argument("--json", action="store_true", help="machine-readable, all of it")
    check.add_argument(
        "--wait", default="2s", metavar="TIME", help="between the two looks: only what grows counts as growing (2s)"
    )
    check.set_defaults(run=_check)


def _add_config(commands: argparse._SubParsersAction[Parser]) -> None:
    config = commands.add_parser("config", help="check a configuration file")
    actions = config.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser(
        "check",
        help="say what is wrong with a configuration file, if anything is",
        description="Check a configuration file, and the web configuration file that it or the flag names, with its "
        "certificates. Nothing is started.",
    )
    check.add_argument("file", type=Path, nargs="?")
    _add_web_file(check)
    check.set_defaults(run=_config_check)


def _add_web_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--web.config.file",
        dest="web_config_file",
        type=Path,
        metavar="FILE",
        help="TLS, client certificates, users (the format that exporters share); overrides web.config_file",
    )


def _serve(options: argparse.Namespace) -> int:
    from plumbline.collectors.registry import NAMES  # noqa: PLC0415
    from plumbline.config.options import Overrides  # noqa: PLC0415
    from plumbline.daemon import daemon  # noqa: PLC0415

    return daemon.serve(
        config_file=options.config_file,
        storage_path_flag=options.storage_path,
        roots=roots(options),
        overrides=Overrides(
            listen_address=options.listen_address,
            web_config_file=options.web_config_file,
            collectors={name: on for name in NAMES if (on := getattr(options, f"collector_{name}")) is not None},
        ),
    )


def _check(options: argparse.Namespace) -> int:
    from plumbline.checks import report as findings  # noqa: PLC0415
    from plumbline.commands import terminal  # noqa: PLC0415
    from plumbline.daemon import daemon  # noqa: PLC0415

    try:
        examined = daemon.examine(
            config_file=options.config_file,
            storage_path_flag=options.storage_path,
            roots=roots(options),
            wait_s=duration(options.wait, "--wait") or 0.0,
        )
    except PlumblineError as error:
        complain(f"plumbline: {error}")
        return COULD_NOT_JUDGE
    data = findings.as_data(examined.findings, host=examined.host, window_s=examined.window_s)
    show(options, data, lambda console: terminal.print_findings(console, examined.findings, every=options.all))
    for what, reason in examined.blind.items():
        complain(f"not judged: {what}: {reason}")
    return findings.exit_code(examined.findings)


def _nic(options: argparse.Namespace) -> int:
    from plumbline.commands import explain, terminal  # noqa: PLC0415
    from plumbline.commands.node import read_ports  # noqa: PLC0415

    readings, skipped = read_ports(config_file=options.config_file)
    ports = [explain.explain(reading) for reading in explain.pick(readings, options.device, skipped)]
    show(options, ports, lambda console: terminal.print_ports(console, ports))
    for device, reason in skipped:
        complain(f"left out: {device}: its driver can't be asked ({reason})")
    return 0


def _disk(options: argparse.Namespace) -> int:
    from plumbline.commands import describe_disks, terminal  # noqa: PLC0415
    from plumbline.commands.node import read_disks  # noqa: PLC0415

    wanted = options.device and options.device.removeprefix("/dev/")
    devices, users, skipped = read_disks(config_file=options.config_file, roots=roots(options), only=wanted)
    disks = describe_disks.pick(describe_disks.describe(devices, users), options.device)
    if options.device:
        show(options, disks, lambda console: terminal.print_disk(console, disks[0]))
    else:
        show(options, disks, lambda console: terminal.print_disks(console, disks))
    for device, reason in skipped:
        complain(f"left out: {device}: {reason}")
    for path in users.unreadable:
        complain(f"left out: {path} may not be read, OSDs may be missing; ask as root")
    return 0


def _config_check(options: argparse.Namespace) -> int:
    from plumbline.collectors.registry import NAMES  # noqa: PLC0415
    from plumbline.config import workloads  # noqa: PLC0415
    from plumbline.config.options import Overrides, read_config  # noqa: PLC0415
    from plumbline.web.guard import make_guard  # noqa: PLC0415

    if options.file is None and options.web_config_file is None:
        raise ConfigError("config check", "name a configuration file, or --web.config.file, or both")
    overrides = Overrides(web_config_file=options.web_config_file)
    config = read_config(options.file, overrides, workloads.load_catalogue(), collectors=NAMES)
    if options.file:
        print(f"{options.file}: good")
    if config.web.config_file:
        make_guard(Path(config.web.config_file))
        print(f"{config.web.config_file}: good")
    return 0


def _set_up_logging(level: str) -> None:
    """Log one line per event to standard error, where systemd and containers collect it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)-7s %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
