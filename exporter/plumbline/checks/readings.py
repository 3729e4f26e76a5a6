"""What the checks judge: the readings behind one page of metrics."""

from collections.abc import Mapping

from msgspec import Struct, field

from plumbline.sources.arrays import Arrays
from plumbline.sources.ceph.osds import OsdStore
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.blocklatency import LatencyReading
from plumbline.sources.disk.diskhealth import DiskState
from plumbline.sources.disk.queuesettings import QueueSettings
from plumbline.sources.kernel.cgroup import GroupLimits
from plumbline.sources.kernel.cpupower import CpuPower
from plumbline.sources.kernel.hugepages import HugePages
from plumbline.sources.kernel.pressure import Pressure
from plumbline.sources.kernel.softnet import SoftnetCpu
from plumbline.sources.kernel.squeeze import Squeezes
from plumbline.sources.kernel.sysctl import SysctlReading
from plumbline.sources.kernel.tcp import TcpReading
from plumbline.sources.net.bonding import Bond, Churns
from plumbline.sources.net.features import Offload
from plumbline.sources.net.infiniband import InfinibandReading
from plumbline.sources.net.links import Relation
from plumbline.sources.net.network import LinksReading, PortLosses, PortModes
from plumbline.sources.net.nic_interrupts import IrqBalance
from plumbline.sources.net.port_settings import Coalescing, PauseState, RingSizes
from plumbline.sources.net.roles import Role
from plumbline.sources.pci.pcidevices import PciReading


class Readings(Struct, frozen=True):
    """The readings of one page. Empty for a collector that is switched off, failed or unavailable."""

    softnet: tuple[SoftnetCpu, ...] = ()
    squeezes: Mapping[int, Squeezes] = field(default_factory=dict)  # by CPU
    interrupts: tuple[IrqBalance, ...] = ()
    tcp: TcpReading | None = None
    sysctl: SysctlReading = field(default_factory=lambda: SysctlReading({}, {}))
    links: LinksReading = field(default_factory=lambda: LinksReading((), {}))
    losses: tuple[PortLosses, ...] = ()
    rings: tuple[tuple[str, RingSizes], ...] = ()
    pause: tuple[tuple[str, PauseState], ...] = ()
    coalescing: tuple[tuple[str, Coalescing], ...] = ()
    offloads: tuple[tuple[str, tuple[Offload, ...]], ...] = ()
    link_modes: tuple[PortModes, ...] = ()
    bonds: tuple[Bond, ...] = ()
    churns: Churns = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    roles: tuple[Role, ...] = ()
    infiniband: InfinibandReading = field(default_factory=lambda: InfinibandReading((), {}))
    arrays: Arrays = field(default_factory=lambda: Arrays(None, None, None, None))
    devices: tuple[BlockDevice, ...] = ()
    osds: Mapping[str, str] = field(default_factory=dict)  # device → the OSDs whose data it holds, osd.3,osd.4
    disk_uses: tuple[tuple[str, str, str], ...] = ()  # (disk, kind of use, user)
    queues: tuple[QueueSettings, ...] = ()
    pcie: PciReading = field(default_factory=lambda: PciReading((), {}))
    health: tuple[DiskState, ...] = ()
    latency: LatencyReading | str | None = None  # A text says why there are none; None: switched off, or failed
    stores: tuple[OsdStore, ...] = ()
    limits: Mapping[str, GroupLimits] = field(default_factory=dict)  # by OSD
    power: CpuPower | None = None
    hugepages: HugePages | None = None
    pressures: tuple[Pressure, ...] = ()
