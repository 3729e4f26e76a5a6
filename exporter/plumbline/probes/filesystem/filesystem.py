"""A mounted file system of any kind: fio in a directory on it, or files created, examined and removed.

The daemon itself never touches the file system: first one process checks, with a short time limit, whether the mount
exists and answers at all; then another does the work, and is killed with its process group if it hangs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from plumbline import __version__
from plumbline.config.probes.filesystem import FilesystemConfig
from plumbline.config.workloads import BlockWorkload, Metadata
from plumbline.core.isolated import argv_of
from plumbline.core.kernel import read_kernel
from plumbline.core.process import Completed
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, ProbeRefused
from plumbline.probes.apart import Failed, Refused, last_line, parse_answer
from plumbline.probes.disk.fio_job import FioPlan
from plumbline.probes.filesystem.filesystem_worker import Done, Task
from plumbline.probes.filesystem.mount_look import DEAD
from plumbline.probes.identify import identify
from plumbline.probes.latencies import summarise
from plumbline.probes.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.result import Outcome, ProbeResult
from plumbline.probes.tool import refuse_if_stopped
from plumbline.sources.kernel.mounts import Mount, mount_named, own_mounts

LOOK_WITHIN_S = 5.0
"""A mount that answers does so within milliseconds, over the worst network within a second."""
# time of the process around fio beyond fio's own time limit
_MORE_S = 5.0
CEPH_FILESYSTEMS = frozenset({"ceph", "fuse.ceph", "fuse.ceph-fuse"})
"""These load the Ceph cluster, so its gates apply."""
# older releases of OpenZFS accept O_DIRECT but use their cache anyway
_ZFS_DIRECT = (2, 3)
_BUFFERED = "name a workload whose id ends in -buffered"


class MountAnswer(msgspec.Struct, frozen=True):
    """The output of :mod:`.mount_look`: which mount it is, or the error instead."""

    mount_id: int | None = None
    errno: int = 0
    error: str = ""


class MetadataDone(msgspec.Struct, frozen=True, tag_field="kind", tag="done"):
    """Nanoseconds of each operation; :mod:`.metadata_worker`."""

    create: tuple[int, ...] = ()
    stat: tuple[int, ...] = ()
    unlink: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FilesystemProbe:
    """The periodic probe of one workload in one directory. ``roots``: for the kernel's own files."""

    config: FilesystemConfig
    workload: BlockWorkload | Metadata
    device_class: str
    filesystem: str
    """The type mounted during planning; if it was not mounted, the configured one or empty."""
    device: str
    roots: Roots

    heavy = True

    @property
    def identity(self) -> Identity:
        """See :class:`~plumbline.probes.model.Identity`."""
        return identify(
            self.config,
            self.workload,
            device_class=self.device_class,
            tool="fio" if isinstance(self.workload, BlockWorkload) else "plumbline",
            device=self.device,
            rate_iops=self._rate_iops,
            cluster=self.filesystem in CEPH_FILESYSTEMS,
        )

    def run(self, run: Run) -> ProbeResult:
        """See :class:`~plumbline.probes.model.PeriodicProbe`; its own reasons: ``mount-dead``, ``not-mounted``,
        ``no-direct-io``."""
        run.progress(Progress("asking whether the mount answers"))
        mount = look_at(Path(self.config.directory), self.config.filesystem, run=run, roots=self.roots)
        if isinstance(self.workload, BlockWorkload):
            if self.workload.direct:
                self._check_zfs(mount)
            return self._run_fio(self.workload, run)
        return self._run_metadata(self.workload, run)

    def clean_up(self, run: Run) -> None:
        """Remove an earlier run's files, if the mount exists and answers."""
        look_at(Path(self.config.directory), self.config.filesystem, run=run, roots=self.roots)
        if isinstance(self.workload, Metadata):
            self._metadata(run, Metadata(id="", layer="", files=0))
        else:
            self._fio(run, self.workload, clean_up=True)

    @property
    def _rate_iops(self) -> int | None:
        return self.config.rate_iops if isinstance(self.workload, BlockWorkload) else None

    def _run_fio(self, workload: BlockWorkload, run: Run) -> ProbeResult:
        run.progress(Progress("fio"))
        started = run.clock()
        completed, answer = self._fio(run, workload)
        if isinstance(answer, Done) and answer.result is not None:
            return answer.result
        return self._result(started, completed, answer if isinstance(answer, Failed) else Failed("fio: no result"))

    def _fio(self, run: Run, workload: BlockWorkload, *, clean_up: bool = False) -> tuple[Completed, Done | Failed]:
        config = self.config
        plan = FioPlan(
            probe=config.name,
            workload=workload,
            directory=Path(config.directory),
            device_class=self.device_class,
            runtime_s=float(config.runtime),
            timeout_s=float(config.timeout),
            file_size=int(config.file_size) // workload.block_size * workload.block_size,
            rate_iops=config.rate_iops,
        )
        task = msgspec.json.encode(Task.of(plan, run.keep_fds, clean_up=clean_up)).decode()
        completed = run.runner.run(
            argv_of("plumbline.probes.filesystem.filesystem_worker", task, site_packages=True),
            timeout_s=plan.timeout_s + _MORE_S,
            keep_fds=run.keep_fds,
        )
        refuse_if_stopped(completed.cancelled)
        answer: Done | Refused | Failed = _answer(completed, Done | Refused | Failed, "fio")
        if isinstance(answer, Refused):
            if answer.reason == "no-direct-io":
                raise ProbeRefused(answer.reason, f"{answer.message.partition(';')[0]}; {_BUFFERED}")
            raise ProbeRefused(answer.reason, answer.message)
        return completed, answer

    def _run_metadata(self, workload: Metadata, run: Run) -> ProbeResult:
        run.progress(Progress(f"{workload.files} files made, looked at and removed"))
        started = run.clock()
        completed, answer = self._metadata(run, workload)
        if not isinstance(answer, Failed):
            for operation in workload.operations:
                if len(getattr(answer, operation)) != workload.files:
                    answer = Failed(f"{operation}: not every file was counted")
                    break
        return self._result(started, completed, answer)

    def _metadata(self, run: Run, workload: Metadata) -> tuple[Completed, MetadataDone | Failed]:
        timeout_s = float(self.config.timeout)
        completed = run.runner.run(
            argv_of(
                "plumbline.probes.filesystem.metadata_worker",
                self.config.directory,
                str(workload.files),
                str(workload.file_size),
                f"{timeout_s:g}",
            ),
            timeout_s=timeout_s + _MORE_S,
            keep_fds=run.keep_fds,
        )
        refuse_if_stopped(completed.cancelled)
        answer: MetadataDone | Refused | Failed = _answer(
            completed, MetadataDone | Refused | Failed, "files made and removed"
        )
        if isinstance(answer, Refused):
            raise ProbeRefused(answer.reason, answer.message)
        return completed, answer

    def _result(self, started: float, completed: Completed, answer: MetadataDone | Failed) -> ProbeResult:
        if isinstance(answer, Failed):
            outcome, message = Outcome.TIMEOUT if answer.timeout else Outcome.FAILURE, answer.message
        else:
            outcome, message = Outcome.SUCCESS, ""
        return self.identity.result(
            tool_version="" if isinstance(self.workload, BlockWorkload) else __version__,
            started=started,
            duration=completed.duration_s,
            outcome=outcome,
            message=message,
            operations=()
            if isinstance(answer, Failed)
            else tuple(summarise(name, getattr(answer, name)) for name in self.workload.operations),
        )

    def _check_zfs(self, mount: Mount) -> None:
        if mount.filesystem != "zfs":
            return
        path = self.roots.sys / "module" / "zfs" / "version"
        try:
            version = read_kernel(path).decode("ascii", "replace").strip()[:40]
        except OSError:
            version = ""
        release = zfs_release(version)
        if release is None or release < _ZFS_DIRECT:
            said = f"OpenZFS {version}" if version else "this release of ZFS"
            raise ProbeRefused(
                "no-direct-io", f"{self.config.directory}: {said} takes O_DIRECT without heeding it; {_BUFFERED}"
            )


