"""A mounted file system that says yes and does something else when a test wants it; see :mod:`.lying_fuse`."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .daemon import WITHIN_S, eventually
from .programs import need
from .stubborn_files import PYTHON

PROGRAM = Path(__file__).with_name("lying_fuse.py")


class LyingDisk:
    """Mounted at :attr:`point`; :attr:`tree` is what really lies there."""

    def __init__(self, folder: Path) -> None:
        self.point, self.tree, self._orders = folder / "point", folder / "tree", folder / "orders"
        self.point.mkdir(parents=True)
        self.tree.mkdir()
        self.does("honest")

    def does(self, lie: str) -> None:
        """From now on; ``lying_fuse.py`` lists the words."""
        new = self._orders.with_suffix(".new")
        new.write_text(lie, "ascii")
        new.replace(self._orders)


@contextlib.contextmanager
def lying_disk(folder: Path) -> Iterator[LyingDisk]:
    """Mounted in a new directory ``folder``, honest at first; unmounted afterwards."""
    if os.geteuid() or not Path("/dev/fuse").exists():
        pytest.skip("FUSE file systems can't be mounted here")
    if subprocess.run([PYTHON, "-c", "import fuse"], capture_output=True, check=False).returncode:
        pytest.skip("no FUSE for Python (Debian package python3-fuse)")
    umount = need("umount")
    disk = LyingDisk(folder)
    argv: list[str | Path] = [PYTHON, PROGRAM, disk.tree, folder / "orders", disk.point]
    with (folder / "fuse.log").open("wb") as log:
        server = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        eventually(lambda: os.path.ismount(disk.point) or server.poll() is not None)
        if server.poll() is not None:
            pytest.skip(f"FUSE can't be mounted here: {(folder / 'fuse.log').read_text()[-200:]}")
        yield disk
    finally:
        disk.does("honest")
        subprocess.run([umount, "--lazy", disk.point], check=False, capture_output=True)
        server.terminate()
        try:
            server.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
