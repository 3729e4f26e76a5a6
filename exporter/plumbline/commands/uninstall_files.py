"""What Plumbline leaves on a node: found by its marks and its files' content, and removed. The rest stays.

There are two kinds of directories. The storage path carries the mark of :mod:`~plumbline.probes.run.storage`, or its
content shows that an earlier release made it; each file in it is checked as well. Probes' directories carry the mark of
:mod:`~plumbline.probes.run.guard`, inside the storage path or where the configuration says. Anything else stays, and so
does the directory around it.

The service's directories belong to a user with few rights, and root removes what is in them: everything goes through
descriptors (:mod:`~plumbline.core.files`), and what is removed is the very directory that was found, wherever its name
leads by then.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from plumbline.background.leases import LEASE_BEGINNING, LEASE_PROOF, SEEN_BEGINNING, SEEN_PROOF
from plumbline.baseline.signature import BEGINNING as SIGNATURE
from plumbline.baseline.signature import holds_signature
from plumbline.core import jsontext
from plumbline.core.directories import remove_directory
from plumbline.core.files import OwnDirectory, is_temporary, read_whole
from plumbline.core.proofs import Content, Proof, exactly, is_interrupted_write
from plumbline.core.storage_names import (
    CLAIM_FILE,
    CLASS_FILE,
    LEASE_FILE,
    LOCKS,
    MARK,
    MARKER,
    MARKER_TEXT,
    OSDS_FILE,
    RECORDED,
    SEEN_FILE,
    STATE_FILE,
    WORK_FILE,
    reserved,
)
from plumbline.errors import FileRefused, StateError
from plumbline.probes.canary.canary_worker import FILE_NAME as CANARY
from plumbline.probes.canary.target import OWN_DIRECTORY
from plumbline.probes.ceph.osd_lookup import is_osds
from plumbline.probes.filesystem.metadata_worker import FOLDER as METADATA
from plumbline.probes.filesystem.metadata_worker import OURS as METADATA_FILE
from plumbline.probes.fio.fio_job import FILE as FIO
from plumbline.probes.fio.fio_job import PARTIAL, REPORT
from plumbline.probes.run import guard
from plumbline.probes.run.gates import is_lock_text
from plumbline.probes.run.state import MAX_BYTES, READABLE_VERSIONS, is_state
from plumbline.probes.run.storage import holds_baseline, of_earlier_release

_OLDER, _DAMAGED = r"(\.version-[0-9]+)?", r"(\.new|\.damaged-[0-9]+)"
_BASELINE = rf"{re.escape(RECORDED)}(\.bak(-[0-9]+)?)?|\.{re.escape(RECORDED)}\.[a-z0-9_]{{8}}(\.old)?"
_FLEET = rf"{re.escape(RECORDED)}\.candidate|{re.escape(CLASS_FILE)}(\.bak(-[0-9]+)?)?"
_SIGNATURES = rf"({re.escape(RECORDED)}|{re.escape(CLASS_FILE)})\.sig(\.new)?"
_PROBE = re.compile(rf"{re.escape(CANARY)}|{re.escape(REPORT)}|({re.escape(FIO)}|{re.escape(PARTIAL)})\.[0-9]+")


class Folder(Struct, frozen=True):
    """A directory of ours: the files in it to remove, in this order, and the names that stay."""

    path: Path
    identity: tuple[int, int]  # Device and inode
    files: dict[str, Proof]
    strange: tuple[str, ...] = ()
    size_bytes: int = 0

    @property
    def whole(self) -> bool:
        """Whether the directory itself is removed, too."""
        return not self.strange


def find(storage: Path, directories: Iterable[Path] = ()) -> tuple[Folder, ...]:
    """The existing directories, inner ones first; only reads. ``directories``: outside the storage path."""
    folders: dict[Path, Folder] = {}
    for directory in directories:
        folders |= {folder.path: folder for folder in _probe_folders(directory) if folder.path not in folders}
    storage = storage.resolve()  # DynamicUser= makes it a link
    own = _open(storage)
    if own is None:
        return tuple(folders.values())
    with own:
        names = _names(own)
        for name in names:
            folders |= {folder.path: folder for folder in _probe_folders(storage / name) if folder.path not in folders}
        gone = {folder.path.name for folder in folders.values() if folder.path.parent == storage and folder.whole}
        if _is_storage(own, names):
            folders[storage] = _folder(own, _in_storage, besides=gone, last=MARKER)
        elif any(map(reserved, names)):
            folders[storage] = _folder(own, lambda _: None, besides=gone)
    return tuple(folders.values())


def remove(folders: Iterable[Folder]) -> Iterator[Path]:
    """Remove them; yields each path once it is gone. Raises :class:`StateError` when a daemon or a probe is at work,
    before anything is touched, or when the system refuses."""
    with ExitStack() as stack:
        opened = []
        for folder in folders:
            own = _open_again(folder)
            stack.enter_context(own)
            locks = stack.enter_context(ExitStack())
            _hold(folder, own, locks)
            opened.append((folder, own, locks))
        for folder, own, locks in opened:
            try:
                for name, proof in folder.files.items():
                    if name == next(reversed(folder.files)):
                        locks.close()  # NFS and FUSE keep a file that is open, by another name
                    own.remove(name, proof)
                    yield folder.path / name
                if folder.whole:
                    remove_directory(own)
                    yield folder.path
            except OSError as error:
                raise StateError(f"{folder.path}: {error.strerror}; everything listed before is removed") from error
            except FileRefused as error:
                raise StateError(f"{error}; everything listed before is removed") from error


def _open_again(folder: Folder) -> OwnDirectory:
    own = _open(folder.path)
    if own is not None and _identity(own) == folder.identity:
        return own
    if own is not None:
        own.close()
    raise StateError(f"{folder.path}: was replaced by something else; nothing was touched, look again")


def _hold(folder: Folder, own: OwnDirectory, stack: ExitStack) -> None:
    for name in (*LOCKS, guard.MARKER):
        if name not in folder.files:
            continue
        try:
            lock = own.open(name)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(
                f"{folder.path}: a plumbline is at work there; stop it first: systemctl stop plumbline"
            ) from error
        except (OSError, FileRefused) as error:
            raise StateError(f"{folder.path}: can't be locked: {error}") from error


@contextmanager
def _as_root(where: str) -> Iterator[None]:
    """A failure of the system becomes a :class:`StateError`."""
    try:
        yield
    except OSError as error:
        raise StateError(f"{where}: {error.strerror}; run this as root") from error


def _open(path: Path) -> OwnDirectory | None:
    """Open a directory of any owner; None where it is missing, a link, no directory, or writable by others."""
    with _as_root(str(path)):
        try:
            return OwnDirectory.at(path, owner=path.lstat().st_uid)
        except (FileNotFoundError, NotADirectoryError, FileRefused):
            return None


def _identity(own: OwnDirectory) -> tuple[int, int]:
    status = os.fstat(own.fd)
    return status.st_dev, status.st_ino


def _probe_folders(directory: Path) -> list[Folder]:
    """A probe's directory, after what it made inside; empty where our mark is missing."""
    own = _open(directory)
    if own is None:
        return []
    with own:
        if _look(own, guard.MARKER, exactly(guard.MARKER_TEXT)) is None:
            return []
        inner = _probe_folders(directory / OWN_DIRECTORY)  # of a canary's run on demand
        if (metadata := _open(directory / METADATA)) is not None:
            with metadata:
                inner.append(_folder(metadata, _in_metadata))
        gone = {folder.path.name for folder in inner if folder.whole}
        return [*inner, _folder(own, _in_probe, besides=gone, last=guard.MARKER)]


