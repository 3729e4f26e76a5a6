"""Shared by the network probes: the peer they measure, which port of this host leads there, and the result."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass

from plumbline.config.probes.network import NetworkPeriodic
from plumbline.config.types import Endpoint, LocalAddress
from plumbline.config.workloads import Workload
from plumbline.errors import PlumblineError, ProbeRefused
from plumbline.probes.identify import identify
from plumbline.probes.model import Host, Identity, Run
from plumbline.probes.result import OperationResult, Outcome, ProbeResult
from plumbline.sources.net.resolve import resolve
from plumbline.sources.net.routes import speed_word

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Peer:
    """One target of one probe, and the port of this host that led there during planning."""

    endpoint: Endpoint
    bind: LocalAddress | None
    device: str
    """Empty if there was no route, or the name did not resolve in time."""
    device_class: str

    def local(self) -> IpAddress | None:
        """The address to measure from, if one is configured."""
        return None if self.bind is None else ipaddress.ip_address(self.bind)

    def address(self) -> IpAddress:
        """The peer's current address. Raises :class:`ProbeRefused` (``unresolved``) if there is none."""
        local = self.local()
        try:
            return resolve(self.endpoint.host, version=local.version if local else None)
        except PlumblineError as error:
            raise ProbeRefused("unresolved", str(error)) from error


def peers(config: NetworkPeriodic, host: Host) -> list[Peer]:
    """One per target. The device class is the configured one, else the speed of the port that leads there."""
    found = []
    for target in config.targets:
        way = host.way_to(target.host, config.bind)
        speed = way.speed_mbps if way else None
        word = config.device_class or (speed_word(speed) if speed else "unknown")
        found.append(Peer(target, config.bind, way.device if way else "", word))
    return found


def identity(
    config: NetworkPeriodic, peer: Peer, workload: Workload, *, tool: str = "plumbline", rate: float | None = None
) -> Identity:
    """See :class:`~plumbline.probes.model.Identity`; ``rate`` is a limit."""
    return identify(
        config,
        workload,
        probe=f"{config.name}/{peer.endpoint}",
        device_class=peer.device_class,
        tool=tool,
        target=str(peer.endpoint),
        device=peer.device,
        rate_iops=rate,
    )


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a run, before they become a result."""

    outcome: Outcome
    operations: tuple[OperationResult, ...] = ()
    message: str = ""


def failure(message: str) -> Findings:
    """A failed run, and why."""
    return Findings(Outcome.FAILURE, message=message)


def timed(run: Run, identity: Identity, tool_version: str, measure: Callable[[], Findings]) -> ProbeResult:
    """``measure()`` as a result, with start time and duration."""
    started, begun = run.clock(), time.monotonic()
    found = measure()
    return identity.result(
        tool_version=tool_version,
        started=started,
        duration=time.monotonic() - begun,
        outcome=found.outcome,
        operations=found.operations,
        message=found.message,
    )
