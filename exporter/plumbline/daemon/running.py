"""A configuration applied to this host: everything that can fail is prepared here, before anything changes; and whether
its files have changed since."""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from plumbline.background.claims import claimed
from plumbline.baseline.book import Book, load_book
from plumbline.baseline.site import read_site
from plumbline.config.model import Config
from plumbline.config.options import check_key_files, storage_path
from plumbline.core.answers import stat_named
from plumbline.core.roots import Roots
from plumbline.core.storage_names import CLASS_FILE, NEXT_SIGNATURE, RECORDED, SIGNATURE
from plumbline.errors import PlumblineError
from plumbline.probes.run.plan import ProbingPlan, make_plan
from plumbline.sources.disk.block import BlockDevice
from plumbline.web.guard import files_of

T = TypeVar("T")

log = logging.getLogger("plumbline")


class PreparedConfig(Struct, frozen=True):
    """A prepared configuration; a reload replaces it as a whole."""

    config: Config
    plan: ProbingPlan
    book: Book
    since: float  # Unix seconds


class HostContext(Struct, frozen=True):
    """The surroundings that a configuration is prepared with; constant for the daemon's life."""

    config_file: Path | None
    storage: Path
    roots: Roots
    environment: Mapping[str, str]
    host: str

    def prepare(
        self, config: Config, disks_before: tuple[BlockDevice, ...] = (), book_before: Book | None = None
    ) -> PreparedConfig:
        """Make plan and baselines; raises :class:`ConfigError` or :class:`BaselineError` if that is not possible."""
        plan = make_plan(
            config, storage=self.storage, roots=self.roots, environment=self.environment, disks_before=disks_before
        )
        plan = replace(plan, reported=claimed(self.storage))
        book = load_book(
            config.baseline,
            where=str(self.config_file or "configuration"),
            storage=self.storage,
            host=self.host,
            targets=plan.targets(),
            environment=self.environment,
            before=book_before,
        )
        error_before = str(book_before.class_error) if book_before else ""
        if book.class_error is not None and str(book.class_error) != error_before:
            instead = "the figures read before stay in use" if book.class_site else "no figures of a class are in use"
            log.error("the baseline of this node's class is refused, %s: %s", instead, book.class_error)
        return PreparedConfig(config, plan, book, time.time())

    def files(self, others: Iterable[Path]) -> list[Path]:
        """Every file that a reload reads; ``others``: the result of :func:`named`."""
        own = [self.config_file] if self.config_file else []
        pushed = [
            self.storage / (name + end) for name in (RECORDED, CLASS_FILE) for end in ("", SIGNATURE, NEXT_SIGNATURE)
        ]
        return [*pushed, *others, *own]


def named(config: Config) -> tuple[Path, ...]:
    """The files that a configuration names: baselines, who may sign them, and what controls access to the web
    server."""
    signers = (Path(config.baseline.allowed_signers),) if config.baseline.allowed_signers else ()
    return (*map(Path, config.baseline.files), *signers, *files_of(web_file(config)))


def web_file(config: Config) -> Path | None:
    """The web configuration file; ``None``: access is open to everybody and unencrypted."""
    return Path(config.web.config_file) if config.web.config_file else None


class FileWatch:
    """Detects that files were edited, replaced, removed or created since they were read. ``files`` may return different
    paths from call to call; their state at construction counts as read. Every method calls ``stat`` and waits for a
    mount that hangs (see :mod:`.answers`): not for the main loop."""

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._read = self._now()

    @property
    def changed(self) -> bool:
        return self._now() != self._read

    def mark_read(self, read: Callable[[], T]) -> T:
        """Call ``read`` and mark the files as read. A file written during the call still counts as changed."""
        before = self._now()
        result = read()
        self._read = {file: before.get(file, now) for file, now in self._now().items()}
        return result

    def _now(self) -> dict[Path, tuple[int, ...] | None]:
        return {file: _signature(file) for file in self._files()}


def _signature(file: Path) -> tuple[int, ...] | None:
    """Identifies the file's content (modification time in ns, size, inode), and who may read it: a key may be refused
    for that."""
    try:
        status = stat_named(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode, status.st_uid, status.st_gid


def refusals(config: Config, config_file: Path) -> list[PlumblineError]:
    """All for which :func:`.daemon.serve`, or a reload, would refuse this configuration on this host; only reads."""
    errors: list[PlumblineError] = []
    roots, storage = Roots.under(Path("/")), storage_path(None, config, os.environ)
    context = HostContext(config_file, storage, roots, os.environ, socket.gethostname())
    files = partial(check_key_files, config, str(config_file))
    sites = [partial(read_site, Path(file), host=context.host) for file in config.baseline.files]
    steps: list[Callable[[], object]] = [files, *sites, partial(context.prepare, config)]
    for step in steps:
        try:
            step()
        except PlumblineError as error:
            if str(error) not in map(str, errors):
                errors.append(error)
    return errors
