"""What every command needs: a parser that fails in one line, common flags, JSON, signals."""

from __future__ import annotations

import argparse
import getpass
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from plumbline.config.types import Duration
from plumbline.core.escape import visible, visible_json
from plumbline.core.log_limit import is_journal
from plumbline.core.roots import Roots
from plumbline.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from plumbline.sources.prometheus.access import Access
    from plumbline.sources.prometheus.queries import Server

WRONG_USAGE = 2
"""Exit code, as argparse's."""
# Exit code after Ctrl-C or SIGTERM.
INTERRUPTED = 130
CEPH_KEY_DIR = "/etc/ceph"
_OF_THEIR_OWN = ("serve", "uninstall")
"""Commands that follow no daemon: one starts another, the other looks at all places."""


class Parser(argparse.ArgumentParser):
    """Reports errors in one line that names the right help. Takes no abbreviated flags: the next flag of a similar name
    would change their meaning."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self.before_parsing: Callable[[argparse.ArgumentParser], None] = lambda _parser: None
        """Adds what is costly to compute, once this command has been chosen."""

    def parse_known_args(self, *arguments: Any) -> tuple[argparse.Namespace, list[str]]:  # type: ignore[override]
        """Rejects unknown flags of a subcommand too: argparse leaves them to the outermost parser."""
        self.before_parsing(self)
        namespace, unknown = super().parse_known_args(*arguments)
        if unknown:
            self.error(f"no such flag or argument: {' '.join(unknown)}")
        return namespace, []

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def add_group(commands: Commands, name: str, text: str) -> Commands:
    return commands.add_parser(name, help=text).add_subparsers(required=True, metavar="ACTION")


def add_command(commands: Commands, name: str, run: str, *, host: bool = True, json: str = "", **texts: Any) -> Parser:
    """Add a command or action. ``run``: ``module.function`` in :mod:`plumbline.commands`, imported only when the
    command is run: many need much. ``host``: with the flags for this host; ``json``: the help of its flag ``--json``,
    if it has one; ``texts``: of :class:`argparse.ArgumentParser`."""
    parser = commands.add_parser(name, **texts)
    if host:
        _add_host(parser)
    parser.set_defaults(find=host and name not in _OF_THEIR_OWN)
    if json:
        parser.add_argument("--json", action="store_true", help=json)
    parser.set_defaults(run=run)
    return parser


def _add_host(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--config.file", dest="config_file", type=Path, metavar="FILE", help="configuration file (YAML)")
    add("--storage.path", dest="storage_path", type=Path, metavar="DIR", help="state, canary file, recorded baseline")
    for tree, path in (
        ("procfs", "/proc"),
        ("sysfs", "/sys"),
        ("devfs", "/dev"),
        ("udev", "/run/udev"),
        ("etc", "/etc"),
        ("var", "/var"),
    ):
        text = f"where the host's {path} is mounted (default {path})"
        add(f"--path.{tree}", dest=f"path_{tree}", type=Path, default=Path(path), metavar="DIR", help=text)
    add("--log.level", dest="log_level", choices=("debug", "info", "warning", "error"), default="info", help="(info)")


def find_installation(options: argparse.Namespace) -> None:
    """Fill in the flags that were left out: those of the first installation that agrees with the others."""
    from plumbline.config.installation import installations  # noqa: PLC0415  (not for --help)

    given = options.config_file, getattr(options, "storage_path", None)
    if None not in given:
        return
    trees = roots(options) if hasattr(options, "path_etc") else Roots.under(Path("/"))
    for place in installations(trees, os.environ):
        if place.agrees(*given):
            options.config_file = options.config_file or place.config_file
            options.storage_path = given[1] or place.storage_in_force()
            if getattr(options, "daemon", "") is None:
                options.daemon = place.url
            return


def complain(text: str) -> None:
    """Print one line on standard error, whatever the names in it; an error, where it is the journal."""
    print(f"{'<3>' if is_journal(2, os.environ) else ''}{visible(text)}", file=sys.stderr)


def say(text: str) -> None:
    """Print one line on standard output, whatever the names in it."""
    print(visible(text), flush=True)


def print_json(data: object) -> None:
    import msgspec  # noqa: PLC0415

    sys.stdout.write(visible_json(msgspec.json.format(msgspec.json.encode(data), indent=2).decode()) + "\n")


def show(options: argparse.Namespace, data: object, draw: Callable[[Console], object]) -> None:
    if options.json:
        print_json(data)
    else:
        from plumbline.core.console import make_console  # noqa: PLC0415  (rich: only who draws)

        draw(make_console())


def duration(text: str | None, flag: str) -> float | None:
    """The seconds given to ``flag``, if any; raises :class:`ConfigError` when they are no duration."""
    if text is None:
        return None
    try:
        return float(Duration.parse(text))
    except ValueError as error:
        raise ConfigError(flag, str(error), value=text) from None


def positive_duration(text: str, flag: str) -> float:
    """The seconds given to ``flag``; raises :class:`ConfigError` for 0, too."""
    if not (seconds := duration(text, flag)):
        raise ConfigError(flag, "must be greater than 0", value=text)
    return seconds


def roots(options: argparse.Namespace) -> Roots:
    return Roots(
        proc=options.path_procfs,
        sys=options.path_sysfs,
        dev=options.path_devfs,
        udev=options.path_udev,
        etc=options.path_etc,
        var=options.path_var,
    )


@contextmanager
def handled(numbers: tuple[signal.Signals, ...], handle: Callable[[int, Any], object]) -> Iterator[None]:
    """Call ``handle`` with a signal's number and its earlier handler when one of these signals arrives."""

    def handler(number: int, _frame: FrameType | None) -> None:
        handle(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


@contextmanager
def set_by_signals(stopping: threading.Event) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end the run under way as the daemon would: processes ended, locks released. The second
    Ctrl-C has Python's own effect: it raises, and the runner kills at once."""

    def stop(number: int, previous: Any) -> None:
        stopping.set()
        signal.signal(number, previous)

    with handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), stop):
        yield


