"""Everything read from this host except the probes: readers for the scrape, and the jobs that fill their slots.

The daemon runs the jobs at their intervals; `plumbline check` runs each once a look. The configuration decides what is
reported; it is consulted each time, because a reload may change it.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Set

from plumbline.background.ceph import OsdWatch
from plumbline.background.gluster import GlusterWatch
from plumbline.background.health import DiskAsker, HealthWatch, controller_disks
from plumbline.background.paths import PathMemory
from plumbline.background.presence import DISK_PRESENCE, DiskPresence
from plumbline.background.storage import DISK_USERS, QUEUES, StorageWatch
from plumbline.config.model import Config
from plumbline.core.capabilities import NEVER_USED, Capability, effective, give_up
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.core.slot import PeriodicSlot, Slot
from plumbline.errors import PlumblineError
from plumbline.probes.run.state import DisksSeen, StateStore
from plumbline.sources.ceph.rbd_clients import RbdClientsReading, read_rbd_clients
from plumbline.sources.disk.block import BlockDevice, BlockDevices, read_block_devices
from plumbline.sources.disk.blocklatency import BlockLatency, LatencyReading
from plumbline.sources.gluster import GlusterReading
from plumbline.sources.kernel.cpupower import read_cpu_power
from plumbline.sources.kernel.hugepages import read_hugepages
from plumbline.sources.kernel.lustre import LustreReading, read_lustre
from plumbline.sources.kernel.softirqs import SoftirqReader
from plumbline.sources.kernel.squeeze import SqueezeReader
from plumbline.sources.kernel.sysctl import read_sysctl
from plumbline.sources.moosefs import MoosefsReading, read_chunks
from plumbline.sources.net.drivers import load_table
from plumbline.sources.net.genetlink import resolve_family
from plumbline.sources.net.infiniband import InfinibandReading, read_infiniband
from plumbline.sources.net.lldp import NeighbourReading, read_neighbours
from plumbline.sources.net.netlink import NETLINK_ROUTE, NetlinkSocket
from plumbline.sources.net.network import NetworkReader
from plumbline.sources.net.nic_interrupts import IrqBalanceReader
from plumbline.sources.net.portfacts import LinkFacts, Transports
from plumbline.sources.net.roles import CLUSTER, PUBLIC, Configured

log = logging.getLogger(__name__)

FACTS_EVERY_S = 300.0  # for facts that rarely change (rings, drivers, disk models), apart from kernel events
NETWORK_FACTS, DISK_FACTS, LINK_FACTS = "network facts", "disk facts", "link facts"
COUNTERS_EVERY_S = 15.0
"""For interrupt counters, squeezes and kernel settings: a usual scrape interval; at least 10 s. Also how often to look
for new disks to time; requests that are not recorded until then are lost."""
LATENCY, LATENCY_DISKS = "latency", "disk latencies"

LINKS_CHANGED = (NETWORK_FACTS, LINK_FACTS)
DISKS_CHANGED = (DISK_FACTS, DISK_USERS, DISK_PRESENCE, QUEUES, LATENCY_DISKS)
"""Jobs to run when the kernel reports that a device appeared or disappeared."""


class KernelWatch:
    """Kernel readings that take too long for a scrape or need two samples; each fails on its own and keeps its error. A
    job calls :meth:`refresh`; values are replaced as a whole, so any thread may read them."""

    SERVES = ("interrupts", "softnet", "sysctl", "cpupower", "hugepages")

    def __init__(
        self, *, roots: Roots, clock: Callable[[], float], ticks_per_s: int, keep_nic: Callable[[str], bool]
    ) -> None:
        """``clock`` returns monotonic seconds, ``ticks_per_s`` is ``os.sysconf("SC_CLK_TCK")``."""
        self.interrupts = IrqBalanceReader(roots=roots, clock=clock, keep=keep_nic)
        self.squeezes = SqueezeReader(roots=roots, ticks_per_s=ticks_per_s)
        self.softirqs = SoftirqReader(roots=roots, ticks_per_s=ticks_per_s)
        self.sysctl = Slot(
            lambda: read_sysctl(roots, on_skip=lambda name, reason: log.debug("%s: %s", name, reason)),
            what="kernel settings",
        )
        self.power = Slot(
            lambda: read_cpu_power(roots, on_skip=lambda item, reason: log.debug("%s: %s", item, reason)),
            what="CPU power",
        )
        self.hugepages = Slot(lambda: read_hugepages(roots), what="huge pages")

    def refresh(self, _cancel: threading.Event) -> None:
        self.interrupts.refresh()
        self.squeezes.refresh()
        self.softirqs.refresh()
        for slot in (self.sysctl, self.power, self.hugepages):
            slot.refresh()


class HostFacts:
    """Facts that rarely change, shown however old. The disks have their own job: one that hangs delays nothing else."""

    def __init__(self, network: NetworkReader, roots: Roots) -> None:
        self._network, self._roots = network, roots
        self._ports = Slot(self._read_network, what="network ports")
        self._disks = Slot(self._read_disks, what="the disks")

    def jobs(self) -> list[Job]:
        """Jobs that run at once and every few minutes; kernel events kick them by name."""
        return [
            Job(NETWORK_FACTS, FACTS_EVERY_S, 0.0, self._ports.refresh),
            Job(DISK_FACTS, FACTS_EVERY_S, 0.0, self._disks.refresh),
        ]

    @property
    def read_once(self) -> bool:
        return self._ports.tried and self._disks.tried

    @property
    def devices(self) -> BlockDevices:
        """All disks as last read; before the first reading, raises why there is none."""
        return self._disks.value if self._disks.last is None else self._disks.last

    def _read_network(self) -> None:
        try:
            self._network.refresh()
        except PlumblineError as error:
            log.warning("%s: %s", NETWORK_FACTS, error)

    def _read_disks(self) -> BlockDevices:
        return read_block_devices(
            self._roots, on_skip=lambda item, reason: log.debug("%s: %s left out: %s", DISK_FACTS, item, reason)
        )


class HostWatch:
    """The readers. ``config`` returns the active configuration."""

    def __init__(
        self,
        *,
        config: Callable[[], Config],
        store: StateStore,
        roots: Roots,
        environment: Mapping[str, str],
        osd_addresses: Callable[[], Mapping[str, int]],
    ) -> None:
        self._config, self._roots = config, roots
        self.network = NetworkReader(
            table=load_table(),
            resolve_family=resolve_family,
            scrape=Transports.to_kernel(),
            slow=Transports.to_kernel(),
            clock=time.monotonic,
            keep=self.keeps_nic,
        )
        self.facts = facts = HostFacts(self.network, roots)
        self.kernel = KernelWatch(
            roots=roots, clock=time.monotonic, ticks_per_s=os.sysconf("SC_CLK_TCK"), keep_nic=self.keeps_nic
        )
        self.presence = DiskPresence(
            roots, facts=lambda: facts.devices, keep=self.keeps_disk, store=store, wall=time.time
        )
        self._asker = DiskAsker(roots, environment)
        health = HealthWatch(
            devices=lambda: [
                *(device for device in facts.devices if self.keeps_disk(device.name)),
                *controller_disks(config().devices.controller_disks),
            ],
            ask=self._asker,
            interval_s=lambda: config().devices.health_interval,
        )
        paths = PathMemory(store, wall=time.time)
        self.storage = StorageWatch(roots, zpool=ProcessRunner(environment), health=health, multipath=paths.read)
        self.latency = BlockLatency(roots, keep=self.keeps_disk)
        self.osds = OsdWatch(
            lambda: config().ceph.admin_sockets,
            addresses=osd_addresses,
            client_pools=lambda: config().ceph.client_pools,
            roots=roots,
        )
        self.links = LinkFacts(roots=roots, transport=NetlinkSocket(NETLINK_ROUTE), configured=self._ceph_devices)
        # in the background, because each read queries the adapter's firmware
        self.infiniband = PeriodicSlot(
            "infiniband",
            COUNTERS_EVERY_S,
            "InfiniBand counters",
            lambda: read_infiniband(roots),
            serves=("infiniband",),
        )
        # in the background: see the source
        self.lustre = PeriodicSlot("lustre", COUNTERS_EVERY_S, "Lustre", lambda: read_lustre(roots), serves=("lustre",))
        self.rbd_clients = PeriodicSlot(
            "rbd clients",
            30.0,  # an answer has 10 KiB
            "RBD clients",
            lambda: read_rbd_clients(config().ceph.client_sockets, roots),
            serves=("rbdclient",),
        )
        lldp = ProcessRunner(environment)
        self.neighbours = PeriodicSlot(
            "LLDP neighbours",
            60.0,
            "LLDP neighbours",
            lambda: read_neighbours(roots, lldp),
            serves=("topology",),
            cancel=lldp.stop,
        )
        self.gluster = GlusterWatch(roots, ProcessRunner(environment)).slot
        mfscli = ProcessRunner(environment)
        self.moosefs = PeriodicSlot(
            "moosefs",
            60.0,
            "MooseFS",
            lambda: read_chunks(roots, mfscli),
            serves=("moosefs",),
            cancel=mfscli.stop,
        )

    @property
    def latest(self) -> Mapping[type, Callable[[], object]]:
        """The readings that have no part of their own, by type."""
        return {
            BlockDevices: lambda: self.facts.devices,
            DisksSeen: lambda: self.presence.seen,
            GlusterReading: lambda: self.gluster.value,
            InfinibandReading: lambda: self.infiniband.value,
            LatencyReading: lambda: self.latency.value,
            MoosefsReading: lambda: self.moosefs.value,
            LustreReading: lambda: self.lustre.value,
            NeighbourReading: lambda: self.neighbours.value,
            RbdClientsReading: lambda: self.rbd_clients.value,
        }

    def jobs(self) -> list[Job]:
        return [
            *self.facts.jobs(),
            Job(LINK_FACTS, FACTS_EVERY_S, 0.0, self.links.refresh),
            Job("kernel watch", COUNTERS_EVERY_S, 0.0, self.kernel.refresh, serves=KernelWatch.SERVES),
            Job(LATENCY_DISKS, COUNTERS_EVERY_S, COUNTERS_EVERY_S, self.latency.refresh, serves=(LATENCY,)),
            self.infiniband.job,
            self.lustre.job,
            self.neighbours.job,
            self.gluster.job,
            self.moosefs.job,
            self.rbd_clients.job,
            *self.storage.jobs(),
            *self.osds.jobs(),
            self.presence.job,
        ]

    @property
    def facts_read(self) -> bool:
        """Whether everything that labels are made of has been read, or has failed."""
        return self.facts.read_once and self.storage.users.tried

    @property
    def disks(self) -> tuple[BlockDevice, ...]:
        try:
            return self.facts.devices
        except PlumblineError:
            return ()

    def use_capabilities(self, needed: Set[Capability]) -> str:
        """Do what needs capabilities, then drop all but the ``needed``; a reload can't regain them. Returns a message.
        Call it while there is only one thread: capabilities belong to threads."""
        if self._config().collects(LATENCY):
            self.latency.open()
        unneeded = set(Capability) - needed
        given_up = give_up(unneeded | NEVER_USED)
        if not given_up:
            return ""
        others = len(given_up & NEVER_USED)
        names = [capability.label for capability in sorted(unneeded & given_up)]
        names += [f"{others} that nothing here uses"] if others else []
        kept = ", ".join(capability.label for capability in sorted(effective(self._roots))) or "none of the others"
        return f"given up: {', '.join(names)}; kept: {kept}"

    def configured(self) -> None:
        """After a change of configuration: release what it no longer needs."""
        if not self._config().collects(LATENCY):
            self.latency.close()

    def stop(self) -> None:
        self._asker.runner.stop()

    def keeps_nic(self, name: str) -> bool:
        exclude = self._config().devices.nic_exclude
        return not (exclude and re.fullmatch(exclude, name))

    def keeps_disk(self, name: str) -> bool:
        return not re.fullmatch(self._config().devices.disk_exclude, name)

    def _ceph_devices(self) -> Configured:
        devices = self._config().devices
        return {PUBLIC: devices.ceph_public, CLUSTER: devices.ceph_cluster}
