"""Processes that a real disk lets through only so much of, by the kernel's own throttle: blkio, control groups v1."""

from __future__ import annotations

import errno
import itertools
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

BLKIO = Path("/sys/fs/cgroup/blkio")
LET_GO_WITHIN_S = 30.0

_numbers = itertools.count()


def named(disk: str) -> str:
    """``major:minor`` of a disk by the kernel's name."""
    return Path(f"/sys/block/{disk}/dev").read_text("ascii").strip()


def below(path: Path) -> str:
    """``major:minor`` of the whole disk that ``path`` lies on."""
    number = path.stat().st_dev
    sysfs = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    whole = sysfs.parent if (sysfs / "partition").exists() else sysfs
    return (whole / "dev").read_text("ascii").strip()


@contextmanager
def throttled(disk: str, pids: Iterable[int] = (), **limits: int) -> Iterator[Path]:
    """A group that meets ``limits`` on ``disk`` (major:minor); ``pids`` are in it, others may join.

    ``limits``: the kernel's rules without their prefix, ``read_iops_device=4``. Skips where there is no such throttle.
    """
    if os.geteuid() != 0 or not all((BLKIO / f"blkio.throttle.{rule}").exists() for rule in limits):
        pytest.skip("no blkio hierarchy (control groups, version 1) on this host, or not root")
    group = BLKIO / f"plumbline-test-{os.getpid()}-{next(_numbers)}"
    group.mkdir()
    try:
        for rule, value in limits.items():
            (group / f"blkio.throttle.{rule}").write_text(f"{disk} {value}", "ascii")
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid), "ascii")
        yield group
    finally:
        for rule in limits:  # what waits there goes on
            (group / f"blkio.throttle.{rule}").write_text(f"{disk} 0", "ascii")
        _remove(group)


def _remove(group: Path) -> None:
    """Its processes go back where they were. A group is busy for as long as one that was killed waits for its disk."""
    deadline = time.monotonic() + LET_GO_WITHIN_S
    while True:
        for pid in (group / "cgroup.procs").read_text("ascii").split():
            with suppress(ProcessLookupError):
                (BLKIO / "cgroup.procs").write_text(pid, "ascii")
        try:
            return group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.05)
