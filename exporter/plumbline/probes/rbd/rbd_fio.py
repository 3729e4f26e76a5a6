"""fio's rbd engine on an image of our own: latency with percentiles, as a client of librbd sees it.

https://fio.readthedocs.io/en/latest/fio_doc.html (ioengine=rbd). A workload's ``direct`` means librbd's cache off, see
``rbd_image.py``; a write then returns when it is on stable media in every replica, so ``dsync`` adds nothing.
Rate-limited runs and percentiles are as in ``fio_job.py``.
"""

from typing import ClassVar

from plumbline.config.probes.ceph import RbdFioConfig
from plumbline.config.workloads import BlockWorkload, Pattern
from plumbline.errors import ProbeRefused
from plumbline.probes.fio.fio import judge_report, operations_of
from plumbline.probes.fio.fio_job import JOB, PERCENTILES, LatencySearch, rate_options
from plumbline.probes.fio.fio_output import REPORT_MAX_BYTES, parse_report, split_notes
from plumbline.probes.rbd.rbd_commands import Commands, first_words
from plumbline.probes.rbd.rbd_image import Measured, RbdPlan, RbdProbe, fio_argv, image_of
from plumbline.probes.run.model import Host, Plan
from plumbline.probes.run.result import Outcome


class RbdFioPlan(RbdPlan, frozen=True, kw_only=True):
    """``runtime_s``: of the measured part."""

    workload: BlockWorkload
    runtime_s: float
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
        f"--rw={workload.rw}",
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


class RbdFioProbe(RbdProbe, frozen=True):
    program: ClassVar[str] = "fio"

    plan: RbdFioPlan

    @property
    def fio_place(self) -> str:
        return self.plan.image.spec

    @property
    def reserve_s(self) -> float:
        return self.plan.runtime_s

    def measure(self, commands: Commands) -> Measured:
        plan = self.plan
        done = commands.run(measure_argv(plan), max_output_bytes=REPORT_MAX_BYTES)
        words = first_words(done)
        if b"engine rbd not loadable" in done.stderr:
            raise ProbeRefused("tool-missing", "this fio has no rbd engine; install it (Fedora: fio-engine-rbd)")
        if done.timed_out:
            advice = "are the pool's OSDs up, and is the pool not full?"
            return Outcome.TIMEOUT, f"fio: not finished within {plan.timeout_s:g} s; {advice}", ()
        if done.truncated:
            return Outcome.FAILURE, f"fio: killed for writing too much output, which began: {words}", ()
        if done.returncode != 0:
            notes = split_notes(done.stdout)
            reason = next((note for note in notes if note.startswith("fio:")), words).removeprefix("fio: ")
            return Outcome.FAILURE, f"fio: {reason or 'no message'} (exit status {done.returncode})", ()
        report = parse_report(done.stdout, job=JOB)
        outcome, message = judge_report(report, plan.workload)
        operations = tuple(operations_of(plan.workload, report)) if outcome is Outcome.SUCCESS else ()
        return outcome, message, operations


def build(config: RbdFioConfig, workload: BlockWorkload, host: Host) -> Plan:
    image = image_of(config, host, cache=not workload.direct)
    plan = RbdFioPlan(
        workload=workload,
        image=image,
        device_class=config.device_class or host.pool_class(image.pool) or "unknown",
        runtime_s=float(config.runtime),
        timeout_s=float(config.timeout),
        rate_iops=config.rate_iops,
    )
    return Plan(periodic=(RbdFioProbe(config, plan),))
