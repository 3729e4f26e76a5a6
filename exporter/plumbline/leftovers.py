"""What Plumbline leaves on a node: found by the names and marks it gives, and taken away. Nothing else is touched.

Two kinds of folders: the storage path, where each file has a name of ours; and probes' directories, which carry the
mark of :mod:`.probes.guard`, inside the storage path or where the configuration says. What has another name stays, and
so does the folder around it.

The service's folders belong to a user with few rights, and root removes what is in them: everything goes through
descriptors that follow no symbolic link.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from plumbline.errors import StateError
from plumbline.probes.canary_worker import FILE_NAME as CANARY
from plumbline.probes.fio_job import FILE as FIO
from plumbline.probes.fio_job import PARTIAL, REPORT
from plumbline.probes.guard import MARKER
from plumbline.probes.metadata_worker import FOLDER as METADATA
from plumbline.storage_names import HEAVY_LOCK, LOCK_FILE, RECORD_LOCK, RECORDED, STATE_FILE, WORK_FILE
from plumbline.storage_names import MARKER as STORAGE_MARKER

_STATE = re.compile(
    rf"{re.escape(STATE_FILE)}(\.new|\.damaged-\d+|\.version-\d+)?"
    rf"|{re.escape(RECORDED)}(\.bak)?|\.{re.escape(RECORDED)}\.[a-z0-9_]{{8}}(\.old)?"
    rf"|{re.escape(WORK_FILE)}(\.new)?|{LOCK_FILE}|{re.escape(HEAVY_LOCK)}|{re.escape(RECORD_LOCK)}"
    rf"|{re.escape(STORAGE_MARKER)}|\.plumbline-[0-9a-f]{{16}}\.(new|old)"
)
_PROBE = re.compile(
    rf"{re.escape(CANARY)}|{re.escape(REPORT)}|({re.escape(FIO)}|{re.escape(PARTIAL)})\.\d+|{re.escape(MARKER)}"
)
_METADATA = re.compile(r"plumbline-\d{6}")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of ours: the names in it that go, in this order, and those that stay."""

    path: Path
    files: tuple[str, ...]
    strange: tuple[str, ...] = ()
    size_bytes: int = 0

    @property
    def whole(self) -> bool:
        """Whether the folder itself goes, too."""
        return not self.strange


def find(storage: Path, directories: Iterable[Path] = ()) -> tuple[Folder, ...]:
    """The folders there are, inner ones first; only reads. ``directories``: probes' own, outside the storage path."""
    found: dict[Path, Folder] = {}
    for directory in directories:
        for each in _probe_folders(directory):
            found.setdefault(each.path, each)
    inside = []
    storage = storage.resolve()  # DynamicUser= makes it a link
    for name in _names(storage):
        inside += [each for each in _probe_folders(storage / name) if each.path not in found]
    found |= {each.path: each for each in inside}
    if _is_folder(storage):
        gone = {each.path.name for each in found.values() if each.path.parent == storage and each.whole}
        state = _folder(storage, _STATE, besides=gone)
        if state.files or gone or not state.strange:
            found[storage] = state
    return tuple(found.values())


def remove(folders: Iterable[Folder]) -> Iterator[Path]:
    """Remove them, each path as it is gone. :class:`StateError` where a daemon or a probe is at work, before anything
    is touched, or where the system refuses."""
    folders = tuple(folders)
    with ExitStack() as stack:
        opened = []
        for each in folders:
            try:
                descriptor = os.open(each.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError as error:
                raise StateError(f"{each.path}: {error.strerror}") from error
            stack.callback(os.close, descriptor)
            _hold(each, descriptor, stack)
            opened.append((each, descriptor))
        for each, descriptor in opened:
            try:
                for name in each.files:
                    os.unlink(name, dir_fd=descriptor)
                    yield each.path / name
                if each.whole:
                    each.path.rmdir()
                    yield each.path
            except OSError as error:
                raise StateError(f"{each.path}: {error.strerror}; what was before it is removed") from error


def _hold(folder: Folder, descriptor: int, stack: ExitStack) -> None:
    for name in (LOCK_FILE, HEAVY_LOCK, RECORD_LOCK, MARKER):
        if name not in folder.files:
            continue
        lock = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor)
        stack.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StateError(
                f"{folder.path}: a plumbline is at work there; stop it first: systemctl stop plumbline"
            ) from error


def _probe_folders(directory: Path) -> list[Folder]:
    """A probe's directory, after what it made inside; nothing where our mark is missing."""
    if not _is_folder(directory) or MARKER not in _names(directory):
        return []
    inner = _folder(directory / METADATA, _METADATA) if _is_folder(directory / METADATA) else None
    gone = {METADATA} if inner and inner.whole else set()
    outer = _folder(directory, _PROBE, besides=gone)
    # the mark goes last: what is interrupted is still ours the next time
    files = tuple(sorted(outer.files, key=lambda name: (name == MARKER, name)))
    return [*([inner] if inner else []), Folder(directory, files, outer.strange, outer.size_bytes)]


def _folder(path: Path, ours: re.Pattern[str], *, besides: Iterable[str] = ()) -> Folder:
    files, strange, size = [], [], 0
    for name in _names(path):
        if name in besides:
            continue
        found = (path / name).lstat()
        # a lock of ours is empty: the name alone says little
        mine = ours.fullmatch(name) and not (name == LOCK_FILE and found.st_size)
        if mine and stat.S_ISREG(found.st_mode):
            files.append(name)
            size += found.st_blocks * 512
        else:
            strange.append(name)
    return Folder(path, tuple(files), tuple(strange), size)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _names(path: Path) -> list[str]:
    try:
        return sorted(each.name for each in path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StateError(f"{path}: {error.strerror}; ask as root") from error
