"""What the network probes share: the peer, the port of this host that leads there, identity and result."""

import ipaddress
import time

from msgspec import Struct

from plumbline import __version__
from plumbline.config.probes.network import NetworkPeriodic
from plumbline.config.types import Endpoint, LocalAddress
from plumbline.config.workloads import Workload
from plumbline.errors import PlumblineError, ProbeRefused
from plumbline.probes.run.model import Host, Identity, Run
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.sources.net.routes import IpAddress, resolve, speed_word


class Peer(Struct, frozen=True):
    """One target of one probe, and the port of this host that led there during planning."""

    endpoint: Endpoint
    bind: LocalAddress | None
    device: str  # Empty if there was no route, or the name did not resolve in time
    device_class: str

    def local(self) -> IpAddress | None:
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
    addresses = []
    for target in config.targets:
        way = host.way_to(target.host, config.bind)
        speed = way.speed_mbps if way else None
        device_class = config.device_class or (speed_word(speed) if speed else "unknown")
        addresses.append(Peer(target, config.bind, way.device if way else "", device_class))
    return addresses


class Findings(Struct, frozen=True):
    outcome: Outcome
    operations: tuple[OperationResult, ...] = ()
    message: str = ""


def failure(message: str) -> Findings:
    return Findings(Outcome.FAILURE, message=message)


class PeerProbe(Struct, frozen=True):
    """A periodic probe of one peer. Each kind adds what it measures, as ``_measure``."""

    config: NetworkPeriodic
    workload: Workload
    peer: Peer

    heavy = False
    program = "plumbline"

    @property
    def identity(self) -> Identity:
        return Identity.of(
            self.config,
            self.workload,
            probe=f"{self.config.name}/{self.peer.endpoint}",
            device_class=self.peer.device_class,
            tool=self.program,
            target=str(self.peer.endpoint),
            device=self.peer.device,
            rate_iops=self.rate,
        )

    @property
    def rate(self) -> float | None:
        return None

    def run(self, run: Run) -> ProbeResult:
        version = self._version(run)
        started, begun = run.clock(), time.monotonic()
        result = self._measure(run)
        return self.identity.result(
            tool_version=version,
            started=started,
            duration=time.monotonic() - begun,
            outcome=result.outcome,
            operations=result.operations,
            message=result.message,
        )

    def clean_up(self, run: Run) -> None:
        """Nothing is left behind but connections that the kernels close."""

    def _version(self, run: Run) -> str:  # noqa: ARG002
        return __version__

    def _measure(self, run: Run) -> Findings:
        raise NotImplementedError
