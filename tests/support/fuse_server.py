"""A file system of ours in Debian's Python for FUSE, mounted as long as a test wants it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from .daemon import WITHIN_S, eventually
from .programs import need

PYTHON = "/usr/bin/python3"
"""The system's: it has Debian's python3-fuse."""


@contextlib.contextmanager
def fuse_server(folder: Path, point: Path, argv: Sequence[str | Path], *, free: Callable[[], object]) -> Iterator[None]:
    """Run ``argv``, a Python program with its arguments, until ``point`` is a mount; its log is in ``folder``.

    Afterwards ``free`` is called, so that nobody waits on it, and it is unmounted. Skips where FUSE is missing.
    """
    if os.geteuid() or not Path("/dev/fuse").exists():
        pytest.skip("FUSE file systems can't be mounted here")
    if subprocess.run([PYTHON, "-c", "import fuse"], capture_output=True, check=False).returncode:
        pytest.skip("no FUSE for Python (Debian package python3-fuse)")
    umount = need("umount")
    with (folder / "fuse.log").open("wb") as log:
        server = subprocess.Popen([PYTHON, *argv], stdout=log, stderr=log)
    try:
        eventually(lambda: os.path.ismount(point) or server.poll() is not None)
        if server.poll() is not None:
            pytest.skip(f"FUSE can't be mounted here: {(folder / 'fuse.log').read_text()[-200:]}")
        yield
    finally:
        free()
        subprocess.run([umount, "--lazy", point], check=False, capture_output=True)
        server.terminate()
        try:
            server.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