def build(config: FilesystemConfig, workload: BlockWorkload | Metadata, host: Host) -> Plan:
    """A probe in one directory. The mount is looked up in the kernel's list: querying the mount itself could hang."""
    found = _mount_by_name(config.directory, host.roots)
    mounted = found is not None and _wrong(found, config.filesystem) is None
    filesystem = found.filesystem if found and mounted else config.filesystem or ""
    below = host.disk_below(Path(config.directory)) if mounted else None
    return Plan(
        periodic=(
            FilesystemProbe(
                config,
                workload,
                device_class=config.device_class or filesystem or "unknown",
                filesystem=filesystem,
                device=below.name if below else "",
                roots=host.roots,
            ),
        )
    )


def look_at(directory: Path, expected: str | None, *, run: Run, roots: Roots) -> Mount:
    """The mount that ``directory`` is on, once it has answered.

    Raises :class:`ProbeRefused`: ``mount-dead`` if it does not answer, ``missing`` if it can't be opened, and
    ``not-mounted`` if ``directory`` is on another file system than expected: a probe must not fill the root disk
    because its target is not mounted.
    """
    completed = run.runner.run(
        argv_of("plumbline.probes.filesystem.mount_look", str(directory)),
        timeout_s=LOOK_WITHIN_S,
        keep_fds=run.keep_fds,
    )
    refuse_if_stopped(completed.cancelled)
    if completed.timed_out:
        by_name = _mount_by_name(str(directory), roots)
        kind = f" ({by_name.filesystem} on {by_name.mount_point})" if by_name else ""
        raise ProbeRefused(
            "mount-dead",
            f"{directory}: its file system{kind} does not answer within {LOOK_WITHIN_S:g} s;"
            " see the kernel's log and its server, or unmount it with umount -l",
        )
    try:
        answer = parse_answer(completed.stdout, MountAnswer, source="looking at the mount")
    except ParseError as error:
        raise ProbeRefused("mount-dead", f"{directory}: {last_line(completed) or error}; see the log") from error
    if answer.errno in DEAD:
        raise ProbeRefused(
            "mount-dead", f"{directory}: {answer.error}; mount it anew: umount -l, then mount, and look at its server"
        )
    if answer.mount_id is None:
        raise ProbeRefused("missing", f"{directory}: {answer.error}; create the parent directory first")
    mount = next((each for each in own_mounts(roots) if each.mount_id == answer.mount_id), None)
    if mount is None:
        raise ProbeRefused("not-mounted", f"{directory}: the kernel's list does not hold its mount; mount it here")
    if wrong := _wrong(mount, expected):
        raise ProbeRefused("not-mounted", f"{directory}: {wrong}")
    return mount


