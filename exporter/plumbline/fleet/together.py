"""Changes of several files of ours that are made all or not at all, as long as the process lives."""

import logging
import os
from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct

from plumbline.core.files import OwnDirectory, read_whole
from plumbline.core.proofs import Proof, exactly
from plumbline.errors import FileRefused

_MAX_BYTES = 64 << 20

log = logging.getLogger(__name__)


class Change(Struct, frozen=True):
    """``data``: the new content; ``None`` removes the file, and a missing one is no error."""

    name: str
    data: bytes | None
    proof: Proof
    mode: int = 0o644


def change_together(directory: OwnDirectory, changes: Iterable[Change]) -> None:
    """Check every existing file first, then change one after the other. If one fails, the earlier ones get their old
    content back. Raises what :meth:`OwnDirectory.replace` raises."""
    changes = tuple(changes)
    for change in changes:
        directory.check(change.name, change.proof)
    undo: list[Callable[[], object]] = []
    try:
        for change in changes:
            _change(directory, change, undo)
    except BaseException:
        for step in reversed(undo):
            try:
                step()
            except (OSError, FileRefused) as error:
                log.error("%s: can't be put back: %s", directory.name, error)
        raise


def _change(directory: OwnDirectory, change: Change, undo: list[Callable[[], object]]) -> None:
    name, data = change.name, change.data
    before, mode = _content(directory, name)
    if data is None:
        if before is not None:
            directory.remove(name, change.proof)
            undo.append(partial(directory.create, name, before, mode=mode))
        return
    kept = directory.replace(name, data, change.proof, mode=change.mode)
    if before is None:
        undo.append(partial(directory.remove, name, exactly(data)))
        return
    if kept:
        undo.append(partial(directory.remove, kept, exactly(before)))
    undo.append(partial(directory.replace, name, before, exactly(data), mode=mode))


def _content(directory: OwnDirectory, name: str) -> tuple[bytes | None, int]:
    """What the file holds and its mode; ``None`` where there is none."""
    try:
        descriptor = directory.open(name)
    except FileNotFoundError:
        return None, 0
    try:
        return read_whole(descriptor, _MAX_BYTES, directory.where(name)), os.fstat(descriptor).st_mode & 0o777
    finally:
        os.close(descriptor)
