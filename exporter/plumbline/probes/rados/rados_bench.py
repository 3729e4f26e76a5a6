"""`rados bench` in our own pool and namespace, for a few seconds, with a limited number of objects.

It writes ``benchmark_data_<host>_<pid>_object<N>``, and an object with its run's name that lists, for reads, which
objects exist. We remove all of them after the run ourselves: Ceph's clean-up needs that last object, which a killed
run has not written, and it waits for ever while the pool is full. What a killed daemon left is removed at its next
start, unless a ``rados`` with that process id still runs here.

The program reports mean and maximum latency, but no percentiles.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from plumbline.config.probes.ceph import RadosBenchConfig
from plumbline.config.workloads import RadosBench
from plumbline.core.escape import excerpt
from plumbline.core.process import Completed, ProcessRunner, Runner
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.ceph import ceph_task
from plumbline.probes.ceph.ceph_access import NAMESPACE, CephAccess
from plumbline.probes.ceph.osd_lookup import only_class
from plumbline.probes.identify import identify
from plumbline.probes.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.rados.rados_bench_output import RadosBenchReport, parse_rados_bench
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.tool import RADOS, refuse_if_stopped

# Ceph truncates the host's name to this length
_HOST_BYTES = 29
SWEEP_TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True)
class RadosBenchProbe:
    """The periodic probe of one ``rados bench`` workload."""

    config: RadosBenchConfig
    workload: RadosBench
    access: CephAccess
    host: str
    device_class: str
    environment: Mapping[str, str] = field(compare=False, default_factory=dict)

    heavy = True

    @property
    def pool(self) -> str:
        """The pool it writes to."""
        return self.config.pool or self.access.pool

    @property
    def identity(self) -> Identity:
        """See :class:`~plumbline.probes.model.Identity`."""
        return identify(
            self.config, self.workload, device_class=self.device_class, tool="rados", target=self.pool, cluster=True
        )

    @property
    def run_name(self) -> str:
        """The object in which a write records what reads can use."""
        return f"plumbline-{self.host}-{self.config.name}"

    def argv(self, mode: str) -> tuple[str, ...]:
        """The command of one part of a run: ``write``, ``seq``, ``rand``."""
        write: tuple[str, ...] = ()
        if mode == "write":
            write = (
                "-b",
                str(self.workload.object_size),
                "--max-objects",
                str(self.config.max_objects),
                "--no-cleanup",
            )
        return (
            *self.access.rados(
                "-p", self.pool, "-N", NAMESPACE, "bench", str(max(1, round(self.config.runtime))), mode
            ),
            *("-t", str(self.workload.concurrent), "--run-name", self.run_name, *write),
            # a full pool holds writes back for ever, so there is a limit; a slow pool needs time
            *(f"--rados-osd-op-timeout={self._operation_timeout_s}", "--format", "json"),
        )

    @property
    def _operation_timeout_s(self) -> int:
        return max(5, round(float(self.config.timeout) / 3))

    def run(self, run: Run) -> ProbeResult:
        """Write, or write and read; the objects are removed afterwards."""
        self.access.check()
        version = RADOS.version(run.runner)
        started = run.clock()
        try:
            outcome, message, report, spent_s = self._measure(run)
        finally:
            run.progress(Progress("removing its objects", 0.95))
            left = self._sweep(ProcessRunner(self.environment))  # a runner that the end of the run does not stop
        if left and outcome is Outcome.SUCCESS:
            outcome, message = Outcome.FAILURE, left
        return self.identity.result(
            tool_version=version,
            started=started,
            duration=spent_s,
            outcome=outcome,
            operations=(_operation(self.workload, report),) if report and outcome is Outcome.SUCCESS else (),
            message=message,
        )

    def clean_up(self, run: Run) -> None:
        """Remove what a killed daemon left behind."""
        self.access.check()
        left = self._sweep(run.runner)
        if left:
            raise ProbeRefused("left-behind", left)

    def _measure(self, run: Run) -> tuple[Outcome, str, RadosBenchReport | None, float]:
        modes = ("write",) if self.workload.mode == "write" else ("write", self.workload.mode)
        spent_s, report = 0.0, None
        for number, mode in enumerate(modes):
            run.progress(Progress(f"rados bench {mode}", number / len(modes)))
            timeout_s = float(self.config.timeout) - spent_s
            done = run.runner.run(self.argv(mode), timeout_s=timeout_s, keep_fds=run.keep_fds)
            spent_s += done.duration_s
            refuse_if_stopped(done.cancelled)
            outcome, message = judge(done, f"rados bench {mode}", float(self.config.timeout))
            if outcome is not Outcome.SUCCESS:
                return outcome, message, None, spent_s
            try:
                report = parse_rados_bench(done.stdout.decode("utf-8", "replace"), source=f"rados bench {mode}")
            except ParseError as error:
                return Outcome.FAILURE, str(error), None, spent_s
        return Outcome.SUCCESS, "", report, spent_s

    def _sweep(self, runner: Runner) -> str:
        """Remove this host's objects; returns why some remain, or an empty string."""
        command = ceph_task.argv(
            self.access.librados(),
            "sweep",
            pool=self.pool,
            namespace=NAMESPACE,
            names=[self.run_name],
            prefix=f"benchmark_data_{self.host[:_HOST_BYTES]}_",
        )
        done = runner.run(command, timeout_s=SWEEP_TIMEOUT_S)
        if done.cancelled:
            return ""
        answer = done.stdout.decode("utf-8", "replace")
        if done.returncode == 0 and '"left": 0' in answer:
            return ""
        return f"its objects in {self.pool} were not all removed: {first_line(done)}; the next start tries again"


def build(config: RadosBenchConfig, workload: RadosBench, host: Host) -> Plan:
    """One probe for the pool."""
    access = CephAccess.of(host.ceph)
    device_class = config.device_class or only_class(host)
    probe = RadosBenchProbe(config, workload, access, socket.gethostname(), device_class, host.environment)
    return Plan(periodic=(probe,))


def judge(done: Completed, what: str, timeout_s: float) -> tuple[Outcome, str]:
    """Outcome and message from the exit of one of Ceph's programs; success has no message."""
    if done.timed_out:
        return (
            Outcome.TIMEOUT,
            f"{what}: not finished within {timeout_s:g} s; is the cluster slow, or the timeout short?",
        )
    if done.truncated:
        return Outcome.FAILURE, f"{what}: ended for writing too much"
    if done.returncode != 0:
        status = done.returncode
        how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        return Outcome.FAILURE, f"{what}: {first_line(done) or 'no message'} ({how})"
    return Outcome.SUCCESS, ""


def first_line(done: Completed) -> str:
    """The first non-empty line of stderr, else the last line of stdout."""
    lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    lines = lines or [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines()[-1:]]
    return excerpt(lines[0]) if lines else ""


def _operation(workload: RadosBench, report: RadosBenchReport) -> OperationResult:
    latency = {"mean": report.mean_s} | ({"max": report.max_s} if report.max_s is not None else {})
    return OperationResult(
        operation=workload.operations[0], iops=report.iops, throughput=report.bytes_per_second, latency=latency
    )
