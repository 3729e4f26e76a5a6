"""A mounted file system of any kind: fio in a directory on it, or files created, examined and removed.

The daemon itself never touches the file system: first one process checks, with a short time limit, whether the mount
exists and answers at all; then another does the work, and is killed with its process group if it hangs.
"""

from pathlib import Path
from typing import Any

import msgspec

from plumbline import __version__
from plumbline.config.probes.filesystem import FilesystemConfig
from plumbline.config.workloads import BlockWorkload, Metadata
from plumbline.core.isolated import argv_of, last_line
from plumbline.core.process import Completed
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.filesystem.filesystem_worker import Done, Task
from plumbline.probes.filesystem.mount_look import DEAD
from plumbline.probes.filesystem.mount_place import ADVICE, BUFFERED, wrong_place
from plumbline.probes.filesystem.place import mount_by_name, place_of
from plumbline.probes.filesystem.zfs import ignores_direct
from plumbline.probes.fio.fio_job import FioPlan
from plumbline.probes.run.child_task import Failed, Refused, Timed, parse_answer, timed_result
from plumbline.probes.run.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.run.result import ProbeResult
from plumbline.probes.run.tool import refuse_if_stopped
from plumbline.sources.kernel.mounts import Mount, own_mounts, shows_root

LOOK_WITHIN_S = 5.0  # A mount that answers does so within milliseconds, over the worst network within a second
# for the worker around the measurement, beyond the probe's timeout
_MARGIN_S = 5.0
CEPH_FILESYSTEMS = frozenset({"ceph", "fuse.ceph", "fuse.ceph-fuse"})  # These load the Ceph cluster, so its gates apply


class MountAnswer(msgspec.Struct, frozen=True):
    """The output of :mod:`.mount_look`: which mount it is, or the error instead."""

    mount_id: int | None = None
    errno: int = 0
    error: str = ""


