"""``rbd bench`` on an image of our own: operations and bytes per second; it reports no latency.

https://docs.ceph.com/en/latest/man/8/rbd/#commands (bench). It uses librbd's cache as the cluster configures it and
overwrites the image from its start, so the image is not shared with anything, not even with an ``rbd-fio`` probe.
"""

from typing import ClassVar

from plumbline.config.probes.ceph import RbdBenchConfig
from plumbline.config.workloads import RbdBench
from plumbline.probes.rbd.rbd_commands import Commands, first_words
from plumbline.probes.rbd.rbd_image import Measured, RbdPlan, RbdProbe, image_of
from plumbline.probes.rbd.rbd_output import parse_rbd_bench
from plumbline.probes.run.model import Host, Plan
from plumbline.probes.run.result import OperationResult, Outcome


class RbdBenchPlan(RbdPlan, frozen=True, kw_only=True):
    """``total_bytes`` are read or written, at most the image's size."""

    workload: RbdBench
    total_bytes: int


def bench_argv(plan: RbdBenchPlan) -> tuple[str, ...]:
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


class RbdBenchProbe(RbdProbe, frozen=True):
    program: ClassVar[str] = "rbd"
    # with less time left a start is not worthwhile: `rbd` uses part of it to connect
    reserve_s: ClassVar[float] = 2.0

    plan: RbdBenchPlan

    def measure(self, commands: Commands) -> Measured:
        plan = self.plan
        done = commands.run(bench_argv(plan))
        if done.timed_out:
            return Outcome.TIMEOUT, f"rbd bench: not finished within {plan.timeout_s:g} s; set a smaller total", ()
        if done.returncode != 0:
            words = first_words(done) or "no message"
            return Outcome.FAILURE, f"rbd bench: {words} (exit status {done.returncode})", ()
        report = parse_rbd_bench(done.stdout.decode("utf-8", "replace"))
        operation = OperationResult(operation=plan.workload.operation, iops=report.iops, throughput=report.throughput)
        return Outcome.SUCCESS, "", (operation,)


def build(config: RbdBenchConfig, workload: RbdBench, host: Host) -> Plan:
    image = image_of(config, host, cache=None)
    plan = RbdBenchPlan(
        workload=workload,
        image=image,
        device_class=config.device_class or host.pool_class(image.pool) or "unknown",
        total_bytes=min(int(config.total), int(config.image_size)),
        timeout_s=float(config.timeout),
    )
    return Plan(periodic=(RbdBenchProbe(config, plan),))
