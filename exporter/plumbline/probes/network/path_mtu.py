"""The biggest packet that reaches a peer unfragmented and is answered: finds the one switch with a small MTU.

A router that can't forward a packet reports it; a switch between two ports of different MTU drops it silently. Packets
are sent regardless of the kernel's cached path MTU (``IP_PMTUDISC_PROBE``), and silence counts as "does not pass" after
three tries, each far longer than the path's round trip.

The answer has the same size, so the smaller MTU of both directions is found. TCP would suffer from either.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from plumbline import __version__
from plumbline.config.probes.network import PathMtuConfig
from plumbline.config.workloads import PathMtu
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.probes.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.network import peer as peers_
from plumbline.probes.network.echo import EchoSocket
from plumbline.probes.network.echo_packet import ECHO_BYTES, IP_BYTES, Answer, Reply, TooBig, Unreachable
from plumbline.probes.network.path_mtu_search import Verdict, biggest
from plumbline.probes.network.peer import Findings, IpAddress, Peer, failure
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.tool import refuse_if_stopped
from plumbline.sources.net.routes import Way, read_way

SMALLEST = {4: 576, 6: 1280}
"""What every path must carry: RFC 1122 for the ends of IPv4, RFC 8200 for links of IPv6."""
_BIGGEST = 65535
_TRIES = 3
# the shortest and the longest wait for an answer; within these limits ten round trips of a small packet
_PATIENCE_S = (0.1, 1.0)


class _TimeOver(Exception):
    """The probe timed out before the search had a result."""


@dataclass(frozen=True, slots=True)
class PathMtuProbe:
    """The path MTU between this host and another."""

    config: PathMtuConfig
    workload: PathMtu
    peer: Peer
    roots: Roots

    heavy = False

    @property
    def identity(self) -> Identity:
        """See :class:`~plumbline.probes.model.Identity`."""
        return peers_.identity(self.config, self.peer, self.workload)

    def run(self, run: Run) -> ProbeResult:
        """See :class:`~plumbline.probes.model.PeriodicProbe`."""
        return peers_.timed(run, self.identity, __version__, lambda: self._measure(run))

    def clean_up(self, run: Run) -> None:
        """Nothing is ever left behind."""

    def _measure(self, run: Run) -> Findings:
        address, bind = self.peer.address(), self.peer.local()
        try:
            way = read_way(address, bind, self.roots)  # read now: the port's MTU may have changed
        except PlumblineError as error:
            return failure(f"{self.peer.endpoint}: {error}")
        with EchoSocket(address, bind, stopping=run.stopping) as echo:
            return measure(
                echo.exchange,
                run=run,
                address=address,
                way=way,
                timeout_s=float(self.config.timeout),
                target=str(self.peer.endpoint),
            )


def build(config: PathMtuConfig, workload: PathMtu, host: Host) -> Plan:
    """One probe per target."""
    return Plan(periodic=tuple(PathMtuProbe(config, workload, each, host.roots) for each in peers_.peers(config, host)))


def measure(
    exchange: Callable[[int, float], Reply | None],
    *,
    run: Run,
    address: IpAddress,
    way: Way,
    timeout_s: float,
    target: str,
) -> Findings:
    """Search between what every path carries and our own port's MTU; ``exchange`` takes data bytes and a wait in
    seconds."""
    asker = _Asker(exchange, run, IP_BYTES[address.version] + ECHO_BYTES, time.monotonic() + timeout_s)
    low = SMALLEST[address.version]
    high = max(low, min(way.mtu_bytes or 1500, _BIGGEST))
    try:
        if not asker.meet(low):
            return failure(f"{target}: no answer to packets of {low} bytes{asker.said}")
        found = biggest(low, high, asker.ask)
        if found < high and asker.ask(found + 1).passes:
            return failure(f"{target}: packets of {found + 1} bytes passed only at times: the path loses packets")
    except _TimeOver:
        return Findings(Outcome.TIMEOUT, message=f"{target}: no result after {timeout_s:g} s{asker.said}")
    operation = OperationResult(operation="path-mtu", mtu_bytes=found)
    return Findings(Outcome.SUCCESS, (operation,), _remark(found, high, way, asker))


def _remark(found: int, high: int, way: Way, asker: _Asker) -> str:
    if found >= high:
        return ""
    who = f"{asker.hop} says so" if asker.hop else "nobody on the way says so: a switch drops what is bigger"
    return f"{way.device} has an MTU of {high}, the path carries {found}: {who}"


class _Asker:
    """Tests one size: an answer to any of three tries means that it passes."""

    def __init__(
        self, exchange: Callable[[int, float], Reply | None], run: Run, header_bytes: int, deadline: float
    ) -> None:
        self._exchange, self._run, self._header, self._deadline = exchange, run, header_bytes, deadline
        self._patience_s = _PATIENCE_S[1]
        self.hop = self.said = ""
        self._asked = 0

    def meet(self, size: int) -> bool:
        """Whether the peer answers at all; its round trip then sets how long to wait."""
        reply = self._try(size)
        if isinstance(reply, Answer):
            self._patience_s = min(max(_PATIENCE_S[0], 10 * reply.seconds), _PATIENCE_S[1])
        return isinstance(reply, Answer)

    def ask(self, size: int) -> Verdict:
        """Whether a packet of ``size`` bytes, including the IP header, is answered."""
        reply = self._try(size)
        if isinstance(reply, TooBig):
            if reply.hop:
                self.hop = reply.hop
            return Verdict(False, reply.mtu_bytes or None)
        return Verdict(isinstance(reply, Answer))

    def _try(self, size: int) -> Reply | None:
        reply: Reply | None = None
        for _ in range(_TRIES):
            if time.monotonic() >= self._deadline:
                raise _TimeOver
            reply = self._exchange(size - self._header, self._patience_s)
            refuse_if_stopped(self._run.stopping.is_set())
            if isinstance(reply, Answer | TooBig):
                break
            if isinstance(reply, Unreachable):
                self.said = f"; {f'{reply.hop} says: ' if reply.hop else ''}{reply.reason}"
        self._asked += 1
        verdict = "passes" if isinstance(reply, Answer) else "does not pass"
        self._run.progress(Progress("searching", None, f"{size} bytes {verdict}"))
        return reply
