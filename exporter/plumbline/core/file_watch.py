"""Detecting that files changed since they were last read: edited, replaced, removed or created."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from plumbline.core.answers import stat_named

T = TypeVar("T")
Signature = tuple[int, int, int]
"""Identifies a file's content: modification time in ns, size, inode."""


class FileWatch:
    """Watches the paths that ``files`` returns, which may differ from call to call. Their state at construction counts
    as read.

    Every method calls ``stat`` and waits for a mount that hangs (see :mod:`.answers`): not for the main loop.
    """

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._taken = self._now()

    @property
    def changed(self) -> bool:
        """Whether a file changed since the last :meth:`take`."""
        return self._now() != self._taken

    def take(self, read: Callable[[], T]) -> T:
        """Call ``read`` and mark the files as read. A file written during the call still counts as changed."""
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
