"""One bounded fio run of one catalogue workload, in files inside a guarded directory.

Order: check that fio is installed and that the directory is ours; open the files, fill incomplete ones, measure, and
leave only the files for the next run. The engine takes the locks and checks the gates before that.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from plumbline.config.workloads import BlockWorkload
from plumbline.core.isolated import argv_of
from plumbline.core.process import Completed
from plumbline.core.proofs import Opened
from plumbline.core.storage_names import MARK as STORAGE
from plumbline.errors import FileRefused, ParseError, ProbeRefused
from plumbline.probes.fio.fio_files import is_full
from plumbline.probes.fio.fio_job import FILE, JOB, PARTIAL, REPORT, FioPlan, RunPlan, layout_pace, measure_argv
from plumbline.probes.fio.fio_output import REPORT_MAX_BYTES, Figures, FioReport, parse_report, split_notes
from plumbline.probes.run.child_task import Failed, Refused, parse_answer
from plumbline.probes.run.guard import MARK, ProbeDirectory, is_marked, prepare_directory, refused_by
from plumbline.probes.run.model import Progress, Run
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.tool import FIO, Tool, first_line, refuse_if_stopped

_EARLIER = re.compile(rf"{re.escape(REPORT)}|{re.escape(PARTIAL)}\.[0-9]{{1,4}}")
_FILE = re.compile(rf"{re.escape(FILE)}\.([0-9]{{1,4}})")
_OPEN_FILE = re.compile(r"/proc/self/fd/([0-9]+)")

Ending = tuple[Outcome, str, FioReport | None]  # How a run ended: outcome, message, and the report if there is one


def run_fio(plan: FioPlan, run: Run, tool: Tool = FIO) -> ProbeResult:
    """Run ``plan`` once. Raises :class:`ProbeRefused` if it must not run or was stopped (``tool-missing``, the guard's
    reasons, ``stopped``). A run that started and failed returns a result with its outcome and message."""
    version = tool.version(run.runner)
    with prepare_directory(
        plan.directory,
        size_bytes=plan.total_bytes,
        files=plan.files,
        direct=plan.workload.direct,
        below=STORAGE if plan.in_storage else None,
    ) as directory:
        started = run.clock()
        files = _Files(plan, run, directory)
        try:
            ending = files.measure()
        except FileRefused as error:
            raise refused_by(error, str(plan.directory)) from error
        except OSError as error:
            where = plan.directory / os.fsdecode(error.filename or "")
            ending = Outcome.FAILURE, f"{where}: {error.strerror}", None
    return result_of(plan, version, started, files.spent_s, ending)


def result_of(plan: RunPlan, version: str, started: float, duration_s: float, ending: Ending) -> ProbeResult:
    outcome, message, report = ending
    return ProbeResult(
        probe=plan.probe,
        layer=plan.workload.layer,
        device_class=plan.device_class,
        workload=plan.workload.id,
        config_hash=plan.config_hash,
        tool="fio",
        tool_version=version,
        started=started,
        duration=duration_s,
        outcome=outcome,
        operations=tuple(operations_of(plan.workload, report)) if report and outcome is Outcome.SUCCESS else (),
        message=message,
    )


def remove_surplus(plan: FioPlan) -> None:
    """Remove data files of jobs that the plan no longer has, and what earlier releases left behind. Called once after a
    start, not in each run: another probe of the directory may have more jobs, and would have to rewrite its files every
    time. Raises :class:`ProbeRefused`."""
    if not is_marked(plan.directory):
        return
    with prepare_directory(plan.directory, size_bytes=0, direct=False) as directory:
        for name in directory.files.names():
            number = _FILE.fullmatch(name)
            if _EARLIER.fullmatch(name) or (number and int(number[1]) >= plan.workload.jobs):
                with contextlib.suppress(FileRefused, OSError):  # files that are not ours or can't be removed stay
                    directory.files.remove(name, MARK)


class _LaidOut(msgspec.Struct, frozen=True, tag_field="kind", tag="done"):
    """The final answer of :mod:`.fio_files`."""


@dataclass(slots=True)
class _Files:
    """The files of one run in one open directory: opened, filled, measured; only complete ones are kept."""

    plan: FioPlan
    run: Run
    directory: ProbeDirectory
    spent_s: float = 0.0
    hangs: bool = False

    def measure(self) -> Ending:
        plan = self.plan
        with contextlib.ExitStack() as stack:
            fds: dict[int, str] = {}
            for name in plan.files:
                fd = self.directory.open(name)
                stack.callback(self._close, fd, name)
                fds[fd] = name
            if not all(is_full(fd, plan.file_size) for fd in fds):
                outcome, message = self._lay_out(fds)
                if outcome is not Outcome.SUCCESS:
                    return outcome, message, None
                if self.spent_s + plan.runtime_s >= plan.timeout_s:
                    return Outcome.TIMEOUT, "laying out the files took the whole timeout; the next run measures", None
            self.run.progress(Progress("measuring", lasts_s=plan.runtime_s))
            left_s = plan.timeout_s - self.spent_s
            took_s, ending = measure(lambda report: measure_argv(plan, tuple(fds), report), plan, self.run, fds, left_s)
            self.spent_s += took_s
        return ending

    def _lay_out(self, fds: Mapping[int, str]) -> tuple[Outcome, str]:
        plan, what = self.plan, "laying out the files"
        self.run.progress(Progress(f"writing {plan.total_bytes >> 20} MiB to read and overwrite"))
        arguments = map(str, (plan.directory, plan.file_size, layout_pace(plan), *fds))
        completed = self.run.runner.run(
            argv_of("plumbline.probes.fio.fio_files", *arguments),
            timeout_s=plan.timeout_s,
            keep_fds=(*self.run.keep_fds, *fds),
        )
        self.spent_s += completed.duration_s
        self.hangs = completed.returncode is None
        refuse_if_stopped(completed.cancelled)
        outcome, message = judge(completed, what, plan.timeout_s)
        if outcome is not Outcome.SUCCESS:
            return outcome, message
        answer: _LaidOut | Refused | Failed
        try:
            answer = parse_answer(completed.stdout, _LaidOut | Refused | Failed, source=what)
        except ParseError as error:
            return Outcome.FAILURE, str(error)
        if isinstance(answer, Refused) and answer.reason != "io-error":
            raise ProbeRefused(answer.reason, answer.message)
        if isinstance(answer, Refused | Failed):
            return Outcome.FAILURE, f"{what}: {answer.message}"
        return outcome, message

    def _close(self, fd: int, name: str) -> None:
        """Close a file, and remove it if incomplete: a layout that failed or was ended frees its space."""
        try:
            if not self.hangs and not is_full(fd, self.plan.file_size):
                with contextlib.suppress(FileRefused, OSError):
                    self.directory.files.remove(name, Opened(fd))
        finally:
            os.close(fd)


def measure(
    argv: Callable[[str], Sequence[str]], plan: RunPlan, run: Run, files: Mapping[int, str], left_s: float
) -> tuple[float, Ending]:
    """Run fio on open ``files`` (descriptor → display name), with its report in memory: ``argv`` is called with the
    report's path. fio has ``left_s`` seconds of the plan's timeout. Returns the seconds it took and how it ended."""
    report_fd = os.memfd_create("plumbline-fio")
    try:
        completed = run.runner.run(
            argv(f"/proc/self/fd/{report_fd}"), timeout_s=left_s, keep_fds=(*run.keep_fds, *files, report_fd)
        )
        refuse_if_stopped(completed.cancelled)
        written = os.pread(report_fd, REPORT_MAX_BYTES, 0)
    finally:
        os.close(report_fd)

    def named(text: str) -> str:
        return _OPEN_FILE.sub(lambda match: files.get(int(match[1]), match[0]), text)

    outcome, message = judge(completed, "fio", plan.timeout_s, split_notes(written))
    try:
        report = parse_report(written, job=JOB, source="fio")
    except ParseError as error:
        if not message:
            outcome, message = Outcome.FAILURE, str(error)
        return completed.duration_s, (outcome, named(message), None)
    if outcome is Outcome.SUCCESS:
        outcome, message = judge_report(report, plan.workload)
    return completed.duration_s, (outcome, named(message), report)


def judge(completed: Completed, what: str, timeout_s: float, notes: Sequence[str] = ()) -> tuple[Outcome, str]:
    """Outcome and message from a command's exit; success has no message."""
    if completed.timed_out:
        hung = (
            "; it did not even end on SIGKILL: the device below hangs, see the kernel's log"
            if completed.returncode is None
            else f"; is the device slow, or the timeout of {timeout_s:g} s too short?"
        )
        return Outcome.TIMEOUT, f"{what}: not finished in time{hung}"
    if completed.truncated:
        return Outcome.FAILURE, f"{what}: wrote too much output and was stopped; first line: {first_line(completed)}"
    if completed.returncode != 0:
        reason = next(iter(notes), "") or first_line(completed)
        status = completed.returncode
        how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        return Outcome.FAILURE, f"{what}: {reason.removeprefix('fio: ') or 'no message'} ({how})"
    return Outcome.SUCCESS, ""


def judge_report(report: FioReport, workload: BlockWorkload) -> tuple[Outcome, str]:
    if report.error:
        # fio can report an error of a job and exit with 0
        reason = report.notes[0] if report.notes else os.strerror(report.error)
        return Outcome.FAILURE, f"fio: {reason.removeprefix('fio: ')}"
    if not all(_of(report, name) for name in workload.operations):
        return Outcome.FAILURE, "fio finished without a single operation; give it a longer runtime"
    return Outcome.SUCCESS, ""


def operations_of(workload: BlockWorkload, report: FioReport) -> Iterator[OperationResult]:
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
                rates=figures.rates,
            )


def _of(report: FioReport, operation: str) -> Figures | None:
    return report.read if operation == "read" else report.write
