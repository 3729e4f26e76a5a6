"""Whole hosts, from their recorded trees and kernel replies to the page that Prometheus gets, byte for byte."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest

from plumbline import __version__
from plumbline.background.health import HealthWatch
from plumbline.background.presence import DiskPresence
from plumbline.background.storage import StorageWatch
from plumbline.baseline.book import Book, load_book
from plumbline.baseline.model import Target
from plumbline.collectors.registry import NAMES, Parts, collectors, configured
from plumbline.config.model import BaselineConfig, Config, DevicesConfig
from plumbline.config.workloads import load_catalogue
from plumbline.core.histogram import HistogramValue
from plumbline.core.roots import Roots
from plumbline.core.slot import PeriodicSlot
from plumbline.metrics.exposition import Exposition
from plumbline.metrics.rendering import Format, Renderer
from plumbline.probes.ceph.cluster import ClusterView
from plumbline.probes.run.histogram import latency_edges
from plumbline.probes.run.model import Identity
from plumbline.probes.run.reading import CanaryReading, CanaryState, WorkloadReading
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.schedule import ProbeStatus
from plumbline.probes.run.state import DiskRecord, DisksSeen, ProbeRecord, StateStore
from plumbline.sources.ceph.cephmap import CephMap, parse_cephmap
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.blocklatency import EARLIER, ENDLESS, INTERRUPTED, UNSEEN, DiskLatency, LatencyReading
from plumbline.sources.disk.diskhealth import Answer, NoHealth, Reason
from plumbline.sources.disk.latencymaps import Histogram, Times
from plumbline.sources.disk.nvme_smart import Limits, parse_health
from plumbline.sources.disk.smartctl import parse_answer
from plumbline.sources.disk.zfs import parse_text
from plumbline.sources.gluster import GlusterReading, parse_heals, parse_state
from plumbline.sources.kernel.lustre import LustreReading, read_lustre
from plumbline.sources.moosefs import MoosefsReading, parse_chunks
from plumbline.sources.net.bonding import read_churns
from plumbline.sources.net.infiniband import InfinibandReading, read_infiniband
from plumbline.sources.net.links import RTM_GETLINK
from plumbline.sources.net.portfacts import Transports
from plumbline.sources.net.roles import Role
from support.bond_messages import NO_PARTNER
from support.ceph_map import answers
from support.golden import check_golden
from support.hosts import NOW, devices_of, ixgbe_network, knowing, parts, recorded_network, silent_network, tree
from support.nvme import USED, smart_page
from support.promtool import complaints
from support.replay_network import ReplayEthtool, ReplayNetlink
from support.scraped import Scrape

PAGES = Path(__file__).parent / "hosts"
FIXTURES = Path(__file__).parents[1] / "fixtures"
HEALTH = FIXTURES / "disk-health"
CATALOGUE = load_catalogue()
WRITE = CATALOGUE.get("randwrite-4k-qd1-j1-dsync", where="test", key="")
FIO = CATALOGUE.get("randread-4k-qd4-j4", where="test", key="")
BOUND_S = 0.00012

SITE = f"""\
schema_version: 1
source: measured
host: storage1
recorded: 2023-11-14T00:00:00Z
devices: [{{name: nvme0n1, device_class: nvme}}]
entries:
- {{workload: {WRITE.id}, device_class: nvme, device: nvme0n1, tolerance_ratio: 1.5,
   latency: {{p50: 40us, p99: 80us}}}}
"""


def page(given: Parts, config: Config, book: Book) -> str:
    """Two scrapes of the whole host; the second one's page, without what changes with versions and clocks."""
    exposition = Exposition(
        collectors(config), configured(given, config, book), clock=lambda: 0.0, logger=logging.getLogger("test.golden")
    )
    names = frozenset(spec.name for spec in exposition.specs) - {"plumbline_build_info"}
    exposition.scrape()
    return Renderer().render(exposition.scrape(), Format.TEXT, names).decode().replace(__version__, "VERSION")


def book(storage: Path, targets: Sequence[Target], config: BaselineConfig) -> Book:
    return load_book(config, where="test", storage=storage, host="storage1", targets=targets)


