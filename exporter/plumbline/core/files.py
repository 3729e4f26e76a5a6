"""Opening, marking, locking, reading, replacing and deleting Plumbline's own files. Nothing else does it.

Every access goes through the descriptor of an own directory: one that belongs to the current user and that nobody else
may write to. Once it is open, replacing the directory by a link or another directory has no effect. A file is ours if
it is a regular file with one name (no hard links) and belongs to that user, and a proof (:mod:`.proofs`) holds for it.
Anything else is never written to, replaced or removed.

A canary's worker imports this module, so it imports only light modules. Every call may block as long as the disk does.
"""

from __future__ import annotations

import fcntl
import os
import stat

from plumbline.core.proofs import KINDS, Kept
from plumbline.core.refusals import check_owner, refused
from plumbline.core.renaming import exchange, rename_new

TYPE_CHECKING = False  # the same as typing's, without loading typing
if TYPE_CHECKING:
    from types import TracebackType

    from plumbline.core.proofs import Proof

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_TEMPORARY = ".plumbline-"
# How often to retry a step after another process interfered.
_TRIES = 100


class OwnDirectory:
    """A directory of ours, open until :meth:`close`; any thread may call any method. ``name`` is the path it was opened
    by. File names are text as of :func:`os.fsdecode`. Raises :class:`OSError`; for what is not ours
    :class:`FileRefused`."""

    __slots__ = ("_owner", "fd", "name")

    def __init__(self, fd: int, name: str, owner: int) -> None:
        self.fd, self.name, self._owner = fd, name, owner

    @classmethod
    def at(cls, path: str | os.PathLike[str], *, owner: int | None = None, follow: bool = False) -> OwnDirectory:
        """Open an existing directory that belongs to the user id ``owner``, by default the effective user. ``follow``:
        the last component may be a symbolic link of root or that user (systemd's ``DynamicUser=`` makes one); the
        checks then apply to its target."""
        name = os.fspath(path).rstrip("/") or "/"
        owner = os.geteuid() if owner is None else owner
        if stat.S_ISLNK((status := os.lstat(name)).st_mode) and not (follow and status.st_uid in {0, owner}):
            raise refused("symlink", name)
        if not stat.S_ISLNK(status.st_mode):  # before it is opened: another user's is often closed to this one
            check_owner(status.st_uid, name, owner)
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
        """Create the last component if it is missing, and open it."""
        try:  # contextlib is not light  # noqa: SIM105
            os.mkdir(path, mode)  # not through pathlib  # noqa: PTH102
        except FileExistsError:
            pass
        return cls.at(path, follow=follow)

    @classmethod
    def named(cls, path: str | os.PathLike[str], *, owner: int | None = None) -> OwnDirectory:
        """Open a directory the administrator named for a file of ours: its owner, its mode and links on the way are not
        checked. The files in it follow the usual rules, with the user id ``owner``, by default the effective user."""
        name = os.fspath(path).rstrip("/") or "/"
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return cls(fd, name, os.geteuid() if owner is None else owner)

    def close(self) -> None:
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
        """Whether the path still leads to this directory."""
        try:
            return os.path.samestat(os.stat(self.name), os.fstat(self.fd))  # noqa: PTH116
        except OSError:
            return False

    def where(self, name: str) -> str:
        """The path of ``name`` in this directory, for messages."""
        return f"{self.name}/{name}"

    def names(self) -> list[str]:
        """The names in this directory, sorted."""
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)  # has its own read position
        try:
            return sorted(os.listdir(fd))  # noqa: PTH208
        finally:
            os.close(fd)

    def parent(self) -> OwnDirectory:
        """The directory that this one is in, which has to belong to the same user."""
        fd = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            check_directory(os.fstat(fd), where := f"{self.name}/..", self._owner)
        except BaseException:
            os.close(fd)
            raise
        return OwnDirectory(fd, where, self._owner)

    def holds(self, name: str) -> bool:
        """Whether a plain file of this user has this name; :class:`FileRefused` if something else has it."""
        try:
            os.close(self.open(name))
        except FileNotFoundError:
            return False
        return True

    def open(self, name: str, flags: int = 0) -> int:
        """A descriptor of a plain file of this user, for reading. ``flags`` adds ``O_DIRECT``."""
        if flags & ~os.O_DIRECT:
            raise ValueError("open() only reads: edit() takes a proof")
        return self._open(name, os.O_RDONLY | flags, create=False)

    def edit(self, name: str, proof: Proof, flags: int = 0, *, create: bool = False) -> int:
        """A descriptor of a file of ours, for reading and writing; an existing one has to be proven, a missing one is
        created empty with ``create``. ``flags`` adds ``O_DIRECT`` and ``O_DSYNC``. Never truncates."""
        if flags & ~(os.O_DIRECT | os.O_DSYNC):
            raise ValueError("only O_DIRECT and O_DSYNC can be added: nothing is cut short by opening")
        return self._open(name, os.O_RDWR | flags, create=create, proof=_proof(proof))

    def check(self, name: str, proof: Proof) -> None:
        """Raise what :meth:`replace` would raise for an existing file. A missing one is no error."""
        self._look(name, proof)

    def read(self, name: str, limit: int) -> bytes:
        """The whole file. :class:`FileRefused` if it is longer than ``limit`` bytes."""
        fd = self.open(name)
        try:
            return read_whole(fd, limit, self.where(name))
        finally:
            os.close(fd)

    def create(self, name: str, data: bytes, *, mode: int = 0o600) -> None:
        """Create a file atomically; it is on disk on return. :class:`FileExistsError` if the name is taken."""
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

    def replace(self, name: str, data: bytes, proof: Proof, *, mode: int = 0o600) -> str:
        """Create or replace ``name`` atomically; the new file is on disk on return. ``proof`` is checked on the
        existing file, and again on what the exchange brought out: a file that another process put there in between is
        put back. The old file is removed; with :class:`Kept` it is renamed, and its new name is returned. On a file
        system that can't exchange (:mod:`.renaming`), a file put there at that instant is lost without :class:`Kept`;
        with it there is no file for a moment."""
        self._look(name, proof)
        new, fd = self._write(data, mode)
        keep = proof.copy if isinstance(proof, Kept) else ""
        kept = ""
        try:
            for _ in range(_TRIES):
                try:
                    if exchange(new, name, self.fd):
                        kept = self._let_go(new, fd, name, proof)
                        break
                    self._look(name, proof)
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

    def set_aside(self, name: str) -> str:
        """Rename a damaged file to the first free ``NAME.damaged-N``, so that nothing is lost; returns the new name."""
        self._check(os.stat(name, dir_fd=self.fd, follow_symlinks=False), name)
        aside = self._keep(name, f"{name}.damaged", range(1, 10_000))
        os.fsync(self.fd)
        return aside

    def remove(self, name: str, proof: Proof) -> None:
        """Remove a file of ours; :class:`FileNotFoundError` if it is missing. ``proof`` is checked, and again once the
        file is renamed: a file that another process put there in between is put back."""
        if isinstance(_proof(proof), Kept):
            raise TypeError("a removed file has no copy")
        self._look(name, proof, missing=False)
        taken = temporary_name("old")
        rename_new(name, taken, self.fd)
        try:
            self._look(taken, proof, missing=False)
        except BaseException:
            rename_new(taken, name, self.fd)
            raise
        os.unlink(taken, dir_fd=self.fd)

    def lock(self, name: str) -> int:
        """A descriptor that holds the lock (flock(2)) on a file of this user, made if missing, until it and its copies
        close; nothing is written to it. :class:`BlockingIOError` if another process holds it."""
        for _ in range(_TRIES):
            fd = self._open(name, os.O_RDWR, create=True)  # NFS locks only what is open for writing
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(fd).st_nlink:
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # removed between open and lock
        raise refused("changing", self.where(name))

    def _open(self, name: str, flags: int, *, create: bool, proof: Proof | None = None) -> int:
        """``proof`` is for a file that was there before."""
        _plain(name)
        for _ in range(_TRIES):
            made = False
            try:
                # opening a device or a pipe can already have an effect
                self._check(os.stat(name, dir_fd=self.fd, follow_symlinks=False), name)
                fd = os.open(name, flags | _SAFE, dir_fd=self.fd)
            except FileNotFoundError:
                if not create:
                    raise
                try:
                    fd = os.open(name, flags | _SAFE | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self.fd)
                    made = True
                except FileExistsError:
                    continue
            try:
                status = os.fstat(fd)
                if status.st_nlink:
                    self._check(status, name)
                    if proof is not None and not made:
                        self._prove(fd, name, proof)
                    os.set_blocking(fd, True)
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # replaced while it was being opened
        raise refused("changing", self.where(name))

    def _prove(self, fd: int, name: str, proof: Proof) -> None:
        if not proof.holds(self, fd):
            raise refused("not-ours", self.where(name))

    def _check(self, status: os.stat_result, name: str) -> None:
        where = self.where(name)
        if stat.S_ISLNK(status.st_mode):
            raise refused("symlink", where)
        if not stat.S_ISREG(status.st_mode):
            raise refused("not-a-regular-file", where)
        if status.st_nlink != 1:
            raise refused("links", where, f"has {status.st_nlink} names (hard links)")
        check_owner(status.st_uid, where, self._owner)

    def _look(self, name: str, proof: Proof, *, missing: bool = True) -> None:
        """Refuse anything but a file that is proven. ``missing``: it may be missing."""
        _proof(proof)
        try:
            fd = self.open(name)
        except FileNotFoundError:
            if missing:
                return
            raise
        try:
            self._prove(fd, name, proof)
        finally:
            os.close(fd)

    def _write(self, data: bytes, mode: int) -> tuple[str, int]:
        """Write a temporary file and sync it to disk; remove it if that fails. Returns its name and descriptor."""
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

    def _let_go(self, taken: str, fd: int, name: str, proof: Proof) -> str:
        """After an exchange: remove or keep the old file, or put it back if it is not ours."""
        try:
            self._look(taken, proof, missing=False)
            if isinstance(proof, Kept):
                return self._keep(taken, proof.copy)
            os.unlink(taken, dir_fd=self.fd)
            return ""
        except BaseException as error:
            # if another process has also replaced our new file, the one there now isn't ours either: don't touch it
            if not self._is(name, fd) or not exchange(taken, name, self.fd):
                raise refused("not-ours", self.where(taken), f"was put in the place of {name} and is kept") from error
            raise

    def _keep(self, name: str, keep: str, numbers: range = range(_TRIES)) -> str:
        """Rename ``name`` to the first free one of ``keep-N``, or ``keep`` for 0; returns the new name."""
        for number in numbers:
            new = f"{keep}-{number}" if number else keep
            try:
                rename_new(name, new, self.fd)
            except FileExistsError:
                continue
            return new
        raise refused("copies", self.where(keep), f"exists {len(numbers)} times, numbered")

    def _is(self, name: str, fd: int) -> bool:
        try:
            return os.path.samestat(os.stat(name, dir_fd=self.fd, follow_symlinks=False), os.fstat(fd))
        except FileNotFoundError:
            return False

    def _remove_exactly(self, name: str, fd: int) -> None:
        """Remove our own temporary file, but not a file that has replaced it."""
        try:
            if self._is(name, fd):
                os.unlink(name, dir_fd=self.fd)
        except OSError:
            pass  # report the first error, not this one


