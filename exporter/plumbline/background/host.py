"""Everything read from this host except the probes: readers for the scrape, and the jobs that fill their slots.

The daemon runs the jobs at their intervals; `plumbline check` runs each once a look. The configuration decides what is
reported; it is consulted each time, because a reload may change it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Set

from plumbline.background.health import DiskAsker, HealthWatch
from plumbline.background.host_facts import DISK_FACTS, FACTS_EVERY_S, NETWORK_FACTS, HostFacts
from plumbline.background.kernel import KernelWatch
from plumbline.background.osd import OsdWatch
from plumbline.background.presence import DISK_PRESENCE, DiskPresence
from plumbline.background.storage import DISK_USERS, QUEUES, StorageWatch
from plumbline.config.model import Config
from plumbline.core.capabilities import NEVER_USED, Capability, effective, give_up
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.core.scheduler import Job
from plumbline.core.slot import Slot
from plumbline.errors import PlumblineError
from plumbline.probes.state import StateStore
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.blocklatency import BlockLatency
from plumbline.sources.net.driverrules import load_table
from plumbline.sources.net.genetlink import resolve_family
from plumbline.sources.net.infiniband import InfinibandReading, read_infiniband
from plumbline.sources.net.linkfacts import LinkFacts
from plumbline.sources.net.netlink import NETLINK_ROUTE, NetlinkSocket
from plumbline.sources.net.network import NetworkReader
from plumbline.sources.net.portfacts import Transports
from plumbline.sources.net.roles import CLUSTER, PUBLIC, Configured

KERNEL_WATCH_EVERY_S = 15.0
"""For interrupt counters, squeezes and kernel settings: a usual scrape interval; at least 10 s."""
LINK_FACTS = "link facts"
INFINIBAND, INFINIBAND_EVERY_S = "infiniband", 15.0
"""InfiniBand counters are read in the background, because each read queries the adapter's firmware."""
LATENCY, LATENCY_DISKS = "latency", "disk latencies"
LATENCY_DISKS_EVERY_S = 15.0
"""How often to look for new disks; requests that are not recorded until then are lost."""

LINKS_CHANGED = (NETWORK_FACTS, LINK_FACTS)
DISKS_CHANGED = (DISK_FACTS, DISK_USERS, DISK_PRESENCE, QUEUES, LATENCY_DISKS)
"""Jobs to run when the kernel reports that a device appeared or disappeared."""


class HostWatch:
    """The readers. ``config`` returns the active configuration."""

    def __init__(
        self, *, config: Callable[[], Config], store: StateStore, roots: Roots, environment: Mapping[str, str]
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
            devices=lambda: [each for each in facts.devices if self.keeps_disk(each.name)],
            ask=self._asker,
            interval_s=lambda: config().devices.health_interval,
        )
        self.storage = StorageWatch(roots, zpool=ProcessRunner(environment), health=health)
        self.latency = BlockLatency(roots, keep=self.keeps_disk)
        self.osds = OsdWatch(lambda: config().ceph.admin_sockets if config().collectors.get("osd", True) else ())
        self.links = LinkFacts(roots=roots, transport=NetlinkSocket(NETLINK_ROUTE), configured=self._ceph_devices)
        self.infiniband = Slot[InfinibandReading](
            lambda: read_infiniband(roots), what="InfiniBand counters", stale_after_s=4 * INFINIBAND_EVERY_S
        )

    def jobs(self) -> list[Job]:
        """All jobs that read outside the scrape."""
        return [
            *self.facts.jobs(),
            Job(LINK_FACTS, FACTS_EVERY_S, 0.0, self.links.refresh),
            Job("kernel watch", KERNEL_WATCH_EVERY_S, 0.0, self.kernel.refresh),
            Job(LATENCY_DISKS, LATENCY_DISKS_EVERY_S, LATENCY_DISKS_EVERY_S, self.latency.refresh),
            Job(INFINIBAND, INFINIBAND_EVERY_S, 0.0, self.infiniband.refresh),
            *self.storage.jobs(),
            *self.osds.jobs(),
            *self.presence.jobs(),
        ]

    @property
    def facts_read(self) -> bool:
        """Whether everything that labels are made of has been read, or has failed."""
        return self.facts.read_once and self.storage.users.tried

    @property
    def disks(self) -> tuple[BlockDevice, ...]:
        """All disks as last read; empty before that."""
        try:
            return self.facts.devices
        except PlumblineError:
            return ()

    def use_capabilities(self, needed: Set[Capability]) -> str:
        """Do what needs capabilities, then drop all but the ``needed``; a reload can't regain them. Returns a message.

        Call it while there is only one thread: capabilities belong to threads.
        """
        if self._config().collectors.get(LATENCY, True):
            self.latency.open()
        not_wanted = set(Capability) - needed
        given_up = give_up(not_wanted | NEVER_USED)
        if not given_up:
            return ""
        others = len(given_up & NEVER_USED)
        names = [each.label for each in sorted(not_wanted & given_up)]
        names += [f"{others} that nothing here uses"] if others else []
        kept = ", ".join(each.label for each in sorted(effective(self._roots))) or "none of the others"
        return f"given up: {', '.join(names)}; kept: {kept}"

    def configured(self) -> None:
        """After a change of configuration: release what it no longer needs."""
        if not self._config().collectors.get(LATENCY, True):
            self.latency.close()

    def stop(self) -> None:
        """End the running queries to disks."""
        self._asker.runner.stop()

    def keeps_nic(self, name: str) -> bool:
        """Whether this network device is reported."""
        exclude = self._config().devices.nic_exclude
        return not (exclude and re.fullmatch(exclude, name))

    def keeps_disk(self, name: str) -> bool:
        """Whether this disk is reported."""
        return not re.fullmatch(self._config().devices.disk_exclude, name)

    def _ceph_devices(self) -> Configured:
        devices = self._config().devices
        return {PUBLIC: devices.ceph_public, CLUSTER: devices.ceph_cluster}
