"""The storage path: its owner, and its marker.

The path is marked when it is created, or if it is empty. Without the marker nothing in it is moved, replaced or
removed, and no daemon starts on it: a name such as ``state.json`` does not prove who wrote the file. A directory of an
older release without markers is taken over if its content shows that it is ours.
"""

import contextlib
import logging
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from plumbline.baseline.files import convert_text
from plumbline.baseline.site import SiteFile
from plumbline.core.files import OwnDirectory, is_temporary, read_whole
from plumbline.core.proofs import Content, is_interrupted_write
from plumbline.core.storage_names import (
    CLASS_FILE,
    LOCK_FILE,
    LOCKS,
    MARK,
    MARKER,
    MARKER_TEXT,
    OSDS_FILE,
    RECORDED,
    STATE_FILE,
    WORK_FILE,
)
from plumbline.errors import FileRefused, PlumblineError, StateError
from plumbline.probes.ceph.osd_lookup import read_osds
from plumbline.probes.run import guard
from plumbline.probes.run.gates import is_lock_text

# present in an empty file system that is mounted there
_NOT_COUNTED = frozenset({"lost+found"})
_MAX_BYTES = 2**24

log = logging.getLogger(__name__)


def acquire(path: Path, is_state: Callable[[bytes], bool], *, most_bytes: int, create: bool = True) -> OwnDirectory:
    """Open the storage path, check its owner, mark it. Raises :class:`StateError` (one line) if not ours. ``is_state``
    decides whether the content of a ``state.json``, of at most ``most_bytes``, is ours. ``create``: make the path if it
    is missing."""
    try:
        try:
            if not create:
                path.stat()
            directory = OwnDirectory.make(path, 0o750, follow=True)
        except FileNotFoundError:
            if not create:
                raise
            path.parent.mkdir(parents=True, exist_ok=True)
            directory = OwnDirectory.make(path, 0o750, follow=True)
    except (FileRefused, OSError) as error:
        raise _unusable(path, error) from error
    try:
        names = [name for name in directory.names() if name not in _NOT_COUNTED and not is_temporary(name)]
        if MARKER not in names:
            if names and not of_earlier_release(directory, names, is_state, most_bytes):
                raise StateError(
                    f"{path}: is not empty, and nothing in it shows that Plumbline made it (no {MARKER});"
                    " nothing in it was touched. Choose a new or empty directory with --storage.path"
                )
            with contextlib.suppress(FileExistsError):  # a second daemon at the same moment; the lock excludes one
                directory.create(MARKER, MARKER_TEXT, mode=0o640)
        if not marked(directory):
            raise StateError(
                f"{path}/{MARKER}: is not what Plumbline writes; nothing was touched. Choose a new or empty directory"
                " with --storage.path"
            )
    except BaseException as error:
        directory.close()
        if isinstance(error, OSError | FileRefused):
            raise _unusable(path, error) from error
        raise
    return directory


class Held:
    """The storage path of one daemon, open and locked until :meth:`close`. Raises :class:`BlockingIOError` if another
    daemon has it."""

    def __init__(self, own: OwnDirectory) -> None:
        self.own = own
        try:
            self._lock = own.lock(LOCK_FILE)
        except BaseException:
            own.close()
            raise

    def in_place(self, name: str) -> bool:
        """Whether the path still leads here, may be written to, and has a file ``name``; any, if that is empty."""
        try:
            writable = os.access(".", os.W_OK, dir_fd=self.own.fd, effective_ids=True)
            return writable and self.own.same() and (not name or self.own.holds(name))
        except (OSError, FileRefused):
            return False

    def close(self) -> None:
        os.close(self._lock)
        self.own.close()


def sweep(own: OwnDirectory) -> None:
    """Remove temporary files of a daemon killed while writing; a recording may be writing its own beside them."""
    for name in own.names():
        if is_temporary(name):
            try:
                own.remove(name, _LEFT)
            except (OSError, FileRefused) as error:
                log.debug("%s: stays: %s", own.where(name), error)


