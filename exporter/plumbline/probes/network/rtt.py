"""Round-trip times: one small packet at a time, percentiles, and the share of lost packets.

A packet counts as lost without an answer after a second: in a storage network that is a thousand times too late.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plumbline import __version__
from plumbline.config.probes.network import RttConfig
from plumbline.config.workloads import RoundTrip
from plumbline.core.units import si
from plumbline.errors import ProbeRefused
from plumbline.probes.model import Host, Identity, Plan, Progress, Run
from plumbline.probes.network import peer as peers_
from plumbline.probes.network.echo import EchoSocket
from plumbline.probes.network.echo_packet import Answer, Reply, Unreachable
from plumbline.probes.network.handshake import handshake
from plumbline.probes.network.peer import Findings, Peer, failure
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.tool import refuse_if_stopped

LOST_AFTER_S = 1.0
# after this many packets without any answer the peer is absent, and the rest would only take time
_GIVE_UP_AFTER = 10
_MINIMUM = 3


@dataclass(frozen=True, slots=True)
class RttProbe:
    """The round trips between this host and another."""

    config: RttConfig
    workload: RoundTrip
    peer: Peer

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
        with self._asking(run) as ask:
            return measure(
                ask,
                run=run,
                packets=self.config.packets,
                gap_s=float(self.config.gap),
                timeout_s=float(self.config.timeout),
                target=str(self.peer.endpoint),
            )

    @contextlib.contextmanager
    def _asking(self, run: Run) -> Iterator[Callable[[], Reply | None]]:
        address, bind, port = self.peer.address(), self.peer.local(), self.peer.endpoint.port
        if self.workload.protocol == "tcp":
            if port is None:
                raise ProbeRefused("no-port", f"{self.peer.endpoint}: a TCP handshake needs host:port")
            yield lambda: handshake(address, port, bind, timeout_s=LOST_AFTER_S, stopping=run.stopping)
            return
        with EchoSocket(address, bind, stopping=run.stopping) as echo:
            yield lambda: echo.exchange(self.workload.payload_bytes, LOST_AFTER_S)


def build(config: RttConfig, workload: RoundTrip, host: Host) -> Plan:
    """One probe per target."""
    return Plan(periodic=tuple(RttProbe(config, workload, each) for each in peers_.peers(config, host)))


def measure(
    ask: Callable[[], Reply | None], *, run: Run, packets: int, gap_s: float, timeout_s: float, target: str
) -> Findings:
    """Send ``packets`` one after the other; ends early after ``timeout_s``, or if the first ones get no answer."""
    deadline = time.monotonic() + timeout_s - LOST_AFTER_S
    seconds: list[float] = []
    asked, said = 0, ""
    ask()  # not counted: it may wait for the neighbour's hardware address to be resolved
    while asked < packets and time.monotonic() < deadline:
        run.stopping.wait(gap_s)
        reply = ask()
        refuse_if_stopped(run.stopping.is_set())
        asked += 1
        if isinstance(reply, Answer):
            seconds.append(reply.seconds)
        elif isinstance(reply, Unreachable):
            said = f"{f'{reply.hop} says: ' if reply.hop else ''}{reply.reason}"
        if not seconds and asked >= _GIVE_UP_AFTER:
            break
        run.progress(Progress("measuring", asked / packets, _figures(seconds, asked)))
    if not seconds:
        return failure(f"{target}: no answer to {asked} packets{f'; {said}' if said else ''}")
    if asked < min(packets, _MINIMUM):
        return Findings(Outcome.TIMEOUT, message=f"{target}: only {asked} packets in {timeout_s:g} s")
    result = OperationResult(
        operation="round-trip", latency=statistics(seconds), loss_ratio=(asked - len(seconds)) / asked
    )
    return Findings(Outcome.SUCCESS, (result,))


def statistics(seconds: Sequence[float]) -> dict[str, float]:
    """Mean, maximum and percentiles by nearest rank: the smallest value that this share of packets does not exceed."""
    ordered = sorted(seconds)

    def percentile(percent: int) -> float:
        return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1]

    named = {f"p{percent}": percentile(percent) for percent in (50, 95, 99)}
    return {"mean": math.fsum(ordered) / len(ordered), **named, "max": ordered[-1]}


def _figures(seconds: Sequence[float], asked: int) -> str:
    if not seconds:
        return f"no answer to {asked} packets"
    found = statistics(seconds)
    lost = asked - len(seconds)
    return f"p50 {si(found['p50'], 's')}, p99 {si(found['p99'], 's')}, {lost} lost"