def check_directory(status: os.stat_result, name: str, owner: int) -> None:
    """Refuse a directory that users other than ``owner`` may write to: they could replace our files."""
    check_owner(status.st_uid, name, owner)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise refused("mode", name)


def read_whole(fd: int, limit: int, where: str) -> bytes:
    """The content of an open regular file from its start. :class:`FileRefused` beyond ``limit`` bytes."""
    too_large = refused("too-large", where, f"is larger than {limit} bytes")
    if os.fstat(fd).st_size > limit:
        raise too_large
    parts: list[bytes] = []
    at = 0
    while part := os.pread(fd, min(2**20, limit + 1 - at), at):
        parts.append(part)
        at += len(part)
        if at > limit:  # the file grows
            raise too_large
    return b"".join(parts)


def is_temporary(name: str) -> bool:
    """Whether only this module gives such a name: a leftover of a process that was killed while writing."""
    middle = name[len(_TEMPORARY) : -4]
    ours = name.startswith(_TEMPORARY) and name.endswith((".new", ".old")) and len(middle) == 16
    return ours and all(digit in "0123456789abcdef" for digit in middle)


def temporary_name(kind: str) -> str:
    """A new temporary name; ``kind`` is ``new`` or ``old``."""
    return f"{_TEMPORARY}{os.urandom(8).hex()}.{kind}"


def _proof(proof: Proof) -> Proof:
    if type(proof) not in KINDS:
        raise TypeError(f"{type(proof).__name__} is no proof that a file is ours")
    return proof


def _plain(name: str) -> None:
    if "/" in name or "\0" in name or name in {"", ".", ".."}:
        raise ValueError(f"not a plain file name: {name!r}")
