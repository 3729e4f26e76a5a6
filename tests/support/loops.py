"""Real block devices for tests: loop devices over files, gone at the end whatever happened."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import struct
import subprocess
from pathlib import Path

import pytest

from .daemon import eventually
from .filesystems import MIB, run


class Loops:
    """Loop devices that :meth:`close` takes away again, last one first."""

    def __init__(self, below: Path) -> None:
        self._below = below
        self.names: list[str] = []

    def disk(self, mib: int = 8, *, image: Path | None = None, options: tuple[str, ...] = ()) -> str:
        """The kernel's name of a new disk of ``mib`` MiB of random bytes; skips the test where there are none."""
        image = image or self._below / f"disk{len(self.names)}.img"
        if not image.exists():
            image.write_bytes(os.urandom(MIB) * mib)
        done = subprocess.run(
            ["losetup", "--find", "--show", *options, image], check=False, capture_output=True, text=True
        )
        if done.returncode != 0:
            pytest.skip(f"this host has no loop devices: {done.stderr.strip()}")
        self.names.append(done.stdout.strip().removeprefix("/dev/"))
        return self.names[-1]

    def sparse(self, gib: int) -> str:
        """The kernel's name of a new, empty disk that takes no room until it is written; past the page cache."""
        image = self._below / f"disk{len(self.names)}.img"
        with image.open("wb") as file:
            file.truncate(gib << 30)
        return self.disk(image=image, options=("--direct-io=on",))

    def detach(self, name: str) -> None:
        """Before the end; as long as somebody has it open it goes on working."""
        self.names.remove(name)
        run("losetup", "--detach", f"/dev/{name}")

    def close(self) -> None:
        """Take all away."""
        for name in list(reversed(self.names)):
            self.names.remove(name)
            let_go(f"/dev/{name}")


def let_go(device: str) -> None:
    """Detach a loop device and wait until it has let go of its file. The kernel does so when nobody has it open any
    more, and udev opens it after each change: until then the file system below the file cannot be unmounted."""
    run("losetup", "--detach", device)
    bound = Path("/sys/block", Path(device).name, "loop")
    eventually(lambda: not bound.exists())


def checksum(name: str) -> str:
    """Of everything on the disk."""
    return hashlib.sha256(Path(f"/dev/{name}").read_bytes()).hexdigest()


def add_partition(device: str, number: int, start: int, length: int) -> str:
    """Tell the kernel of a partition, in bytes (linux/blkpg.h): some kernels read no partition tables."""
    partition = struct.pack("=qqi64s64s4x", start, length, number, b"", b"")
    memory = ctypes.create_string_buffer(partition)
    blkpg_add_partition, blkpg = 1, 0x1269
    argument = struct.pack("=iii4xQ", blkpg_add_partition, 0, len(partition), ctypes.addressof(memory))
    with Path(device).open("rb") as file:
        fcntl.ioctl(file, blkpg, argument)
    return f"{device}p{number}"
