"""TCP throughput and retransmits between this host and another, by iperf3 against a server there.

One run is one transfer from here, then, if the workload wants both, one back (``-R``). Throughput is the receiver's:
what arrived. Retransmits are the sender's.
"""

import time

from plumbline.config.probes.network import IPERF3_PORT, PEER_ANSWERS_WITHIN_S, IperfConfig
from plumbline.config.workloads import TcpThroughput
from plumbline.core.escape import excerpt
from plumbline.core.process import Completed
from plumbline.core.units import si
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.network.iperf3_output import Report, Transfer, parse_report
from plumbline.probes.network.peer import Findings, PeerProbe, failure, peers
from plumbline.probes.run.model import Host, Plan, Progress, Run
from plumbline.probes.run.result import OperationResult, Outcome
from plumbline.probes.run.tool import IPERF3, Tool, refuse_if_stopped
from plumbline.sources.net.routes import IpAddress

_BUSY = "server is busy"
_NOBODY = "unable to connect"
# by first and later direction: a managed server serves one client and restarts; our first may come shortly after
# another node's test, and the second comes shortly after our first
_SERVER_RETURNS_WITHIN_S = (2.0, 5.0)
_RETRY_S = 0.25
# time a transfer may take beyond its run time: both sides exchange their figures
_ENDING_S = 5.0


class IperfProbe(PeerProbe, frozen=True):
    config: IperfConfig
    workload: TcpThroughput
    tool: Tool = IPERF3

    heavy = True
    program = "iperf3"

    @property
    def rate(self) -> float | None:
        return None if self.config.rate is None else float(self.config.rate)

    def _version(self, run: Run) -> str:
        return self.tool.version(run.runner)

    def argv(self, address: IpAddress, operation: str) -> tuple[str, ...]:
        """The command for ``transmit`` or ``receive``. ``-b`` is in bits per second for each stream."""
        config, streams = self.config, self.workload.streams
        argv = ["iperf3", "--client", str(address), "--port", str(self._port), "--json"]
        argv += ["--time", str(int(config.runtime)), "--parallel", str(streams)]
        argv += ["--connect-timeout", str(int(PEER_ANSWERS_WITHIN_S * 1000))]
        if config.bind is not None:
            argv += ["--bind", config.bind]
        if config.rate is not None:
            argv += ["--bitrate", str(max(1, config.rate * 8 // streams))]
        return (*argv, "--reverse") if operation == "receive" else tuple(argv)

    @property
    def _port(self) -> int:
        return self.peer.endpoint.port or IPERF3_PORT

    def _measure(self, run: Run) -> Findings:
        address, operations, streams = self.peer.address(), self.workload.operations, self.workload.streams
        deadline = time.monotonic() + float(self.config.timeout)
        results: list[OperationResult] = []
        for index, operation in enumerate(operations):
            run.progress(Progress(operation, index / len(operations)))
            done = self._transfer(address, operation, run, deadline, first=index == 0)
            if isinstance(done, Findings):
                return done
            throughput = done.bytes_per_second
            if done.streams not in (0, streams) or not throughput:
                return failure(f"{operation}: {done.streams} of {streams} streams, nothing arrived")
            results.append(OperationResult(operation=operation, throughput=throughput, retransmits=done.retransmits))
            figures = f"{operation} {si(throughput * 8, 'b/s')}"
            run.progress(Progress(operation, (index + 1) / len(operations), figures))
        return Findings(Outcome.SUCCESS, tuple(results))

    def _transfer(
        self, address: IpAddress, operation: str, run: Run, deadline: float, *, first: bool
    ) -> Transfer | Findings:
        """One direction. Retries a server that refuses for a moment; after the first direction also a busy one."""
        begun = time.monotonic()
        while True:
            limit_s = min(deadline - time.monotonic(), int(self.config.runtime) + PEER_ANSWERS_WITHIN_S + _ENDING_S)
            if limit_s <= 0:
                return Findings(Outcome.TIMEOUT, message=f"{operation}: no time left")
            completed = run.runner.run(self.argv(address, operation), timeout_s=limit_s, keep_fds=run.keep_fds)
            refuse_if_stopped(run.stopping.is_set() or completed.cancelled)
            if completed.timed_out:
                message = f"{operation}: iperf3 did not end within {limit_s:.0f} s; is the peer gone?"
                return Findings(Outcome.TIMEOUT, message=message)
            if completed.truncated:
                return failure(f"{operation}: iperf3 wrote too much output and was stopped")
            report = _report(completed)
            if isinstance(report, str):
                return failure(f"{operation}: {report}")
            if report.transfer is not None:
                return report.transfer
            busy, refused = _BUSY in report.error, _NOBODY in report.error and "refused" in report.error
            again = time.monotonic() - begun < _SERVER_RETURNS_WITHIN_S[not first]
            if again and (refused or (busy and not first)):
                run.stopping.wait(_RETRY_S)
                continue
            where = f"{address} port {self._port}"
            if busy:
                raise ProbeRefused("peer-busy", f"{where}: serves another client; the next run will try again")
            advice = "; does plumbline-iperf3.service run there?" if refused else ""
            return failure(f"{operation}: {where}: {report.error}{advice}")


def build(config: IperfConfig, workload: TcpThroughput, host: Host) -> Plan:
    return Plan(periodic=tuple(IperfProbe(config, workload, peer) for peer in peers(config, host)))


def _report(completed: Completed) -> Report | str:
    try:
        return parse_report(completed.stdout)
    except ParseError as error:
        lines = completed.stderr.decode("utf-8", "replace").strip().splitlines()
        return excerpt(lines[0]) if lines else f"{error} (exit status {completed.returncode})"
