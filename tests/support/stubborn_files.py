"""Trees whose files block, shrink, vanish or fail when a test says so: FUSE over the real ones or over copies."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from .fuse_server import fuse_server

PROGRAM = Path(__file__).with_name("stubborn_fuse.py")


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
    point = folder / "mirror"
    point.mkdir(parents=True)
    mirror = StubbornTree(point, folder / "rules.json")
    mirror.let({})
    with fuse_server(folder, point, [PROGRAM, tree, folder / "rules.json", point], free=lambda: mirror.let({})):
        yield mirror