def disk_latency() -> LatencyReading:
    """A disk that writes and flushes; the shape is that of a virtio disk here, the counts are constructed."""
    none = Histogram((0,) * 28, 0)
    writes = Histogram((*[0] * 5, 2, 20, 468, 406, 31, *[0] * 18), 63_527_717)
    waited = Histogram((40, 850, 37, *[0] * 25), 1_400_000)
    flushes = Histogram((*[0] * 6, 8, 1, *[0] * 20), 492_386)
    times = {
        "read": Times(none, none),
        "write": Times(writes, waited),
        "flush": Times(flushes, none),
        "discard": Times(none, none),
    }
    untimed = {EARLIER: 1, UNSEEN: 0, ENDLESS: 3, INTERRUPTED: 0}
    return LatencyReading((DiskLatency("nvme0n1", times),), untimed)


def canary() -> CanaryReading:
    """An hour of durable 4 KiB writes: most at 40 µs, a few beyond the bound, one in flight."""
    edges = latency_edges((BOUND_S,))
    counts = dict.fromkeys(edges, 0)
    for latency, count in ((39e-6, 17_000), (41e-6, 17_900), (115e-6, 1_000), (0.0089, 12)):
        counts[next(edge for edge in edges if latency <= edge)] += count
    writes = WorkloadReading(
        layer="disk",
        workload=WRITE.id,
        operation="write",
        config_hash=WRITE.config_hash(),
        bounds=(BOUND_S,),
        latency=HistogramValue(edges, tuple(accumulate(counts.values())), 35_913, 2.5),
        charged=3,
        errors={"EIO": 1, "ENOSPC": 0},
        in_flight_s=0.75,
        last_completion_ts=NOW - 0.75,
        last_success_ts=NOW - 0.75,
    )
    return CanaryReading(
        probe="canary",
        device_class="nvme",
        state=CanaryState.RUNNING,
        reason="",
        message="",
        workloads=(writes,),
        in_flight_s=0.75,
        rate_per_s=10.0,
        runs=1,
        skips={"no-space": 1, "locked": 0},
        success=True,
    )


def fio() -> ProbeStatus:
    """A good run an hour ago, after one that timed out."""
    figures = OperationResult(
        operation="read",
        iops=53_000.0,
        throughput=217_088_000.0,
        latency={"mean": 0.0012, "p50": 0.0011, "p95": 0.0021, "p99": 0.0034, "p999": 0.0071, "max": 0.0207},
    )
    result = ProbeResult(
        probe="fio-randread",
        layer="disk",
        device_class="ssd",
        workload=FIO.id,
        config_hash=FIO.config_hash(),
        tool="fio",
        tool_version="3.33",
        started=NOW - 3612.5,
        duration=12.5,
        outcome=Outcome.SUCCESS,
        operations=(figures,),
    )
    identity = Identity(
        probe="fio-randread",
        kind="fio",
        layer="disk",
        device_class="ssd",
        workload=FIO.id,
        operations=FIO.operations,
        config_hash=FIO.config_hash(),
        tool="fio",
    )
    runs = {Outcome.SUCCESS: 41, Outcome.TIMEOUT: 1}
    return ProbeStatus(
        identity, ProbeRecord(result=result, success=result, runs=runs, skipped={"load": 2}), interval_s=21600.0
    )


def healthy_and_not(given: Parts) -> HealthWatch:
    """Disks that work, fail, sleep and do not answer."""
    answers = {"sda": "sata-hdd-failing", "sdb": "sas-hdd", "sdc": "asleep", "nvme1n1": ""}

    def ask(device: BlockDevice) -> Answer:
        if device.transport == "nvme" and device.name in answers:
            health = parse_health(smart_page(USED), Limits(343, 353), source=device.name)
            return msgspec.structs.replace(health, power_state=0)
        if device.name not in answers:
            raise NoHealth(Reason.NO_ANSWER, f"{device.name}: no answer")
        return parse_answer((HEALTH / f"{answers[device.name]}.json").read_bytes(), source=device.name)

    health = HealthWatch(
        devices=lambda: devices_of(given),
        ask=ask,
        interval_s=lambda: 300.0,
        clock=lambda: 1000.0,
        wall=lambda: NOW - 60.0,
    )
    health.refresh(threading.Event())
    return health


