# ruff: noqa: PTH101,PTH102,PTH104,PTH106,PTH108,PTH123,PTH208
"""A FUSE file system over a tree that says yes and does something else, as its file of orders says.

A program of its own, for Debian's ``python3-fuse`` and the system's interpreter; :mod:`.lying_disk` starts it::

    /usr/bin/python3 lying_fuse.py <tree> <file with one word> <mount point>

The word is read anew for every operation: ``honest``; ``full-later``: writes succeed, fsync and close say that there is
no room; ``short``: a write takes half; ``forgets``: writes succeed and keep nothing; ``cut``: reads give half of what
is there; ``wrong``: reads give other bytes.
"""

import errno
import os
import sys
from collections.abc import Iterator
from typing import Any

import fuse  # type: ignore[import-not-found]

fuse.fuse_python_api = (0, 2)
TREE, ORDERS, POINT = sys.argv[1:4]


def order() -> str:
    """What is to be done now."""
    with open(ORDERS, encoding="ascii") as file:
        return file.read().strip()


class Liar(fuse.Fuse):  # type: ignore[misc]
    """Each operation is the same on the tree, but for the lies."""

    def getattr(self, path: str) -> Any:
        return os.lstat(TREE + path)

    def readdir(self, path: str, offset: int) -> Iterator[Any]:
        for name in (".", "..", *os.listdir(TREE + path)):
            yield fuse.Direntry(name)

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(TREE + path, mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(TREE + path)

    def unlink(self, path: str) -> None:
        os.unlink(TREE + path)

    def rename(self, old: str, new: str) -> None:
        os.rename(TREE + old, TREE + new)

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(TREE + path, mode)

    def truncate(self, path: str, length: int) -> None:
        os.truncate(TREE + path, length)

    def utimens(self, path: str, accessed: Any, modified: Any) -> None:
        pass

    def create(self, path: str, flags: int, mode: int) -> None:
        os.close(os.open(TREE + path, flags | os.O_CREAT, mode))

    def open(self, path: str, flags: int) -> None:
        os.close(os.open(TREE + path, flags & ~(os.O_CREAT | os.O_EXCL)))

    def read(self, path: str, size: int, offset: int) -> bytes:
        with open(TREE + path, "rb") as file:
            file.seek(offset)
            data = file.read(size)
        lie = order()
        if lie == "cut":
            return data[: len(data) // 2]
        return bytes(each ^ 0x55 for each in data) if lie == "wrong" else data

    def write(self, path: str, data: bytes, offset: int) -> int:
        lie = order()
        if lie == "forgets":
            return len(data)
        if lie == "short" and len(data) > 1:
            data = data[: len(data) // 2]
        with open(TREE + path, "r+b") as file:
            file.seek(offset)
            return file.write(data)

    def fsync(self, path: str, datasync: int) -> int:
        return -errno.ENOSPC if order() == "full-later" else 0

    def flush(self, path: str) -> int:
        return -errno.ENOSPC if order() == "full-later" else 0

    def statfs(self) -> Any:
        return os.statvfs(TREE)


server = Liar(dash_s_do="setsingle")
server.parse([POINT, "-f", "-s", "-o", "direct_io,attr_timeout=0,entry_timeout=0"])
server.main()
