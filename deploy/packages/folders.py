"""Folders that a build writes anew: what an earlier build put there goes, another person's files never."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from deploy.packages.project import BuildError

SUMS = "SHA256SUMS"
"""The names and checksums of all other files of a folder, as sha256sum writes them."""


def sums(folder: Path) -> str:
    """The content of :data:`SUMS` for all files that are in the folder now."""
    return "".join(f"{checksum(path)}  {path.relative_to(folder)}\n" for path in _files(folder))


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_empty(folder: Path, *also: str) -> None:
    """Make the folder, or remove from it what its :data:`SUMS` describes, that file, and ``also``. With any other file,
    or one that was changed, nothing is removed: :class:`BuildError` names it."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BuildError(f"{folder}: is not a folder; name another with --out")
    files = _files(folder)
    known = _described(folder)
    for path in files:
        name = str(path.relative_to(folder))
        if known and name in (SUMS, *also) and not path.is_symlink():
            continue
        if path.is_symlink() or known.get(name) != checksum(path):
            raise BuildError(
                f"{path}: no earlier build wrote this; nothing was removed. Move it away, or name another --out"
            )
    for path in files:
        path.unlink()
    held = {parent for path in files for parent in path.relative_to(folder).parents[:-1]}
    for inner in sorted(held, key=lambda path: len(path.parts), reverse=True):
        (folder / inner).rmdir()
    folder.mkdir(parents=True, exist_ok=True)


def _files(folder: Path) -> list[Path]:
    """Everything but folders; links to folders are not followed."""
    found: list[Path] = []
    for inner, folders, names in os.walk(folder):
        found += [Path(inner, name) for name in names]
        found += [Path(inner, name) for name in folders if Path(inner, name).is_symlink()]
    return sorted(found)


def _described(folder: Path) -> dict[str, str]:
    path = folder / SUMS
    if path.is_symlink() or not path.is_file():
        return {}
    lines = path.read_text("utf-8", "replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
