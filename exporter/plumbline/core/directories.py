"""Removing a known directory or symbolic link, and nothing that has since replaced it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from plumbline.core.files import OwnDirectory, temporary_name
from plumbline.core.refusals import refused
from plumbline.core.renaming import rename_new


def remove_directory(directory: OwnDirectory) -> None:
    """Remove this empty directory; :class:`FileRefused` if its name leads to another directory by now."""
    known = os.fstat(directory.fd)
    _remove(Path(directory.name), lambda status: os.path.samestat(status, known), os.rmdir)


def remove_link(path: Path) -> None:
    """Remove a symbolic link; :class:`FileRefused` if the path is not a symbolic link by now."""
    _remove(path, lambda status: stat.S_ISLNK(status.st_mode), os.unlink)


def _remove(path: Path, is_it: Callable[[os.stat_result], bool], remove: Callable[..., None]) -> None:
    """Rename it first, check what was renamed, and rename it back if it is the wrong one."""
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