def user_name() -> str:
    """Who runs this command; a container's user id may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def add_prometheus(parser: argparse.ArgumentParser, *, required: bool = False, asked: bool = True) -> None:
    """Add ``--prometheus`` and, named as in promtool, ``--http.config.file``. ``asked``: also without the flag, by the
    runbooks' ``$PROMETHEUS``; not where it decides what the command does."""
    add = parser.add_argument
    known = os.environ.get("PROMETHEUS") or None if asked else None
    text = "http://host:9090, with the path it is served under" + (" (default: $PROMETHEUS)" if asked else "")
    add("--prometheus", required=required and known is None, default=known, metavar="URL", help=text)
    text = "its password, token or certificates, in promtool's format"
    add("--http.config.file", dest="http_config_file", type=Path, metavar="FILE", help=text)


def add_daemon(parser: argparse.ArgumentParser) -> None:
    """Add ``--daemon`` and the file with the access to it."""
    add = parser.add_argument
    add("--daemon", metavar="URL", help="http://host:10047 (as the configuration says)")
    text = "its password, token or certificates, in promtool's format"
    add("--daemon.http.config.file", dest="daemon_http_config_file", type=Path, metavar="FILE", help=text)


def daemon_access(options: argparse.Namespace) -> Access:
    """The access that the flags of :func:`add_daemon` give."""
    from plumbline.sources.prometheus.access import load_access  # noqa: PLC0415

    return load_access(options.daemon_http_config_file)


def access(options: argparse.Namespace) -> Access:
    """The access that the flags of :func:`add_prometheus` give."""
    from plumbline.sources.prometheus.access import load_access  # noqa: PLC0415

    if options.prometheus is None and options.http_config_file is not None:
        raise ConfigError("--http.config.file", "needs --prometheus: it says how to reach that server")
    return load_access(options.http_config_file)


@contextmanager
def asking_prometheus(options: argparse.Namespace) -> Iterator[Server]:
    """The server of :func:`add_prometheus` with the flag ``--timeout``, and a bar for its questions on a terminal."""
    from plumbline.core.console import Step, make_console, progress  # noqa: PLC0415
    from plumbline.sources.prometheus.queries import Server  # noqa: PLC0415

    timeout_s, text = positive_duration(options.timeout, "--timeout"), "asking Prometheus"
    with progress(make_console(sys.stderr), text, piped=False) as drawn:

        def asked(done: int, total: int, what: str) -> None:
            drawn(Step(text, done / total if total else None, more=f"{done}/{total} {what}"))

        yield Server(options.prometheus, timeout_s, asked, access(options))


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the flags for where a report goes, and in which form."""
    add = parser.add_argument
    add("--output", type=Path, metavar="FILE", help="write to this file; .md is Markdown, anything else HTML")
    add("--format", choices=("html", "markdown"), help="whatever FILE ends with; without --output: to the terminal")
    add("--force", action="store_true", help="replace an existing file (kept as .bak)")