class FilesystemProbe(msgspec.Struct, frozen=True):
    """The periodic probe of one workload in one directory. ``roots``: for the kernel's own files."""

    config: FilesystemConfig
    workload: BlockWorkload | Metadata
    device_class: str
    filesystem: str  # The type mounted during planning; if it was not mounted, the configured one or empty
    device: str
    roots: Roots

    heavy = True

    @property
    def identity(self) -> Identity:
        block = isinstance(self.workload, BlockWorkload)
        return Identity.of(
            self.config,
            self.workload,
            device_class=self.device_class,
            tool="fio" if block else "plumbline",
            device=self.device,
            rate_iops=self.config.rate_iops if block else None,
            cluster=self.filesystem in CEPH_FILESYSTEMS,
        )

    def run(self, run: Run) -> ProbeResult:
        """See :class:`.model.PeriodicProbe`; its own reasons: ``mount-dead``, ``not-mounted``, ``no-direct-io``."""
        run.progress(Progress("checking that the mount responds"))
        mount, workload = self._check_mount(run), self.workload
        if isinstance(workload, BlockWorkload):
            if workload.direct:
                self._check_zfs(mount)
            run.progress(Progress("fio"))
            started = run.clock()
            completed, answer = self._fio(run, workload)
            if isinstance(answer, Done) and answer.result is not None:
                return answer.result
            failure = answer if isinstance(answer, Failed) else Failed("fio: no result")
            return timed_result(self.identity, failure, completed, started=started, version="", count=0)
        run.progress(Progress(f"creating, examining and removing {workload.files} files"))
        started = run.clock()
        completed, times = self._metadata(run, workload)
        return timed_result(self.identity, times, completed, started=started, version=__version__, count=workload.files)

    def clean_up(self, run: Run) -> None:
        """Remove an earlier run's files, if the mount exists and answers."""
        self._check_mount(run)
        if isinstance(self.workload, Metadata):
            self._metadata(run, Metadata(id="", layer="", files=0))
        else:
            self._fio(run, self.workload, clean_up=True)

    def _fio(self, run: Run, workload: BlockWorkload, *, clean_up: bool = False) -> tuple[Completed, Done | Failed]:
        config = self.config
        plan = FioPlan.of(config, workload, directory=Path(config.directory), device_class=self.device_class)
        task = Task(plan, run.keep_fds, clean_up).encode()
        argv = argv_of("plumbline.probes.filesystem.filesystem_worker", task, site_packages=True)
        return self._work(run, argv, Done | Refused | Failed, "fio")

    def _metadata(self, run: Run, workload: Metadata) -> tuple[Completed, Timed | Failed]:
        numbers = (str(workload.files), str(workload.file_size), f"{float(self.config.timeout):g}")
        argv = argv_of("plumbline.probes.filesystem.metadata_worker", self.config.directory, *numbers)
        return self._work(run, argv, Timed | Refused | Failed, "creating and removing files")

    def _work(self, run: Run, argv: tuple[str, ...], kind: Any, what: str) -> tuple[Completed, Any]:
        """The worker's answer of the given kind, or why there is none; a refusal is raised."""
        completed = run.runner.run(argv, timeout_s=float(self.config.timeout) + _MARGIN_S, keep_fds=run.keep_fds)
        refuse_if_stopped(completed.cancelled)
        if completed.timed_out:
            unkillable = "; it did not even end on SIGKILL" if completed.returncode is None else ""
            message = f"{what}: the file system kept it from ending in time{unkillable}; does the mount hang?"
            return completed, Failed(message, timeout=True)
        try:
            answer = parse_answer(completed.stdout, kind, source=what)
        except ParseError as error:
            return completed, Failed(f"{what}: {last_line(completed) or error} (exit status {completed.returncode})")
        if isinstance(answer, Refused):
            message = answer.message
            if answer.reason == "no-direct-io":
                message = f"{message.partition(';')[0]}; {BUFFERED}"
            raise ProbeRefused(answer.reason, message)
        return completed, answer

    def _check_mount(self, run: Run) -> Mount:
        """The mount that the directory is on, once it has answered. Raises :class:`ProbeRefused`: ``mount-dead`` if it
        does not answer, ``missing`` if it can't be opened, and ``not-mounted`` if the directory is on another file
        system than expected: a probe must not fill the root disk because its target is not mounted."""
        directory = self.config.directory
        completed = run.runner.run(
            argv_of("plumbline.probes.filesystem.mount_look", directory),
            timeout_s=LOOK_WITHIN_S,
            keep_fds=run.keep_fds,
        )
        refuse_if_stopped(completed.cancelled)
        if completed.timed_out:
            by_name = mount_by_name(directory, self.roots)
            kind = f" ({by_name.filesystem} on {by_name.mount_point})" if by_name else ""
            raise ProbeRefused(
                "mount-dead",
                f"{directory}: its file system{kind} does not answer within {LOOK_WITHIN_S:g} s;"
                " see the kernel log and its server, or unmount it with umount -l",
            )
        try:
            answer = parse_answer(completed.stdout, MountAnswer, source="checking the mount")
        except ParseError as error:
            raise ProbeRefused("mount-dead", f"{directory}: {last_line(completed) or error}; see the log") from error
        if answer.errno in DEAD:
            raise ProbeRefused("mount-dead", f"{directory}: {answer.error}; {ADVICE['mount-dead']}")
        if answer.mount_id is None:
            raise ProbeRefused("missing", f"{directory}: {answer.error}; create the parent directory first")
        mounts = own_mounts(self.roots)
        mount = next((mount for mount in mounts if mount.mount_id == answer.mount_id), None)
        if mount is None:
            raise ProbeRefused("not-mounted", f"{directory}: its mount is not visible to Plumbline; mount it here")
        root = shows_root(mount, mounts)
        if wrong := wrong_place(mount.filesystem, mount.mount_point, self.config.filesystem, root=root):
            raise ProbeRefused("not-mounted", f"{directory}: {wrong}")
        return mount

    def _check_zfs(self, mount: Mount) -> None:
        if mount.filesystem == "zfs" and (zfs := ignores_direct(self.roots.sys)):
            raise ProbeRefused("no-direct-io", f"{self.config.directory}: {zfs} ignores O_DIRECT; {BUFFERED}")


def build(config: FilesystemConfig, workload: BlockWorkload | Metadata, host: Host) -> Plan:
    """A probe in one directory."""
    filesystem, device, _ = place_of(Path(config.directory), config.filesystem, host)
    probe = FilesystemProbe(
        config,
        workload,
        device_class=config.device_class or filesystem or "unknown",
        filesystem=filesystem,
        device=device,
        roots=host.roots,
    )
    return Plan(periodic=(probe,))
