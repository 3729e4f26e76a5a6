"""A mounted file system that says yes and does something else when a test wants it; see :mod:`.lying_fuse`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from .fuse_server import fuse_server

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
    disk = LyingDisk(folder)
    argv: list[str | Path] = [PROGRAM, disk.tree, folder / "orders", disk.point]
    with fuse_server(folder, disk.point, argv, free=lambda: disk.does("honest")):
        yield disk
