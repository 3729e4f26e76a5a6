"""Taking away a directory or a link that is known, and nothing that has come to stand under its name."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from plumbline.core.files import OwnDirectory, temporary_name
from plumbline.core.refusals import refused
from plumbline.core.renaming import rename_new


def remove_directory(directory: OwnDirectory) -> None:
    """Remove this very directory, which is empty; :class:`FileRefused` where its name leads to another by now."""
    known = os.fstat(directory.fd)
    _remove(Path(directory.name), lambda found: os.path.samestat(found, known), os.rmdir)


def remove_link(path: Path) -> None:
    """Remove a symbolic link; :class:`FileRefused` where it is none by now."""
    _remove(path, lambda found: stat.S_ISLNK(found.st_mode), os.unlink)


def _remove(path: Path, is_it: Callable[[os.stat_result], bool], remove: Callable[..., None]) -> None:
    """Rename it, look at what was taken, and put back what is another."""
    parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    taken = temporary_name("old")
    try:
        rename_new(path.name, taken, parent)
        try:
            if not is_it(os.stat(taken, dir_fd=parent, follow_symlinks=False)):
                raise refused("changing", str(path))
            remove(taken, dir_fd=parent)
        except BaseException:
            rename_new(taken, path.name, parent)
            raise
    finally:
        os.close(parent)
