"""Latency and bandwidth of messages to another node, by TCP or by RDMA verbs: qperf against a server there.

One run is one of qperf's tests (qperf(1)). ``-uu`` gives base units; ``-cm1`` finds the RDMA device by the peer's
address, which RoCE needs and IPoIB has::

    rc_rdma_write_bw:                      tcp_lat:
        bw  =  580059136 bytes/sec             latency  =  26484.8 ns

A latency is one way: half of a round trip.
"""

import re

from plumbline.config.probes.network import PEER_ANSWERS_WITHIN_S, QPERF_PORT, QperfConfig
from plumbline.config.workloads import Messages
from plumbline.core.escape import excerpt
from plumbline.core.foreign import finite
from plumbline.errors import ParseError
from plumbline.probes.network.peer import Findings, PeerProbe, failure, peers
from plumbline.probes.run.model import Host, Plan, Progress, Run
from plumbline.probes.run.result import OperationResult, Outcome
from plumbline.probes.run.tool import QPERF, Tool, refuse_if_stopped

_FIGURE = re.compile(r"^ +(?P<name>latency|bw) += +(?P<number>[0-9.e+]{1,30}) (?P<unit>ns|bytes/sec)$", re.MULTILINE)
_ENDING_S = 10.0  # both sides set up their buffers before, and exchange their figures after


class QperfProbe(PeerProbe, frozen=True):
    config: QperfConfig
    workload: Messages
    tool: Tool = QPERF

    heavy = True
    program = "qperf"

    def _version(self, run: Run) -> str:
        return self.tool.version(run.runner)

    @property
    def _port(self) -> int:
        return self.peer.endpoint.port or QPERF_PORT

    def argv(self, address: str) -> tuple[str, ...]:
        """The command for a run."""
        argv = ["qperf", "-uu", "-e", "6", "-lp", str(self._port)]
        argv += ["-t", str(int(self.config.runtime)), "-m", str(self.workload.message_bytes)]
        argv += ["-cm1"] if self.workload.rdma else []
        return (*argv, address, self.workload.test)

    def _measure(self, run: Run) -> Findings:
        (operation,) = self.workload.operations
        limit_s = min(float(self.config.timeout), int(self.config.runtime) + PEER_ANSWERS_WITHIN_S + _ENDING_S)
        run.progress(Progress(operation, 0.0))
        completed = run.runner.run(self.argv(str(self.peer.address())), timeout_s=limit_s, keep_fds=run.keep_fds)
        refuse_if_stopped(run.stopping.is_set() or completed.cancelled)
        if completed.timed_out:
            return Findings(Outcome.TIMEOUT, message=f"qperf did not end within {limit_s:.0f} s; is the peer gone?")
        try:
            result = parse_output(completed.stdout.decode("utf-8", "replace"), operation)
        except ParseError as error:
            lines = (completed.stderr + completed.stdout).decode("utf-8", "replace").strip().splitlines()
            why = excerpt(lines[-1]) if len(lines) > 1 else str(error)  # the first line is the test's name
            return failure(f"{why}; does qperf run there, at port {self._port}?" if "connect" in why else why)
        return Findings(Outcome.SUCCESS, (result,))


def parse_output(text: str, operation: str, *, source: str = "qperf -uu") -> OperationResult:
    """The figure of the only test in ``text``; :class:`ParseError` if there is none, or more than one."""
    figures = [(match["name"], match["unit"], finite(match["number"])) for match in _FIGURE.finditer(text)]
    match figures:
        case [("latency", "ns", float(nanoseconds))] if nanoseconds > 0:
            return OperationResult(operation=operation, latency={"mean": nanoseconds / 1e9})
        case [("bw", "bytes/sec", float(rate))] if rate > 0:
            return OperationResult(operation=operation, throughput=rate)
    raise ParseError(source, f"no figure in {' '.join(text.split())[:80]!r}")


def build(config: QperfConfig, workload: Messages, host: Host) -> Plan:
    return Plan(periodic=tuple(QperfProbe(config, workload, peer) for peer in peers(config, host)))