def _folder(
    own: OwnDirectory, ours: Callable[[str], Proof | None], *, besides: Iterable[str] = (), last: str = ""
) -> Folder:
    """``last``: the mark. After an interruption the directory is still ours."""
    files: dict[str, Proof] = {}
    strange, size = [], 0
    for name in sorted(_names(own), key=lambda name: (name == last, name)):
        if name in besides:
            continue
        proof = ours(name)
        identity = _look(own, name, proof) if proof is not None else None
        if proof is None or identity is None:
            strange.append(name)
        else:
            files[name] = proof
            size += identity.st_blocks * 512
    return Folder(Path(own.name), _identity(own), files, tuple(strange), size)


def _look(own: OwnDirectory, name: str, proof: Proof) -> os.stat_result | None:
    """Its stat result, when it is a file of ours."""
    with _as_root(own.where(name)):
        try:
            descriptor = own.open(name)
        except (FileRefused, FileNotFoundError):
            return None
    try:
        return os.fstat(descriptor) if proof.holds(own, descriptor) else None
    except FileRefused:
        return None
    finally:
        os.close(descriptor)


def _names(own: OwnDirectory) -> list[str]:
    with _as_root(own.name):
        return own.names()


def _is_storage(own: OwnDirectory, names: list[str]) -> bool:
    """By its mark; without one, by what an earlier release would have left."""
    if MARKER in names:
        return _look(own, MARKER, exactly(MARKER_TEXT)) is not None
    names = [name for name in names if not is_temporary(name)]
    with _as_root(own.name):
        return bool(names) and of_earlier_release(own, names, is_state, most_bytes=MAX_BYTES)


