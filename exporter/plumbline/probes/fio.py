"""One bounded fio run of one catalogue workload, in files inside a guarded directory.

fio's options: https://fio.readthedocs.io/en/latest/fio_doc.html. They are rendered from a typed plan and never
taken from a user. What is chosen here, and why:

- ``thread``: fio's job *processes* call ``setsid`` and would escape the kill of the process group.
- ``ioengine``: psync for one operation in flight (the plain system call, least overhead), libaio above.
- ``overwrite``, files laid out and flushed before the first run and then reused: every measured write goes to blocks
  that exist. fio by itself only *allocates* files for a write job, and the first write to an allocated but
  unwritten block costs a file system transaction. ``allow_file_create=0``: a run never makes a file of its own.
- No ``io_submit_mode=offload`` for a rate-capped workload. It is meant against coordinated omission (a stall delays
  the submissions behind it, so that they are never seen to wait), but it needs free queue slots for that: at queue
  depth 1, against a device throttled to a quarter of the rate, fio 3.33 gave the same 200 ms with and without,
  and with 16 slots it was another workload with 2.5 s. What it does add is a hand-over between threads: 60 % on a
  latency of 0.18 ms. A fio run states the service time of its workload; that a stall is charged for every
  arrival that fell into it is the canary's part.
- A cap is kept in even steps (fio's default), not Poisson-paced: then the IOPS of a capped run are the cap, and less
  only where the device can't hold it. Poisson pacing gave 61 for a cap of 50 in 2 s, noise that a comparison of IOPS
  would take for a change.
- No ``max_latency``: it would turn the one slow operation one wants to see as ``max`` into a failed run without
  figures. A device that answers no more is the timeout's part.
- Percentiles of ``lat`` (what the program waited) instead of ``clat``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.config import FioConfig
from plumbline.errors import ConfigError, ParseError, ProbeRefused
from plumbline.probes.fio_output import Figures, FioReport, parse_report, split_notes
from plumbline.probes.gates import Gate, HeavyLock
from plumbline.probes.guard import ProbeDirectory, prepare_directory
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.runner import Completed, Runner
from plumbline.workloads import Pattern, Sync, Workload

_JOB = "plumbline"
_REPORT = "fio.json"
_REPORT_MAX_BYTES = 8 << 20  # a report with all bins is about 100 KiB
_FILE = "fio"  # data files: fio.0, fio.1, … one a job; shared by all probes of the directory, one runs at a time
_PARTIAL = "fio-partial"
_LAYOUT_BYTES_PER_S = 32 << 20  # a pace that a disk in production hardly notices


@dataclass(frozen=True, slots=True)
class FioPlan:
    """One probe's run, fully decided. Sizes in bytes, times in seconds; ``file_size`` of each job's file."""

    probe: str
    workload: Workload
    directory: Path
    device_class: str
    runtime_s: float
    timeout_s: float
    file_size: int
    rate_iops: int | None = None
    """Cap on each job's operations per second, reads and writes together. A capped run exports its IOPS and
    throughput like any other, they are measured; but its ``config_hash`` differs from an uncapped baseline's, so
    nothing compares them with what the device can do."""

    @classmethod
    def of(cls, config: FioConfig, workload: Workload, *, directory: Path, device_class: str) -> FioPlan:
        """The plan of a configured probe; :class:`ConfigError` for a rate that fio can't be told."""
        rate = config.rate_iops
        if rate is not None and rate != int(rate):
            raise ConfigError(
                f"probe {config.name}", "fio takes whole operations per second", key="rate_iops", value=rate
            )
        return cls(
            probe=config.name,
            workload=workload,
            directory=directory,
            device_class=device_class,
            runtime_s=float(config.runtime),
            timeout_s=float(config.timeout),
            file_size=int(config.file_size) // workload.block_size * workload.block_size,
            rate_iops=None if rate is None else int(rate),
        )

    @property
    def total_bytes(self) -> int:
        """What all files take together."""
        return self.file_size * self.workload.jobs

    @property
    def ioengine(self) -> str:
        """fio's engine for this depth."""
        return "psync" if self.workload.iodepth == 1 else "libaio"

    @property
    def config_hash(self) -> str:
        """See :meth:`Workload.config_hash`."""
        return self.workload.config_hash(rate_iops=self.rate_iops)


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
            _refuse_if_stopped(completed)
            version = completed.stdout.decode("utf-8", "replace").strip().removeprefix("fio-")
            if completed.returncode != 0 or not version:
                said = _first_line(completed) or f"exit status {completed.returncode}"
                raise ProbeRefused("tool-missing", f"{path} --version failed: {said}; reinstall fio")
            self._known = (path, changed, version)
        return self._known[2]


