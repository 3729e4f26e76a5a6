"""Where end-to-end tests keep their daemons' state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.disks import disk_folder


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fresh directory on a disk."""
    with disk_folder(tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same for daemons that several tests look at."""
    with disk_folder(tmp_path_factory) as made:
        yield made
