"""Writes a report or a recorded baseline to disk atomically, without overwriting another file by accident.

A user chose the directory. An existing file is replaced only on request, and only if it is a regular file owned by
that user.
"""

import os
from pathlib import Path

from plumbline.core.files import OwnDirectory
from plumbline.errors import BaselineError


def check_target(path: Path, *, force: bool) -> None:
    """Raise the error with which :func:`write_text` would refuse; called before measuring starts."""
    _open(path, force=force).close()


def write_text(path: Path, text: str, *, force: bool, mode: int = 0o644, keep: bool = True) -> Path | None:
    """Write a whole file, atomically and durably. Returns the path of the backup if a file was replaced. Without
    ``force`` an existing file is never touched, not even one that appears meanwhile. With ``force`` the old file is
    kept beside the new one as ``.bak``, or ``.bak-1`` and so on if that name is taken; at no moment is there no
    baseline; without ``keep`` the old file is gone. Raises :class:`BaselineError`, or :class:`FileRefused` for
    anything but a file of this user."""
    data = text.encode()
    with _open(path, force=force) as directory:
        try:
            if not force:
                directory.create(path.name, data, mode=mode)
                return None
            kept = directory.replace(path.name, data, mode=mode, keep=f"{path.name}.bak" if keep else "")
        except FileExistsError:
            raise BaselineError(str(path), _EXISTS) from None
        except OSError as error:
            raise BaselineError(str(path), f"can't be written: {error.strerror}") from error
    return path.with_name(kept) if kept else None


_EXISTS = "exists already; --force replaces it and keeps the old one as .bak"


def _open(path: Path, *, force: bool) -> OwnDirectory:
    """Open the directory of ``path`` if the file may be written there. Raises :class:`BaselineError`."""
    try:
        if path.is_dir():
            raise BaselineError(str(path), "is a directory; name a file")
        directory = OwnDirectory.named(path.parent)
    except FileNotFoundError:
        raise BaselineError(str(path), f"directory {path.parent} does not exist; create it first") from None
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
