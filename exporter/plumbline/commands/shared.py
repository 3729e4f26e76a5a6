"""What every command needs: a parser that fails in one line, the flags for the host's paths, JSON."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from plumbline.config.types import Duration
from plumbline.core.escape import visible
from plumbline.core.roots import Roots
from plumbline.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from plumbline.commands.node import Node
    from plumbline.config.model import Config
    from plumbline.sources.prometheus.access import Access

INTERRUPTED = 130
"""Exit code after Ctrl-C or SIGTERM."""


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


def add_world(parser: argparse.ArgumentParser) -> None:
    """Flags of every command that touches this host."""
    parser.add_argument(
        "--config.file", dest="config_file", type=Path, metavar="FILE", help="configuration file (YAML)"
    )
    parser.add_argument(
        "--storage.path", dest="storage_path", type=Path, metavar="DIR", help="state, canary file, recorded baseline"
    )
    for tree, default in (
        ("procfs", "/proc"),
        ("sysfs", "/sys"),
        ("devfs", "/dev"),
        ("udev", "/run/udev"),
        ("etc", "/etc"),
        ("var", "/var"),
    ):
        parser.add_argument(
            f"--path.{tree}",
            dest=f"path_{tree}",
            type=Path,
            default=Path(default),
            metavar="DIR",
            help=f"where the host's {default} stands (default {default})",
        )
    parser.add_argument(
        "--log.level", dest="log_level", choices=("debug", "info", "warning", "error"), default="info", help="(info)"
    )


def complain(text: str) -> None:
    """Print one line on standard error, whatever the names in it."""
    print(visible(text), file=sys.stderr)


def print_json(data: object) -> None:
    """Print on standard output, indented."""
    import msgspec  # noqa: PLC0415

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n")


def show(options: argparse.Namespace, data: object, draw: Callable[[Console], object]) -> None:
    """Print the data with ``--json``, else call ``draw``."""
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


def roots(options: argparse.Namespace) -> Roots:
    """The host's trees, at the paths that the flags give."""
    return Roots(
        proc=options.path_procfs,
        sys=options.path_sysfs,
        dev=options.path_devfs,
        udev=options.path_udev,
        etc=options.path_etc,
        var=options.path_var,
    )


@contextmanager
def until_told(stopping: threading.Event) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end the run under way as the daemon would: processes ended, locks released.

    The second Ctrl-C has Python's own effect: it raises, and the runner kills at once.
    """

    def told(number: int, _frame: FrameType | None) -> None:
        stopping.set()
        signal.signal(number, before[signal.Signals(number)])

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, told) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def this_node(options: argparse.Namespace, adjust: Callable[[Config], Config] = lambda config: config) -> Node:
    """Configuration, plan and baselines of this host, from the flags of :func:`add_world`; see :func:`.node.look`."""
    from plumbline.commands.node import look  # noqa: PLC0415  (what it imports is not paid for --help)

    return look(
        config_file=options.config_file, storage_path_flag=options.storage_path, roots=roots(options), adjust=adjust
    )


def add_prometheus(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add ``--prometheus`` and, named as in promtool, ``--http.config.file``."""
    parser.add_argument(
        "--prometheus", required=required, metavar="URL", help="http://host:9090, with the path it is served under"
    )
    parser.add_argument(
        "--http.config.file",
        dest="http_config_file",
        type=Path,
        metavar="FILE",
        help="its password, token or certificates, as promtool has it",
    )


def access(options: argparse.Namespace) -> Access:
    """The access that the flags of :func:`add_prometheus` give."""
    from plumbline.sources.prometheus.access import OPEN, load_access  # noqa: PLC0415

    if options.http_config_file is None:
        return OPEN
    if options.prometheus is None:
        raise ConfigError("--http.config.file", "says how to reach --prometheus; give that, too")
    return load_access(options.http_config_file)


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the flags for where a report goes, and in which form."""
    parser.add_argument("--output", type=Path, metavar="FILE", help="write here; .md is Markdown, anything else HTML")
    parser.add_argument(
        "--format", choices=("html", "markdown"), help="whatever FILE ends with; alone: to the terminal"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file (kept as .bak)")


def page_form(options: argparse.Namespace) -> str:
    """The form that the flags of :func:`add_page` give; raises, before any work, when the page could not be written."""
    from plumbline.commands import reporting  # noqa: PLC0415

    reporting.check_output(options.output, force=options.force)
    return reporting.form_of(options.output, options.format)


def write_page(options: argparse.Namespace, text: str) -> int:
    """Write to the file of :func:`add_page`, or to standard output; returns the exit code."""
    from plumbline.commands import reporting  # noqa: PLC0415

    if options.output is None:
        sys.stdout.write(text)
    else:
        kept = reporting.write(options.output, text, force=options.force)
        print(f"written to {options.output}" + (f"; the old one is {kept}" if kept else ""))
    return 0
