"""Writes a report or a recorded baseline to disk atomically, without overwriting another file by accident.

A user chose the directory. An existing file is replaced only on request, and only if it is a regular file owned by
that user and kept as a backup, or recognised.
"""

import os
from pathlib import Path

from plumbline.core.files import OwnDirectory
from plumbline.core.proofs import Kept, Proof
from plumbline.errors import BaselineError


def kept(path: Path) -> Kept:
    """The old file stays beside the new one as ``.bak``, or ``.bak-1`` and so on if that name is taken."""
    return Kept(f"{path.name}.bak")


def check_target(path: Path, *, over: Proof | None) -> None:
    """Raise the error with which :func:`write_text` would refuse; called before measuring starts."""
    _open(path, over=over).close()


def write_text(path: Path, text: str, *, over: Proof | None, mode: int = 0o644) -> Path | None:
    """Write a whole file, atomically and durably. ``over`` is the proof an existing file needs; with ``None`` an
    existing file is never touched, not even one that appears meanwhile. At no moment is there no baseline. Returns the
    path of the backup if one was kept. Raises :class:`BaselineError`, or :class:`FileRefused` for a file that is not
    proven, or not of this user."""
    data = text.encode()
    with _open(path, over=over) as directory:
        try:
            if over is None:
                directory.create(path.name, data, mode=mode)
                return None
            backup = directory.replace(path.name, data, over, mode=mode)
        except FileExistsError:
            raise BaselineError(str(path), _EXISTS) from None
        except OSError as error:
            raise BaselineError(str(path), f"can't be written: {error.strerror}") from error
    return path.with_name(backup) if backup else None


_EXISTS = "exists already; --force replaces it and keeps the old one as .bak"


def _open(path: Path, *, over: Proof | None) -> OwnDirectory:
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
        if over is not None:
            directory.check(path.name, over)
        elif directory.holds(path.name):
            raise BaselineError(str(path), _EXISTS)
    except OSError as error:
        directory.close()
        raise BaselineError(str(path), f"can't be replaced: {error.strerror}") from error
    except BaseException:
        directory.close()
        raise
    return directory
