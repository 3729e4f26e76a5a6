"""The configuration of probes of the network between nodes."""

from typing import Annotated, ClassVar

from msgspec import Meta

from plumbline.config.probes.base import Periodic
from plumbline.config.types import Duration, Endpoint, FieldError, LocalAddress, Size
from plumbline.config.workloads import Messages, PathMtu, RoundTrip, TcpThroughput, Workload

IPERF3_PORT = 10048
"""The port of `plumbline-iperf3.service` unless a target names another; next to our own 10047."""
QPERF_PORT = 19765  # its own default
PEER_ANSWERS_WITHIN_S = 3.0
"""A peer in the same network that has not answered by then counts as absent."""


class NetworkPeriodic(Periodic, frozen=True, kw_only=True):
    """Fields of every probe of other nodes."""

    layer: ClassVar[str] = "network"

    targets: tuple[Endpoint, ...]
    """Hosts or addresses."""
    bind: LocalAddress | None = None
    """Local address, which selects the network to measure. ``None``: by routing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.targets or len(set(self.targets)) != len(self.targets):
            raise self.mistake("targets", "give at least one target, and none twice")

    def peers(self) -> tuple[tuple[str, str | None], ...]:
        return tuple((target.host, self.bind) for target in self.targets)

    def check_ports(self, *, needed: bool) -> None:
        """Check that all targets name a port if ``needed``, otherwise that none does."""
        for target in self.targets:
            if needed and target.port is None:
                raise FieldError("targets", "a TCP handshake needs host:port", target)
            if not needed and target.port is not None:
                raise FieldError("targets", "this probe uses no port: give only the host", target)


class IperfConfig(NetworkPeriodic, frozen=True, kw_only=True, tag_field="type", tag="iperf3"):
    """TCP throughput and retransmits to other nodes, by iperf3. The other node runs a server, such as
    `systemd/plumbline-iperf3.service`."""

    runs: ClassVar[tuple[type[Workload], ...]] = (TcpThroughput,)
    whole_seconds: ClassVar[bool] = True

    targets: tuple[Endpoint, ...]
    """Hosts or addresses, `host` or `host:port`; the default port is 10048."""
    workload: str = "tcp-throughput-s1"
    """A catalogue id of kind `tcp-throughput`."""
    runtime: Duration = Duration(5.0)
    """Duration of each direction; whole seconds, at least 1s."""
    rate: Size | None = None
    """Cap in bytes per second over all streams; a capped run is compared only with baselines of the same cap."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.runtime % 1:
            raise self.mistake("runtime", "whole seconds, at least 1")
        if self.rate is not None and self.rate < 2**10:
            raise self.mistake("rate", "at least 1KiB a second")

    def check_workload(self, workload: TcpThroughput) -> None:
        takes = len(workload.operations) * (self.runtime + PEER_ANSWERS_WITHIN_S)
        if self.timeout < takes:
            raise self.mistake("timeout", f"both directions take up to {takes:g} s")


class QperfConfig(NetworkPeriodic, frozen=True, kw_only=True, tag_field="type", tag="qperf"):
    """Latency and bandwidth of messages to other nodes, by TCP or RDMA verbs. The other node runs `qperf`."""

    runs: ClassVar[tuple[type[Workload], ...]] = (Messages,)
    whole_seconds: ClassVar[bool] = True

    targets: tuple[Endpoint, ...]
    """Hosts or addresses, `host` or `host:port`; the default port is 19765. For RDMA an address of the RDMA network."""
    workload: str = "rdma-write-lat-64"
    """A catalogue id of kind `messages`."""
    runtime: Duration = Duration(5.0)
    """Duration; whole seconds, at least 1s."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bind is not None:
            raise self.mistake("bind", "qperf has no such option: the target's address decides")
        if self.runtime % 1:
            raise self.mistake("runtime", "whole seconds, at least 1")


class RttConfig(NetworkPeriodic, frozen=True, kw_only=True, tag_field="type", tag="rtt"):
    """Round-trip times to other nodes: many small packets, percentiles and loss."""

    runs: ClassVar[tuple[type[Workload], ...]] = (RoundTrip,)

    targets: tuple[Endpoint, ...]
    """Hosts or addresses; with `tcp-rtt`, `host:port` of a listening service."""
    workload: str = "icmp-rtt-56"
    """A catalogue id of kind `round-trip`."""
    packets: Annotated[int, Meta(ge=3, le=10000)] = 100
    """Packets per run."""
    gap: Duration = Duration(0.05)
    """Time between packets, at least 1ms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.packets * self.gap >= self.timeout:
            raise self.mistake("packets", "packets × gap takes longer than the timeout")

    def check_workload(self, workload: RoundTrip) -> None:
        self.check_ports(needed=workload.protocol == "tcp")


class PathMtuConfig(NetworkPeriodic, frozen=True, kw_only=True, tag_field="type", tag="path-mtu"):
    """The biggest packet that reaches other nodes unfragmented: finds the one switch without jumbo frames."""

    runs: ClassVar[tuple[type[Workload], ...]] = (PathMtu,)

    workload: str = "path-mtu"
    """A catalogue id of kind `path-mtu`."""

    def check_workload(self, workload: PathMtu) -> None:  # noqa: ARG002
        self.check_ports(needed=False)


NetworkProbe = IperfConfig | QperfConfig | RttConfig | PathMtuConfig
