"""bindfs: a directory seen through FUSE, by a process of ours that can be stopped; whoever asks then waits for ever."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from .daemon import eventually, freeze


class Fuse:
    """``below/behind`` seen at ``below/fuse``."""

    def __init__(self, below: Path) -> None:
        if os.geteuid() or shutil.which("bindfs") is None or not Path("/dev/fuse").exists():
            pytest.skip("not root, or bindfs or /dev/fuse is missing")
        self.point, self.behind = below / "fuse", below / "behind"
        self.behind.mkdir()
        self.point.mkdir()
        self.process = subprocess.Popen(
            ["bindfs", "-f", self.behind, self.point],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        eventually(lambda: f" {self.point} " in Path("/proc/self/mountinfo").read_text(), within_s=30)

    def hang(self) -> None:
        """Whoever asks waits, until :meth:`go_on`."""
        freeze(self.process.pid)

    def go_on(self) -> None:
        """Answer again, also what was asked meanwhile."""
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Unmount; who waits gets an error."""
        self.go_on()
        self.process.kill()
        self.process.wait(30)
        subprocess.run(["umount", "-l", self.point], check=False, timeout=30, capture_output=True)
