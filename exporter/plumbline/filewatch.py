"""Whether files changed since they were last taken: edited, replaced, removed, or there at last."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

Signature = tuple[int, int, int]
"""Of a file's content: modification time in ns, size, inode."""


class FileWatch:
    """``files`` tells which; it may tell others each time. What there is at construction counts as taken."""

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._taken = self._now()

    @property
    def changed(self) -> bool:
        """Whether anything is to be taken."""
        return self._now() != self._taken

    def take(self, reload: Callable[[], object]) -> None:
        """Run ``reload``, which reads them; what is written meanwhile is a change still to be taken."""
        before = self._now()
        reload()
        self._taken = {file: before.get(file, now) for file, now in self._now().items()}

    def _now(self) -> dict[Path, Signature | None]:
        return {file: _signature(file) for file in self._files()}


def _signature(file: Path) -> Signature | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino
