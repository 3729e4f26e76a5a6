"""Proofs that a file is Plumbline's own. Without one no existing file is replaced, removed or written to.

:class:`.files.OwnDirectory` checks a proof on the open file, and accepts only the classes of this module. None of them
can accept every file: a test of content is tried on a random file first, a mark is read each time, a copy is kept, and
only a file that this process may already write to can be named by its descriptor.

Light imports only: a canary's worker uses this module.
"""

from __future__ import annotations

import fcntl
import math
import os
import time

from plumbline.errors import FileRefused

TYPE_CHECKING = False  # the same as typing's, without loading typing
if TYPE_CHECKING:
    from collections.abc import Callable

    from plumbline.core.files import OwnDirectory


class Marked:
    """The directory, or with ``above`` its parent, holds a marker of ours, known by its whole content: whatever has a
    name that we give there is ours."""

    __slots__ = ("_above", "_name", "_text")

    def __init__(self, name: str, text: bytes, *, above: bool = False) -> None:
        if not text:
            raise ValueError("an empty file marks nothing")
        self._name, self._text, self._above = name, text, above

    def holds(self, directory: OwnDirectory, _: int) -> bool:
        try:
            if not self._above:
                return self._in(directory)
            with directory.parent() as parent:
                return self._in(parent)
        except (FileNotFoundError, FileRefused):
            return False

    def _in(self, directory: OwnDirectory) -> bool:
        return directory.read(self._name, len(self._text)) == self._text


class Content:
    """The content is recognised: ``recognises`` gets a descriptor of the file. An empty file shows nothing, so it is
    ours only where ``empty`` holds as well: a process that was killed after creating a file leaves it empty."""

    __slots__ = ("_empty", "_recognises")

    def __init__(self, recognises: Callable[[int], bool], *, empty: Marked | None = None) -> None:
        if _accepts_anything(recognises):
            raise ValueError("recognises a file of random bytes: this proves nothing")
        self._recognises, self._empty = recognises, empty

    def holds(self, directory: OwnDirectory, fd: int) -> bool:
        if not os.fstat(fd).st_size and not (self._empty is not None and self._empty.holds(directory, fd)):
            return False
        return self._recognises(fd)


class Opened:
    """It is the very file behind ``fd``, which is open for writing and so was proven before, or made by us."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDWR:
            raise ValueError("open for reading only: this proves nothing")
        self._fd = fd

    def holds(self, _: OwnDirectory, fd: int) -> bool:
        return os.path.sameopenfile(fd, self._fd)


class Kept:
    """Nothing is lost: the old file stays under the name ``copy``, plus ``-1``, ``-2`` … if that is taken. ``of``
    narrows it to files that are recognised as well."""

    __slots__ = ("_of", "copy")

    def __init__(self, copy: str, *, of: Content | None = None) -> None:
        if not copy:
            raise ValueError("a copy needs a name")
        self.copy, self._of = copy, of

    def holds(self, directory: OwnDirectory, fd: int) -> bool:
        return self._of is None or self._of.holds(directory, fd)


Proof = Marked | Content | Opened | Kept
KINDS = (Marked, Content, Opened, Kept)


def exactly(text: bytes) -> Content:
    """The file holds ``text`` and nothing else."""
    return Content(lambda fd: os.fstat(fd).st_size == len(text) and os.pread(fd, len(text) + 1, 0) == text)


def is_interrupted_write(fd: int, beginnings: tuple[bytes, ...], *, idle_s: float = -math.inf) -> bool:
    """Whether the file starts with one of ``beginnings``, or holds only part of one and was last written to more than
    ``idle_s`` seconds ago."""
    text = os.pread(fd, 200, 0)
    part = any(beginning.startswith(text) for beginning in beginnings)
    return text.startswith(beginnings) or (part and time.time() - os.fstat(fd).st_mtime > idle_s)


def _accepts_anything(recognises: Callable[[int], bool]) -> bool:
    stranger = os.memfd_create("stranger")
    try:
        os.write(stranger, os.urandom(64))
        return recognises(stranger)
    except FileRefused:
        return False
    finally:
        os.close(stranger)
