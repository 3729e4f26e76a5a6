"""The packages of `make packages`, and the machines they are installed on.

The trees are debootstrapped once into ``.debian12`` (or ``$PLUMBLINE_DEBIAN12``), some 250 MB each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.machine import PACKAGES, Machine, booted, copied, debian_tree

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def deb() -> Path:
    """What `make packages` built."""
    found = sorted((ROOT / "dist").glob("plumbline_*.deb"))
    if len(found) != 1:
        pytest.skip("there is no package, or more than one, in dist/: make test-packages builds it")
    return found[0]


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where the trees are."""
    return Path(os.environ.get("PLUMBLINE_DEBIAN12", ROOT / ".debian12"))


@pytest.fixture
def minimal(cache: Path, tmp_path: Path) -> Iterator[Path]:
    """A bare Debian 12: neither Python nor systemd."""
    with copied(debian_tree(cache, "minimal"), tmp_path) as tree:
        yield tree


@pytest.fixture
def machine(cache: Path, tmp_path: Path) -> Iterator[Machine]:
    """A running Debian 12 with systemd, without a network."""
    with copied(debian_tree(cache, "machine", PACKAGES), tmp_path) as tree, booted(tree) as found:
        yield found
