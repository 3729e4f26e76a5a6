"""The TCP connections of a real cluster's OSDs. One OSD lives behind a wire that delays or loses packets: those that
wait for it are "network" by measurement. With a slow disk behind a good wire they are "peer".

Two network namespaces and a wire between them (:mod:`support.wire`). Pings take the same way: their limit is so high
here that they accuse nobody, and the verdict rests on TCP alone. From 19.2.1 on Ceph tells of its connections on the
admin socket; before that the kernel does, which sees those of its own namespace and whose they are by control group.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from plumbline.ceph_top.verdict import Thresholds, suspect
from plumbline.ceph_top.watch import Where, tops
from plumbline.core.roots import Roots
from support.ceph_cluster import CephCluster, Place, ceph_cluster, missing
from support.ceph_files import OSDS
from support.ceph_probes import set_up
from support.daemon import Daemon, eventually, running
from support.filesystems import skip_without_root
from support.netns import Namespace, namespace
from support.prometheus import Prometheus
from support.slow_osd import PACE, SITE, asking, image, judging, load, verdicts
from support.throttling import below, throttled
from support.wire import DEVICE, wire

T = TypeVar("T")

FAR, NUMBER = "osd.1", 1
NEAR = {f"osd.{number}" for number in range(OSDS)} - {FAR}
HERE, THERE = "10.77.0.1", "10.77.0.2"
RULES = SITE.replace(
    "osd+: { minimumOsds: 3 },", "osd+: { minimumOsds: 3, heartbeat+: { floorSeconds: 1000 } },"
).replace(
    "PlumblineOsdHeartbeatSlow+: {",
    "PlumblineOsdConnectionSlow+: { 'for': '5s', keepFiringFor: '20s' },\n    PlumblineOsdHeartbeatSlow+: {",
)
DELAY_S = 0.04
"""Of each packet; a round trip is twice as long. On a busy machine an OSD's own commit takes 10 to 20 ms."""
LOSES = 0.1
WRITES_PER_S = 40
WITHIN_S = 240.0

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.calm,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(missing("fio", "prometheus")), reason="Ceph, fio or Prometheus is not installed"),
]


@dataclass(slots=True)
class Way:
    """What the wire does."""

    delay_s: float = 0.0
    loses: float = 0.0

    def carries(self, _packet: bytes) -> bool:
        return random.random() >= self.loses


@dataclass(frozen=True, slots=True)
class Here:
    """A cluster with some load, and what watches it. All of it is to be used from inside: see :meth:`inside`."""

    cluster: CephCluster
    daemon: Daemon
    prometheus: Prometheus
    source: str
    """Who tells of connections in this release."""
    way: Way
    pool: ThreadPoolExecutor

    def inside(self, function: Callable[[], T]) -> T:
        return self.pool.submit(function).result()

    def verdicts(self) -> set[tuple[str, str]]:
        """(OSD, verdict)."""
        return verdicts(self.prometheus)

    def slow(self) -> set[tuple[str, str]]:
        """(OSD, figure) of those whose connections explain that they wait."""
        found = self.prometheus.query("plumbline:osd_slow_connection:info")
        return {(labels["ceph_daemon"], labels["figure"]) for labels, _ in found}

    def named(self) -> set[str]:
        """The OSDs in the alerts about connections."""
        found = self.prometheus.query('ALERTS{alertstate="firing", alertname="PlumblineOsdConnectionSlow"}')
        return {labels["ceph_daemon"] for labels, _ in found}

    def figures(self) -> str:
        """What the verdicts stand on."""
        metrics = (
            "plumbline_osd_connections", "plumbline:osd_connection_rtt:seconds", "plumbline:osd_write_share:ratio",
            "plumbline:osd_connection_retransmits:rate5m", "plumbline_osd_connection_worst_peer_id",
            "plumbline:osd_class:ratio", "plumbline:osd_waiting:info", "plumbline:osd_slow_peer:info",
            "plumbline:osd_slow_connections:count",
        )  # fmt: skip
        rows = [
            f"{metric} {sorted(value for name, value in labels.items() if name not in ('__name__', 'instance', 'job'))}"
            f" {value:.4g}"
            for metric in metrics
            for labels, value in self.prometheus.query(metric)
        ]
        return "\n".join([*rows, f"{sorted(self.verdicts())} {sorted(self.slow())} {self.named()}"])

    def eventually(self, look: Callable[[], bool]) -> None:
        began = time.monotonic()
        try:
            eventually(look, within_s=WITHIN_S, every_s=2.0)
            print(f"after {time.monotonic() - began:.0f} s")
        finally:
            print(self.figures())

    def told_by_top(self) -> dict[str, str]:
        """OSD → verdict of ``plumbline ceph top``, for a class as small as here."""
        where = Where(sockets=(f"{self.cluster.folder}/run/*-osd.*.asok",), host="here", roots=Roots.under(Path("/")))
        screens = tops(where, interval_s=10.0)
        top = next(screens)
        screens.close()  # type: ignore[attr-defined]
        judged, _ = suspect(top.osds, Thresholds(minimum_osds=OSDS, minimum_operations=5, ratio=2.0))
        for osd in judged:
            print(osd.daemon, osd.rtt_worst_s, osd.rtt_peer, osd.retransmits_per_s, osd.suspicion)
        return {osd.daemon: osd.suspicion.word for osd in judged if osd.suspicion}


def _groups() -> Path:
    """Where the control groups of version 2 are, beside version 1 or alone."""
    for mount in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")):
        if (mount / "cgroup.procs").exists() and (mount / "cgroup.controllers").exists():
            return mount
    pytest.skip("no control groups of version 2")