def run_fio(
    plan: FioPlan,
    *,
    runner: Runner,
    tool: FioTool,
    lock: HeavyLock,
    clock: Callable[[], float],
    gates: Sequence[Gate] = (),
) -> ProbeResult:
    """Run ``plan`` once and say how it went. ``clock`` is Unix time; ``gates`` are asked before anything is touched.

    Raises :class:`ProbeRefused` when it must not run or was stopped (``tool-missing``, ``locked``, a gate's reason,
    the guard's reasons, ``stopped``). A run that began and went wrong is a result with its outcome and message.
    """
    version = tool.version(runner)
    with lock.hold(plan.probe) as lock_fd:
        for gate in gates:
            gate()
        with prepare_directory(plan.directory, size_bytes=plan.total_bytes, direct=plan.workload.direct) as directory:
            started = clock()
            run = _Run(plan, runner, directory, lock_fd)
            try:
                outcome, message, report = run.whole()
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
        operations=tuple(_operations(plan.workload, report)) if report and outcome is Outcome.SUCCESS else (),
        message=message,
    )


def measure_argv(plan: FioPlan) -> tuple[str, ...]:
    """fio's command line for the measured run, to be started in the probe's directory.

    File names are relative to it: fio splits a path with a colon into several files.
    """
    workload = plan.workload
    return (
        *_common(plan, _JOB, _FILE),
        f"--rw={workload.pattern.value}",
        f"--bs={workload.block_size}",
        f"--iodepth={workload.iodepth}",
        f"--direct={int(workload.direct)}",
        *(("--sync=dsync",) if workload.sync is Sync.DSYNC else ()),
        *((f"--rwmixread={workload.rwmix_read}",) if workload.pattern is Pattern.RANDRW else ()),
        *_rate(plan),
        "--time_based=1",
        f"--runtime={max(1, round(plan.runtime_s * 1000))}ms",
        *(("--overwrite=1",) if "write" in workload.operations else ("--readonly",)),
        "--allow_file_create=0",
        "--randrepeat=0",
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        "--percentile_list=50:95:99:99.9",
        "--output-format=json+",
        f"--output={_REPORT}",
    )


def layout_argv(plan: FioPlan) -> tuple[str, ...]:
    """fio's command line that writes every file once, to stable media, at a gentle pace where time allows it."""
    block = min(plan.file_size & -plan.file_size, 1 << 20)  # O_DIRECT wants the size to be a multiple
    needed = 2 * plan.total_bytes / (plan.timeout_s - plan.runtime_s)
    pace = max(_LAYOUT_BYTES_PER_S, needed) / plan.workload.jobs
    return (
        *_common(plan, "layout", _PARTIAL),
        "--rw=write",
        f"--bs={block}",
        f"--direct={int(plan.workload.direct)}",
        f"--rate={max(block, int(pace))}",
        "--end_fsync=1",
    )


def _common(plan: FioPlan, job: str, file: str) -> tuple[str, ...]:
    return (
        "fio",
        f"--name={job}",
        f"--filename_format={file}.$jobnum",
        f"--size={plan.file_size}",
        f"--numjobs={plan.workload.jobs}",
        f"--ioengine={plan.ioengine if job == _JOB else 'psync'}",
        "--thread=1",
        "--group_reporting=1",
        "--refill_buffers=1",
        "--exitall_on_error=1",
        "--allow_mounted_write=0",
        "--unlink=0",
        "--eta=never",
    )


def _rate(plan: FioPlan) -> Iterator[str]:
    if plan.rate_iops is None:
        return
    if plan.workload.pattern is Pattern.RANDRW:
        # fio caps each direction by itself; a share of 0 would mean "no cap"
        reads = min(max(1, round(plan.rate_iops * plan.workload.rwmix_read / 100)), max(1, plan.rate_iops - 1))
        yield f"--rate_iops={reads},{max(1, plan.rate_iops - reads)}"
    else:
        yield f"--rate_iops={plan.rate_iops}"