def zfs_release(version: str) -> tuple[int, int] | None:
    """Major and minor release of ``2.1.11-1`` (``/sys/module/zfs/version``)."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", version, re.ASCII)
    return (int(found[1]), int(found[2])) if found else None


def _wrong(mount: Mount, expected: str | None) -> str | None:
    """Why this is not the expected file system; ``None`` if it is."""
    if expected is not None:
        if mount.filesystem == expected:
            return None
        return f"lies on {mount.filesystem} (mounted on {mount.mount_point}), not on {expected}; mount that first"
    if mount.mount_point == "/":
        return (
            "lies on the root file system: is what should be measured not mounted?"
            f" If the root is meant, say so with filesystem: {mount.filesystem}"
        )
    return None


def _mount_by_name(directory: str, roots: Roots) -> Mount | None:
    try:
        return mount_named(directory, own_mounts(roots))
    except PlumblineError:
        return None


def _answer(completed: Completed, kind: Any, what: str) -> Any:
    """The worker's answer, or why there is none."""
    if completed.timed_out:
        hung = "; it did not even end on SIGKILL" if completed.returncode is None else ""
        return Failed(f"{what}: the file system did not let it end in time{hung}; is it hanging?", timeout=True)
    try:
        return parse_answer(completed.stdout, kind, source=what)
    except ParseError as error:
        return Failed(f"{what}: {last_line(completed) or error} (exit status {completed.returncode})")
