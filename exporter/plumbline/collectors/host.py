"""What the collectors read: the host as the daemon knows it, and the configuration in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from plumbline.background.ceph import OsdWatch
from plumbline.background.host import KernelWatch
from plumbline.background.storage import StorageWatch
from plumbline.baseline.book import Book
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.checks.model import Finding
from plumbline.core.roots import Roots
from plumbline.core.slot import Slot
from plumbline.errors import PlumblineError, Unavailable
from plumbline.metrics.guard import SkipHook
from plumbline.metrics.spec import Sample
from plumbline.probes.ceph.cluster import ClusterView
from plumbline.probes.run.reading import CanaryReading
from plumbline.probes.run.schedule import ProbeStatus
from plumbline.probes.run.state import DiskSeen
from plumbline.sources.ceph.cephmap import CephMap
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.blocklatency import LatencyReading
from plumbline.sources.disk.diskstats import WholeDisks
from plumbline.sources.kernel.softnet import SoftnetUnwrapper
from plumbline.sources.net.bonding import Churns
from plumbline.sources.net.infiniband import InfinibandReading
from plumbline.sources.net.network import NetworkReader
from plumbline.sources.net.roles import Role

if TYPE_CHECKING:
    from plumbline.collectors.daemon import DaemonState

T = TypeVar("T")


class Parts(Struct, frozen=True):
    """The sources of the collectors. Each answers at once: the scrape waits for nothing."""

    roots: Roots
    network: NetworkReader
    devices: Callable[[], Iterable[BlockDevice]]  # May raise :class:`Unavailable`
    softnet: SoftnetUnwrapper  # lives as long as the daemon: its counters must not jump at a reload
    kernel: KernelWatch
    storage: StorageWatch
    canaries: Callable[[], Iterable[CanaryReading]]
    probes: Callable[[], Iterable[ProbeStatus]]
    findings: Callable[[], Iterable[Finding]]  # May raise :class:`Unavailable`
    wall: Callable[[], float]  # Unix seconds
    vantage: str  # the value of the label vantage
    churns: Callable[[], Churns]
    roles: Callable[[], tuple[Role, ...]]
    infiniband: Callable[[], InfinibandReading]  # May raise ``Unavailable``, or another error
    disks_seen: Callable[[], Iterable[DiskSeen]]
    latency: Callable[[], LatencyReading]
    ceph: Callable[[], ClusterView]  # May raise :class:`Unavailable`
    ceph_map: Callable[[], CephMap]  # May raise :class:`Unavailable`, or another error when the cluster does not answer
    osds: OsdWatch
    fingerprint: Callable[[], Fingerprint]  # empty where it is unknown
    daemon: Callable[[], DaemonState]


class Host(Struct, frozen=True):
    """The parts, and the settings for them in the configuration in force."""

    parts: Parts
    book: Book
    disks: WholeDisks  # which disks are reported
    counted: WholeDisks  # disks whose counters are reported: partitions too, where the configuration wants them
    queue_buckets: bool  # whether the time that requests wait is counted in buckets
    baselines: tuple[Sample, ...]  # the book's own figures; constant until the book changes


def slot_value(slot: Slot[T], item: str, skip: SkipHook) -> T | None:
    """The slot's value, ``None`` where there is none; a fault counts as a skipped item."""
    try:
        return slot.value
    except Unavailable:
        return None
    except PlumblineError:
        skip(item, "unreadable")
        return None
