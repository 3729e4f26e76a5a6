"""Every collector there is, literally: which reading becomes which samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from plumbline.baseline.book import Book
from plumbline.catalogue import MetricSpec, Sample, Samples
from plumbline.checks.model import Finding
from plumbline.collectors import (
    array,
    baseline,
    bond,
    canary,
    ceph,
    cephmap,
    disk,
    finding,
    health,
    infiniband,
    interrupts,
    knobs,
    latency,
    mount,
    nic,
    osd,
    pcie,
    probe,
    queue,
    softnet,
    sysctl,
    tcp,
    topology,
)
from plumbline.config import Config
from plumbline.core.slot import Slot
from plumbline.errors import PlumblineError, Unavailable
from plumbline.exposition import Collector, SkipHook
from plumbline.fingerprint import Fingerprint
from plumbline.kernelwatch import KernelWatch
from plumbline.osdwatch import OsdWatch
from plumbline.probes.canary_reading import CanaryReading
from plumbline.probes.cluster import ClusterView
from plumbline.roots import Roots
from plumbline.sources.block import BlockDevice
from plumbline.sources.blocklatency import LatencyReading
from plumbline.sources.bonding_proc import Churns
from plumbline.sources.cephmap import CephMap
from plumbline.sources.diskstats import WholeDisks, read_whole_disks
from plumbline.sources.infiniband import InfinibandReading
from plumbline.sources.md import MdReading
from plumbline.sources.network import NetworkReader
from plumbline.sources.pcidevices import PciReading
from plumbline.sources.queuesettings import QueueReading
from plumbline.sources.roles import Role
from plumbline.sources.softnet import read_softnet
from plumbline.sources.tcp import read_tcp
from plumbline.sources.zfs import NO_ZFS
from plumbline.state import DiskSeen
from plumbline.storagewatch import StorageWatch

T = TypeVar("T")


def _not_loaded() -> LatencyReading:
    raise Unavailable("nobody has loaded the BPF program")


def _no_adapter() -> InfinibandReading:
    raise Unavailable("nobody looks for InfiniBand adapters")


def _no_cluster() -> ClusterView:
    raise Unavailable("nobody looks at a Ceph cluster")


def _no_map() -> CephMap:
    raise Unavailable("nobody asks for a cluster map")


@dataclass(frozen=True, slots=True)
class Parts:
    """What the collectors read. Everything answers at once: the scrape waits for nothing."""

    roots: Roots
    network: NetworkReader
    devices: Callable[[], Iterable[BlockDevice]]
    """May raise :class:`Unavailable`."""
    softnet: softnet.SoftnetUnwrapper
    """Lives as long as the daemon: its counters must not jump at a reload."""
    kernel: KernelWatch
    storage: StorageWatch
    canaries: Callable[[], Iterable[CanaryReading]]
    probes: Callable[[], Iterable[probe.ProbeStatus]]
    findings: Callable[[], Iterable[Finding]]
    """May raise :class:`Unavailable`."""
    wall: Callable[[], float]
    """Unix seconds."""
    vantage: str = ""
    """The label of the same name."""
    churns: Callable[[], Churns] = dict
    roles: Callable[[], Iterable[Role]] = tuple
    infiniband: Callable[[], InfinibandReading] = _no_adapter
    """May raise :class:`Unavailable`, or another error when the adapter does not answer."""
    disks_seen: Callable[[], Iterable[DiskSeen]] = tuple
    latency: Callable[[], LatencyReading] = _not_loaded
    ceph: Callable[[], ClusterView] = _no_cluster
    """May raise :class:`Unavailable`."""
    ceph_map: Callable[[], CephMap] = _no_map
    """May raise :class:`Unavailable`, or another error when the cluster does not answer."""
    osds: OsdWatch | None = None
    """``None``: nobody asks them."""
    fingerprint: Callable[[], Fingerprint] = Fingerprint
    """Empty where it is not known."""


def collectors(parts: Parts, config: Config, book: Book) -> list[Collector]:
    """All that ``config`` leaves switched on, in the order of their work."""
    network, kernel, roots = parts.network, parts.kernel, parts.roots
    disks = WholeDisks(roots, exclude=re.compile(config.devices.disk_exclude))
    counted = disks.with_partitions() if config.devices.disk_partitions else disks
    baselines = (*baseline.samples(book.selection), *baseline.budget_samples(book.budgets))
    known = [
        _steady(
            "softnet",
            softnet.SPECS,
            lambda: softnet.samples(parts.softnet.unwrap(read_softnet(roots)), kernel.squeezes.latest),
        ),
        _steady("interrupts", interrupts.SPECS, lambda: interrupts.samples(kernel.interrupts.latest)),
        _steady("tcp", tcp.SPECS, lambda: tcp.samples(read_tcp(roots))),
        _steady("sysctl", sysctl.SPECS, lambda: sysctl.samples(kernel.sysctl)),
        _steady("link", nic.LINK_SPECS, lambda: nic.link_samples(network.read_links())),
        Collector("ethtool", nic.ETHTOOL_SPECS, lambda skip: nic.ethtool_samples(network.read_losses(skip))),
        _steady("ring", nic.RING_SPECS, lambda: nic.ring_samples(network.read_rings())),
        Collector("pause", nic.PAUSE_SPECS, lambda skip: nic.pause_samples(network.read_pause(skip))),
        _steady("channel", knobs.CHANNEL_SPECS, lambda: knobs.channel_samples(network.read_channels())),
        _steady("coalesce", knobs.COALESCE_SPECS, lambda: knobs.coalesce_samples(network.read_coalescing())),
        _steady("offload", knobs.OFFLOAD_SPECS, lambda: knobs.offload_samples(network.read_offloads())),
        Collector("linkmode", knobs.LINKMODE_SPECS, lambda skip: knobs.linkmode_samples(network.read_link_modes(skip))),
        Collector("bond", bond.SPECS, lambda skip: bond.samples(network.read_bonds(skip), parts.churns())),
        _steady("topology", topology.SPECS, lambda: topology.samples(network.read_relations(), parts.roles())),
        Collector("infiniband", infiniband.SPECS, lambda skip: _infiniband_samples(parts.infiniband(), skip)),
        _steady("disk", disk.SPECS, lambda: disk.samples(read_whole_disks(roots, counted))),
        Collector("array", array.SPECS, lambda skip: _array_samples(parts.storage, skip)),
        _steady(
            "device",
            disk.DEVICE_SPECS,
            lambda: disk.device_samples((each for each in parts.devices() if disks(each.name)), parts.storage.osds),
        ),
        _steady("mount", mount.SPECS, lambda: mount.samples(parts.storage.mounts.states)),
        _steady("diskuse", disk.USE_SPECS, lambda: disk.use_samples(parts.storage.users.value, disks)),
        _steady("diskpresence", disk.PRESENCE_SPECS, lambda: disk.presence_samples(parts.disks_seen())),
        Collector("queue", queue.SPECS, lambda skip: _queue_samples(parts.storage.queues.value, disks, skip)),
        Collector(
            "pcie",
            pcie.SPECS,
            lambda skip: _pcie_samples(parts.storage.pcie.value, skip),
            skip_reasons=("malformed",),
        ),
        _steady("health", health.SPECS, lambda: health.samples(parts.storage.health)),
        _steady("latency", latency.SPECS, lambda: latency.samples(_shown(parts.latency(), disks))),
        _steady("canary", canary.SPECS, lambda: canary.samples(parts.canaries(), vantage=parts.vantage)),
        _steady("ceph", ceph.SPECS, lambda: ceph.samples(parts.ceph())),
        Collector("cephmap", cephmap.SPECS, lambda skip: _map_samples(parts.ceph_map(), skip), ("unreadable",)),
        Collector("osd", osd.SPECS, lambda skip: _osd_samples(parts.osds, skip)),
        _steady("probe", probe.SPECS, lambda: probe.samples(parts.probes(), now=parts.wall())),
        _steady("finding", finding.SPECS, lambda: finding.samples(parts.findings())),
        _steady("baseline", baseline.SPECS, lambda: _baseline_samples(baselines, book, parts.fingerprint)),
    ]
    return [each for each in known if config.collectors.get(each.name, True)]


def _steady(name: str, specs: tuple[MetricSpec, ...], collect: Callable[[], Samples]) -> Collector:
    """A collector that gives all or nothing: it has no items to leave out."""
    return Collector(name, specs, lambda _skip: collect(), skip_reasons=())


def _shown(reading: LatencyReading, keep: Callable[[str], bool]) -> LatencyReading:
    return replace(reading, disks=tuple(each for each in reading.disks if keep(each.device)))


def _infiniband_samples(reading: InfinibandReading, skip: SkipHook) -> Samples:
    for port, reason in reading.skipped:
        skip(port, reason)
    return infiniband.samples(reading)


def _queue_samples(reading: QueueReading, keep: WholeDisks, skip: SkipHook) -> Samples:
    for device, reason in reading.skipped:
        if keep(device):
            skip(device, reason)
    return queue.samples(each for each in reading.queues if keep(each.device))


def _array_samples(watch: StorageWatch, skip: SkipHook) -> Samples:
    """Each kind for itself: an array that hangs must not hide the pools."""
    arrays = _slot(watch.md, "md arrays", skip) or MdReading(())
    for item, reason in arrays.skipped:
        skip(item, reason)
    yield from array.md_samples(arrays)
    pools, statuses = _slot(watch.zfs, "ZFS pools", skip), _slot(watch.zpools, "zpool status", skip)
    yield from array.zfs_samples(pools or NO_ZFS, statuses)
    disks = _slot(watch.multipath, "multipath disks", skip)
    yield from array.multipath_samples(disks or ())


def _slot(slot: Slot[T], item: str, skip: SkipHook) -> T | None:
    """What is there of it; a fault counts as a skipped item."""
    try:
        return slot.value
    except Unavailable:
        return None
    except PlumblineError:
        skip(item, "unreadable")
        return None


def _pcie_samples(reading: PciReading, skip: SkipHook) -> Samples:
    for address, reason in reading.skipped:
        skip(address, reason)
    return pcie.samples(reading)


def _map_samples(found: CephMap, skip: SkipHook) -> Samples:
    if found.unread:
        skip(f"what is used ({found.unread})", "unreadable")
    return cephmap.samples(found)


def _osd_samples(watch: OsdWatch | None, skip: SkipHook) -> Samples:
    if watch is None:
        raise Unavailable("nobody asks the OSDs of this host")
    osds = watch.osds.value
    for each in osds:
        if each.denied:
            skip(each.daemon, "unreadable")
        for command, reason in each.unread:
            skip(f"{each.daemon} {command}", reason)
    stores = _slot(watch.stores, "the OSDs' stores", skip)
    return osd.samples(osds, stores or ())


def _baseline_samples(baselines: tuple[Sample, ...], book: Book, fingerprint: Callable[[], Fingerprint]) -> Samples:
    """A recorded baseline that can't be read fails the collector, so that an alert says so."""
    if book.recorded_error is not None:
        raise book.recorded_error
    yield from baselines
    yield from baseline.environment_samples(book.measured_on, fingerprint())