def _place(number: int, group: Path, far: Namespace) -> Place:
    """In a control group of its own, as under systemd, and the far one beyond the wire."""
    within = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
    if number == NUMBER:
        return Place(THERE, (*within, "nsenter", f"--net=/run/netns/{far.name}"))
    return Place(HERE, within)


def _start(stack: ExitStack, folder: Path, places: dict[int, Place], way: Way, pool: ThreadPoolExecutor) -> Here:
    cluster = stack.enter_context(ceph_cluster(options={"rbd_cache": "false"}, address=HERE, places=places))
    image(cluster, "all")
    ceph = stack.enter_context(set_up(cluster, timeout_s=20.0))
    cluster.wait_clean()
    config = {"ceph": {**asking(cluster, ceph), "map": "always"}}
    daemon = stack.enter_context(running(folder, config=config))
    watching = judging(folder, cluster, daemon, RULES)
    stack.enter_context(load(cluster, "all", "--rw=randwrite", "--iodepth=8", f"--rate_iops={PACE}"))
    source = "messenger" if cluster.release >= "19" else "kernel"
    return Here(cluster, daemon, stack.enter_context(watching), source, way, pool)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    skip_without_root("makes network namespaces")
    if shutil.which("nsenter") is None:
        pytest.skip("nsenter is missing")
    groups = [_groups() / f"plumbline-test-osd-{number}" for number in range(OSDS)]
    way = Way()
    with ExitStack() as around:
        ours, far = around.enter_context(namespace()), around.enter_context(namespace())
        around.enter_context(wire(ours, far, delay_s=lambda: way.delay_s, carries=way.carries))
        for ns, address in ((ours, HERE), (far, THERE)):
            ns.ip("address", "add", f"{address}/24", "dev", DEVICE)
            ns.ip("link", "set", DEVICE, "up")
        for group in groups:
            group.mkdir(exist_ok=True)
            around.callback(group.rmdir)
        places = {number: _place(number, groups[number], far) for number in range(OSDS)}
        pool = around.enter_context(ThreadPoolExecutor(1, initializer=ours.enter))
        within = ExitStack()
        around.callback(lambda: pool.submit(within.close).result())
        yield pool.submit(_start, within, tmp_path_factory.mktemp("connections"), places, way, pool).result()


@pytest.fixture
def here(watched: Here) -> Iterator[Here]:
    """Connections are measured, and nobody is suspected."""
    seen = NEAR if watched.source == "kernel" else NEAR | {FAR}

    def calm() -> bool:
        measured = watched.prometheus.query("plumbline:osd_connection_rtt:seconds")
        judged = {labels["ceph_daemon"] for labels, _ in measured}
        return judged == seen and not watched.slow() and not watched.named()

    watched.inside(lambda: watched.eventually(calm))
    yield watched
    watched.way.delay_s = watched.way.loses = 0.0


def test_each_osds_connections_are_measured_and_their_far_ends_known(here: Here) -> None:
    found = here.inside(here.daemon.metrics)
    connections = {
        each.labels["ceph_daemon"]: each.value
        for each in found.samples
        if each.name == "plumbline_osd_connections" and each.labels["source"] == here.source
    }
    assert set(connections) == (NEAR if here.source == "kernel" else NEAR | {FAR})
    # each has two peers; the kernel shows those to which it connected, heartbeats on both networks among them
    assert all(count >= 2 for count in connections.values())
    ends = {
        (each.labels["ceph_daemon"], f"osd.{each.value:.0f}")
        for each in found.samples
        if each.name == "plumbline_osd_connection_worst_peer_id" and each.labels["figure"] == "rtt"
    }
    assert {osd for osd, _ in ends} == set(connections)
    assert all(osd != far and far in NEAR | {FAR} for osd, far in ends)


def test_late_packets_are_the_network_of_those_that_wait(here: Here) -> None:
    here.way.delay_s = DELAY_S

    def found() -> bool:
        return here.slow() >= {(osd, "rtt") for osd in NEAR} and FAR in here.named()

    here.inside(lambda: here.eventually(found))
    suspects = here.inside(here.verdicts)
    assert {(osd, "network") for osd in NEAR} <= suspects
    assert not [osd for osd, verdict in suspects if osd in NEAR and verdict != "network"]
    if here.source == "messenger":  # of the kernel it asks for Ceph's usual ports; a test's cluster has others
        told = here.inside(here.told_by_top)
        assert {osd: told.get(osd) for osd in NEAR} == dict.fromkeys(NEAR, "network")


@pytest.mark.long
def test_lost_packets_are_the_network_of_those_that_wait(here: Here) -> None:
    if here.source == "kernel":
        pytest.skip("the kernel shows what an OSD connected; which of two OSDs connected is chance")
    here.way.loses = LOSES

    def found() -> bool:
        return {osd for osd, figure in here.slow() if figure == "retransmits"} >= NEAR and FAR in here.named()

    here.inside(lambda: here.eventually(found))
    assert {(osd, "network") for osd in NEAR} <= here.inside(here.verdicts)


@pytest.mark.long
def test_a_slow_disk_behind_a_good_wire_is_the_peer(here: Here) -> None:
    disk = below(here.cluster.folder)
    with throttled(disk, [here.inside(lambda: here.cluster.pid(FAR))], write_iops_device=WRITES_PER_S):
        # of three OSDs both may wait, and one of them less than the median
        here.inside(lambda: here.eventually(lambda: bool({(osd, "peer") for osd in NEAR} & here.verdicts())))
        until = time.monotonic() + 40.0
        while time.monotonic() < until:  # a reading of the connections later, too
            assert not here.inside(here.slow)
            assert not [osd for osd, verdict in here.inside(here.verdicts) if verdict == "network"]
            time.sleep(5.0)
