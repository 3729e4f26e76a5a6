"""The guard: a probe writes only inside a directory that Plumbline made, or was given empty, and marked.

Everything goes through file descriptors of the directory: once it is open, a symbolic link or another directory
put in its place changes nothing. The canary's worker imports this module, so it keeps to light modules
(``dataclasses``, ``pathlib``, ``typing`` and ``contextlib`` would double the memory that is the worker's own).

Every call here may block for as long as the disk below does: call it where that hurts nobody.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from plumbline.core.kernel import TABLE, read_kernel
from plumbline.errors import ProbeRefused

TYPE_CHECKING = False  # as typing's, without loading typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

MARKER = ".plumbline-probe"
MARKER_TEXT = b"Plumbline's probes write here. Nothing else should: any file in this directory may be overwritten.\n"
RESERVE_BYTES = 64 * 2**20
"""Space a probe leaves free beside twice its own size, so that it is never the one that fills a disk."""
FILL_BYTES_PER_SECOND = 32 * 2**20
"""Pace at which a new file is written full: a disk in production hardly notices."""
_CHUNK_BYTES = 64 * 2**10
"""Small enough that the C library gives the memory back: a few of 1 MiB would stay with the worker for ever."""

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
"""Every reason the guard refuses for (a label value), and what a person can do about it."""

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
    """A marked directory, open and locked until :meth:`close`: one probe at a time writes in it.

    ``fd`` is the directory itself. ``path`` is the name it was opened by, for messages and for tools that want one.
    """

    __slots__ = ("_marker_fd", "_name", "fd")

    def __init__(self, name: str, fd: int, marker_fd: int) -> None:
        self._name, self.fd, self._marker_fd = name, fd, marker_fd

    @property
    def path(self) -> Path:
        from pathlib import Path  # not for the worker, see the module's docstring  # noqa: PLC0415

        return Path(self._name)

    def open_file(
        self, name: str, size_bytes: int, *, direct: bool, dsync: bool, pause: Callable[[float], None] = time.sleep
    ) -> int:
        """A file of ours, ``size_bytes`` long with every block allocated, open for reading and writing.

        A file that is new, of another size or has holes is first written full with random bytes (reading a hole
        never reaches the disk, and a compressing disk makes nothing of zeros) and flushed. ``pause`` is called
        with seconds between its chunks to keep :data:`FILL_BYTES_PER_SECOND`. Raises :class:`ProbeRefused` when
        what stands there is not a plain, single-linked file of this user.
        """
        if "/" in name or name in {"", ".", "..", MARKER}:
            raise ValueError(f"not a plain file name: {name!r}")
        where = f"{self._name}/{name}"
        try:
            self._check_plain(name, where)
            fd = os.open(name, os.O_RDWR | os.O_CREAT | _SAFE, 0o600, dir_fd=self.fd)
        except OSError as error:
            raise refused_by(error, where) from error
        try:
            found = self._check_open(fd, where)
            if found.st_size != size_bytes or found.st_blocks * 512 < size_bytes:
                _fill(fd, size_bytes, pause)
            if not (direct or dsync):
                os.set_blocking(fd, True)
                return fd
            wanted = (os.O_DIRECT if direct else 0) | (os.O_DSYNC if dsync else 0)
            other = _open_direct(name, os.O_RDWR | wanted, self.fd, where)
            again = os.fstat(other)
            if (again.st_dev, again.st_ino) != (found.st_dev, found.st_ino):
                os.close(other)
                raise refused("not-ours", where, "was replaced by another file while it was opened")
        except OSError as error:
            os.close(fd)
            raise refused_by(error, where) from error
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return other

    def close(self) -> None:
        """Let go of the directory; its lock ends with it."""
        for fd in (self._marker_fd, self.fd):
            if fd >= 0:
                os.close(fd)
        self._marker_fd = self.fd = -1

    def __enter__(self) -> ProbeDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_plain(self, name: str, where: str) -> None:
        """Before opening: opening a device node or a pipe could already do something."""
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        if stat.S_ISLNK(found.st_mode):
            raise refused("symlink", where, "is a symbolic link")
        if not stat.S_ISREG(found.st_mode):
            raise refused("not-ours", where, "is not a regular file")

    def _check_open(self, fd: int, where: str) -> os.stat_result:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise refused("not-ours", where, "is not a regular file")
        if found.st_nlink != 1:
            raise refused("not-ours", where, f"has {found.st_nlink} names (hard links)")
        if found.st_uid != os.geteuid():
            raise refused("not-ours", where, f"belongs to user {found.st_uid}")
        return found


def prepare_directory(path: str | os.PathLike[str], *, size_bytes: int, direct: bool = True) -> ProbeDirectory:
    """Make (its last component) or take the directory, check it, mark it, lock it.

    ``size_bytes`` is what the probe will write in all; twice that and :data:`RESERVE_BYTES` must be free, unless
    the directory already holds as much. ``direct`` asks for a file system with O_DIRECT. Anything that is not
    right raises :class:`ProbeRefused` with a reason of :data:`ADVICE`, and leaves nothing behind.
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
            # judged on the parent, so that a refusal leaves no new directory
            _check_filesystem(parent, where, needed=2 * size_bytes + RESERVE_BYTES)
            os.mkdir(name, 0o700, dir_fd=parent)
            made = True
            fd = _open_directory(name, parent, where)
        marker_fd = _check_and_mark(fd, where, size_bytes, direct)
    except BaseException as error:
        if fd >= 0:
            os.close(fd)
        if made:
            try:  # contextlib is not light  # noqa: SIM105
                os.rmdir(name, dir_fd=parent)
            except OSError:
                pass  # the first error is the one to report
        if isinstance(error, OSError):
            raise refused_by(error, where) from error
        raise
    finally:
        os.close(parent)
    return ProbeDirectory(where, fd, marker_fd)


def filesystem_of(mountinfo: str, mount_id: int) -> tuple[str, str] | None:
    """Type and super-block options of one mount, from the text of ``/proc/self/mountinfo`` (proc_pid_mountinfo(5)).

    ``36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue``
    """
    for line in mountinfo.splitlines():
        head, dash, tail = line.partition(" - ")
        if dash and head.split(" ", 1)[0] == str(mount_id):
            words = tail.split(" ")
            return words[0], words[-1]
    return None


def refused(reason: str, where: str, what: str) -> ProbeRefused:
    """The refusal for one of :data:`ADVICE`'s reasons: what is wrong, where, what to do."""
    return ProbeRefused(reason, f"{where}: {what}; {ADVICE[reason]}")


def refused_by(error: OSError, where: str) -> ProbeRefused:
    """The refusal that a failed system call amounts to."""
    return refused(_BY_ERRNO.get(error.errno or 0, "io-error"), where, error.strerror or str(error))


_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def _open_directory(name: str, parent: int, where: str) -> int:
    """Not through a link: O_NOFOLLOW with O_DIRECTORY says ENOTDIR for a link, so that is asked separately."""
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise refused("symlink", where, "is a symbolic link") from None
        raise refused("not-a-directory", where, "is not a directory") from None


def _check_and_mark(fd: int, where: str, size_bytes: int, direct: bool) -> int:
    """The open, locked marker."""
    found = os.fstat(fd)
    if found.st_uid != os.geteuid():
        raise refused("not-ours", where, f"belongs to user {found.st_uid}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        # whoever may write here could move a file of this user in under our name
        raise refused("not-ours", where, "may be written by other users (chmod go-w)")
    names = os.listdir(fd)
    if names and MARKER not in names:
        raise refused("not-ours", where, f"is not empty and has no {MARKER}")
    held = sum(os.stat(entry, dir_fd=fd, follow_symlinks=False).st_blocks * 512 for entry in names)
    _check_filesystem(fd, where, needed=0 if held >= size_bytes else 2 * size_bytes + RESERVE_BYTES)
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True):
        raise refused("permission", where, "may not be written by this user")
    marked_now = MARKER not in names
    # O_CREAT waits on a frozen file system even where the marker is there, and the lock should be asked without
    create = os.O_CREAT | os.O_EXCL if marked_now else 0
    marker = os.open(MARKER, os.O_RDWR | create | _SAFE, 0o600, dir_fd=fd)
    try:
        found = os.fstat(marker)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
            raise refused("not-ours", f"{where}/{MARKER}", "is not a plain file of this user")
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refused("locked", where, "another probe is at work here") from None
        if marked_now:
            os.write(marker, MARKER_TEXT)
        if direct:
            os.close(_open_direct(MARKER, os.O_RDONLY | os.O_DIRECT, fd, where))
    except BaseException:
        os.close(marker)
        if marked_now:
            os.unlink(MARKER, dir_fd=fd)
        raise
    return marker


def _check_filesystem(fd: int, where: str, *, needed: int) -> None:
    kind = _filesystem_type(fd)
    if kind in MEMORY_FILESYSTEMS:
        raise refused("memory-filesystem", where, f"stands on {kind}, where memory would be measured")
    space = os.fstatvfs(fd)
    if space.f_flag & os.ST_RDONLY:
        raise refused("read-only", where, "the file system is read-only")
    free = space.f_bavail * space.f_frsize
    if free < needed:
        raise refused("no-space", where, f"{free >> 20} MiB free, {-(-needed >> 20)} MiB needed")


def _filesystem_type(fd: int) -> str | None:
    """The type of the file system below; for overlayfs that of its upper layer, where it can be seen.

    ``/proc/self`` and not the configured root: a descriptor means something only in this process's own view.
    """
    try:
        facts = _read(f"/proc/self/fdinfo/{fd}").splitlines()
        mount_id = next(int(line.split()[1]) for line in facts if line.startswith("mnt_id:"))
        found = filesystem_of(_read("/proc/self/mountinfo"), mount_id)
    except (OSError, StopIteration, ValueError):
        return None  # no /proc: then nothing is known against it
    if found and found[0] == "overlay":
        upper = [option[9:] for option in found[1].split(",") if option.startswith("upperdir=")]
        try:
            below = os.open(upper[0], os.O_PATH | os.O_CLOEXEC) if upper else -1
        except OSError:
            below = -1  # in a container the upper layer's name belongs to the host
        if below >= 0:
            try:
                return _filesystem_type(below)
            finally:
                os.close(below)
    return found[0] if found else None


def _read(path: str) -> str:
    return os.fsdecode(read_kernel(path, TABLE))


def _open_direct(name: str, flags: int, directory: int, where: str) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.EINVAL and flags & os.O_DIRECT:
            raise refused("no-direct-io", where, "the file system refuses O_DIRECT") from error
        raise


def _fill(fd: int, size_bytes: int, pause: Callable[[float], None]) -> None:
    """Write the whole file once; on failure give its blocks back."""
    try:
        os.ftruncate(fd, min(size_bytes, os.fstat(fd).st_size))
        at = 0
        while at < size_bytes:
            length = min(_CHUNK_BYTES, size_bytes - at)
            written = os.pwrite(fd, os.urandom(length), at)
            at += written
            pause(written / FILL_BYTES_PER_SECOND)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    except OSError:
        try:  # noqa: SIM105
            os.ftruncate(fd, 0)
        except OSError:
            pass  # the first error is the one to report
        raise
