"""What the network checks ask about a host: pure data, every part of which may be unknown (``None``).

Unknown is no reason to advise: a check that needs a fact that is not there says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Count:
    """A counter: ``total`` since the kernel or driver began, ``grew`` in the window looked at (``None``: one look)."""

    total: int
    grew: int | None = None

    @property
    def grows(self) -> bool:
        """More became of it in the window."""
        return bool(self.grew)


@dataclass(frozen=True, slots=True)
class Ring:
    """Descriptors of one direction, and how many the port can have."""

    entries: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Coalescing:
    """Interrupt moderation of one direction: the interrupt comes after so long or so many frames."""

    delay_us: float | None = None
    frames: int | None = None
    adaptive: bool | None = None


@dataclass(frozen=True, slots=True)
class Nic:
    """One network interface."""

    device: str
    driver: str | None = None
    """For software links their kind."""
    bus: str = ""
    """Address of the hardware, ``0000:3b:00.0``; empty for software links."""
    physical: bool | None = None
    """A real port: not made of software, and not a hypervisor's."""
    up: bool | None = None
    storage: bool | None = None
    """Carries Ceph's traffic, itself or below a bond, VLAN or bridge; ``None``: nobody said which ones do."""
    roles: frozenset[str] = frozenset()
    """Ceph's networks whose address this interface itself has."""
    mtu_bytes: int | None = None
    speed_bits_per_second: float | None = None
    max_speed_bits_per_second: float | None = None
    full_duplex: bool | None = None
    rx_ring: Ring | None = None
    tx_ring: Ring | None = None
    ring_drops: Count | None = None
    """Received frames for which there was no descriptor."""
    fifo_drops: Count | None = None
    """Received frames that the port's own buffer could not hold."""
    pause_receive: bool | None = None
    pause_transmit: bool | None = None
    pause_autonegotiated: bool | None = None
    pause_frames_received: Count | None = None
    pause_frames_transmitted: Count | None = None
    rx_coalescing: Coalescing | None = None
    tx_coalescing: Coalescing | None = None
    offloads: Mapping[str, bool] = field(default_factory=dict)
    """By the names that ``ethtool -k`` prints."""
    channels: int | None = None
    """Queues that receive."""
    irq_share_max_ratio: float | None = None
    """The busiest CPU's share of the port's interrupts, lately."""
    irq_active_vectors: int | None = None
    """Its interrupt vectors that struck in that time: one alone can't be spread."""

    @property
    def loses(self) -> bool:
        """Received frames are being lost for want of room."""
        return any(count is not None and count.grows for count in (self.ring_drops, self.fifo_drops))


@dataclass(frozen=True, slots=True)
class SoftnetCpu:
    """One CPU's part in receiving packets."""

    cpu: int
    processed: Count | None = None
    dropped: Count | None = None
    squeezed: Count | None = None
    squeezed_by_budget: Count | None = None
    squeezed_by_time: Count | None = None


@dataclass(frozen=True, slots=True)
class BondMember:
    """One interface in a bond."""

    device: str
    up: bool | None = None
    aggregator: int | None = None
    """802.3ad: interfaces with the same number carry traffic together."""
    partner_known: bool | None = None
    """802.3ad: False: the other end never spoke LACP (its address is all zeros)."""
    churned: bool | None = None
    """802.3ad: one side has given up waiting for the other."""


@dataclass(frozen=True, slots=True)
class Bond:
    """One bond."""

    device: str
    mode: str = ""
    monitored: bool | None = None
    """False: nothing looks whether the members' links are alive."""
    members: tuple[BondMember, ...] = ()


@dataclass(frozen=True, slots=True)
class InfinibandPort:
    """One port of an adapter. ``active`` and ``link_up`` are ``ibstatus``'s "state" and "phys state"."""

    device: str
    port: str
    link_layer: str = ""
    """``InfiniBand``, or ``Ethernet`` (RoCE)."""
    active: bool | None = None
    link_up: bool | None = None


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """One host, looked at for ``window_s`` seconds (``None``: once, nothing is known to grow or not)."""

    window_s: float | None = None
    nics: tuple[Nic, ...] = ()
    softnet: tuple[SoftnetCpu, ...] = ()
    sysctls: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By full name; vectors in the kernel's order."""
    tcp_receive_drops: Count | None = None
    """Segments thrown away because a socket's receive buffer was full."""
    bonds: tuple[Bond, ...] = ()
    infiniband: tuple[InfinibandPort, ...] = ()
    ipoib_connected: Mapping[str, bool] = field(default_factory=dict)
    """IPoIB interface → connected mode, not datagram mode."""

    def sysctl(self, name: str) -> int | None:
        """A setting that is one number."""
        values = self.sysctls.get(name)
        return values[0] if values else None

    @property
    def loses(self) -> bool:
        """Some port is losing received frames for want of room."""
        return any(nic.loses for nic in self.nics)
