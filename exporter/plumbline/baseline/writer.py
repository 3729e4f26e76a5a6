"""Putting a report or a recorded baseline on disk: whole or not at all, and never over another by accident.

The directory is a person's, who named it. What stands under the name is replaced on request only, and only where it is
a plain file of that person.
"""

from __future__ import annotations

import os
from pathlib import Path

from plumbline.core.files import OwnDirectory
from plumbline.errors import BaselineError


def check_target(path: Path, *, force: bool) -> None:
    """Raise what :func:`write_text` would refuse with. Asked before the minute of measuring."""
    _open(path, force=force).close()


def write_text(path: Path, text: str, *, force: bool) -> Path | None:
    """Write a whole file, atomically and durably; returns where the file it replaces is kept, if there was one.

    Without ``force`` an existing file is never touched, not even one that appears meanwhile. With it the old file stays
    beside the new one with ``.bak`` added, ``.bak-1`` where that is taken, and so on; there is no moment without a
    baseline. Raises :class:`BaselineError`, or :class:`FileRefused` for what is no file of this user.
    """
    data = text.encode()
    with _open(path, force=force) as directory:
        try:
            if not force:
                directory.create(path.name, data, mode=0o644)
                return None
            kept = directory.replace(path.name, data, mode=0o644, keep=f"{path.name}.bak")
        except FileExistsError:
            raise BaselineError(str(path), _EXISTS) from None
        except OSError as error:
            raise BaselineError(str(path), f"can't be written: {error.strerror}") from error
    return path.with_name(kept) if kept else None


_EXISTS = "exists already; --force replaces it and keeps the old one as .bak"


def _open(path: Path, *, force: bool) -> OwnDirectory:
    """The directory, where the file may be written."""
    try:
        if path.is_dir():
            raise BaselineError(str(path), "is a directory; name a file")
        directory = OwnDirectory.named(path.parent)
    except FileNotFoundError:
        raise BaselineError(str(path), f"there is no directory {path.parent}; create it first") from None
    except OSError as error:
        raise BaselineError(str(path), f"can't be written: {path.parent}: {error.strerror}") from error
    try:
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=directory.fd, effective_ids=True):
            raise BaselineError(str(path), f"no permission to write in {path.parent}")
        if directory.holds(path.name) and not force:
            raise BaselineError(str(path), _EXISTS)
    except OSError as error:
        directory.close()
        raise BaselineError(str(path), f"can't be replaced: {error.strerror}") from error
    except BaseException:
        directory.close()
        raise
    return directory
