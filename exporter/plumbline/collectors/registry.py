"""Every collector, in the order in which they run."""

import re
from typing import Any

from plumbline.baseline.book import Book
from plumbline.collectors import (
    array,
    baseline,
    bond,
    canary,
    ceph,
    cephmap,
    cpupower,
    daemon,
    disk,
    fileservers,
    finding,
    health,
    hugepages,
    infiniband,
    interrupts,
    latency,
    maintenance,
    mount,
    nic,
    osd,
    osdtcp,
    pcie,
    pressure,
    probe,
    queue,
    rbdclient,
    runqueue,
    softnet,
    sysctl,
    tcp,
    topology,
)
from plumbline.collectors.host import Host, Parts
from plumbline.config.model import Config
from plumbline.core.capabilities import Capability
from plumbline.metrics import self_metrics
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import MetricSpec
from plumbline.sources.disk.diskstats import WholeDisks

__all__ = ["COLLECTORS", "NAMES", "Host", "Parts", "capabilities", "collectors", "configured", "every_spec"]

COLLECTORS: tuple[Collector[Host, Any], ...] = (
    softnet.COLLECTOR,
    interrupts.COLLECTOR,
    tcp.COLLECTOR,
    sysctl.COLLECTOR,
    pressure.COLLECTOR,
    runqueue.COLLECTOR,
    cpupower.COLLECTOR,
    hugepages.COLLECTOR,
    nic.LINK,
    nic.ETHTOOL,
    nic.RING,
    nic.PAUSE,
    nic.CHANNEL,
    nic.COALESCE,
    nic.OFFLOAD,
    nic.LINKMODE,
    bond.COLLECTOR,
    topology.COLLECTOR,
    infiniband.COLLECTOR,
    disk.DISK,
    array.COLLECTOR,
    disk.DEVICE,
    mount.COLLECTOR,
    fileservers.GLUSTER,
    fileservers.MOOSEFS,
    fileservers.LUSTRE,
    disk.DISKUSE,
    disk.DISKPRESENCE,
    queue.COLLECTOR,
    pcie.COLLECTOR,
    health.COLLECTOR,
    latency.COLLECTOR,
    canary.COLLECTOR,
    ceph.COLLECTOR,
    cephmap.COLLECTOR,
    maintenance.COLLECTOR,
    osd.COLLECTOR,
    osdtcp.COLLECTOR,
    rbdclient.COLLECTOR,
    probe.COLLECTOR,
    finding.COLLECTOR,
    baseline.COLLECTOR,
    daemon.COLLECTOR,
)

NAMES = tuple(
    sorted(collector.name for collector in COLLECTORS if collector.listed)
)  # for ``collectors:``, ``--collector.<name>``


def collectors(config: Config) -> list[Collector[Host, Any]]:
    """All collectors that ``config`` leaves switched on, in the order in which they run."""
    return [collector for collector in COLLECTORS if config.collects(collector.name)]


def every_spec() -> tuple[MetricSpec, ...]:
    """All specs of all collectors and of the exporter itself, each once, sorted by name; for references and tests."""
    specs = {*self_metrics.SPECS, *(spec for collector in COLLECTORS for spec in collector.specs)}
    return tuple(sorted(specs, key=lambda spec: spec.name))


def capabilities(config: Config) -> frozenset[Capability]:
    return frozenset[Capability]().union(*(collector.capabilities for collector in collectors(config)))


def configured(parts: Parts, config: Config, book: Book) -> Host:
    disks = WholeDisks(parts.roots, exclude=re.compile(config.devices.disk_exclude))
    return Host(
        parts,
        book,
        disks=disks,
        counted=disks.with_partitions() if config.devices.disk_partitions else disks,
        queue_buckets=config.devices.disk_queue_buckets,
        baselines=(*baseline.samples(book.selection), *baseline.budget_samples(book.budgets)),
    )