# a state file whose writing ended a minute ago
_LEFT = Content(lambda fd: is_interrupted_write(fd, (b'{"schema_version":',), idle_s=60.0), empty=MARK)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Errors of the storage path become :class:`StateError`."""
    try:
        yield
    except BlockingIOError as error:
        raise StateError(
            f"{path}: another plumbline uses this storage path; stop it or choose another with --storage.path"
        ) from error
    except OSError as error:
        raise _unusable(path, error) from error
    except FileRefused as error:
        raise StateError(str(error)) from error


def _unusable(path: Path, error: OSError | FileRefused) -> StateError:
    if theirs := _another_owner(path):
        place, owner = theirs
        give = f"chown -R {os.geteuid()}:{os.getegid()} {shlex.quote(str(path))}"
        return StateError(
            f"{place}: belongs to user {owner}, and this process is user {os.geteuid()}. Run it as user {owner}"
            + (f", or, if Plumbline made it: {give} (docs/container.md, Another user)" if _may_be_ours(path) else "")
            + "; or choose another directory with --storage.path"
        )
    if isinstance(error, FileRefused):
        return StateError(f"{error} with --storage.path")
    return StateError(f"{path}: can't be used for state: {error.strerror}; choose another with --storage.path")


def _another_owner(path: Path) -> tuple[Path, int] | None:
    """The storage path, or the marker in it, if it belongs to another user; and that user. Another user's daemon leaves
    both; a platform that changes the user of a container often gives it the directory alone."""
    for place in (path, path / MARKER):
        with contextlib.suppress(OSError):
            if (owner := place.stat().st_uid) != os.geteuid():
                return place, owner
    return None


def _may_be_ours(path: Path) -> bool:
    """Whether a change of the owner can be right: nobody is told to give a directory of something else away."""
    try:
        names = {entry.name for entry in path.iterdir()} - _NOT_COUNTED
    except OSError:  # ours is closed to other users
        return True
    return not names or MARKER in names


def marked(directory: OwnDirectory) -> bool:
    """Whether our marker is there. :class:`FileRefused` if it belongs to another user, which shows no stranger."""
    try:
        return directory.read(MARKER, len(MARKER_TEXT)) == MARKER_TEXT
    except FileNotFoundError:
        return False
    except FileRefused as error:
        if error.reason == "owner":
            raise
        return False


def of_earlier_release(
    directory: OwnDirectory, names: Sequence[str], is_state: Callable[[bytes], bool], most_bytes: int
) -> bool:
    """Whether a directory without a marker was a storage path: judged by its state file, or else by all its files."""
    try:
        if STATE_FILE in names:
            return is_state(directory.read(STATE_FILE, most_bytes))
        return all(_is_ours(directory, name) for name in names)
    except FileRefused:
        return False


def _is_ours(directory: OwnDirectory, name: str) -> bool:
    if name in LOCKS:
        descriptor = directory.open(name)
        try:
            return is_lock_text(descriptor)
        finally:
            os.close(descriptor)
    if name in CONTENT:
        return CONTENT[name](directory.read(name, _MAX_BYTES))
    try:
        with OwnDirectory.at(directory.where(name), owner=os.fstat(directory.fd).st_uid) as probe:
            return probe.read(guard.MARKER, len(guard.MARKER_TEXT)) == guard.MARKER_TEXT
    except OSError:
        return False


def baseline_source(data: bytes) -> str:
    """``measured``, ``class`` or ``site``, as a baseline file says; empty for anything else."""
    try:
        return convert_text(SiteFile, data.decode(), where=RECORDED).source
    except (PlumblineError, UnicodeDecodeError):
        return ""


def holds_baseline(*kinds: str) -> Content:
    """The proof of a baseline file of one of these kinds: ``measured``, ``class``."""
    return Content(lambda fd: baseline_source(read_whole(fd, _MAX_BYTES, RECORDED)) in kinds)


def _is_work(data: bytes) -> bool:
    # a recording's modules, which a daemon needs for a directory without a marker only
    from plumbline.baseline.record.work_file import is_work  # noqa: PLC0415

    return is_work(data)


CONTENT: dict[str, Callable[[bytes], bool]] = {
    WORK_FILE: _is_work,
    RECORDED: lambda data: baseline_source(data) != "",
    CLASS_FILE: lambda data: baseline_source(data) == "class",
    OSDS_FILE: lambda data: read_osds(data) is not None,
}
