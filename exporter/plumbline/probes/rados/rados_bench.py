"""`rados bench` in our own pool and namespace, for a few seconds, with a limited number of objects.

It writes ``benchmark_data_<host>_<pid>_object<N>``, and an object with its run's name that lists, for reads, which
objects exist. We remove all of them after the run ourselves: Ceph's clean-up needs that last object, which a killed
run has not written, and it waits for ever while the pool is full. What a killed daemon left is removed at its next
start, unless a ``rados`` with that process id still runs here.

Its output, of Ceph 16 to 20, is nearly JSON::

    hints = 1
    {"concurrent_ios":"4","object_size":"65536", …,"datas":[{"sec":"0", …},{"sec":"3", …}Cleaning up (deleting benchmark objects)
    Removed 1185 objects
    Clean up completed and total clean up time :2.1507
    ],"total_time_run":"3.005183","total_writes_made":"1185","write_size":"65536","bandwidth":"24.644923",
    "average_iops":"394","stddev_iops":"1137091504","average_latency":"0.010132","max_latency":"0.056924", …}

There is text before, inside and after the document; numbers are strings, but may also be plain numbers; the key is
``max_latency``, or ``max_latency:`` in older releases; ``stddev_iops`` can be an uninitialised word. The output of a
failed run is incomplete. So nothing is decoded: the few keys needed are searched for in the totals, after ``datas``,
and each must be a valid number. https://github.com/ceph/ceph/blob/main/src/common/obj_bencher.cc

``bandwidth`` is in MiB/s; latencies are in seconds. There are no percentiles, and none are derived.
"""  # noqa: E501  (verbatim)

from __future__ import annotations

import math
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from plumbline.config.probes.ceph import RadosBenchConfig
from plumbline.config.workloads import RadosBench
from plumbline.core.process import ProcessRunner, Runner
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.ceph import ceph_task
from plumbline.probes.ceph.ceph_access import NAMESPACE, CephAccess
from plumbline.probes.rados.ceph_program import first_line, judge
from plumbline.probes.rados.osd_choice import only_class
from plumbline.probes.run.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.tool import RADOS, refuse_if_stopped

# Ceph truncates the host's name to this length
_HOST_BYTES = 29
_SWEEP_TIMEOUT_S = 90.0
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|-?nan|-?inf"


@dataclass(frozen=True, slots=True)
class RadosBenchProbe:
    config: RadosBenchConfig
    workload: RadosBench
    access: CephAccess
    host: str
    device_class: str
    environment: Mapping[str, str] = field(compare=False, default_factory=dict)

    heavy = True

    @property
    def pool(self) -> str:
        return self.config.pool or self.access.pool

    @property
    def identity(self) -> Identity:
        return Identity.of(
            self.config, self.workload, device_class=self.device_class, tool="rados", target=self.pool, cluster=True
        )

    @property
    def run_name(self) -> str:
        """The object in which a write records what reads can use."""
        return f"plumbline-{self.host}-{self.config.name}"

    def argv(self, mode: str) -> tuple[str, ...]:
        """The command of one part of a run: ``write``, ``seq``, ``rand``."""
        size, most = str(self.workload.object_size), str(self.config.max_objects)
        write = ("-b", size, "--max-objects", most, "--no-cleanup") if mode == "write" else ()
        # a full pool holds writes back for ever, so there is a limit; a slow pool needs time
        limit_s = max(5, round(float(self.config.timeout) / 3))
        return (
            *self.access.rados("-p", self.pool, "-N", NAMESPACE),
            *("bench", str(max(1, round(self.config.runtime))), mode),
            *("-t", str(self.workload.concurrent), "--run-name", self.run_name, *write),
            *(f"--rados-osd-op-timeout={limit_s}", "--format", "json"),
        )

    def run(self, run: Run) -> ProbeResult:
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
            operations=(report.operation(self.workload.operations[0]),)
            if outcome is Outcome.SUCCESS and report
            else (),
            message=message,
        )

    def clean_up(self, run: Run) -> None:
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
        done = runner.run(command, timeout_s=_SWEEP_TIMEOUT_S)
        if done.cancelled or (done.returncode == 0 and b'"left": 0' in done.stdout):
            return ""
        return f"some of its objects in {self.pool} were not removed: {first_line(done)}; the next start tries again"


def build(config: RadosBenchConfig, workload: RadosBench, host: Host) -> Plan:
    access = CephAccess.of(host.ceph)
    device_class = config.device_class or only_class(host)
    probe = RadosBenchProbe(config, workload, access, socket.gethostname(), device_class, host.environment)
    return Plan(periodic=(probe,))


class RadosBenchReport(Struct, frozen=True):
    operations: int
    duration_s: float
    iops: float
    bytes_per_second: float
    mean_s: float
    max_s: float | None

    def operation(self, name: str) -> OperationResult:
        latency = {"mean": self.mean_s} | ({"max": self.max_s} if self.max_s is not None else {})
        return OperationResult(operation=name, iops=self.iops, throughput=self.bytes_per_second, latency=latency)


def parse_rados_bench(text: str, *, source: str = "rados bench") -> RadosBenchReport:
    """Parse the totals; :class:`ParseError` for a run that is incomplete, did nothing, or has invalid figures."""
    _, marker, totals = text.rpartition('"datas"')
    if not marker:
        raise ParseError(source, "no JSON document")
    duration = _positive(totals, "total_time_run", source)
    made = _find(totals, "total_writes_made")
    operations = made if made is not None else _find(totals, "total_reads_made")
    if operations is None:
        raise ParseError(source, "neither total_writes_made nor total_reads_made: the output is incomplete")
    if operations < 1 or operations != int(operations):
        raise ParseError(source, f"{operations:g} operations")
    bandwidth = _positive(totals, "bandwidth", source)
    longest = _find(totals, "max_latency")
    mean = _positive(totals, "average_latency", source)
    return RadosBenchReport(
        operations=int(operations),
        duration_s=duration,
        iops=operations / duration,  # average_iops is the same, truncated to a whole number
        bytes_per_second=bandwidth * 2**20,
        mean_s=mean,
        max_s=longest if longest is not None and longest >= mean else None,
    )


def _positive(text: str, key: str, source: str) -> float:
    value = _find(text, key)
    if value is None or value <= 0:
        raise ParseError(source, f"no {key}" if value is None else f"{key} = {value:g}")
    return value


def _find(text: str, key: str) -> float | None:
    """The last number of this name, in quotes or not; ``None`` if it is missing or not finite."""
    numbers = re.findall(rf'"{key}:?"\s*:\s*"?({_NUMBER})"?', text)
    value = float(numbers[-1]) if numbers else math.nan
    return value if math.isfinite(value) else None
