"""One bounded fio run of one catalogue workload, in files inside a guarded directory.

The order is: is fio there, is the directory ours; then lay out what files are missing, measure, read the report, and
leave nothing but the data files for the next run. Locks and gates come before, and are the engine's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.errors import ParseError, ProbeRefused
from plumbline.probe_config import FioConfig
from plumbline.probes.fio_job import FILE, JOB, PARTIAL, REPORT, FioPlan, layout_argv, measure_argv
from plumbline.probes.fio_output import REPORT_MAX_BYTES, Figures, FioReport, parse_report, split_notes
from plumbline.probes.guard import ProbeDirectory, prepare_directory
from plumbline.probes.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.runner import Completed, Runner
from plumbline.visible import excerpt
from plumbline.workloads import BlockWorkload

__all__ = ["FioPlan", "FioTool", "run_fio"]


class FioTool:
    """Where fio is and which version, asked once and again only when the program file changes."""

    def __init__(self, *, which: Callable[[str], str | None] = shutil.which) -> None:
        self._which = which
        self._known: tuple[str, int, str] | None = None

    def version(self, runner: Runner) -> str:
        """``3.33``; refuses (``tool-missing``) where there is no fio that runs."""
        path = self._which("fio")
        if path is None:
            raise ProbeRefused("tool-missing", "fio is not installed; on Debian: apt-get install fio")
        changed = Path(path).stat().st_mtime_ns
        if self._known is None or self._known[:2] != (path, changed):
            completed = runner.run(("fio", "--version"), timeout_s=10.0)
            refuse_if_stopped(completed)
            version = completed.stdout.decode("utf-8", "replace").strip().removeprefix("fio-")
            if completed.returncode != 0 or not version:
                said = _first_line(completed) or f"exit status {completed.returncode}"
                said = "no answer" if completed.timed_out else said
                raise ProbeRefused("tool-missing", f"{path} --version failed: {said}; reinstall fio")
            self._known = (path, changed, version)
        return self._known[2]


@dataclass(frozen=True, slots=True)
class FioProbe:
    """The periodic probe of one fio workload in a directory."""

    config: FioConfig
    plan: FioPlan
    device: str
    """The disk below, empty where it is not known."""
    tool: FioTool = field(default_factory=FioTool, compare=False)

    heavy = True

    @property
    def identity(self) -> Identity:
        """See :class:`.model.Identity`."""
        plan = self.plan
        return Identity(
            probe=plan.probe,
            kind="fio",
            layer=plan.workload.layer,
            device_class=plan.device_class,
            workload=plan.workload.id,
            operations=plan.workload.operations,
            config_hash=plan.config_hash,
            tool="fio",
            device=self.device,
            rate_iops=plan.rate_iops,
        )

    def run(self, run: Run) -> ProbeResult:
        """See :func:`run_fio`."""
        return run_fio(
            self.plan,
            runner=run.runner,
            tool=self.tool,
            clock=run.clock,
            keep_fds=run.keep_fds,
            progress=run.progress,
        )

    def clean_up(self, run: Run) -> None:
        """Each run cleans up after the one before; the data files are for the next."""


def build(config: FioConfig, host: Host) -> Plan:
    """A probe in one directory."""
    workload = host.catalogue.of_kind(
        BlockWorkload, config.workload, where="configuration", key=f"{config.name}.workload"
    )
    directory = Path(config.directory) if config.directory else host.storage / config.name
    below = host.disk_below(directory)
    device_class = config.device_class or (below and below.device_class) or "unknown"
    plan = FioPlan.of(config, workload, directory=directory, device_class=device_class)
    return Plan(periodic=(FioProbe(config, plan, below.name if below else ""),))


def run_fio(
    plan: FioPlan,
    *,
    runner: Runner,
    tool: FioTool,
    clock: Callable[[], float],
    keep_fds: Sequence[int] = (),
    progress: Callable[[Progress], None] = lambda _progress: None,
) -> ProbeResult:
    """Run ``plan`` once and say how it went. ``clock`` is Unix time; ``keep_fds`` stay open in fio (the locks').

    Raises :class:`ProbeRefused` when it must not run or was stopped (``tool-missing``, the guard's reasons,
    ``stopped``). A run that began and went wrong is a result with its outcome and message.
    """
    version = tool.version(runner)
    with prepare_directory(plan.directory, size_bytes=plan.total_bytes, direct=plan.workload.direct) as directory:
        started = clock()
        run = _Run(plan, runner, directory, tuple(keep_fds), progress)
        try:
            outcome, message, report = run.whole()
        except OSError as error:
            where = plan.directory / os.fsdecode(error.filename or "")
            outcome, message, report = Outcome.FAILURE, f"{where}: {error.strerror}", None
        finally:
            run.clean_up()
    return ProbeResult(
        probe=plan.probe,
        layer=plan.workload.layer,
        device_class=plan.device_class,
        workload=plan.workload.id,
        config_hash=plan.config_hash,
        tool="fio",
        tool_version=version,
        started=started,
        duration=run.spent_s,
        outcome=outcome,
        operations=tuple(operations_of(plan.workload, report)) if report and outcome is Outcome.SUCCESS else (),
        message=message,
    )


class _Run:
    """One run in one open directory: lay out what is missing, measure, leave only the data files."""

    def __init__(
        self,
        plan: FioPlan,
        runner: Runner,
        directory: ProbeDirectory,
        keep_fds: tuple[int, ...],
        progress: Callable[[Progress], None],
    ) -> None:
        self._plan, self._runner, self._directory, self._keep_fds = plan, runner, directory, keep_fds
        self._progress = progress
        self.spent_s = 0.0

    def whole(self) -> tuple[Outcome, str, FioReport | None]:
        """Outcome, message, and the report if there is one."""
        self.clean_up()  # what an earlier daemon left behind when it was killed
        if not all(self._usable(number) for number in range(self._plan.workload.jobs)):
            self._progress(Progress(f"writing {self._plan.total_bytes >> 20} MiB to read and overwrite"))
            completed = self._command(layout_argv(self._plan))
            outcome, message = judge(completed, "laying out the files", self._plan.timeout_s)
            if outcome is not Outcome.SUCCESS:
                return outcome, message, None
            self._adopt()
            if self.spent_s + self._plan.runtime_s >= self._plan.timeout_s:
                return Outcome.TIMEOUT, "laying out the files took all the time; the next run measures", None
        self._progress(Progress("measuring", lasts_s=self._plan.runtime_s))
        completed = self._command(measure_argv(self._plan))
        written = self._read_report()
        outcome, message = judge(completed, "fio", self._plan.timeout_s, split_notes(written))
        try:
            report = parse_report(written, job=JOB, source=REPORT)
        except ParseError as error:
            return (outcome, message, None) if message else (Outcome.FAILURE, str(error), None)
        if outcome is Outcome.SUCCESS:
            outcome, message = judge_report(report, self._plan.workload)
        return outcome, message, report

    def clean_up(self) -> None:
        """Remove the report and half-laid files; the data files stay for the next run, which also cleans up again."""
        numbers = range(self._plan.workload.jobs)
        for name in (REPORT, *(f"{PARTIAL}.{number}" for number in numbers)):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=self._directory.fd)

    def _command(self, argv: Sequence[str]) -> Completed:
        completed = self._runner.run(
            argv,
            timeout_s=self._plan.timeout_s - self.spent_s,
            cwd_fd=self._directory.fd,
            keep_fds=self._keep_fds,
        )
        self.spent_s += completed.duration_s
        refuse_if_stopped(completed)
        return completed

    def _usable(self, number: int) -> bool:
        """Whether the data file is there and long enough. A longer one is used in part: no need to write it anew."""
        name = f"{FILE}.{number}"
        try:
            found = os.stat(name, dir_fd=self._directory.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
            raise ProbeRefused(
                "not-ours",
                f"{self._directory.path / name}: is not a plain file of this user with one name; move it away",
            )
        return found.st_size >= self._plan.file_size

    def _adopt(self) -> None:
        """Only complete files get the final name, so a layout that was killed is never taken for one."""
        for number in range(self._plan.workload.jobs):
            fd = self._directory.fd
            os.rename(f"{PARTIAL}.{number}", f"{FILE}.{number}", src_dir_fd=fd, dst_dir_fd=fd)

    def _read_report(self) -> bytes:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(REPORT, flags, dir_fd=self._directory.fd)
        except FileNotFoundError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(REPORT_MAX_BYTES)


def judge(completed: Completed, what: str, timeout_s: float, notes: Sequence[str] = ()) -> tuple[Outcome, str]:
    """Outcome and message from how a command ended; success has no message."""
    if completed.timed_out:
        hung = (
            "; it did not even end on SIGKILL: the device below hangs, see the kernel's log"
            if completed.returncode is None
            else f"; is the device slow, or the timeout of {timeout_s:g} s too short?"
        )
        return Outcome.TIMEOUT, f"{what}: not finished in time{hung}"
    if completed.truncated:
        return Outcome.FAILURE, f"{what}: ended for writing too much, first: {_first_line(completed)}"
    if completed.returncode != 0:
        said = next(iter(notes), "") or _first_line(completed)
        status = completed.returncode
        how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        return Outcome.FAILURE, f"{what}: {said.removeprefix('fio: ') or 'no message'} ({how})"
    return Outcome.SUCCESS, ""


def judge_report(report: FioReport, workload: BlockWorkload) -> tuple[Outcome, str]:
    """The same from the report of a command that ended well."""
    if report.error:
        # fio can report an error of a job and exit with 0
        said = report.notes[0] if report.notes else os.strerror(report.error)
        return Outcome.FAILURE, f"fio: {said.removeprefix('fio: ')}"
    if not all(_of(report, name) for name in workload.operations):
        return Outcome.FAILURE, "fio finished without one operation; give it a longer runtime"
    return Outcome.SUCCESS, ""


def _first_line(completed: Completed) -> str:
    """The first line a person can use, of stderr before stdout."""
    for output in (completed.stderr, completed.stdout):
        for line in output.decode("utf-8", "replace").splitlines():
            if text := line.strip():
                return excerpt(text)
    return ""


def refuse_if_stopped(completed: Completed) -> None:
    """A command that was ended from outside is no result."""
    if completed.cancelled:
        raise ProbeRefused("stopped", "the daemon is ending; the next start runs it again")


def operations_of(workload: BlockWorkload, report: FioReport) -> Iterator[OperationResult]:
    """What a successful run measured."""
    for name in workload.operations:
        figures = _of(report, name)
        if figures is not None:
            latency = figures.latency.statistics if figures.latency else {}
            bins = figures.latency.bins if figures.latency else ()
            yield OperationResult(
                operation=name,
                iops=figures.iops,
                throughput=figures.throughput,
                latency=latency,
                bins=bins,
                queue_depth=report.latency_depth,
            )


def _of(report: FioReport, operation: str) -> Figures | None:
    return report.read if operation == "read" else report.write
