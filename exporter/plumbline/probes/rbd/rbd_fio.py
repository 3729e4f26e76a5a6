"""fio's rbd engine on an image of our own: latency with percentiles, as a client of librbd sees it.

https://fio.readthedocs.io/en/latest/fio_doc.html (ioengine=rbd). A workload's ``direct`` means librbd's cache off, see
``rbd_image.py``; a write then returns when it is on stable media in every replica, so ``dsync`` adds nothing.
Rate-limited runs and percentiles are as in ``fio_job.py``.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from plumbline.config.probes.ceph import RbdFioConfig
from plumbline.config.workloads import BlockWorkload, Pattern
from plumbline.core.process import Completed
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.disk.fio import judge_report, operations_of
from plumbline.probes.disk.fio_job import JOB, PERCENTILES, LatencySearch, rate_options
from plumbline.probes.disk.fio_output import REPORT_MAX_BYTES, FioReport, parse_report, split_notes
from plumbline.probes.identify import identify
from plumbline.probes.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.rbd.rbd_commands import Commands, words
from plumbline.probes.rbd.rbd_image import ImagePlan, fio_argv, lay_out, prepare
from plumbline.probes.result import Outcome, ProbeResult
from plumbline.probes.tool import FIO, RBD, Tool


@dataclass(frozen=True, slots=True)
class RbdFioPlan:
    """The final parameters of one probe's run. Times in seconds."""

    workload: BlockWorkload
    image: ImagePlan
    device_class: str
    runtime_s: float
    timeout_s: float
    rate_iops: int | None = None
    """Limit on each job's operations per second."""
    search: LatencySearch | None = None


def measure_argv(plan: RbdFioPlan) -> tuple[str, ...]:
    """fio's command line for the measured run; its report goes to standard output."""
    workload = plan.workload
    return fio_argv(
        plan.image,
        JOB,
        "--group_reporting=1",
        f"--size={plan.image.size_bytes}",
        f"--numjobs={workload.jobs}",
        f"--rw={workload.pattern.value}",
        f"--bs={workload.block_size}",
        f"--iodepth={workload.iodepth}",
        *((f"--rwmixread={workload.rwmix_read}",) if workload.pattern is Pattern.RANDRW else ()),
        *rate_options(workload, plan.rate_iops),
        "--time_based=1",
        f"--runtime={max(1, round(plan.runtime_s * 1000))}ms",
        *(() if "write" in workload.operations else ("--readonly",)),
        "--randrepeat=0",
        *(plan.search.options() if plan.search else ()),
        *PERCENTILES,
        "--output-format=json+",
    )


@dataclass(frozen=True, slots=True)
class RbdFioProbe:
    """The periodic probe of one workload on its image."""

    config: RbdFioConfig
    plan: RbdFioPlan
    tool: Tool = field(default=FIO, compare=False)
    rbd: Tool = field(default=RBD, compare=False)

    heavy = True

    @property
    def identity(self) -> Identity:
        """See :class:`~plumbline.probes.model.Identity`."""
        plan = self.plan
        return identify(
            self.config,
            plan.workload,
            device_class=plan.device_class,
            tool="fio",
            rate_iops=plan.rate_iops,
            cluster=True,
        )

    def run(self, run: Run) -> ProbeResult:
        """Prepare the image, lay out what is missing, measure."""
        plan, identity = self.plan, self.identity
        started = run.clock()
        commands = Commands(plan.image.access, run, timeout_s=plan.timeout_s)
        version = self.tool.version(run.runner)
        self.rbd.version(run.runner, limit_s=commands.left_s)
        done = prepare(plan.image, commands, run.progress)
        outcome, message, report = _measure(plan, commands, run, done)
        return identity.result(
            tool_version=version,
            started=started,
            duration=plan.timeout_s - commands.left_s,
            outcome=outcome,
            operations=tuple(operations_of(plan.workload, report)) if report and outcome is Outcome.SUCCESS else (),
            message=message,
        )

    def clean_up(self, run: Run) -> None:
        """Only the image outlives a run, and the next run uses it; `plumbline ceph remove` removes it."""


def build(config: RbdFioConfig, workload: BlockWorkload, host: Host) -> Plan:
    """One probe on one image of this host."""
    image = ImagePlan(
        access=CephAccess.of(host.ceph),
        pool=config.pool or host.ceph.rbd_pool,
        probe=config.name,
        host=socket.gethostname(),
        size_bytes=int(config.image_size),
        cache=not workload.direct,
    )
    plan = RbdFioPlan(
        workload=workload,
        image=image,
        device_class=config.device_class or host.pool_class(image.pool) or "unknown",
        runtime_s=float(config.runtime),
        timeout_s=float(config.timeout),
        rate_iops=config.rate_iops,
    )
    return Plan(periodic=(RbdFioProbe(config, plan),))


def _measure(plan: RbdFioPlan, commands: Commands, run: Run, done: int) -> tuple[Outcome, str, FioReport | None]:
    in_time, message = lay_out(plan.image, commands, run.progress, done=done, reserve_s=plan.runtime_s)
    if message:
        return Outcome.TIMEOUT if in_time else Outcome.FAILURE, message, None
    if commands.left_s <= plan.runtime_s:
        return Outcome.TIMEOUT, "preparing the image took all the time; the next run measures", None
    run.progress(Progress("measuring"))
    completed = commands.run(measure_argv(plan), max_output_bytes=REPORT_MAX_BYTES)
    return _judge(completed, plan)


def _judge(completed: Completed, plan: RbdFioPlan) -> tuple[Outcome, str, FioReport | None]:
    """How fio ended, and its report if it is complete."""
    said = words(completed)
    if b"engine rbd not loadable" in completed.stderr:
        raise ProbeRefused("tool-missing", "this fio has no rbd engine; install it (Fedora: fio-engine-rbd)")
    if completed.timed_out:
        hung = "; are the pool's OSDs up, and the pool not full?"
        return Outcome.TIMEOUT, f"fio: not finished in {plan.timeout_s:g} s{hung}", None
    if completed.truncated:
        return Outcome.FAILURE, f"fio: ended for writing too much, first: {said}", None
    if completed.returncode != 0:
        notes = split_notes(completed.stdout)
        failed = next((note for note in notes if note.startswith("fio:")), said).removeprefix("fio: ")
        return Outcome.FAILURE, f"fio: {failed or 'no message'} (exit status {completed.returncode})", None
    try:
        report = parse_report(completed.stdout, job=JOB)
    except ParseError as error:
        return Outcome.FAILURE, str(error), None
    return *judge_report(report, plan.workload), report