def _in_storage(name: str) -> Proof | None:
    if is_temporary(name):
        return Content(_was_being_written, empty=MARK)
    return next((proof for names, proof in _STORAGE if re.fullmatch(names, name)), None)


def _in_probe(name: str) -> Proof | None:
    """The mark of a probe's directory makes files with these names ours; their content says nothing."""
    if name == guard.MARKER:
        return exactly(guard.MARKER_TEXT)
    return guard.MARK if _PROBE.fullmatch(name) or is_temporary(name) else None


def _in_metadata(name: str) -> Proof | None:
    return guard.MARK_ABOVE if METADATA_FILE.fullmatch(name) else None


def _whole(*fields: str) -> Content:
    """A whole JSON object whose first fields are these; another release may have written the rest."""
    return Content(lambda descriptor: _fields(descriptor)[: len(fields)] == fields)


def _fields(descriptor: int) -> tuple[str, ...]:
    try:
        return tuple(jsontext.decode(read_whole(descriptor, MAX_BYTES, STATE_FILE), dict[str, Any]))
    except msgspec.DecodeError:
        return ()


def _begins(pattern: bytes) -> Content:
    """A file that was set aside because it is damaged further on."""
    return Content(lambda descriptor: re.match(pattern, os.pread(descriptor, 200, 0)) is not None)


def _was_being_written(descriptor: int) -> bool:
    """An interrupted write: the file has at least part of the beginning of a file of ours."""
    return is_interrupted_write(descriptor, _BEGINNINGS) or is_lock_text(descriptor)


_BEGINNINGS = (
    *(b'{"schema_version":%d,"probes":{' % version for version in READABLE_VERSIONS),
    b'{"version":1,"release":"',
    b'{"version":1,"storage_class":"',
    LEASE_BEGINNING,
    SEEN_BEGINNING,
    b'{"osds": [[',
    b'{"osds": []',
    b"# Baseline of ",
    b"# Accepted figures of class ",
    SIGNATURE,
    MARKER_TEXT,
)

# Name pattern → the proof of a file in the storage path. A file that was set aside or whose writing was interrupted is
# known by its beginning only.
_STORAGE: tuple[tuple[str, Proof], ...] = (
    (re.escape(MARKER), exactly(MARKER_TEXT)),
    ("|".join(map(re.escape, LOCKS)), Content(is_lock_text, empty=MARK)),
    (re.escape(STATE_FILE) + _OLDER, _whole("schema_version", "probes")),
    (re.escape(STATE_FILE) + _DAMAGED, _begins(rb'\{"schema_version":[0-9]{1,9},"probes":\{')),
    (re.escape(WORK_FILE), _whole("version", "release", "host")),
    (re.escape(WORK_FILE) + _DAMAGED, _begins(rb'\{"version":[0-9]{1,9},"release":"[^"]{1,60}","host":"')),
    (CLAIM_FILE.pattern, _whole("version", "storage_class")),
    (CLAIM_FILE.pattern + _DAMAGED, _begins(rb'\{"version":[0-9]{1,9},"storage_class":"')),
    (re.escape(OSDS_FILE), Content(is_osds)),
    (re.escape(LEASE_FILE), LEASE_PROOF),
    (re.escape(SEEN_FILE), SEEN_PROOF),
    (re.escape(OSDS_FILE) + _DAMAGED, _begins(rb'\{"osds": \[(\]|\[[0-9]{1,9}, ")')),
    (_BASELINE, holds_baseline("measured")),
    (_FLEET, holds_baseline("measured", "class")),
    (_SIGNATURES, Content(holds_signature)),
)
