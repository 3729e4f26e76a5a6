"""Trees whose files block, shrink, vanish or fail when a test says so: FUSE over the real ones or over copies."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from .daemon import WITHIN_S, eventually
from .programs import need

PROGRAM = Path(__file__).with_name("stubborn_fuse.py")
PYTHON = "/usr/bin/python3"
"""The system's: it has Debian's python3-fuse."""


class StubbornTree:
    """A mirror of a tree at :attr:`point`; :meth:`let` says how its files behave from now on."""

    def __init__(self, point: Path, rules: Path) -> None:
        self.point, self._rules = point, rules

    def let(self, rules: Mapping[str, str]) -> None:
        """Regular expression of a path → what its files do (``stubborn_fuse.py`` lists the words). None: all works."""
        new = self._rules.with_suffix(".new")
        new.write_text(json.dumps(list(rules.items())))
        new.replace(self._rules)


@contextlib.contextmanager
def stubborn(folder: Path, tree: Path) -> Iterator[StubbornTree]:
    """Mount a mirror of ``tree`` in a new directory ``folder``; unmounted afterwards, whoever still waits on it."""
    if os.geteuid() or not Path("/dev/fuse").exists():
        pytest.skip("FUSE file systems can't be mounted here")
    if subprocess.run([PYTHON, "-c", "import fuse"], capture_output=True, check=False).returncode:
        pytest.skip("no FUSE for Python (Debian package python3-fuse)")
    umount = need("umount")
    point = folder / "mirror"
    point.mkdir(parents=True)
    mirror = StubbornTree(point, folder / "rules.json")
    mirror.let({})
    with (folder / "fuse.log").open("wb") as log:
        server = subprocess.Popen([PYTHON, PROGRAM, tree, folder / "rules.json", point], stdout=log, stderr=log)
    try:
        eventually(lambda: os.path.ismount(point) or server.poll() is not None)
        if server.poll() is not None:
            pytest.skip(f"FUSE can't be mounted here: {(folder / 'fuse.log').read_text()[-200:]}")
        yield mirror
    finally:
        mirror.let({})
        subprocess.run([umount, "--lazy", point], check=False, capture_output=True)
        server.terminate()
        try:
            server.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
