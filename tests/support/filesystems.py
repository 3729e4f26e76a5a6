"""Real file systems for tests: mounted below a temporary directory, gone at the end whatever happened."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from .daemon import eventually

MIB = 2**20
_EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32), include/uapi/linux/ext4.h


class Mounts:
    """Mounts that :meth:`close` takes away again, the last one first."""

    def __init__(self, below: Path) -> None:
        self._below = below
        self._points: list[Path] = []
        self.frozen: set[Path] = set()

    def mount(self, name: str, *argv: str | Path) -> Path:
        """Mount at ``name``; skips the test where this host can't."""
        point = self._below / name
        point.mkdir(exist_ok=True)
        done = subprocess.run(["mount", *argv, point], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"this host can't mount it: {done.stderr.strip()}")
        self._points.append(point)
        return point

    def ext4(self, mib: int, *, image: Path | None = None, name: str = "disk") -> Path:
        """A new ext4 of ``mib`` MiB on a loop device over ``image``."""
        image = image or self._below / f"{name}.img"
        with image.open("wb") as file:
            file.truncate(mib * MIB)
        run("mkfs.ext4", "-q", "-m", "0", image)
        return self.mount(name, "-o", "loop,nodiscard", image)

    def xfs(self, mib: int = 400) -> Path:
        """A new xfs; ``mkfs.xfs`` takes no less than 300 MiB. The file is sparse."""
        image = self._below / "xfs.img"
        with image.open("wb") as file:
            file.truncate(mib * MIB)
        run("mkfs.xfs", "-q", image)
        return self.mount("xfs", "-o", "loop", image)

    def unmount(self, point: Path) -> None:
        """Before the end."""
        _unmount(point)
        self._points.remove(point)

    def freeze(self, point: Path) -> None:
        """Writes hang in the kernel, unkillably, until :meth:`thaw`; reads go on."""
        run("fsfreeze", "--freeze", point)
        self.frozen.add(point)

    def thaw(self, point: Path) -> None:
        """What hung goes on."""
        self.frozen.discard(point)
        run("fsfreeze", "--unfreeze", point)

    def close(self) -> None:
        """Thaw and unmount everything; a mount that is still in use fails the test."""
        for point in list(self.frozen):
            self.thaw(point)
        for point in reversed(self._points):
            _unmount(point)
        self._points.clear()


def _unmount(point: Path) -> None:
    """A loop device lets go of its file some time after its own unmount: that file system is in use until then."""
    eventually(
        lambda: subprocess.run(["umount", point], check=False, capture_output=True, text=True).stderr,
        until=lambda said: said == "",
        within_s=10,
    )


def run(*argv: str | Path) -> str:
    """What the command says; an error of its own fails the test."""
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


def skip_without_root(why: str) -> None:
    """Skip the test, saying why, where it does not run as root."""
    if os.geteuid() != 0:
        pytest.skip(f"{why}: needs root")


def shut_down(point: Path) -> None:
    """An ext4 that answers EIO to everything from now on, as after an error of its journal."""
    fd = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(fd, _EXT4_IOC_SHUTDOWN, (2).to_bytes(4, "little"))  # 2: without flushing the journal
    finally:
        os.close(fd)
