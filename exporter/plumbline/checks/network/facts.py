"""What the network checks need to know about a host: pure data, any part of which may be unknown (``None``).

A check gives no advice when a fact it needs is unknown.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from plumbline.checks.growth import Count, Growth
from plumbline.metrics.snapshot import Readings
from plumbline.sources.kernel.squeeze import SoftnetReading
from plumbline.sources.kernel.sysctl import SysctlReading
from plumbline.sources.kernel.tcp import TcpReading
from plumbline.sources.net.bonding import Bond, BondsReading, Churns, SlaveChurn
from plumbline.sources.net.infiniband import InfinibandReading
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.network import (
    CoalescingReading,
    LinkModesReading,
    LinksReading,
    LossesReading,
    OffloadsReading,
    PauseReading,
    RingsReading,
)
from plumbline.sources.net.nic_interrupts import IrqBalance, IrqBalances
from plumbline.sources.net.port_settings import Coalescing, PauseConfig, RingSizes
from plumbline.sources.net.roles import TopologyReading

PARAVIRTUAL = frozenset({"virtio_net", "vmxnet3", "hv_netvsc", "netvsc", "xen_netfront", "vif", "ena", "gve", "mana"})
"""Drivers of ports that a hypervisor emulates: the other side determines their rings, speed and moderation."""


class Nic(Struct, frozen=True):
    device: str
    driver: str | None = None  # the kind, for software links
    bus: str = ""  # the hardware's bus address, 0000:3b:00.0; empty for software links
    up: bool | None = None
    storage: bool | None = None
    """Carries Ceph's traffic, itself or below a bond, VLAN or bridge; ``None``: it is unknown which ones do."""
    roles: frozenset[str] = frozenset()  # Ceph's networks of which it carries traffic
    carries: frozenset[str] = frozenset()  # the interfaces above it that have such a role, too
    mtu_bytes: int | None = None
    speed_mbps: int | None = None
    modes: LinkModes = field(default_factory=LinkModes)
    rings: RingSizes = field(default_factory=RingSizes)
    ring_drops: Count | None = None  # received frames dropped for want of a descriptor
    fifo_drops: Count | None = None  # received frames that did not fit into the port's own buffer
    pause: PauseConfig | None = None
    pause_frames_received: Count | None = None
    coalescing: Coalescing | None = None
    offloads: Mapping[str, bool] = field(default_factory=dict)  # by the names of ethtool -k
    interrupts: IrqBalance | None = None  # None: too few interrupts recently

    @property
    def physical(self) -> bool | None:
        """Whether it is a real port: neither software nor a hypervisor's."""
        return None if self.driver is None else bool(self.bus) and self.driver not in PARAVIRTUAL

    @property
    def loses(self) -> bool:
        """Whether received frames are being lost for want of room."""
        return any(count is not None and count.grows for count in (self.ring_drops, self.fifo_drops))


class SoftnetCpu(Struct, frozen=True):
    cpu: int
    processed: Count | None = None
    dropped: Count | None = None
    squeezed: Count | None = None
    squeezed_by_budget: Count | None = None
    squeezed_by_time: Count | None = None


class NetworkFacts(Struct, frozen=True):
    """One host, watched for ``window_s`` seconds (``None``: looked at once, growth is unknown)."""

    window_s: float | None = None
    nics: tuple[Nic, ...] = ()
    softnet: tuple[SoftnetCpu, ...] = ()
    sysctl: SysctlReading = field(default_factory=lambda: SysctlReading({}, {}))
    tcp_receive_drops: Count | None = None  # segments dropped because a socket's receive buffer was full
    bonds: tuple[Bond, ...] = ()
    infiniband: InfinibandReading = field(default_factory=lambda: InfinibandReading((), {}))

    @property
    def loses(self) -> bool:
        """Whether some port is losing received frames for want of room."""
        return any(nic.loses for nic in self.nics)


def network_facts(readings: Readings, growth: Growth) -> NetworkFacts:
    tcp, bonds = readings.get(TcpReading), readings.or_empty(BondsReading)
    return NetworkFacts(
        window_s=growth.seen_s,
        nics=tuple(_nics(readings, growth)),
        softnet=tuple(_softnet(readings, growth)),
        sysctl=readings.or_empty(SysctlReading),
        tcp_receive_drops=growth.count("tcp receive queue drops", tcp.receive_queue_drops if tcp else None),
        bonds=tuple(_with_churns(bond, bonds.churns) for bond in bonds.bonds),
        infiniband=readings.or_empty(InfinibandReading),
    )


