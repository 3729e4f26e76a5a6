"""What the package is called, which version it is, and what time its files carry."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "plumbline"
SUMMARY = "storage node exporter with probes, baselines and verdicts"
DESCRIPTION = """\
Prometheus exporter for storage nodes and Ceph clusters: what the kernel knows
of network and disks, probes that measure on purpose without hurting anybody,
and a written baseline that both are held against, with alert rules, runbooks
and Grafana dashboards.

Plumbline's Python dependencies are inside, in /opt/plumbline: what the
distribution itself has is older than what it needs.
"""
MAINTAINER = "The Plumbline authors <plumbline@packages.invalid>"
"""There is no address that answers; .invalid says so (RFC 2606)."""
NO_GIT_EPOCH = 1_580_601_600
"""2020-02-02, hatchling's own date for a wheel that is built outside a repository."""


class BuildError(Exception):
    """Why there is no package, in one line: what is not printable in a name is escaped."""

    def __str__(self) -> str:
        return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in super().__str__())


@dataclass(frozen=True, slots=True)
class Release:
    """A Debian release that a package is for: its number, and the minor version of its Python 3."""

    number: int
    python: int

    def version(self, version: str) -> str:
        """A package's version for it: a package of the next release is newer, so that the upgrade takes it."""
        return f"{package_version(version)}+deb{self.number}"


RELEASES = {"bookworm": Release(12, 11), "trixie": Release(13, 13)}


def project_version(root: Path = ROOT) -> str:
    """As pyproject.toml has it."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def package_version(version: str) -> str:
    """PEP 440 as dpkg and rpm sort it: ``0.2.0rc1`` is ``0.2.0~rc1``, before ``0.2.0``; ``.dev``, ``.post`` alike.

    https://www.debian.org/doc/debian-policy/ch-controlfields.html#version
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)*)((?:a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?", version)
    if not match:
        raise BuildError(f"pyproject.toml: project.version = {version!r}: expected a release such as 0.2.0 or 0.2.0rc1")
    number, pre, post, dev = match.groups(default="")
    before = "".join(f"~{part.lstrip('.')}" for part in (pre, dev) if part)
    return number + post.replace(".", "+") + before


def source_date(environment: Mapping[str, str], root: Path = ROOT) -> int:
    """Seconds since 1970 for everything that is built: ``SOURCE_DATE_EPOCH``, else the last commit's.

    https://reproducible-builds.org/specs/source-date-epoch/
    """
    if asked := environment.get("SOURCE_DATE_EPOCH"):
        if not asked.isascii() or not asked.isdecimal():
            raise BuildError(f"SOURCE_DATE_EPOCH = {asked!r}: expected seconds since 1970")
        return int(asked)
    done = subprocess.run(
        ["git", "-C", str(root), "log", "-1", "--format=%ct"],
        capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
    ) if (root / ".git").exists() else None  # fmt: skip
    return int(done.stdout) if done is not None and done.returncode == 0 else NO_GIT_EPOCH
