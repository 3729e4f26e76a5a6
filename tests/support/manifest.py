"""Everything below a directory as it is, for comparing before and after an attack: nothing foreign may differ."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "block device",
    stat.S_IFCHR: "character device",
}


class Entry(NamedTuple):
    """One name. A directory has neither links nor mtime: both say only which names it holds, which are entries too."""

    kind: str
    mode: int
    owner: int
    group: int
    links: int
    inode: tuple[int, int]
    """Device and inode."""
    mtime_ns: int
    digest: str
    """SHA-256 of a regular file's content."""
    xattrs: tuple[tuple[str, bytes], ...]
    leads_to: str
    """A link's target, or a device node's major and minor number."""


def manifest(root: Path) -> dict[str, Entry]:
    """By path below ``root``, which itself is ``.``; follows no link, opens regular files only."""
    return {os.path.relpath(path, root): _entry(path) for path in sorted(_below(root))}


def changes(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> list[str]:
    """What was there before and is gone or different, one line each. What has come since is no change."""
    found = []
    for path, old in before.items():
        new = after.get(path)
        if new is None:
            found.append(f"{path!r}: gone")
        elif new != old:
            fields = [name for name in Entry._fields if getattr(old, name) != getattr(new, name)]
            found.append(f"{path!r}: {', '.join(fields)}")
    return found


def _below(root: Path) -> Iterator[Path]:
    yield root
    for folder, folders, files in os.walk(root, onerror=_raise):
        yield from (Path(folder, name) for name in (*folders, *files))


def _raise(error: OSError) -> None:
    raise error


def _entry(path: Path) -> Entry:
    found = path.lstat()
    kind = stat.S_IFMT(found.st_mode)
    folder = kind == stat.S_IFDIR
    names = sorted(os.listxattr(path, follow_symlinks=False))
    return Entry(
        kind=_KINDS[kind],
        mode=stat.S_IMODE(found.st_mode),
        owner=found.st_uid,
        group=found.st_gid,
        links=0 if folder else found.st_nlink,
        inode=(found.st_dev, found.st_ino),
        mtime_ns=0 if folder else found.st_mtime_ns,
        digest=_digest(path) if kind == stat.S_IFREG else "",
        xattrs=tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in names),
        leads_to=_leads_to(path, found),
    )


def _leads_to(path: Path, found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return str(path.readlink())
    if stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode):
        return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    return ""


def _digest(path: Path) -> str:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
