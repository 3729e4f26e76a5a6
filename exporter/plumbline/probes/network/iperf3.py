"""TCP throughput and retransmits between this host and another, by iperf3 against a server there.

One run is one transfer from here, then, if the workload wants both, one back (``-R``). Throughput is the receiver's:
what arrived. Retransmits are the sender's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from plumbline.config.probes.network import NETWORK_SERVER_PORT, PEER_ANSWERS_WITHIN_S, IperfConfig
from plumbline.config.workloads import TcpThroughput
from plumbline.core.escape import excerpt
from plumbline.core.process import Completed
from plumbline.core.units import si
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.network import peer as peers_
from plumbline.probes.network.iperf3_output import Report, Transfer, parse_report
from plumbline.probes.network.peer import Findings, IpAddress, Peer, failure
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.tool import IPERF3, Tool, refuse_if_stopped

_BUSY = "server is busy"
_NOBODY = "unable to connect"
# by first and later direction: a managed server serves one client and restarts; our first may come shortly after
# another node's test, and the second comes shortly after our first
_SERVER_RETURNS_WITHIN_S = (2.0, 5.0)
_RETRY_S = 0.25
# time a transfer may take beyond its run time: both sides exchange their figures
_ENDING_S = 5.0


@dataclass(frozen=True, slots=True)
class IperfPlan:
    """One transfer's parameters, from which the command line is made."""

    address: IpAddress
    port: int
    seconds: int
    streams: int
    bind: str | None = None
    bytes_per_second: int | None = None
    """Rate limit over all streams."""

    def argv(self, operation: str) -> tuple[str, ...]:
        """The command for ``transmit`` or ``receive``. ``-b`` is in bits per second for each stream."""
        argv = ["iperf3", "--client", str(self.address), "--port", str(self.port), "--json"]
        argv += ["--time", str(self.seconds), "--parallel", str(self.streams)]
        argv += ["--connect-timeout", str(int(PEER_ANSWERS_WITHIN_S * 1000))]
        if self.bind is not None:
            argv += ["--bind", self.bind]
        if self.bytes_per_second is not None:
            argv += ["--bitrate", str(max(1, self.bytes_per_second * 8 // self.streams))]
        return (*argv, "--reverse") if operation == "receive" else tuple(argv)


@dataclass(frozen=True, slots=True)
class IperfProbe:
    """The throughput between this host and one other."""

    config: IperfConfig
    workload: TcpThroughput
    peer: Peer
    tool: Tool = field(default=IPERF3, compare=False)

    heavy = True

    @property
    def identity(self) -> Identity:
        """See :class:`~plumbline.probes.model.Identity`."""
        rate = None if self.config.rate is None else float(self.config.rate)
        return peers_.identity(self.config, self.peer, self.workload, tool="iperf3", rate=rate)

    def run(self, run: Run) -> ProbeResult:
        """See :class:`~plumbline.probes.model.PeriodicProbe`."""
        version = self.tool.version(run.runner)
        plan = IperfPlan(
            address=self.peer.address(),
            port=self.peer.endpoint.port or NETWORK_SERVER_PORT,
            seconds=int(self.config.runtime),
            streams=self.workload.streams,
            bind=self.config.bind,
            bytes_per_second=self.config.rate,
        )
        return peers_.timed(run, self.identity, version, lambda: self._measure(plan, run))

    def clean_up(self, run: Run) -> None:
        """Nothing is left behind but a connection that the kernels close."""

    def _measure(self, plan: IperfPlan, run: Run) -> Findings:
        deadline = time.monotonic() + float(self.config.timeout)
        found: list[OperationResult] = []
        for index, operation in enumerate(self.workload.operations):
            run.progress(Progress(operation, index / len(self.workload.operations)))
            done = _transfer(plan, operation, run, deadline, first=index == 0)
            if isinstance(done, Findings):
                return done
            if done.streams not in (0, plan.streams) or not done.bytes_per_second:
                return failure(f"{operation}: {done.streams} of {plan.streams} streams, nothing arrived")
            found.append(
                OperationResult(operation=operation, throughput=done.bytes_per_second, retransmits=done.retransmits)
            )
            figures = f"{operation} {si(done.bytes_per_second * 8, 'b/s')}"
            run.progress(Progress(operation, (index + 1) / len(self.workload.operations), figures))
        return Findings(Outcome.SUCCESS, tuple(found))


def build(config: IperfConfig, workload: TcpThroughput, host: Host) -> Plan:
    """One probe per target."""
    return Plan(periodic=tuple(IperfProbe(config, workload, each) for each in peers_.peers(config, host)))


def _transfer(plan: IperfPlan, operation: str, run: Run, deadline: float, *, first: bool) -> Transfer | Findings:
    """One direction. Retries a server that refuses for a moment; after the first direction also a busy one."""
    begun = time.monotonic()
    while True:
        limit_s = min(deadline - time.monotonic(), plan.seconds + PEER_ANSWERS_WITHIN_S + _ENDING_S)
        if limit_s <= 0:
            return Findings(Outcome.TIMEOUT, message=f"{operation}: no time left")
        completed = run.runner.run(plan.argv(operation), timeout_s=limit_s, keep_fds=run.keep_fds)
        refuse_if_stopped(run.stopping.is_set() or completed.cancelled)
        if completed.timed_out:
            return Findings(
                Outcome.TIMEOUT, message=f"{operation}: iperf3 did not end within {limit_s:.0f} s; is the peer gone?"
            )
        if completed.truncated:
            return failure(f"{operation}: iperf3 was ended for writing too much")
        report = _report(completed)
        if isinstance(report, str):
            return failure(f"{operation}: {report}")
        if report.transfer is not None:
            return report.transfer
        where = f"{plan.address} port {plan.port}"
        again = time.monotonic() - begun < _SERVER_RETURNS_WITHIN_S[not first]
        if again and (_is_refusal(report.error) or (_BUSY in report.error and not first)):
            run.stopping.wait(_RETRY_S)
            continue
        if _BUSY in report.error:
            raise ProbeRefused("peer-busy", f"{where}: serves another client; the next run will try again")
        return failure(f"{operation}: {where}: {report.error}{_advice(report.error)}")


def _report(completed: Completed) -> Report | str:
    """The report, or iperf3's message instead of one."""
    try:
        return parse_report(completed.stdout)
    except ParseError as error:
        said = completed.stderr.decode("utf-8", "replace").strip().splitlines()
        return excerpt(said[0]) if said else f"{error} (exit status {completed.returncode})"


def _is_refusal(error: str) -> bool:
    return _NOBODY in error and "refused" in error


def _advice(error: str) -> str:
    return "; is network_server set there?" if _is_refusal(error) else ""
