"""Where end-to-end tests keep their daemons' state: on a disk, because a canary refuses to measure memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.errors import ProbeRefused
from plumbline.probes.guard import prepare_directory


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fresh directory on a disk."""
    yield from disk_folder(tmp_path_factory)


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same for daemons that several tests look at."""
    yield from disk_folder(tmp_path_factory)


def disk_folder(factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Pytest's own temporary directory where that is on a disk, else one in /var/tmp."""
    made = factory.mktemp("e2e")
    try:
        prepare_directory(made / "try", size_bytes=1 << 20).close()
    except ProbeRefused as refusal:
        if refusal.reason not in ("memory-filesystem", "no-direct-io"):
            raise
        made = Path(tempfile.mkdtemp(dir="/var/tmp"))
        try:
            yield made
        finally:
            shutil.rmtree(made)
    else:
        shutil.rmtree(made / "try")
        yield made
