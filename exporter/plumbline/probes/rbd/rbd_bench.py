"""``rbd bench`` on an image of our own: operations and bytes per second; it reports no latency.

https://docs.ceph.com/en/latest/man/8/rbd/#commands (bench). It uses librbd's cache as the cluster configures it and
overwrites the image from its start, so the image is not shared with anything, not even with an ``rbd-fio`` probe.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from plumbline.config.probes.ceph import RbdBenchConfig
from plumbline.config.workloads import RbdBench
from plumbline.errors import ParseError
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.identify import identify
from plumbline.probes.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.rbd.rbd_bench_output import RbdBenchReport, parse_rbd_bench
from plumbline.probes.rbd.rbd_commands import Commands, words
from plumbline.probes.rbd.rbd_image import ImagePlan, lay_out, prepare
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.tool import FIO, RBD, Tool

# with less time left a start is not worthwhile: `rbd` uses part of it to connect
_LEAST_S = 2.0


@dataclass(frozen=True, slots=True)
class RbdBenchPlan:
    """The final parameters of one probe's run. ``total_bytes`` are read or written, at most the image's size."""

    workload: RbdBench
    image: ImagePlan
    device_class: str
    total_bytes: int
    timeout_s: float


def bench_argv(plan: RbdBenchPlan) -> tuple[str, ...]:
    """The measured command."""
    workload = plan.workload
    return plan.image.access.rbd(
        "bench",
        "--io-type", workload.operation,
        "--io-size", str(workload.io_size),
        "--io-threads", str(workload.threads),
        "--io-total", str(plan.total_bytes),
        "--io-pattern", "rand" if workload.random else "seq",
        plan.image.spec,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RbdBenchProbe:
    """The periodic probe of one ``rbd bench``."""

    config: RbdBenchConfig
    plan: RbdBenchPlan
    tool: Tool = field(default=FIO, compare=False)
    """Lays the image out, because rbd itself can only write at full speed."""
    rbd: Tool = field(default=RBD, compare=False)

    heavy = True

    @property
    def identity(self) -> Identity:
        """See :class:`~plumbline.probes.model.Identity`."""
        plan = self.plan
        return identify(self.config, plan.workload, device_class=plan.device_class, tool="rbd", cluster=True)

    def run(self, run: Run) -> ProbeResult:
        """Prepare the image, lay out what is missing, measure."""
        plan, identity = self.plan, self.identity
        started = run.clock()
        commands = Commands(plan.image.access, run, timeout_s=plan.timeout_s)
        version = self.rbd.version(run.runner, limit_s=commands.left_s)
        done = prepare(plan.image, commands, run.progress)
        if done < plan.image.size_bytes:
            self.tool.version(run.runner)
        outcome, message, report = _measure(plan, commands, run, done)
        return identity.result(
            tool_version=version,
            started=started,
            duration=plan.timeout_s - commands.left_s,
            outcome=outcome,
            operations=()
            if report is None
            else (OperationResult(operation=plan.workload.operation, iops=report.iops, throughput=report.throughput),),
            message=message,
        )

    def clean_up(self, run: Run) -> None:
        """Only the image outlives a run, and the next run uses it; `plumbline ceph remove` removes it."""


def build(config: RbdBenchConfig, workload: RbdBench, host: Host) -> Plan:
    """One probe on one image of this host."""
    image = ImagePlan(
        access=CephAccess.of(host.ceph),
        pool=config.pool or host.ceph.rbd_pool,
        probe=config.name,
        host=socket.gethostname(),
        size_bytes=int(config.image_size),
        cache=None,
    )
    plan = RbdBenchPlan(
        workload=workload,
        image=image,
        device_class=config.device_class or host.pool_class(image.pool) or "unknown",
        total_bytes=min(int(config.total), int(config.image_size)),
        timeout_s=float(config.timeout),
    )
    return Plan(periodic=(RbdBenchProbe(config, plan),))


def _measure(plan: RbdBenchPlan, commands: Commands, run: Run, done: int) -> tuple[Outcome, str, RbdBenchReport | None]:
    in_time, message = lay_out(plan.image, commands, run.progress, done=done, reserve_s=_LEAST_S)
    if message:
        return Outcome.TIMEOUT if in_time else Outcome.FAILURE, message, None
    if commands.left_s <= _LEAST_S:
        return Outcome.TIMEOUT, "preparing the image took all the time; the next run measures", None
    run.progress(Progress("measuring"))
    completed = commands.run(bench_argv(plan))
    if completed.timed_out:
        return Outcome.TIMEOUT, f"rbd bench: not finished in {plan.timeout_s:g} s; set a smaller total", None
    if completed.returncode != 0:
        said = words(completed) or "no message"
        return Outcome.FAILURE, f"rbd bench: {said} (exit status {completed.returncode})", None
    try:
        return Outcome.SUCCESS, "", parse_rbd_bench(completed.stdout.decode("utf-8", "replace"))
    except ParseError as error:
        return Outcome.FAILURE, str(error), None
