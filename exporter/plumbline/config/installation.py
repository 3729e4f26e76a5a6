"""What a command without flags is about: the running daemon of this host, else what is installed in /etc and /var/lib.

The daemon writes where it is into a small file in its runtime directory: ``$RUNTIME_DIRECTORY`` (systemd's), else
/run/plumbline for root and ``$XDG_RUNTIME_DIR/plumbline`` for others. Nothing else knows these places.
"""

import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plumbline.config.model import load
from plumbline.core.files import OwnDirectory
from plumbline.core.foreign import decode_json
from plumbline.core.keyfiles import read_anchor
from plumbline.core.proofs import Content
from plumbline.core.roots import Roots
from plumbline.errors import FileRefused, ParseError, PlumblineError

log = logging.getLogger("plumbline")

_NAME = "daemon.json"
_ACCOUNT = "plumbline"  # of plumbline.service: DynamicUser= takes the unit's name
_SHARED = Path("/run/plumbline")
_MAX_BYTES = 64 << 10
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  (not bound to)


class Installation(Struct, frozen=True):
    """``url`` and ``pid`` are those of a daemon that runs."""

    config_file: Path | None
    storage_path: Path | None
    url: str | None = None
    pid: int = 0

    def agrees(self, config_file: Path | None, storage_path: Path | None) -> bool:
        """Whether nothing that is given differs from it."""
        return all(
            given is None or (own is not None and given.absolute() == own)
            for given, own in ((config_file, self.config_file), (storage_path, self.storage_path))
        )

    def storage_in_force(self) -> Path | None:
        """``None`` where the file that is installed names its own storage path, or cannot be read, which the command
        will report."""
        if self.pid or self.config_file is None:
            return self.storage_path
        try:
            return None if load(self.config_file).storage_path else self.storage_path
        except PlumblineError:
            return None


def announce(running: Installation, environment: Mapping[str, str]) -> Callable[[], None]:
    """Tell commands where this daemon is; the result takes it back. A directory that cannot be written is one line in
    the log: only commands without flags notice."""
    own = next(_own_directories(environment), None)
    if own is None:
        return lambda: None
    for name, address in _ANY_ADDRESS.items():
        if running.url is not None:
            running = replace(running, url=running.url.replace(f"//{name}:", f"//{address}:"))
    try:
        with OwnDirectory.make(own, 0o755) as directory:
            directory.replace(_NAME, msgspec.json.encode(running, enc_hook=str), Content(_recognised), mode=0o644)
    except (OSError, FileRefused, UnicodeEncodeError) as error:
        log.info("commands need --config.file and --storage.path to find this daemon: %s", error)
        return lambda: None

    def withdraw() -> None:
        with suppress(OSError, FileRefused), OwnDirectory.at(own) as directory:
            directory.remove(_NAME, Content(lambda fd: _recognised(fd, running.pid)))

    return withdraw


def installations(roots: Roots, environment: Mapping[str, str]) -> Iterator[Installation]:
    """The running daemons that this user may follow, then what is installed: the first that agrees with the flags given
    is meant."""
    shared = [] if environment.get("RUNTIME_DIRECTORY") == "" else [_SHARED]
    for directory in dict.fromkeys([*_own_directories(environment), *shared]):
        running = _read(directory / _NAME)
        if running is not None and (roots.proc / str(running.pid)).exists() and _may_follow(running):
            yield running
    file = roots.etc / "plumbline" / "plumbline.yaml"
    storage = roots.var / "lib" / "plumbline"
    yield Installation(file if file.exists() else None, storage if os.path.lexists(storage) else None)


def _own_directories(environment: Mapping[str, str]) -> Iterator[Path]:
    if (given := environment.get("RUNTIME_DIRECTORY")) is not None:
        if given:  # empty: nobody shall find this daemon, or a daemon
            yield Path(given.split(":")[0])
    elif os.geteuid() == 0:
        yield _SHARED
    elif base := environment.get("XDG_RUNTIME_DIR"):
        yield Path(base) / "plumbline"


def _may_follow(running: Installation) -> bool:
    """A configuration names programs and paths: no user is led to one that another user, root apart, has written."""
    if running.config_file is None:
        return True
    try:
        status = running.config_file.stat()
    except OSError:
        return False
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & stat.S_IWOTH


def _read(file: Path) -> Installation | None:
    """``None`` as well where somebody else than this user, root and the daemon's account could have written it."""
    try:
        return _decoded(read_anchor(file, _MAX_BYTES, account=_ACCOUNT))
    except (OSError, ParseError):
        return None


def _recognised(fd: int, pid: int | None = None) -> bool:
    """Whether a daemon wrote this, the one of ``pid`` if it is given."""
    try:
        writer = _decoded(os.pread(fd, _MAX_BYTES, 0)).pid
    except ParseError:
        return False
    return pid in (None, writer)


def _decoded(data: bytes) -> Installation:
    return decode_json(data, Installation, source=_NAME, hook=lambda kind, text: kind(text))
