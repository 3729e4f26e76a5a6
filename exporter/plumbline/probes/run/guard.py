"""The guard: a probe writes only inside a directory that Plumbline created, or was given empty, and marked.

All access goes through file descriptors (:mod:`plumbline.core.files`): once the directory is open, replacing it with a
symbolic link or another directory has no effect. The canary's worker imports this module, so it imports only light
modules (``dataclasses``, ``pathlib``, ``typing`` and ``contextlib`` would double the worker's own memory).

Every call here may block for as long as the underlying disk does: call it where blocking is harmless.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from plumbline.core.files import OwnDirectory, check_directory, is_temporary
from plumbline.core.proofs import Marked, exactly
from plumbline.errors import FileRefused, ProbeRefused
from plumbline.sources.kernel.filesystem_type import filesystem_type, mount_of

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import TracebackType

MARKER = ".plumbline-probe"
MARKER_TEXT = b"Plumbline's probes write here. Nothing else should: any file in this directory may be overwritten.\n"
MARK, MARK_ABOVE = Marked(MARKER, MARKER_TEXT), Marked(MARKER, MARKER_TEXT, above=True)
_MARK_ITSELF = exactly(MARKER_TEXT)
RESERVE_BYTES = 64 * 2**20  # Space a probe leaves free beyond twice what it adds, so that no probe ever fills a disk
FILL_BYTES_PER_SECOND = 32 * 2**20  # Rate at which a new file is filled: a disk in production hardly notices
# small enough that the C library returns the memory: a few chunks of 1 MiB would stay with the worker for ever
_CHUNK_BYTES = 64 * 2**10
# a new file is flushed, and the free space checked, each time this much was written
_LOOK_BYTES = 4 * 2**20
# attempts to find a marker that another probe has just removed
_TRIES = 5

MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs"})

ADVICE = {
    "file-lost": "leave the probe's directory to the probe",
    "io-error": "see the kernel's log for the device below",
    "locked": "give each probe its own directory, and end the process that holds this one",
    "memory-filesystem": "name a directory on the disk that is to be measured",
    "missing": "create the parent directory first",
    "no-direct-io": "name a directory on a file system with O_DIRECT",
    "no-space": "free some space, or make the probe's file smaller",
    "not-a-directory": "name a directory that does not exist yet or is empty",
    "not-ours": "name a directory that does not exist yet, or an empty one of the user who runs this",
    "permission": "give the user who runs this write access, or name another directory",
    "read-only": "mount it writable, or name another directory",
    "symlink": "name the directory itself",
}
"""Every reason for which the guard refuses (a label value), and what an operator can do about it."""

_BY_ERRNO = {
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.EROFS: "read-only",
    errno.ENOSPC: "no-space",
    errno.EDQUOT: "no-space",
    errno.ELOOP: "symlink",
    errno.ENOTDIR: "not-a-directory",
    errno.ENOENT: "missing",
}


class ProbeDirectory:
    """A marked directory, open and locked until :meth:`close`: one probe at a time writes in it. ``files`` is the
    directory itself, ``fd`` its descriptor."""

    __slots__ = ("_marker_fd", "files")

    def __init__(self, files: OwnDirectory, marker_fd: int) -> None:
        self.files, self._marker_fd = files, marker_fd

    @property
    def fd(self) -> int:
        """The directory's descriptor, -1 once it is closed."""
        return self.files.fd

    def open(self, name: str) -> int:
        """Open a file of ours for reading and writing; create it if it is missing. Raises ``OSError``,
        :class:`FileRefused`, and :class:`ProbeRefused` if something is mounted on the name."""
        fd = self.files.edit(name, MARK, create=True)
        if mount_of(fd) != mount_of(self.files.fd):
            os.close(fd)
            raise refused("not-ours", self.files.where(name), "is a mount of its own")
        return fd

    def open_file(
        self, name: str, size_bytes: int, *, direct: bool, dsync: bool, pause: Callable[[float], None] = time.sleep
    ) -> int:
        """Open a file of ours for reading and writing, ``size_bytes`` long with every block allocated. A file that is
        new, of another size or sparse is filled first (:func:`fill`). Raises :class:`ProbeRefused` if the existing
        entry is not a plain, single-linked file of this user."""
        if name == MARKER:
            raise ValueError(f"not a plain file name: {name!r}")
        where = self.files.where(name)
        try:
            fd = self.open(name)
        except (OSError, FileRefused) as error:
            raise refused_by(error, where) from error
        try:
            status = os.fstat(fd)
            if status.st_size != size_bytes or status.st_blocks * 512 < size_bytes:
                fill(fd, size_bytes, where, pause)
            if not (direct or dsync):
                return fd
            wanted = (os.O_DIRECT if direct else 0) | (os.O_DSYNC if dsync else 0)
            other = _open_direct(self.files, name, wanted, write=True)
            if not os.path.samestat(os.fstat(other), status):
                os.close(other)
                raise refused("not-ours", where, "was replaced by another file while it was opened")
        except (OSError, FileRefused) as error:
            os.close(fd)
            raise refused_by(error, where) from error
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return other

    def close(self) -> None:
        if self._marker_fd >= 0:
            os.close(self._marker_fd)
        self._marker_fd = -1
        self.files.close()

    def __enter__(self) -> ProbeDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def prepare_directory(
    path: str | os.PathLike[str],
    *,
    size_bytes: int,
    files: Collection[str] = (),
    direct: bool = True,
    below: Marked | None = None,
) -> ProbeDirectory:
    """Create (its last component only) or take the directory, check it, mark it, lock it.

    ``size_bytes`` is the total that the probe will write, in equal shares in ``files`` if any are named; what these
    files already hold is overwritten in place. Free space must be twice the growth beyond that, plus
    :data:`RESERVE_BYTES`; there is no requirement if ``size_bytes`` is 0. ``direct`` requires a file system with
    O_DIRECT. ``below``: the mark without which nothing is created in the parent: the storage path may have been
    replaced by somebody else's directory since the start. Raises :class:`ProbeRefused` with a reason of :data:`ADVICE`
    if a check fails, and leaves nothing behind.
    """
    where = os.fspath(path).rstrip("/")
    parent_name, name = os.path.split(where)
    if name in {"", ".", ".."}:
        raise refused("not-ours", where or "/", "is not a directory of its own")
    try:
        parent = os.open(parent_name or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise refused_by(error, parent_name or ".") from error
    made = False
    fd = -1
    try:
        try:
            fd = _open_directory(name, parent, where)
        except FileNotFoundError:
            # check the parent, so that a refusal leaves no new directory
            _check_filesystem(parent, where, growth=size_bytes)
            if below is not None and not below.holds(OwnDirectory(parent, parent_name or ".", os.geteuid()), parent):
                what = f"is not created: {parent_name or '.'} is not, or no longer, a storage path of Plumbline"
                raise refused("not-ours", where, what) from None
            os.mkdir(name, 0o700, dir_fd=parent)
            made = True
            fd = _open_directory(name, parent, where)
        directory = OwnDirectory(fd, where, os.geteuid())
        marker_fd = _check_and_mark(directory, size_bytes, files, direct)
    except BaseException as error:
        if fd >= 0:
            if made:
                _remove_made(name, parent, fd)
            os.close(fd)
        if isinstance(error, OSError | FileRefused):
            raise refused_by(error, where) from error
        raise
    finally:
        os.close(parent)
    return ProbeDirectory(directory, marker_fd)


def is_marked(path: str | os.PathLike[str]) -> bool:
    """Whether a probe has used this directory, judging only by the marker's name."""
    try:
        return MARKER in os.listdir(path)  # not through pathlib  # noqa: PTH208
    except OSError:
        return False


def fill(fd: int, size_bytes: int, where: str, pause: Callable[[float], None]) -> None:
    """Write the whole file once and flush it; free its blocks on failure. The bytes are random: reading a hole never
    reaches the disk, and a compressing disk stores almost nothing for zeros. ``pause`` is called with seconds between
    chunks to keep to :data:`FILL_BYTES_PER_SECOND`. Raises :class:`ProbeRefused` (``no-space``) before free space falls
    below :data:`RESERVE_BYTES`: others may fill the disk meanwhile."""
    try:
        os.ftruncate(fd, min(size_bytes, os.fstat(fd).st_size))
        at = looked = 0
        while at < size_bytes:
            if at >= looked:
                os.fdatasync(fd)  # spreads the load on the disk, and makes the free space up to date
                _check_free(os.fstatvfs(fd), where, needed=RESERVE_BYTES)
                looked = at + _LOOK_BYTES
            length = min(_CHUNK_BYTES, size_bytes - at)
            written = os.pwrite(fd, os.urandom(length), at)
            at += written
            pause(written / FILL_BYTES_PER_SECOND)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    except (OSError, ProbeRefused):
        try:  # contextlib is not light  # noqa: SIM105
            os.ftruncate(fd, 0)
        except OSError:
            pass  # the first error is the one to report
        raise


def refused(reason: str, where: str, what: str) -> ProbeRefused:
    """The refusal for one of :data:`ADVICE`'s reasons: what is wrong, where, what to do."""
    return ProbeRefused(reason, f"{where}: {what}; {ADVICE[reason]}")


def refused_by(error: OSError | FileRefused, where: str) -> ProbeRefused:
    """The refusal for a failed system call, or for a file that is not ours."""
    if isinstance(error, FileRefused):
        return ProbeRefused("symlink" if error.reason == "symlink" else "not-ours", str(error))
    return refused(_BY_ERRNO.get(error.errno or 0, "io-error"), where, error.strerror or str(error))


def _open_directory(name: str, parent: int, where: str) -> int:
    """Open without following a link: O_NOFOLLOW with O_DIRECTORY gives ENOTDIR for a link, hence the separate check."""
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise refused("symlink", where, "is a symbolic link") from None
        raise refused("not-a-directory", where, "is not a directory") from None


def _remove_made(name: str, parent: int, fd: int) -> None:
    """Remove the directory that was just created, if it still exists and is empty."""
    try:
        if os.path.samestat(os.stat(name, dir_fd=parent, follow_symlinks=False), os.fstat(fd)):
            os.rmdir(name, dir_fd=parent)
    except OSError:
        pass  # the first error is the one to report


def _check_and_mark(directory: OwnDirectory, size_bytes: int, files: Collection[str], direct: bool) -> int:
    """Check the directory and return the open, locked marker."""
    where = directory.name
    check_directory(os.fstat(directory.fd), where, os.geteuid())
    growth = size_bytes - sum(_held(directory, name, size_bytes // len(files)) for name in files)
    _check_foreign(directory)
    _check_filesystem(directory.fd, where, growth=growth if size_bytes else None)
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=directory.fd, effective_ids=True):
        raise refused("permission", where, "is not writable by this user")
    for _ in range(_TRIES):
        made = _check_foreign(directory)
        if made:
            try:
                directory.create(MARKER, MARKER_TEXT)  # atomic
            except FileExistsError:
                made = False  # another probe was faster
        try:
            marker = _locked_marker(directory)
        except FileNotFoundError:
            continue  # the probe that created it was refused, and has just removed it
        if marker >= 0:
            break
    else:
        raise refused("locked", where, "other probes keep starting and ending here")
    try:
        if direct:
            os.close(_open_direct(directory, MARKER, os.O_DIRECT))
    except BaseException:
        if made:
            try:  # under its lock: nobody else relies on it  # noqa: SIM105
                directory.remove(MARKER, _MARK_ITSELF)
            except (OSError, FileRefused):
                pass  # the first error is the one to report
        os.close(marker)
        raise
    return marker


def _check_foreign(directory: OwnDirectory) -> bool:
    """Whether the marker must still be created; refuses a directory with other files but no marker."""
    names = directory.names()
    if MARKER in names:
        return False
    if not all(map(is_temporary, names)):
        raise refused("not-ours", directory.name, f"is not empty and has no {MARKER}")
    return True


def _locked_marker(directory: OwnDirectory) -> int:
    """The locked marker, verified to be ours by its content; -1 if it was replaced meanwhile."""
    marker = directory.edit(MARKER, _MARK_ITSELF)  # NFS locks only what is open for writing
    try:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refused("locked", directory.name, "another probe is using it") from None
        if os.path.samestat(os.stat(MARKER, dir_fd=directory.fd, follow_symlinks=False), os.fstat(marker)):
            return marker
    except BaseException:
        os.close(marker)
        raise
    os.close(marker)
    return -1


def _held(directory: OwnDirectory, name: str, size_bytes: int) -> int:
    """How many of ``size_bytes`` are already allocated in a file of ours."""
    try:
        status = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_uid != os.geteuid():
        return 0  # refused when it is opened
    return min(size_bytes, status.st_size, status.st_blocks * 512)


def _check_filesystem(fd: int, where: str, *, growth: int | None) -> None:
    """``growth``: bytes to be added; ``None``: nothing will be written."""
    kind = filesystem_type(fd)
    if kind in MEMORY_FILESYSTEMS:
        raise refused("memory-filesystem", where, f"is on {kind}, so memory would be measured")
    space = os.fstatvfs(fd)
    if space.f_flag & os.ST_RDONLY:
        raise refused("read-only", where, "the file system is read-only")
    if growth is not None:
        _check_free(space, where, needed=2 * growth + RESERVE_BYTES)


def _check_free(space: os.statvfs_result, where: str, *, needed: int) -> None:
    free = space.f_bavail * space.f_frsize
    if free < needed:
        raise refused("no-space", where, f"{free >> 20} MiB free, {-(-needed >> 20)} MiB needed")


def _open_direct(directory: OwnDirectory, name: str, flags: int, *, write: bool = False) -> int:
    try:
        return directory.edit(name, MARK, flags) if write else directory.open(name, flags)
    except OSError as error:
        if error.errno == errno.EINVAL and flags & os.O_DIRECT:
            raise refused("no-direct-io", directory.where(name), "the file system refuses O_DIRECT") from error
        raise