def storage_node(tmp_path: Path) -> str:
    """Every kind of disk, an ixgbe port, a canary with a recorded baseline, fio with a documented one that judges;
    the map of a cluster with an OSD that is out."""
    storage = tmp_path / "storage"
    storage.mkdir()
    (storage / "baseline.yaml").write_text(SITE)
    config = Config(baseline=BaselineConfig(judge={"ssd": "unnoba-2020"}))
    targets = (
        Target("canary", "disk", "nvme", WRITE.id, "write", WRITE.config_hash()),
        Target("fio-randread", "disk", "ssd", FIO.id, "read", FIO.config_hash()),
    )
    scenarios = ("disks-storage-node", "disk-queues", "net-software-links", "pressure-linux-6.18", "cpu-power")
    roots = tree(tmp_path / "host", *scenarios)
    given = parts(roots, ixgbe_network(), canaries=(canary(),), probes=(fio(),))
    given = knowing(given, {LatencyReading: disk_latency})
    given.network.refresh()
    given.storage.users.refresh()
    given.storage.queues.refresh()
    given.kernel.power.refresh()
    given.kernel.hugepages.refresh()
    recovering = ClusterView(True, {"recovery": "12 PGs backfilling"})
    given = knowing(
        msgspec.structs.replace(given, storage=StorageWatch(roots, health=healthy_and_not(given))),
        {ClusterView: lambda: recovering, CephMap: lambda: parse_cephmap(answers("-out"), read_ts=NOW - 20)},
    )
    return page(given, config, book(storage, targets, config.baseline))


def virtual_machine(tmp_path: Path) -> str:
    """As captured; no probes, so no baselines; loop devices are left out by default, one more NIC by the site."""
    config = Config(devices=DevicesConfig(disk_exclude=r"(?:loop|zram)\d+"))
    roots = tree(tmp_path / "host", "disks-virtio-vm", "net-virtio-guest")
    given = parts(roots, recorded_network("net-virtio-guest"))
    given.network.refresh()
    given.kernel.refresh(threading.Event())
    given.storage.users.refresh()
    given.storage.queues.refresh()
    return page(given, config, book(tmp_path, (), config.baseline))


def dark_host(tmp_path: Path) -> str:
    """Nothing there, nothing answers: every collector says so, and there is still a page."""
    given = parts(Roots.under(tmp_path / "nowhere"), silent_network())
    (tmp_path / "baseline.yaml").write_text("entries: damaged\n")
    return page(given, Config(), book(tmp_path, (), Config().baseline))


def fabric_node(tmp_path: Path) -> str:
    """A bond on a switch without LACP that carries Ceph's public side, InfiniBand ports, and a client of Lustre."""
    roots = tree(tmp_path / "host", "bond-lacp-no-partner", "infiniband-storage-node", "lustre")
    route = ReplayNetlink({RTM_GETLINK: NO_PARTNER})
    given = parts(roots, Transports(route, ReplayNetlink({}), ReplayEthtool({})))
    given.links.churns = read_churns(roots, on_skip=lambda _item, _reason: None)
    given.links.roles = (Role("bond0", "ceph_public"), Role("enp145s0f0", "ceph_public"))
    given = knowing(
        given, {InfinibandReading: lambda: read_infiniband(roots), LustreReading: lambda: read_lustre(roots)}
    )
    names = ("bond", "topology", "infiniband", "lustre")
    config = Config(collectors={name: name in names for name in NAMES})
    return page(given, config, book(tmp_path, (), config.baseline))