class _Run:
    """One run in one open directory: lay out what is missing, measure, leave only the data files."""

    def __init__(self, plan: FioPlan, runner: Runner, directory: ProbeDirectory, lock_fd: int) -> None:
        self._plan, self._runner, self._directory, self._lock_fd = plan, runner, directory, lock_fd
        self.spent_s = 0.0

    def whole(self) -> tuple[Outcome, str, FioReport | None]:
        """Outcome, message, and the report if there is one."""
        self.clean_up()  # what an earlier daemon left behind when it was killed
        if not all(self._usable(number) for number in range(self._plan.workload.jobs)):
            completed = self._command(layout_argv(self._plan))
            outcome, message = _judge(completed, "laying out the files", self._plan.timeout_s)
            if outcome is not Outcome.SUCCESS:
                return outcome, message, None
            self._adopt()
            if self.spent_s + self._plan.runtime_s >= self._plan.timeout_s:
                return Outcome.TIMEOUT, "laying out the files took all the time; the next run measures", None
        completed = self._command(measure_argv(self._plan))
        written = self._read_report()
        outcome, message = _judge(completed, "fio", self._plan.timeout_s, split_notes(written))
        try:
            report = parse_report(written, job=_JOB)
        except ParseError as error:
            return (outcome, message, None) if message else (Outcome.FAILURE, str(error), None)
        if outcome is Outcome.SUCCESS and report.error:
            # fio can report an error of a job and exit with 0
            said = report.notes[0] if report.notes else os.strerror(report.error)
            return Outcome.FAILURE, f"fio: {said.removeprefix('fio: ')}", report
        if outcome is Outcome.SUCCESS and not all(_of(report, name) for name in self._plan.workload.operations):
            return Outcome.FAILURE, "fio finished without one operation; give it a longer runtime", report
        return outcome, message, report

    def clean_up(self) -> None:
        """Remove the report and half-laid files; the data files stay for the next run."""
        numbers = range(self._plan.workload.jobs)
        for name in (_REPORT, *(f"{_PARTIAL}.{number}" for number in numbers)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._directory.fd)

    def _command(self, argv: Sequence[str]) -> Completed:
        completed = self._runner.run(
            argv,
            timeout_s=self._plan.timeout_s - self.spent_s,
            cwd_fd=self._directory.fd,
            keep_fds=(self._lock_fd,),
        )
        self.spent_s += completed.duration_s
        _refuse_if_stopped(completed)
        return completed

    def _usable(self, number: int) -> bool:
        """Whether the data file is there and long enough. A longer one is used in part: no need to write it anew."""
        name = f"{_FILE}.{number}"
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
            os.rename(f"{_PARTIAL}.{number}", f"{_FILE}.{number}", src_dir_fd=fd, dst_dir_fd=fd)

    def _read_report(self) -> bytes:
        try:
            descriptor = os.open(_REPORT, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory.fd)
        except FileNotFoundError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_REPORT_MAX_BYTES)


def _judge(completed: Completed, what: str, timeout_s: float, notes: Sequence[str] = ()) -> tuple[Outcome, str]:
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


def _first_line(completed: Completed) -> str:
    """The first line a person can use, of stderr before stdout."""
    for output in (completed.stderr, completed.stdout):
        for line in output.decode("utf-8", "replace").splitlines():
            if text := line.strip():
                return text[:300]
    return ""


def _refuse_if_stopped(completed: Completed) -> None:
    if completed.cancelled:
        raise ProbeRefused("stopped", "the daemon is ending; the next start runs it again")


def _operations(workload: Workload, report: FioReport) -> Iterator[OperationResult]:
    for name in workload.operations:
        figures = _of(report, name)
        if figures is not None:
            latency = figures.latency.statistics if figures.latency else {}
            yield OperationResult(operation=name, iops=figures.iops, throughput=figures.throughput, latency=latency)


def _of(report: FioReport, operation: str) -> Figures | None:
    return report.read if operation == "read" else report.write
