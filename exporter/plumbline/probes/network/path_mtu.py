"""The biggest packet that reaches a peer unfragmented and is answered: finds the one switch with a small MTU.

A router that can't forward a packet reports it; a switch between two ports of different MTU drops it silently. Packets
are sent regardless of the kernel's cached path MTU (``IP_PMTUDISC_PROBE``), and silence counts as "does not pass" after
three tries, each far longer than the path's round trip.

The answer has the same size, so the smaller MTU of both directions is found. TCP would suffer from either.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from plumbline.config.probes.network import PathMtuConfig
from plumbline.config.workloads import PathMtu
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.probes.network.echo import ECHO_BYTES, IP_BYTES, Answer, EchoSocket, Reply, TooBig, Unreachable
from plumbline.probes.network.peer import Findings, PeerProbe, failure, peers
from plumbline.probes.run.model import Host, Plan, Progress, Run
from plumbline.probes.run.result import OperationResult, Outcome
from plumbline.probes.run.tool import refuse_if_stopped
from plumbline.sources.net.routes import IpAddress, Way, read_way

# what every path must carry: RFC 1122 for the ends of IPv4, RFC 8200 for links of IPv6
SMALLEST = {4: 576, 6: 1280}
_BIGGEST = 65535
# the most frequent answers: Ethernet's own size, and the usual jumbo size. Tried before bisecting
_USUAL = (1500, 9000)
_TRIES = 3
# the shortest and the longest wait for an answer; within these limits ten round trips of a small packet
_PATIENCE_S = (0.1, 1.0)


class MtuStep(Struct, frozen=True):
    """Whether a packet of some size passed; ``hint``: the biggest size that a router on the path reported."""

    passes: bool
    hint: int | None = None


def biggest(low: int, high: int, ask: Callable[[int], MtuStep]) -> int:
    """The biggest size in [``low``, ``high``] that passes ``ask``, given that ``low`` does. Tries ``high`` first (the
    usual answer, one packet), then routers' hints and the usual sizes, then bisects. Silence counts as an answer: a
    switch that drops an oversized packet reports nothing."""
    first = ask(high)
    if first.passes or high <= low:
        return high if first.passes else low
    passing, failing, hint = low, high, first.hint
    while failing - passing > 1:
        size = _next(passing, failing, hint)
        verdict = ask(size)
        hint = verdict.hint or hint
        if verdict.passes:
            passing = size
        else:
            failing = size
    return passing


def _next(passing: int, failing: int, hint: int | None) -> int:
    if hint is not None and passing <= hint < failing - (hint == passing):
        return hint + (hint == passing)  # the router's claim; the next byte verifies it
    for usual in _USUAL:
        if passing < usual < failing:
            return usual
        if passing == usual < failing - 1:
            return usual + 1  # the usual size passes: most likely not one byte more does
    return (passing + failing) // 2


class _TimeOver(Exception):
    """The probe timed out before the search had a result."""


class PathMtuProbe(PeerProbe, frozen=True):
    config: PathMtuConfig
    workload: PathMtu
    roots: Roots

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
    return Plan(periodic=tuple(PathMtuProbe(config, workload, peer, host.roots) for peer in peers(config, host)))


def measure(
    exchange: Callable[[int, float], Reply | None],
    *,
    run: Run,
    address: IpAddress,
    way: Way,
    timeout_s: float,
    target: str,
) -> Findings:
    """Search between what every path carries and our own port's MTU; ``exchange`` takes data bytes and seconds."""
    asker = _Asker(exchange, run, IP_BYTES[address.version] + ECHO_BYTES, time.monotonic() + timeout_s)
    low = SMALLEST[address.version]
    high = max(low, min(way.mtu_bytes or 1500, _BIGGEST))
    try:
        if not asker.meet(low):
            return failure(f"{target}: no answer to packets of {low} bytes{asker.said}")
        mtu = biggest(low, high, asker.ask)
        if mtu < high and asker.ask(mtu + 1).passes:
            return failure(f"{target}: packets of {mtu + 1} bytes passed only sometimes: the path loses packets")
    except _TimeOver:
        return Findings(Outcome.TIMEOUT, message=f"{target}: no result after {timeout_s:g} s{asker.said}")
    operation = OperationResult(operation="path-mtu", mtu_bytes=mtu)
    return Findings(Outcome.SUCCESS, (operation,), _remark(mtu, high, way, asker))


def _remark(mtu: int, high: int, way: Way, asker: _Asker) -> str:
    if mtu >= high:
        return ""
    reporter = f"reported by {asker.hop}" if asker.hop else "no router reports it: a switch drops larger packets"
    return f"{way.device} has an MTU of {high}, the path carries {mtu}: {reporter}"


class _Asker:
    """Tests one size: an answer to any of three tries means that it passes."""

    def __init__(
        self, exchange: Callable[[int, float], Reply | None], run: Run, header_bytes: int, deadline: float
    ) -> None:
        self._exchange, self._run, self._header, self._deadline = exchange, run, header_bytes, deadline
        self._patience_s = _PATIENCE_S[1]
        self.hop = self.said = ""

    def meet(self, size: int) -> bool:
        """Whether the peer answers at all; its round trip then sets how long to wait."""
        reply = self._try(size)
        if isinstance(reply, Answer):
            self._patience_s = min(max(_PATIENCE_S[0], 10 * reply.seconds), _PATIENCE_S[1])
        return isinstance(reply, Answer)

    def ask(self, size: int) -> MtuStep:
        """Whether a packet of ``size`` bytes, including the IP header, is answered."""
        reply = self._try(size)
        if isinstance(reply, TooBig):
            if reply.hop:
                self.hop = reply.hop
            return MtuStep(False, reply.mtu_bytes or None)
        return MtuStep(isinstance(reply, Answer))

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
                self.said = f"; {f'{reply.hop} reports: ' if reply.hop else ''}{reply.reason}"
        verdict = "passes" if isinstance(reply, Answer) else "does not pass"
        self._run.progress(Progress("searching", None, f"{size} bytes {verdict}"))
        return reply
