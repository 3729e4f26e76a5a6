"""Whether files changed since they were last taken: edited, replaced, removed, or there at last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from plumbline.core.answers import stat_named

T = TypeVar("T")
Signature = tuple[int, int, int]
"""Of a file's content: modification time in ns, size, inode."""


class FileWatch:
    """``files`` tells which; it may tell others each time. What there is at construction counts as taken.

    Every method asks file systems, and waits for one that hangs as :mod:`.answers` does: not for the main loop.
    """

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._taken = self._now()

    @property
    def changed(self) -> bool:
        """Whether anything is to be taken."""
        return self._now() != self._taken

    def take(self, read: Callable[[], T]) -> T:
        """What ``read`` makes of them; what is written meanwhile is a change still to be taken."""
        before = self._now()
        found = read()
        self._taken = {file: before.get(file, now) for file, now in self._now().items()}
        return found

    def _now(self) -> dict[Path, Signature | None]:
        return {file: _signature(file) for file in self._files()}


def _signature(file: Path) -> Signature | None:
    try:
        facts = stat_named(file)
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino
