"""Disks that clients read, and one of them made slow in the tail by the kernel's own throttle (blkio of cgroup v1)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from .disks import disk_folder
from .filesystems import run
from .programs import need
from .throttling import below, throttled

PACE, SLOW_PACE = 50, 10
"""Operations a second: of each disk's client, and what the throttle lets through."""


@contextmanager
def disks(factory: pytest.TempPathFactory, count: int) -> Iterator[tuple[list[Path], Path]]:
    """Loop devices with direct I/O over files full of data, and the folder the files are in; skips without any."""
    with ExitStack() as undo:
        folder = undo.enter_context(disk_folder(factory))
        devices = []
        for number in range(count):
            image = folder / f"image{number}"
            run(
                need("fio"),
                "--name=fill",
                f"--filename={image}",
                "--rw=write",
                "--bs=1M",
                "--size=64M",
                "--end_fsync=1",
            )
            made = subprocess.run(
                [need("losetup"), "--find", "--show", "--direct-io=on", image],
                capture_output=True,
                text=True,
                check=False,
            )  # fmt: skip
            if made.returncode:
                pytest.skip(f"no loop device here: {made.stderr.strip()}")
            device = Path(made.stdout.strip())
            undo.callback(run, "losetup", "--detach", device)
            devices.append(device)
        yield devices, folder


@contextmanager
def reading(device: Path, *options: str, cgroup: Path | None = None) -> Iterator[None]:
    """fio reads ``device`` at random until the end of the block."""
    argv = [need("fio"), "--name=job", f"--filename={device}", "--readonly", "--rw=randread", "--direct=1"]
    argv += ["--ioengine=psync", "--time_based", "--runtime=900", "--thread", *options]
    if cgroup is not None:
        argv = ["sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$@"', "sh", *argv]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            yield
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def one_slow(devices: Sequence[Path], folder: Path, *, slow: Path) -> Iterator[None]:
    """All are read at the same pace; of ``slow`` one operation in fifty is held back for a tenth of a second."""
    with ExitStack() as stack:
        for device in devices:
            stack.enter_context(reading(device, "--bs=512k", f"--rate_iops={PACE}"))
        cgroup = stack.enter_context(throttled(below(folder), read_iops_device=SLOW_PACE))
        # ten a second are let through, one in each tenth: of two that come together the second waits
        stack.enter_context(reading(slow, "--bs=4k", "--thinktime=900ms", "--thinktime_blocks=2", cgroup=cgroup))
        yield
