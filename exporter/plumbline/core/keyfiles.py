"""The one door to files of secrets and of trust: who else may read or change them is checked on what is open.

A *secret* (a key, a password, a token) must be readable by nobody but its owner. An *anchor* says whom to trust (a CA,
allowed signers, users and their hashes, a configuration of ssh): anybody may read it. Neither may be changed by others:
both belong to root or to this process's user, and so does the directory that they stand in. With these exceptions:

- A group of this process may read a secret that somebody else owns: ``root:plumbline``, mode 0640.
- With an ACL, the users whom it names may read (systemd 257's copies of credentials).
- ``account``: a system account that this file may belong to as well. Ceph's own keyrings are its user's.
- A volume of a pod (``..data``), ``/run/secrets`` and ``/run/credentials`` hold copies that root makes for one
  container or service alone, often readable for every user in it: 0644 is Kubernetes's default, 0444 that of podman.
- In a directory that is sticky (``/tmp``) others can't replace a file.

Whoever reads a secret here leaves no core file from then on (:func:`plumbline.core.memory.keep_memory_private`). Errors
are :class:`OSError` with one clear ``strerror``, as those of :mod:`plumbline.core.answers`.
"""

import errno
import os
import pwd
import stat
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from plumbline.core.answers import open_named, read_named
from plumbline.core.memory import keep_memory_private

CEPH = "ceph"
_MOST_LINKS = 40  # as of the kernel (path_resolution(7)); somebody may turn a link after the file was opened
_CEPH_IDS = {64045, 167}  # of Debian and of Red Hat, which containers use: the host may have no name for it
_HANDED = ("/run/secrets/", "/run/credentials/")
_ACL = "system.posix_acl_access"
# After a version, each entry's tag, permissions and id; linux/posix_acl_xattr.h.
_ACL_VERSION_BYTES, _ACL_ENTRY = 4, struct.Struct("<HHI")
_USER, _GROUP_OBJ, _GROUP, _WRITE = 0x02, 0x04, 0x08, 0o002


def read_secret(path: str | Path, limit: int, *, account: str = "") -> bytes:
    """The content of a secret; :class:`OSError` beyond ``limit`` bytes, and if others may read or change it."""
    keep_memory_private()
    return read_named(path, limit, check=partial(_check, os.fspath(path), True, account))


def read_anchor(path: str | Path, limit: int, *, account: str = "") -> bytes:
    """As :func:`read_secret`, of a file that others may read."""
    return read_named(path, limit, check=partial(_check, os.fspath(path), False, account))


def open_secret(path: str | Path) -> int:
    """A descriptor of a secret, to hand on; not through a link, other than one of a pod's volume."""
    keep_memory_private()
    name = os.fspath(path)

    def check(descriptor: int) -> None:
        _check(name, True, "", descriptor)
        if stat.S_ISLNK(os.lstat(name).st_mode) and not _handed(_actual(descriptor), descriptor):
            raise _refused(name, "is a link; name its target")

    return open_named(name, check=check)


def _check(path: str, secret: bool, account: str, descriptor: int) -> None:
    trusted = {0, os.geteuid(), *_ids(account)}
    status = os.fstat(descriptor)
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid not in trusted:
        raise _refused(path, f"belongs to user {status.st_uid}; chown it to the user who runs this, or to root")
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and _others(descriptor, mode, _WRITE):
        raise _refused(path, f"may be changed by others (mode {mode:04o}); chmod {'600' if secret else 'go-w'} it")
    actual = _actual(descriptor)
    for directory in {Path(path).absolute().parent, Path(actual).parent}:
        _check_directory(path, directory, trusted)
    for link in _links(path):
        if (owner := link.lstat().st_uid) not in trusted:
            raise _refused(path, f"is a link of user {owner}; name its target")
        _check_directory(path, link.parent, trusted)
    if secret and not _handed(actual, descriptor) and _readable(descriptor, status, account):
        raise _refused(path, f"is accessible to others (mode {mode:04o}); chmod 600 it")


def _links(path: str) -> Iterator[Path]:
    """Every link that leads to an existing file: its name, a directory on the way, and what these lead through."""
    at, left, passed = Path("/"), list(Path(path).absolute().parts[:0:-1]), 0
    while left:
        part = left.pop()
        step = at.parent if part == ".." else at / part
        if step.is_symlink():
            if (passed := passed + 1) > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            yield step
            target = step.readlink()
            at = Path("/") if target.is_absolute() else at
            left += [name for name in reversed(target.parts) if name != "/"]
        else:
            at = step


def _actual(descriptor: int) -> str:
    """The path of an open file without links."""
    return os.path.realpath(f"/proc/self/fd/{descriptor}")


def _check_directory(path: str, directory: Path, trusted: set[int]) -> None:
    status = directory.stat()
    if status.st_uid not in trusted:
        raise _refused(path, f"stands in {directory} of user {status.st_uid}, who may exchange it; move it")
    if status.st_mode & stat.S_ISVTX:
        return
    if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != 0):
        raise _refused(path, f"stands in {directory}, where others may exchange it; chmod go-w that directory")


def _readable(descriptor: int, status: os.stat_result, account: str) -> bool:
    """Whether somebody may read it who is not meant."""
    mode = status.st_mode
    if mode & stat.S_IRWXO:
        return True
    through_group = status.st_uid != os.geteuid() and status.st_gid in {os.getegid(), *os.getgroups()}
    if through_group or status.st_gid in _ids(account):
        return False
    return bool(mode & stat.S_IRWXG) and _others(descriptor, mode, stat.S_IRWXO)


def _others(descriptor: int, mode: int, rights: int) -> bool:
    """Whether a group, or everybody, has one of ``rights`` (as the last three bits of a mode). With an ACL the group's
    bits of the mode are its mask, not what the group has (acl(5)). A user whom an entry names is meant to read."""
    if mode & stat.S_IRWXO & rights:
        return True
    try:
        acl = os.getxattr(descriptor, _ACL)[_ACL_VERSION_BYTES:]
    except OSError:  # it has none
        return bool(mode >> 3 & rights)
    named = {_GROUP_OBJ, _GROUP} | ({_USER} if rights == _WRITE else set())
    return any(allowed & rights and tag in named for tag, allowed, _ in _ACL_ENTRY.iter_unpack(acl))


def _handed(actual: str, descriptor: int) -> bool:
    """Whether root made it for one container or service alone; ``actual``: its path without links."""
    if os.fstat(descriptor).st_uid != 0:
        return False
    directory = Path(actual).parent
    in_pod = directory.name.startswith("..") and (directory.parent / "..data").is_symlink() and _in_memory(actual)
    return in_pod or actual.startswith(_HANDED)


def _in_memory(path: str) -> bool:
    """Whether its file system is in memory, as that of every secret of a pod is (tmpfs, or its predecessor ramfs)."""
    device = Path(path).stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:  # noqa: PTH123
        rows = [line.split() for line in lines]
    return any(row[2] == wanted and row[row.index("-") + 1] in {"tmpfs", "ramfs"} for row in rows)


def _ids(account: str) -> set[int]:
    """User and group ids of an account; those of Ceph's, which a container's host need not know, by number."""
    if not account:
        return set()
    try:
        entry = pwd.getpwnam(account)
    except KeyError:
        return set(_CEPH_IDS) if account == CEPH else set()
    return {entry.pw_uid, *(_CEPH_IDS if account == CEPH else ())}


def _refused(path: str, reason: str) -> OSError:
    return PermissionError(errno.EACCES, reason, path)
