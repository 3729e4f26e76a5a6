# ruff: noqa: PTH115,PTH116,PTH123,PTH208
"""A FUSE file system that mirrors a tree and, where it is told to, blocks, shrinks, fails or hides files.

A program of its own, for Debian's ``python3-fuse`` and the system's interpreter; :mod:`.stubborn_files` starts it::

    /usr/bin/python3 stubborn_fuse.py <tree> <rules.json> <mount point>

``rules.json`` holds ``[[regular expression, what], …]``, read anew for every operation; the expression is matched
against the path below the mount point, ``what`` is

- ``block``: whoever opens or reads it waits until the rule is gone,
- ``block-read``: the same, but it can be opened,
- ``block-list``: a directory's listing waits,
- ``shrink``: the first read gives half of what is there and the next one nothing,
- ``vanish``: opened, it is gone when it is read (ENODEV, as sysfs says of a device that left),
- ``hide``: it is not there,
- ``fail``: reading it is an I/O error,
- ``garbage``: bytes that are no text.
"""

import errno
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any

import fuse  # type: ignore[import-not-found]

fuse.fuse_python_api = (0, 2)

TREE, RULES, POINT = sys.argv[1:4]
RELENT_AFTER_S = 90.0  # whoever waits on a mount that blocks can't even be killed: a test must not be able to leave one


class Rules:
    """The rules as they stand in their file."""

    def __init__(self) -> None:
        self.version: tuple[int, int] | None = None
        self.rules: list[tuple[re.Pattern[str], str]] = []

    def __call__(self, path: str) -> str:
        """What is to be done with ``path``; empty: nothing."""
        found = os.stat(RULES)
        if time.time() - found.st_mtime > RELENT_AFTER_S:
            return ""
        version = found.st_ino, found.st_mtime_ns
        if version != self.version:
            with open(RULES, encoding="utf-8") as file:
                self.rules = [(re.compile(pattern), what) for pattern, what in json.load(file)]
            self.version = version
        return next((what for pattern, what in self.rules if pattern.fullmatch(path.lstrip("/"))), "")


rule = Rules()


def wait_while(path: str, *kinds: str) -> None:
    """Until no rule of these kinds holds for ``path``."""
    while rule(path) in kinds:
        time.sleep(0.02)


class Mirror(fuse.Fuse):  # type: ignore[misc]
    """Each operation is the same on the tree, after the rule."""

    def getattr(self, path: str) -> Any:
        if rule(path) == "hide":
            return -errno.ENOENT
        return os.lstat(TREE + path)

    def readlink(self, path: str) -> Any:
        return os.readlink(TREE + path)

    def readdir(self, path: str, offset: int) -> Iterator[Any]:
        wait_while(path, "block-list")
        for name in (".", "..", *os.listdir(TREE + path)):
            yield fuse.Direntry(name)

    def open(self, path: str, flags: int) -> int | None:
        wait_while(path, "block")
        if flags & (os.O_WRONLY | os.O_RDWR):
            return -errno.EROFS
        if not stat.S_ISREG(os.lstat(TREE + path).st_mode):
            return -errno.EACCES
        return None

    def read(self, path: str, size: int, offset: int) -> bytes | int:
        wait_while(path, "block", "block-read")
        what = rule(path)
        if what == "vanish":
            return -errno.ENODEV
        if what == "fail":
            return -errno.EIO
        if what == "garbage":
            return (b"\x00\xff\xfe garbage \n" * 40)[offset : offset + size]
        with open(TREE + path, "rb") as file:
            if what == "shrink":
                data = file.read(65536)
                return data[: len(data) // 2] if offset == 0 else b""
            file.seek(offset)
            return file.read(size)


if __name__ == "__main__":
    server = Mirror()
    # direct_io: files of /proc have no size, and what was read once must not be cached
    server.parse([POINT, "-f", "-o", "direct_io,ro,attr_timeout=0,entry_timeout=0,auto_unmount"], errex=1)
    server.multithreaded = True
    server.main()
