"""The page of a whole storage host: ten OSDs, twelve disks, two 10 Gb/s ports, 64 CPUs, every collector switched on.

A constructed tree of cephadm's layout (``fixtures/ceph-cephadm-node``: a system disk, ten SAS disks, one NVMe disk
with all RocksDBs, a device-mapper volume for each), what a real OSD said under load on ten sockets, SMART answers, a
canary and its baseline, and the findings of the daemon's own judge. Mapped by the daemon's collectors, so the page has
the series that the daemon would export there; only the second port and the CPUs beyond those that a port's queues
name are copies. For counting, and to make fleets of.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import Counter
from itertools import accumulate
from pathlib import Path

import msgspec

from plumbline.background.ceph import OsdWatch
from plumbline.background.health import HealthWatch
from plumbline.background.storage import StorageWatch
from plumbline.baseline.book import load_book
from plumbline.baseline.model import Target
from plumbline.checks.run import Judge
from plumbline.collectors.finding import FindingsReading
from plumbline.collectors.registry import Parts, collectors, configured
from plumbline.config.model import Config
from plumbline.config.workloads import Workload, load_catalogue
from plumbline.core.histogram import HistogramValue
from plumbline.core.roots import Roots
from plumbline.errors import Unavailable
from plumbline.metrics.default_page import DefaultPage
from plumbline.metrics.exposition import Exposition
from plumbline.metrics.rendering import Format, Renderer
from plumbline.probes.ceph.cluster import ClusterView
from plumbline.probes.run.histogram import latency_edges
from plumbline.probes.run.reading import CanaryReading, CanaryState, WorkloadReading
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.blocklatency import EARLIER, ENDLESS, INTERRUPTED, UNSEEN, DiskLatency, LatencyReading
from plumbline.sources.disk.diskhealth import Answer
from plumbline.sources.disk.latencymaps import Histogram, Times
from plumbline.sources.disk.nvme_smart import Limits, parse_health
from plumbline.sources.disk.smartctl import parse_answer
from plumbline.sources.net.roles import Role

from .ceph_pages import parse
from .hosts import FIXTURES, NOW, devices_of, ixgbe_network, knowing, parts, tree
from .nvme import smart_page
from .osd_fleet import osd_fleet

OSDS, PORTS, CPUS = 10, 2, 64
DISKS = ("sda", *(f"sd{letter}" for letter in "bcdefghijk"), "nvme0n1")
"""The physical ones: the system's, the OSDs', their RocksDBs'."""
SUBJECTS = ("disk", "volume", "OSD", "port", "CPU", "canary", "host")
"""What a series is about; the host's own are those that none of the others counts."""
_HEALTHY = {"temperature_kelvin": 311, "spare_percent": 100, "spare_threshold_percent": 10, "used_percent": 4}
_CATALOGUE = load_catalogue()
_CANARY = _CATALOGUE.get("randwrite-4k-qd1-j1-dsync", where="storage host", key="")
_BASELINE = f"""\
schema_version: 1
source: measured
host: storage
recorded: 2023-11-14T00:00:00Z
devices: [{{name: sda, device_class: ssd}}]
entries:
- {{workload: {_CANARY.id}, device_class: ssd, device: sda, tolerance_ratio: 1.5, latency: {{p50: 40us, p99: 80us}}}}
"""


def _softirqs(roots: Roots) -> None:
    """Network softirqs of each CPU, and its ksoftirqd."""
    names, counts = (
        "".join(f"{text:>11}" for text in row) for row in ([f"CPU{cpu}" for cpu in range(CPUS)], range(CPUS))
    )
    (roots.proc / "softirqs").write_text(f"{names}\n      NET_TX:{counts}\n      NET_RX:{counts}\n")
    children = roots.proc / "2" / "task" / "2" / "children"
    children.parent.mkdir(parents=True)
    children.write_text(" ".join(str(100 + cpu) for cpu in range(CPUS)))
    for cpu in range(CPUS):
        (roots.proc / str(100 + cpu)).mkdir()
        stat = f"{100 + cpu} (ksoftirqd/{cpu}) S 2 0 0 0 -1 69238848 0 0 0 0 0 {cpu} 0 0 20 0 1 0\n"
        (roots.proc / str(100 + cpu) / "stat").write_text(stat)


