"""Grafonnet below ``dashboards/vendor``, as ``jsonnetfile.lock.json`` pins it, fetched by jsonnet-bundler.

jsonnet-bundler is built from its Go module (``requirements/jb``, pinned with hashes) into ``.tools/``; it clones the
three repositories and compares their content with the lock. Where that fails one line says how else to get them, and
the exit status is still 0: everything but dashboards renders without them. A folder that somebody unpacked stays.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "jsonnetfile.lock.json"
VENDOR = ROOT / "dashboards" / "vendor"
FETCHED = VENDOR / ".lock.json"
"""The lock that the folder was fetched for. A folder without it was unpacked by hand."""
TOOLS = ROOT / ".tools"
JB = "github.com/jsonnet-bundler/jsonnet-bundler/cmd/jb"
PATIENCE_S = 300


class NotFetchedError(Exception):
    """One line: what failed."""


def main() -> int:
    """0, whether Grafonnet is there or not."""
    if VENDOR.is_dir() and (not FETCHED.exists() or FETCHED.read_bytes() == LOCK.read_bytes()):
        return 0
    try:
        _fetch()
    except NotFetchedError as error:
        print(f"going on without dashboards: Grafonnet is missing ({error}). {by_hand()}", file=sys.stderr)
    return 0


def by_hand() -> str:
    """What to do where github.com cannot be reached."""
    names = [f"{remote.removesuffix('.git').partition('github.com/')[2]} at {commit}" for remote, commit in _pinned()]
    return f"To render dashboards, unpack into dashboards/vendor/github.com/OWNER/NAME: {', '.join(names)}"


def _pinned() -> list[tuple[str, str]]:
    """(repository, commit) of everything in the lock."""
    dependencies = json.loads(LOCK.read_text("utf-8"))["dependencies"]
    return [(dependency["source"]["git"]["remote"], dependency["version"]) for dependency in dependencies]


def _fetch() -> None:
    _run(["git", "ls-remote", "--quiet", _pinned()[0][0], "HEAD"], "github.com cannot be reached")
    _run([str(ROOT / "requirements" / "need-debian"), "-f", str(ROOT / "requirements" / "debian-render.txt")], "no Go")
    jb = TOOLS / "jb"
    if not jb.exists():
        print("building jsonnet-bundler", file=sys.stderr)
        _run(["go", "build", "-o", str(jb), JB], "jsonnet-bundler was not built", ROOT / "requirements" / "jb")
    with tempfile.TemporaryDirectory(dir=VENDOR.parent, prefix=".vendor-") as folder:
        fetched = Path(folder) / "vendor"
        print("fetching Grafonnet", file=sys.stderr)
        _run([str(jb), "install", f"--jsonnetpkg-home={fetched.relative_to(ROOT)}"], "jsonnet-bundler failed")
        shutil.copy(LOCK, fetched / FETCHED.name)
        if VENDOR.exists():
            VENDOR.rename(Path(folder) / "old")
        fetched.rename(VENDOR)


def _run(argv: list[str], failure: str, folder: Path = ROOT) -> None:
    environment = os.environ | {"GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            argv, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotFetchedError(f"{failure}: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise NotFetchedError(f"{failure}: {lines[-1]}" if lines else failure)


if __name__ == "__main__":
    sys.exit(main())
