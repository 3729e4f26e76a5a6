"""Putting a recorded baseline on disk: whole or not at all, and never over another by accident."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from plumbline.errors import BaselineError


def check_target(path: Path, *, force: bool) -> None:
    """Raise :class:`BaselineError` where :func:`write_text` would refuse. Asked before the minute of measuring."""
    if not path.parent.is_dir():
        raise BaselineError(str(path), f"there is no directory {path.parent}; create it first")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise BaselineError(str(path), f"no permission to write in {path.parent}")
    if path.is_dir():
        raise BaselineError(str(path), "is a directory; name a file")
    if path.exists() and not force:
        raise BaselineError(str(path), _EXISTS)


def write_text(path: Path, text: str, *, force: bool) -> Path | None:
    """Write a whole file, atomically and durably; returns where the file it replaces is kept, if there was one.

    Without ``force`` an existing file is never touched, not even one that appears meanwhile (a hard link fails
    where a rename would replace). With it the old file stays beside the new one with ``.bak`` added; there is no
    moment without a baseline.
    """
    check_target(path, force=force)
    backup = path.with_name(path.name + ".bak")
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            kept = _put(temporary, path, backup, force=force)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
        _sync_directory(path.parent)
    except FileExistsError:
        raise BaselineError(str(path), _EXISTS) from None
    except OSError as error:
        raise BaselineError(str(path), f"can't be written: {error.strerror}") from error
    return kept


_EXISTS = "exists already; --force replaces it and keeps the old one as .bak"


def _put(temporary: Path, path: Path, backup: Path, *, force: bool) -> Path | None:
    if not force:
        path.hardlink_to(temporary)
        return None
    kept = None
    if path.exists():
        spare = temporary.with_name(temporary.name + ".old")
        spare.hardlink_to(path)
        spare.replace(backup)
        kept = backup
    temporary.replace(path)
    return kept


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
