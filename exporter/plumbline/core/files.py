"""The one way to open, mark, lock, read, replace and delete files of ours.

Everything goes through the descriptor of a directory that is ours: it belongs to the user who runs this and nobody else
may write in it. Once it is open, a link or another directory put in its place changes nothing. A file counts as ours
when it is a plain file with one name and belongs to that user; a caller that needs more proof looks at the content
(``is_ours``). What is not ours is neither written to, moved over nor removed.

A canary's worker imports this module, so it keeps to light modules (see :mod:`plumbline.probes.guard`). Every call here
may block for as long as the disk below does.
"""

from __future__ import annotations

import fcntl
import math
import os
import stat
import time

from plumbline.core.refusals import refused
from plumbline.core.renaming import exchange, rename_new

TYPE_CHECKING = False  # as typing's, without loading typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_TEMPORARY = ".plumbline-"
_TRIES = 100
"""How often a step is tried again that another process got in between of."""


class OwnDirectory:
    """A directory of ours, open until :meth:`close`. ``name`` is what it was opened by, for messages.

    Names in it are text as :func:`os.fsdecode` makes it, so that one that is not UTF-8 works. Failures of the system
    are :class:`OSError`, what is not ours is :class:`FileRefused`. Any thread may call any method.
    """

    __slots__ = ("_owner", "fd", "name")

    def __init__(self, fd: int, name: str, owner: int) -> None:
        self.fd, self.name, self._owner = fd, name, owner

    @classmethod
    def at(cls, path: str | os.PathLike[str], *, owner: int | None = None, follow: bool = False) -> OwnDirectory:
        """Open a directory that is there. ``owner``: whose it must be, where it is not the effective user's.

        ``follow``: the last component may be a symbolic link of root's or of that user (systemd's ``DynamicUser=``
        makes one); what counts is the directory it leads to.
        """
        name = os.fspath(path).rstrip("/") or "/"
        owner = os.geteuid() if owner is None else owner
        if stat.S_ISLNK((found := os.lstat(name)).st_mode) and not (follow and found.st_uid in {0, owner}):
            raise refused("symlink", name)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        fd = os.open(name, flags)
        try:
            check_directory(os.fstat(fd), name, owner)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd, name, owner)

    @classmethod
    def make(cls, path: str | os.PathLike[str], mode: int = 0o700, *, follow: bool = False) -> OwnDirectory:
        """Make its last component, where that is missing, and open it."""
        try:  # contextlib is not light  # noqa: SIM105
            os.mkdir(path, mode)  # not through pathlib  # noqa: PTH102
        except FileExistsError:
            pass
        return cls.at(path, follow=follow)

    @classmethod
    def named(cls, path: str | os.PathLike[str], *, owner: int | None = None) -> OwnDirectory:
        """A directory that a person named for a file of ours. Whose it is, who else may write there and which links
        lead to it is for that person to decide; the rules for the files in it are the same. ``owner``: whose they must
        be, where it is not the effective user."""
        name = os.fspath(path).rstrip("/") or "/"
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return cls(fd, name, os.geteuid() if owner is None else owner)

    def close(self) -> None:
        """Let go of it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> OwnDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def same(self) -> bool:
        """Whether its name still leads to this very directory."""
        try:
            return os.path.samestat(os.stat(self.name), os.fstat(self.fd))  # noqa: PTH116
        except OSError:
            return False

    def where(self, name: str) -> str:
        """The path of ``name`` in it, for messages."""
        return f"{self.name}/{name}"

    def names(self) -> list[str]:
        """What is in it, sorted."""
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)  # with a position of its own
        try:
            return sorted(os.listdir(fd))  # noqa: PTH208
        finally:
            os.close(fd)

    def holds(self, name: str) -> bool:
        """Whether a file of ours has this name; :class:`FileRefused` where something else has it."""
        try:
            os.close(self.open(name))
        except FileNotFoundError:
            return False
        return True

    def open(self, name: str, flags: int = os.O_RDONLY, *, create: bool = False) -> int:
        """A descriptor of a file of ours; ``create`` makes it, empty, where it is missing. Never cuts it short."""
        if flags & (os.O_CREAT | os.O_TRUNC):
            raise ValueError("no O_CREAT and no O_TRUNC: what is there is looked at before anything happens to it")
        _plain(name)
        for _ in range(_TRIES):
            try:
                # opening a device or a pipe can already do something
                self._check(os.stat(name, dir_fd=self.fd, follow_symlinks=False), name)
                fd = os.open(name, flags | _SAFE, dir_fd=self.fd)
            except FileNotFoundError:
                if not create:
                    raise
                try:
                    fd = os.open(name, flags | _SAFE | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self.fd)
                except FileExistsError:
                    continue
            try:
                found = os.fstat(fd)
                if found.st_nlink:
                    self._check(found, name)
                    os.set_blocking(fd, True)
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # replaced while it was opened
        raise refused("changing", self.where(name))

    def read(self, name: str, limit: int) -> bytes:
        """The whole file, of at most ``limit`` bytes."""
        fd = self.open(name)
        try:
            return read_whole(fd, limit, self.where(name))
        finally:
            os.close(fd)

    def create(self, name: str, data: bytes, *, mode: int = 0o600) -> None:
        """A new file, whole or not at all, on disk when this returns. :class:`FileExistsError` where one is."""
        _plain(name)
        new, fd = self._write(data, mode)
        try:
            rename_new(new, name, self.fd)
        except BaseException:
            self._remove_exactly(new, fd)
            raise
        finally:
            os.close(fd)
        os.fsync(self.fd)

    def replace(
        self,
        name: str,
        data: bytes,
        *,
        mode: int = 0o600,
        is_ours: Callable[[int], bool] | None = None,
        keep: str = "",
    ) -> str:
        """A new file in the place of ``name`` or where nothing is, whole or not at all, on disk when this returns.

        ``is_ours`` is asked about the file that is there. The new one is exchanged with it, and what came out is looked
        at again: if somebody put another file there in between, it is put back. The old one is removed, or with
        ``keep`` has this name from then on, with ``-1``, ``-2`` … after it where that is taken; the name is returned.
        Where the file system can't exchange (see :mod:`.renaming`), a file put there in that instant is lost without
        ``keep``, and with it there is a moment without a file.
        """
        self._look(name, is_ours)
        new, fd = self._write(data, mode)
        kept = ""
        try:
            for _ in range(_TRIES):
                try:
                    if exchange(new, name, self.fd):
                        kept = self._let_go(new, fd, name, is_ours, keep)
                        break
                    self._look(name, is_ours)
                    if not keep:
                        os.rename(new, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
                        break
                    kept = self._keep(name, keep)
                except FileNotFoundError:
                    pass
                try:
                    rename_new(new, name, self.fd)
                    break
                except FileExistsError:
                    pass
            else:
                raise refused("changing", self.where(name))
        except BaseException:
            self._remove_exactly(new, fd)
            raise
        finally:
            os.close(fd)
        os.fsync(self.fd)
        return kept

    def rename(self, name: str, new: str) -> None:
        """Give a file of ours another name, never over anything: :class:`FileExistsError`."""
        _plain(new)
        self._look(name, None, missing=False)
        rename_new(name, new, self.fd)
        os.fsync(self.fd)

    def set_aside(self, name: str) -> str:
        """Rename a damaged file of ours to the first free ``NAME.damaged-N``; its new name."""
        number = 1
        while True:
            try:
                self.rename(name, aside := f"{name}.damaged-{number}")
            except FileExistsError:
                number += 1
            else:
                return aside

    def remove(self, name: str, is_ours: Callable[[int], bool] | None = None) -> None:
        """Remove a file of ours; ``is_ours`` is asked about it. :class:`FileNotFoundError` where there is none.

        It is renamed first, and what was taken is looked at again: if somebody put another file there in between, it is
        put back.
        """
        self._look(name, is_ours, missing=False)
        taken = temporary_name("old")
        rename_new(name, taken, self.fd)
        try:
            self._look(taken, is_ours, missing=False)
        except BaseException:
            rename_new(taken, name, self.fd)
            raise
        os.unlink(taken, dir_fd=self.fd)

    def lock(self, name: str) -> int:
        """A descriptor that holds the lock (flock(2)) on a file of ours, which is made where it is missing.

        :class:`BlockingIOError` where another holds it. The lock ends when the descriptor and its copies are closed.
        """
        for _ in range(_TRIES):
            fd = self.open(name, os.O_RDWR, create=True)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_nlink:
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # removed between the two
        raise refused("changing", self.where(name))

    def _check(self, found: os.stat_result, name: str) -> None:
        where = self.where(name)
        if stat.S_ISLNK(found.st_mode):
            raise refused("symlink", where)
        if not stat.S_ISREG(found.st_mode):
            raise refused("not-a-regular-file", where)
        if found.st_nlink != 1:
            raise refused("links", where, f"has {found.st_nlink} names (hard links)")
        if found.st_uid != self._owner:
            raise refused("owner", where, f"belongs to user {found.st_uid}")

    def _look(self, name: str, is_ours: Callable[[int], bool] | None, *, missing: bool = True) -> None:
        """Refuse what is not a file of ours. ``missing``: there need be none."""
        try:
            fd = self.open(name)
        except FileNotFoundError:
            if missing:
                return
            raise
        try:
            if is_ours is not None and not is_ours(fd):
                raise refused("not-ours", self.where(name))
        finally:
            os.close(fd)

    def _write(self, data: bytes, mode: int) -> tuple[str, int]:
        """A new file under a name of its own, on disk; nothing is left of it where that fails."""
        name = temporary_name("new")
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, 0o600, dir_fd=self.fd)
        try:
            os.fchmod(fd, mode)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        except BaseException:
            self._remove_exactly(name, fd)
            os.close(fd)
            raise
        return name, fd

    def _let_go(self, taken: str, fd: int, name: str, is_ours: Callable[[int], bool] | None, keep: str) -> str:
        """After an exchange: remove what came out of ``name`` or keep it, or put it back where it is not ours."""
        try:
            self._look(taken, is_ours, missing=False)
            if keep:
                return self._keep(taken, keep)
            os.unlink(taken, dir_fd=self.fd)
            return ""
        except BaseException as error:
            # somebody may have taken ours away from there as well: then what is there now is theirs, too
            if not self._is(name, fd) or not exchange(taken, name, self.fd):
                raise refused("not-ours", self.where(taken), f"was put in the place of {name} and is kept") from error
            raise

    def _keep(self, name: str, keep: str) -> str:
        """Give what ``name`` leads to the first free name: ``keep``, or that with a number."""
        for number in range(_TRIES):
            new = f"{keep}-{number}" if number else keep
            try:
                rename_new(name, new, self.fd)
            except FileExistsError:
                continue
            return new
        raise refused("copies", self.where(keep), f"stands there {_TRIES} times, numbered")

    def _is(self, name: str, fd: int) -> bool:
        try:
            return os.path.samestat(os.stat(name, dir_fd=self.fd, follow_symlinks=False), os.fstat(fd))
        except FileNotFoundError:
            return False

    def _remove_exactly(self, name: str, fd: int) -> None:
        """Remove our own temporary file, and nothing else that stands under its name."""
        try:
            if self._is(name, fd):
                os.unlink(name, dir_fd=self.fd)
        except OSError:
            pass  # the first error is the one to report


def check_directory(found: os.stat_result, name: str, owner: int) -> None:
    """Refuse a directory in which others than ``owner`` may write: they could put anything under our names."""
    if found.st_uid != owner:
        raise refused("owner", name, f"belongs to user {found.st_uid}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise refused("mode", name)


def read_whole(fd: int, limit: int, where: str) -> bytes:
    """What is in an open regular file, from its beginning, of at most ``limit`` bytes."""
    too_large = refused("too-large", where, f"is larger than {limit} bytes")
    if os.fstat(fd).st_size > limit:
        raise too_large
    parts: list[bytes] = []
    at = 0
    while part := os.pread(fd, min(2**20, limit + 1 - at), at):
        parts.append(part)
        at += len(part)
        if at > limit:  # it grows
            raise too_large
    return b"".join(parts)


def is_temporary(name: str) -> bool:
    """Whether a file has a name that only this module gives: what a process left that was killed while writing."""
    middle = name[len(_TEMPORARY) : -4]
    ours = name.startswith(_TEMPORARY) and name.endswith((".new", ".old")) and len(middle) == 16
    return ours and all(each in "0123456789abcdef" for each in middle)


def is_interrupted_write(fd: int, beginnings: tuple[bytes, ...], *, idle_s: float = -math.inf) -> bool:
    """Whether it begins as one of ours; or as far as it goes, and nobody has written to it for ``idle_s`` seconds."""
    text = os.pread(fd, 200, 0)
    part = any(each.startswith(text) for each in beginnings)
    return text.startswith(beginnings) or (part and time.time() - os.fstat(fd).st_mtime > idle_s)


def temporary_name(kind: str) -> str:
    """A new one; ``kind`` is ``new`` or ``old``."""
    return f"{_TEMPORARY}{os.urandom(8).hex()}.{kind}"


def _plain(name: str) -> None:
    if "/" in name or "\0" in name or name in {"", ".", ".."}:
        raise ValueError(f"not a plain file name: {name!r}")