def storage_host(folder: Path, *, full: bool = True) -> str:
    """The text of a second scrape, of the full page if so; ``folder`` is empty, and short enough for a Unix socket's
    address."""
    storage, sockets = folder / "state", folder / "s"
    storage.mkdir()
    sockets.mkdir()
    (storage / "baseline.yaml").write_text(_BASELINE)
    roots = tree(folder / "host", "ceph-cephadm-node", "net-software-links")
    rows = (
        f"{1_000_003 + cpu:08x} {0:08x} {cpu:08x} {' '.join(['00000000'] * 9)} {cpu:08x} {0:08x} {0:08x}\n"
        for cpu in range(CPUS)
    )
    (roots.proc / "net" / "softnet_stat").write_text("".join(rows))
    _softirqs(roots)
    given = parts(roots, ixgbe_network(), canaries=(_canary(_CANARY),))
    config = Config()
    targets = (Target("canary", "disk", "ssd", _CANARY.id, "write", _CANARY.config_hash()),)
    book = load_book(config.baseline, where="host", storage=storage, host="storage", targets=targets)
    osds = OsdWatch(lambda: [f"{sockets}/*.asok"])
    judge = Judge()

    def findings() -> FindingsReading:
        if judge.findings is None:
            raise Unavailable("nothing was judged yet")
        return FindingsReading(judge.findings)

    untimed = dict.fromkeys((EARLIER, UNSEEN, ENDLESS, INTERRUPTED), 0)
    given.links.roles = (Role("eth0", "ceph_public"),)
    given = knowing(
        msgspec.structs.replace(given, storage=StorageWatch(roots, health=_health(given)), osds=osds),
        {
            LatencyReading: lambda: LatencyReading(tuple(map(_latency, DISKS)), untimed),
            ClusterView: lambda: ClusterView(True, {}),
            FindingsReading: findings,
        },
    )
    stop = threading.Event()
    with osd_fleet(sockets, OSDS, peers=3 * OSDS):
        osds.osds.refresh(stop)
        osds.stores.refresh(stop)
        osds.connections.refresh(stop)
    given.network.refresh()
    given.kernel.refresh(stop)
    for job in given.storage.jobs():
        job.run(stop)
    exposition = Exposition(
        collectors(config), configured(given, config, book), clock=lambda: 0.0, logger=logging.getLogger("host")
    )
    for now_s in (0.0, 60.0):
        judge.look(exposition.scrape().readings, now_s)
    snapshot = exposition.scrape() if full else DefaultPage().of(exposition.scrape())
    return _second_port(Renderer().render(snapshot, Format.TEXT).decode())


def counted(page: str) -> Counter[str]:
    """Series of the page by subject; those that a scrape adds (``up`` and its like) are the host's."""
    return Counter(_subject(name, dict(labels)) for name, labels in parse(page)) + Counter(host=SCRAPE_ADDS)


SCRAPE_ADDS = 5
"""``up`` and ``scrape_…``: its duration, its samples before and after relabelling, the series it added."""


def families(page: str) -> Counter[str]:
    """Series by metric, a histogram's together."""
    return Counter(re.sub("_(bucket|sum|count)$", "", name) for name, _ in parse(page))


def _subject(name: str, labels: dict[str, str]) -> str:
    where = labels.get("device") or labels.get("subject", "").partition(" ")[0]
    if "ceph_daemon" in labels:
        return "OSD"
    if labels.get("probe"):
        return "canary"
    if where in DISKS:
        return "disk"
    if where.startswith("dm-"):
        return "volume"
    if "cpu" in labels:
        return "CPU"
    if where.startswith("eth") or labels.get("port"):
        return "port"
    return "host"


def _second_port(page: str) -> str:
    """Everything that is said of ``eth0`` also of ``eth1``."""
    lines = page.splitlines(keepends=True)
    return "".join(
        line + (line.replace('"eth0"', '"eth1"') if '"eth0"' in line and not line.startswith("#") else "")
        for line in lines
    )


def _latency(device: str) -> DiskLatency:
    """A disk that reads, writes and flushes."""
    none = Histogram((0,) * 28, 0)
    used = Histogram((*[0] * 5, 2, 20, 468, 406, 31, *[0] * 18), 63_527_717)
    waited = Histogram((40, 850, 37, *[0] * 25), 1_400_000)
    times = {operation: Times(used, waited) for operation in ("read", "write", "flush")}
    return DiskLatency(device, {**times, "discard": Times(none, none)})


def _canary(workload: Workload) -> CanaryReading:
    bound_s = 0.00012
    edges = latency_edges((bound_s,))
    counts = [17_000 if edge == min(each for each in edges if each >= 39e-6) else 0 for edge in edges]
    writes = WorkloadReading(
        layer="disk",
        workload=workload.id,
        operation="write",
        config_hash=workload.config_hash(),
        bounds=(bound_s,),
        latency=HistogramValue(edges, tuple(accumulate(counts)), 17_000, 0.66),
        charged=3,
        errors={"EIO": 0, "ENOSPC": 0},
        in_flight_s=0.0,
        last_completion_ts=NOW - 0.1,
        last_success_ts=NOW - 0.1,
    )
    return CanaryReading(
        probe="canary",
        device_class="ssd",
        state=CanaryState.RUNNING,
        reason="",
        message="",
        workloads=(writes, msgspec.structs.replace(writes, operation="read")),
        in_flight_s=0.0,
        rate_per_s=10.0,
        runs=1,
        skips={"no-space": 0, "locked": 0},
        success=True,
    )


def _health(given: Parts) -> HealthWatch:
    def ask(device: BlockDevice) -> Answer:
        if device.transport == "nvme":
            return parse_health(smart_page(_HEALTHY), Limits(343, 353), source=device.name)
        kind = "sata-ssd" if device.name == "sda" else "sas-hdd"
        return parse_answer((FIXTURES / "disk-health" / f"{kind}.json").read_bytes(), source=device.name)

    health = HealthWatch(
        devices=lambda: devices_of(given),
        ask=ask,
        interval_s=lambda: 300.0,
        clock=lambda: 1000.0,
        wall=lambda: NOW - 60.0,
    )
    health.refresh(threading.Event())
    return health
