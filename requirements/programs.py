"""Which program comes from which Debian package, as ``debian-*.txt`` say: ``package  # programs: a b; a remark``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent
GIVEN = frozenset({"git", "make", "python3"})
"""What the README asks for."""

_LINE = re.compile(r"(?P<package>[a-z0-9][a-z0-9+.-]+)[ ]*(?:#[ ]*(?:programs: (?P<programs>[^;]+))?.*)?")
_PROGRAM = re.compile(r"/(usr/)?s?bin/(?P<name>[^/]+)")


def listed(folder: Path = FOLDER) -> dict[str, str]:
    """Program → package, of all lists. ValueError names a line that is none."""
    found = {}
    for path in sorted(folder.glob("debian-*.txt")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            match = _LINE.fullmatch(line)
            if match is None:
                raise ValueError(f"{path.name}:{number}: expected `package  # programs: a b; a remark`, got {line!r}")
            found.update(dict.fromkeys((match["programs"] or "").split(), match["package"]))
    return found


def essential() -> frozenset[str]:
    """The programs of the packages without which there is no Debian, and of apt, which ``need-debian`` asks.
    FileNotFoundError elsewhere."""
    said = _dpkg_query("-W", "-f", "${Essential} ${Package}\n").splitlines()
    packages = [package for flag, _, package in (line.partition(" ") for line in said) if flag == "yes"]
    files = _dpkg_query("-L", *packages, "apt").splitlines()
    # awk and which are alternatives; base-files and debianutils see to them
    return frozenset({"awk", "which"}) | {match["name"] for path in files if (match := _PROGRAM.fullmatch(path))}


def _dpkg_query(*words: str) -> str:
    return subprocess.run(["dpkg-query", *words], capture_output=True, text=True, check=True).stdout
