"""Where tests keep what a probe writes: on a disk, because probes refuse to measure memory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plumbline.errors import ProbeRefused
from plumbline.probes.run.guard import prepare_directory


@contextmanager
def disk_folder(factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fresh directory: pytest's own kind where that is on a disk, else one in /var/tmp."""
    made = factory.mktemp("disk")
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