def disks_of(
    tmp_path: Path,
    scenario: str,
    *others: str,
    disk_partitions: bool = False,
    targets: Sequence[Target] = (),
) -> str:
    """What the disks are, who uses them, and one that has left since the last start; and ``others``' collectors."""
    roots = tree(tmp_path / "host", scenario)
    store = StateStore(tmp_path / "state")
    store.put_disks([DiskRecord("sdz", "ZA1GONE", NOW - 9e6, NOW - 86400)])
    given = parts(roots, silent_network())
    facts = devices_of(given)
    presence = DiskPresence(roots, facts=lambda: facts, keep=lambda _: True, store=store, wall=lambda: NOW)
    presence.look()
    given.storage.users.refresh()
    given = knowing(given, {DisksSeen: lambda: presence.seen})
    names = ("device", "disk", "diskpresence", "diskuse", *others)
    config = Config(
        collectors={name: name in names for name in NAMES}, devices=DevicesConfig(disk_partitions=disk_partitions)
    )
    return page(given, config, book(tmp_path, targets, config.baseline))


def cephadm_node(tmp_path: Path) -> str:
    """Ten OSDs by cephadm, all with their RocksDB on one NVMe disk; with the counters of partitions."""
    return disks_of(tmp_path, "ceph-cephadm-node", disk_partitions=True)


def package_node(tmp_path: Path) -> str:
    """OSDs of packages in every layout, encryption, arrays, paths; no counters, so that collector says why.

    It measures a write in RADOS, so it carries the documented latency budgets.
    """
    write = Target("objects/osd.0", "rados", "hdd", "rados-ops-4k", "write", "0123456789ab")
    return disks_of(tmp_path, "ceph-package-node", "baseline", targets=(write,))


def array_node(tmp_path: Path) -> str:
    """Arrays and paths of every kind, many of them in trouble; ZFS's tool says what stands in the fixture."""
    roots = tree(tmp_path / "host", "arrays-storage-node")
    storage = StorageWatch(roots)
    storage.zpools = PeriodicSlot(
        "zpool status", 60.0, "zpool", lambda: parse_text((tmp_path / "host" / "zpool_status.txt").read_text())
    )
    for job in storage.jobs():
        job.run(threading.Event())
    given = msgspec.structs.replace(parts(roots, silent_network()), storage=storage)
    config = Config(collectors={name: name == "array" for name in NAMES})
    return page(given, config, book(tmp_path, (), config.baseline))


def pcie_node(tmp_path: Path) -> str:
    """Drives behind the chipset, on CPUs and asleep, an HBA, network cards that want more lanes."""
    given = parts(tree(tmp_path / "host", "pcie-storage-node"), silent_network())
    given.storage.pcie.refresh()
    config = Config(collectors={name: name == "pcie" for name in NAMES})
    return page(given, config, book(tmp_path, (), config.baseline))


def gluster_node(tmp_path: Path) -> str:
    """A server of GlusterFS with a brick and a peer down, which counts for the pool; a master of MooseFS beside it."""
    gluster, moosefs = FIXTURES / "gluster", FIXTURES / "moosefs"
    heals = parse_heals((gluster / "heal-count.txt").read_bytes())
    reading = GlusterReading(
        parse_state((gluster / "brick-and-peer.txt").read_bytes()),
        {("dr", brick): left for brick, left in heals.items()},
    )
    given = knowing(
        parts(Roots.under(tmp_path / "nowhere"), silent_network()),
        {
            GlusterReading: lambda: reading,
            MoosefsReading: lambda: parse_chunks((moosefs / "missing.txt").read_bytes()),
        },
    )
    config = Config(collectors={name: name in ("gluster", "moosefs") for name in NAMES})
    return page(given, config, book(tmp_path, (), config.baseline))


HOSTS = (
    storage_node,
    virtual_machine,
    dark_host,
    fabric_node,
    cephadm_node,
    package_node,
    array_node,
    pcie_node,
    gluster_node,
)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
def test_host(host: Callable[[Path], str], tmp_path: Path) -> None:
    got = host(tmp_path)

    check_golden(PAGES / f"{host.__name__}.prom", got.encode())
    Scrape.of_text(got)  # every series once
    assert complaints(got.encode()) == []


def test_no_golden_page_is_left_over() -> None:
    assert {path.stem for path in PAGES.iterdir()} == {host.__name__ for host in HOSTS}
