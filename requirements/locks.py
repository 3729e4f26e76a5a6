"""What ``make lock`` writes, read back: every release that may be installed, with the hashes of its files.

One entry of a lock (pip-compile's own format, pip's "hash-checking mode")::

    markdown-it-py==4.3.0 \\
        --hash=sha256:7aa1511a46c39138de78d9eba92ce47e63124d8003fc98b3a351909e04239efa \\
        --hash=sha256:91a58fa5b72c71a40cf7177250fd767480d7a2bb3ac426ccfb76fb90305fdaaa
        # via
        #   -c requirements/run.txt
        #   rich
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("run.txt", "s3.txt")
"""Made from pyproject.toml: what is installed beside the daemon. The others are tools of ours."""

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)(?P<marker>\s*;.*)?")
_HASH = re.compile(r"--hash=sha256:(?P<digest>[0-9a-f]{64})")


class LockError(Exception):
    """A line that a lock may not hold: file, line number and what is wrong."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """One release. ``sha256`` of the files that may be installed; ``needed_by``: normalised names of what asks for it,
    ``plumbline`` for what pyproject.toml names."""

    name: str
    version: str
    sha256: tuple[str, ...]
    needed_by: tuple[str, ...]


def parse_lock(text: str, source: str) -> tuple[Pinned, ...]:
    """Every release of a lock, by name. Raise :class:`LockError` for anything but pins with hashes: an option, an
    address, a requirement without a version or without a hash."""
    found: dict[str, Pinned] = {}
    for number, block in _blocks(text):
        first = block[0].rstrip("\\ ")
        where = f"{source}:{number}"
        pin = _PIN.fullmatch(first)
        if not pin:
            raise LockError(f"{where}: {first!r} is no exact pin (name==version)")
        hashes, asking = [], []
        for line in block[1:]:
            word = line.strip().rstrip("\\ ")
            if word.startswith("#"):
                asking.append(word.lstrip("# ").removeprefix("via").strip())
            elif given := _HASH.fullmatch(word):
                hashes.append(given["digest"])
            else:
                raise LockError(f"{where}: {word!r} is neither a sha256 hash nor a comment")
        if not hashes:
            raise LockError(f"{where}: {first} has no hash; run: make lock UPGRADE=")
        name = canonicalize_name(pin["name"])
        if name in found:
            raise LockError(f"{where}: {name} stands twice")
        by = tuple(sorted({canonicalize_name(each.split(" ")[0]) for each in asking if each and each[0] != "-"}))
        found[name] = Pinned(name, pin["version"], tuple(sorted(hashes)), by)
    return tuple(found[name] for name in sorted(found))


def _blocks(text: str) -> list[tuple[int, list[str]]]:
    """(line number, lines) of each entry: an entry begins in the first column, what belongs to it is indented."""
    blocks: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and blocks:
            blocks[-1][1].append(line)
        else:
            blocks.append((number, [line]))
    return blocks


def read_lock(name: str, root: Path = ROOT) -> tuple[Pinned, ...]:
    """A lock by its file name, such as ``run.txt``."""
    return parse_lock((root / "requirements" / name).read_text("utf-8"), f"requirements/{name}")


def every_lock(root: Path = ROOT) -> tuple[str, ...]:
    """The shipped ones, and one for each ``.in`` file; the Debian lists beside them are no pip files."""
    tools = sorted(path.with_suffix(".txt").name for path in (root / "requirements").glob("*.in"))
    return (*SHIPPED, *tools)


def parse_wanted(text: str, source: str) -> tuple[Requirement, ...]:
    """The requirements of a ``.in`` file. Constraints (``-c``) and comments are skipped."""
    wanted = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.partition("#")[0].strip()
        if not word or word.startswith("-c "):
            continue
        try:
            wanted.append(Requirement(word))
        except InvalidRequirement as error:
            raise LockError(f"{source}:{number}: {word!r}: {error}") from error
    return tuple(wanted)
