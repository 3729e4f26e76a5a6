"""Slow the canary's disk path for real: the kernel's own I/O throttle on its worker, or competing load.

cgroup v1: ``blkio.throttle.{read,write}_iops_device`` (Documentation/admin-guide/cgroup-v1/blkio-controller.rst),
cgroup v2: ``io.max`` (Documentation/admin-guide/cgroup-v2.rst). Both delay requests below the file system, so the
probe really waits for its disk path; the canary's O_DIRECT makes the I/O its own in v1 too. Only the worker is
throttled: nothing else on the host becomes slower.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from deploy.demo.processes import DemoError, Process, Processes, program

IOPS = 2
"""Operations a second the worker may do: about half a second each, hundreds of times a healthy disk's latency. Linux
6.12 refuses one operation a second in ``io.max`` (EINVAL)."""

WORKER = b"canary_worker"


@dataclass(frozen=True, slots=True)
class Disk:
    """A whole disk; ``number`` is ``major:minor``."""

    name: str
    number: str


class Slowdown(Protocol):
    """A way to slow the canary."""

    description: str

    def apply(self, workers: Iterable[int]) -> None:
        """Slow these processes; called again as workers come and go."""

    def remove(self) -> None:
        """Undo it all."""


@dataclass(slots=True)
class Throttle:
    """A cgroup of our own with a limit on one device; workers move in, and back to where they were."""

    cgroup: Path
    limits: dict[str, str]
    home: Callable[[int], Path]
    description: str
    _homes: dict[int, Path] = field(default_factory=dict)

    def apply(self, workers: Iterable[int]) -> None:
        """Create the cgroup at the first call; move workers that are not in it yet. :class:`DemoError` with the limit
        that the kernel refused."""
        if not self.cgroup.is_dir():
            self.cgroup.mkdir()
            for name, limit in self.limits.items():
                _write(self.cgroup / name, limit)
        for pid in workers:
            if pid not in self._homes:
                try:
                    home = self.home(pid)
                    (self.cgroup / "cgroup.procs").write_text(str(pid))
                except (FileNotFoundError, ProcessLookupError):
                    continue  # ended in between
                self._homes[pid] = home

    def remove(self) -> None:
        """Move every worker back and remove the cgroup, its limits with it."""
        for pid, home in self._homes.items():
            try:
                (home / "cgroup.procs").write_text(str(pid))
            except (FileNotFoundError, ProcessLookupError):
                continue  # ended; a cgroup of the dead can be removed
        self._homes.clear()
        if self.cgroup.is_dir():
            self.cgroup.rmdir()


@dataclass(slots=True)
class CompetingLoad:
    """fio with deep queues in the same file system: slows the canary as a noisy neighbour would."""

    processes: Processes
    directory: Path
    duration_s: int
    description: str = "a competing fio load (4 jobs, 64 requests in flight each) in the same file system"
    _load: Process | None = None

    def apply(self, workers: Iterable[int]) -> None:  # noqa: ARG002
        """Start the load once; which workers run does not matter."""
        if self._load is None:
            self.directory.mkdir(exist_ok=True)
            self._load = self.processes.start(
                "fio-load",
                [program("fio", "fio"), "--name=load", f"--directory={self.directory}", "--rw=randrw", "--bs=64k",
                 "--direct=1", "--ioengine=libaio", "--iodepth=64", "--numjobs=4", "--size=256m", "--time_based",
                 f"--runtime={self.duration_s}"],
            )  # fmt: skip

    def remove(self) -> None:
        """Stop the load and delete its files."""
        if self._load is not None:
            self.processes.stop_one(self._load)
            self._load = None
        if self.directory.is_dir():
            for file in self.directory.iterdir():
                file.unlink()
            self.directory.rmdir()


def choose(
    *, disk: Disk | None, processes: Processes, directory: Path, duration_s: int, proc: Path, iops: int = IOPS
) -> Slowdown:
    """The strongest way this host allows. ``disk`` is the one below the canary, ``iops`` what a throttle grants.

    Raises :class:`DemoError` saying what each way lacks.
    """
    missing: list[str] = []
    if os.geteuid() != 0:
        missing.append("not root, so no cgroup")
    elif disk is None:
        missing.append("no block device below the canary's directory (a memory or network file system)")
    else:
        throttle = _throttle(disk, (proc / "self" / "mountinfo").read_text(), proc, iops)
        if throttle is not None:
            return throttle
        missing.append("no writable cgroup with the blkio (v1) or io (v2) controller")
    try:
        program("fio", "fio")
    except DemoError as error:
        missing.append(str(error))
        raise DemoError("nothing here can slow the disk: " + "; ".join(missing)) from error
    print(f"no I/O throttle ({missing[0]}); using competing load instead")
    return CompetingLoad(processes, directory, duration_s)


def _throttle(disk: Disk, mountinfo: str, proc: Path, iops: int) -> Throttle | None:
    v1, v2 = controllers(mountinfo)
    group = f"plumbline-demo-{os.getpid()}"
    if v1 is not None and os.access(v1, os.W_OK) and (v1 / "blkio.throttle.write_iops_device").exists():
        mount = v1
        limit = f"{disk.number} {iops}"
        return Throttle(
            cgroup=mount / group,
            limits={f"blkio.throttle.{way}_iops_device": limit for way in ("read", "write")},
            home=lambda pid: mount / membership((proc / str(pid) / "cgroup").read_text(), "blkio"),
            description=f"blkio throttle (cgroup v1): {iops} operations/s on {disk.name} for the canary's worker",
        )
    if v2 is not None and _io_enabled(v2):
        mount = v2
        return Throttle(
            cgroup=mount / group,
            limits={"io.max": f"{disk.number} riops={iops} wiops={iops}"},
            home=lambda pid: mount / membership((proc / str(pid) / "cgroup").read_text(), ""),
            description=f"io.max (cgroup v2): {iops} operations/s on {disk.name} for the canary's worker",
        )
    return None


def _write(file: Path, limit: str) -> None:
    try:
        file.write_text(limit)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, error.errno)
        raise DemoError(f"the kernel refuses the I/O limit {limit!r} in {file}: {name} ({error.strerror})") from error


def _io_enabled(mount: Path) -> bool:
    """Whether children of the root cgroup get the io controller; enables it where that is allowed.

    It stays enabled: without limits it changes nothing, and systemd enables and disables it as units need it.
    """
    if "io" not in (mount / "cgroup.controllers").read_text().split():
        return False
    subtree = mount / "cgroup.subtree_control"
    if "io" in subtree.read_text().split():
        return os.access(mount, os.W_OK)
    try:
        subtree.write_text("+io")
    except OSError:
        return False
    return True


def controllers(mountinfo: str) -> tuple[Path | None, Path | None]:
    """Mount points of the v1 blkio hierarchy and of the v2 hierarchy (proc_pid_mountinfo(5))."""
    v1 = v2 = None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        point = Path(before.split(" ")[4])
        if kind == "cgroup" and "blkio" in options.split(","):
            v1 = point
        elif kind == "cgroup2":
            v2 = point
    return v1, v2


def membership(cgroup: str, controller: str) -> str:
    """A process' path in one hierarchy, relative to its mount; ``""`` is v2 (cgroups(7))."""
    for line in cgroup.splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return path.lstrip("/")
    raise DemoError(f"the process is in no {controller or 'v2'} cgroup")


def workers(daemon: int, proc: Path) -> list[int]:
    """Process ids of the daemon's canary workers, by walking its descendants."""
    found: list[int] = []
    open_ends = [daemon]
    while open_ends:
        pid = open_ends.pop()
        try:
            for children in (proc / str(pid) / "task").glob("*/children"):
                open_ends += [int(child) for child in children.read_text().split()]
            if WORKER in (proc / str(pid) / "cmdline").read_bytes():
                found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended in between
    return found