def _nics(readings: Readings, growth: Growth) -> Iterator[Nic]:
    reading = readings.or_empty(LinksReading)
    links = {link.name: link for link in reading.links}
    ports = {port.device: port for port in readings.or_empty(LossesReading)}
    modes = {port.device: port.modes for port in readings.or_empty(LinkModesReading)}
    rings, pauses = dict(readings.or_empty(RingsReading)), dict(readings.or_empty(PauseReading))
    coalescing = dict(readings.or_empty(CoalescingReading))
    offloads = dict(readings.or_empty(OffloadsReading))
    interrupts = {balance.device: balance for balance in readings.or_empty(IrqBalances)}
    roles, carries = _carriers(readings)
    for device in sorted(links.keys() | ports.keys()):
        link, port, pause = links.get(device), ports.get(device), pauses.get(device)
        lost = {cause: frames for way, cause, frames in port.loss.drops if way == "receive"} if port else {}
        yield Nic(
            device=device,
            driver=port.driver if port else None,
            bus=port.bus if port else "",
            up=link.up if link else None,
            storage=device in roles or device in carries if roles else None,
            roles=roles.get(device, frozenset()),
            carries=frozenset(carries.get(device, ())),
            mtu_bytes=link.mtu_bytes if link else None,
            speed_mbps=reading.speeds_mbps.get(link.ifindex) if link else None,
            modes=modes.get(device, LinkModes()),
            rings=rings.get(device, RingSizes()),
            ring_drops=growth.count("frames lost in the ring", lost.get("ring"), device),
            fifo_drops=growth.count("frames lost in the port's buffer", lost.get("fifo"), device),
            pause=pause.config if pause else None,
            pause_frames_received=growth.count(
                "pause frames received", pause.receive_frames if pause else None, device
            ),
            coalescing=coalescing.get(device),
            offloads={offload.name: offload.enabled for offload in offloads.get(device, ())},
            interrupts=interrupts.get(device),
        )


def _carriers(readings: Readings) -> tuple[Mapping[str, frozenset[str]], Mapping[str, set[str]]]:
    """Interface → Ceph's networks of which it carries traffic; interface → those interfaces above it."""
    roles: dict[str, frozenset[str]] = {}
    topology = readings.or_empty(TopologyReading)
    for role in topology.roles:
        if role.role.startswith("ceph_"):
            roles[role.device] = roles.get(role.device, frozenset()) | {role.role}
    lowers: dict[str, set[str]] = defaultdict(set)
    for relation in topology.relations:
        lowers[relation.device].add(relation.lower)
    for port in readings.or_empty(LossesReading):
        lowers[port.master].add(port.device)
    carries: dict[str, set[str]] = defaultdict(set)
    for device in roles:
        ahead = [device]
        while ahead:
            new = {lower for lower in lowers[ahead.pop()] if device not in carries[lower]}
            for lower in new:
                carries[lower].add(device)
            ahead += new
    return roles, carries


def _softnet(readings: Readings, growth: Growth) -> Iterator[SoftnetCpu]:
    reading = readings.or_empty(SoftnetReading)
    for cpu in reading.cpus:
        squeezes = reading.squeezes.get(cpu.cpu)
        yield SoftnetCpu(
            cpu.cpu,
            growth.count("softnet processed", cpu.processed, cpu.cpu),
            growth.count("softnet dropped", cpu.dropped, cpu.cpu),
            growth.count("softnet squeezed", cpu.time_squeeze, cpu.cpu),
            growth.count("softnet squeezed by budget", squeezes.budget if squeezes else None, cpu.cpu),
            growth.count("softnet squeezed by time", squeezes.time if squeezes else None, cpu.cpu),
        )


def _with_churns(bond: Bond, churns: Churns) -> Bond:
    """Add the churn states that netlink of older kernels lacks."""
    slaves = []
    for slave in bond.slaves:
        known = churns.get((bond.device, slave.device), SlaveChurn())
        actor, partner = slave.actor_churn or known.actor, slave.partner_churn or known.partner
        slaves.append(replace(slave, actor_churn=actor, partner_churn=partner))
    return replace(bond, slaves=tuple(slaves))
