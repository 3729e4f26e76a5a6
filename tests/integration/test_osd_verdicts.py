"""Four faults of one OSD in a real Ceph, and the verdicts of a real Prometheus with the shipped rules: a slow device
is "disk", a limit above its device "limit", delayed messages are "network", too much to do is "queue"; for that OSD,
and for no other. Canaries of the other OSDs, whose writes wait for the slow one, are told innocent and held back.

Prometheus scrapes the manager and our daemon, which asks the OSDs' admin sockets, times their loop devices and runs
RADOS canaries; Alertmanager has the shipped routes. Only windows are shortened.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

import pytest

from support.canary_baseline import baseline
from support.ceph_cluster import CephCluster, ceph_cluster, missing
from support.ceph_files import OSDS
from support.ceph_probes import set_up
from support.daemon import eventually, running
from support.disks import disk_folder
from support.filesystems import skip_without_root
from support.loops import Loops
from support.pager import Pager, pager
from support.prometheus import Prometheus
from support.slow_osd import PACE, SITE, asking, homes, image, judging, load, slow_device, verdicts
from support.throttling import named, throttled

FIGURES = (
    "plumbline:osd_compared:figure",
    "plumbline:osd_class:ratio",
    "plumbline:osd_write_share:ratio",
    "plumbline:osd_read_share:ratio",
    "plumbline_osd_heartbeat_seconds",
)
GUILTY, NUMBER = "osd.1", 1
WRITES_PER_S = 40
"""What a slow device may do: an OSD makes about two hundred on account of the clients. A write of a canary then takes
half a second, whatever else keeps this machine busy."""
LIMITED_WRITES_PER_S = 100
"""What an OSD may do above its device. Held to 200 it was three times as slow as the others on a quiet disk (the
border), and less than that on one that others kept busy."""
CANARY = "objects"
WAITING = ("write", "remove")
"""What a canary does that waits for replicas."""
DELAY_S = 0.2
"""The most that a message of the slow network is late."""
WITHIN_S = 170.0
LASTS_S = 15.0

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.calm,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        bool(missing("fio", "prometheus", "prometheus-alertmanager")),
        reason="Ceph, fio or the Prometheus stack is not installed",
    ),
]


@dataclass(frozen=True, slots=True)
class Here:
    """A cluster with some load, and what watches it."""

    cluster: CephCluster
    prometheus: Prometheus
    disk: str
    """Of the guilty OSD."""
    pager: Pager

    def verdicts(self) -> set[tuple[str, str]]:
        """(OSD, verdict)."""
        return verdicts(self.prometheus)

    def firing(self) -> set[tuple[str, str]]:
        """(alert, OSD), of the alerts that name one."""
        found = self.prometheus.query('ALERTS{alertstate="firing", alertname=~"PlumblineOsd.+"}')
        return {(labels["alertname"], labels.get("ceph_daemon", "")) for labels, _ in found}

    def figures(self) -> str:
        """What the verdicts stand on."""
        rows = [
            f"{labels['ceph_daemon']} {metric} {labels.get('figure', labels.get('part', labels.get('interface')))}"
            f" {labels.get('statistic', '')} {value:.4g}"
            for metric in FIGURES
            for labels, value in self.prometheus.query(metric)
        ]
        return "\n".join(sorted(rows))

    def finds(self, verdict: str, alert: str) -> None:
        """The verdict comes for the guilty OSD, and stays its and no other's; others may wait for it as their peer.

        Figures of the fault arrive one OSD at a time, pings as averages of a minute: in a cluster of three one that was
        asked sooner can be suspected until the next is asked. What counts stands from the moment all agree.
        """
        began = time.monotonic()
        seen: set[tuple[str, str]] = set()
        try:
            eventually(lambda: self._agrees(verdict, alert), within_s=WITHIN_S, every_s=2.0)
            print(f"{verdict} after {time.monotonic() - began:.0f} s")
            until = time.monotonic() + LASTS_S
            while time.monotonic() < until:
                seen.update(self.verdicts())
                time.sleep(2.0)
        finally:
            print(sorted(seen), sorted(self.firing()), self.figures(), sep="\n")
        assert {each for each in seen if each[1] != "peer"} == {(GUILTY, verdict)}
        assert (GUILTY, "peer") not in seen
        assert {osd for name, osd in self.firing() if name == alert} == {GUILTY}

    def waiting(self) -> set[str]:
        """The OSDs whose canaries wait for a replica."""
        found = self.prometheus.query('ALERTS{alertstate="firing", alertname="PlumblineCanaryReplicaSlow"}')
        return {labels["target"] for labels, _ in found}

    def held_back(self) -> set[tuple[str, str]]:
        """(canary, operation) of the alerts that are inhibited because that canary waits for a replica."""
        alerts = self.pager.alerts()
        waits = {each["fingerprint"] for each in alerts if each["labels"]["alertname"] == "PlumblineCanaryReplicaSlow"}
        held = [each["labels"] for each in alerts if waits & set(each["status"]["inhibitedBy"])]
        return {(labels["probe"], labels["operation"]) for labels in held}

    def called_innocent(self) -> set[tuple[str, str]]:
        """(canary, operation) of the pages that say for whom the OSD waits."""
        said = re.compile(
            "itself is not suspected: its writes wait for replicas on other OSDs. "
            rf"Slow OSDs: {re.escape(GUILTY)} on [^ ,]+\.(\s|$)"
        )
        alerts = [each for each in self.pager.alerts() if said.search(each["annotations"]["description"])]
        return {(each["labels"]["probe"], each["labels"]["operation"]) for each in alerts}

    def _agrees(self, verdict: str, alert: str) -> bool:
        suspects = {each for each in self.verdicts() if each[1] != "peer"}
        return suspects == {(GUILTY, verdict)} and {osd for name, osd in self.firing() if name == alert} == {GUILTY}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    skip_without_root("makes loop devices")
    folder = tmp_path_factory.mktemp("verdicts")
    # connections get what delays their messages when they are made; nothing is late before a probability is set
    options = {"ms_inject_delay_type": "osd", "rbd_cache": "false"}
    with ExitStack() as stack:
        loops = Loops(stack.enter_context(disk_folder(tmp_path_factory)))
        stack.callback(loops.close)
        disks = {number: loops.sparse(gib=4) for number in range(OSDS)}
        cluster = stack.enter_context(ceph_cluster(options=options, disks=disks))
        image(cluster, "all")
        cluster.ceph("osd", "crush", "rule", "create-replicated", "one", f"node-{NUMBER}", "osd")
        cluster.ceph("osd", "pool", "create", "one", "8", "8", "replicated", "one")
        cluster.ceph("osd", "pool", "set", "one", "size", "1", "--yes-i-really-mean-it")
        cluster.wait_clean()
        cluster.run("rbd", "create", "--size=16M", "--object-size=1M", "one/one")
        # what was never written needs no work to be read
        cluster.run("rbd", "bench", "--io-type=write", "--io-size=1M", "--io-total=16M", "--io-pattern=seq", "one/one")

        ceph = stack.enter_context(set_up(cluster, timeout_s=20.0))
        cluster.ceph("osd", "pool", "set", ceph.pool, "size", str(OSDS))  # so that each write waits for each OSD
        cluster.wait_clean()
        config = {
            "ceph": asking(cluster, ceph),
            "devices": {"disk_exclude": "ram.*"},
            "probes": [{"type": "rados-canary", "name": CANARY, "osds": ["all"], "rate": 3}],
        }
        homes(cluster, folder / "var", disks)
        daemon = stack.enter_context(running(folder, "--path.var", folder / "var", config=config))
        told = stack.enter_context(pager(folder, group_wait_s=45))
        metrics = stack.enter_context(judging(folder, cluster, daemon, SITE, alertmanager=told.address))
        stack.enter_context(load(cluster, "all", "--rw=randwrite", "--iodepth=8", f"--rate_iops={PACE}"))
        accepted = folder / "baseline.yaml"
        accepted.write_text(baseline(metrics, {("rados", operation) for operation in ("read", *WAITING)}))
        said = daemon.reload(config | {"baseline": {"files": [str(accepted)]}})
        assert said.rstrip().endswith("configuration reloaded")
        yield Here(cluster, metrics, disks[NUMBER], told)


@pytest.fixture
def here(watched: Here) -> Here:
    """Everybody has figures, nobody is suspected."""

    def calm() -> bool:
        judged = watched.prometheus.query('plumbline:osd_class:ratio{figure=~"commit|block"}')
        return len(judged) == 2 * OSDS and not watched.verdicts() and not watched.firing()

    try:
        eventually(calm, within_s=240.0, every_s=2.0)
    except AssertionError:
        print(sorted(watched.verdicts()), sorted(watched.firing()), watched.figures(), sep="\n")
        raise
    return watched


def limit(here: Here) -> AbstractContextManager[object]:
    """One OSD's writes to its own device: they wait above it, and it is as fast as ever."""
    return throttled(named(here.disk), [here.cluster.pid(GUILTY)], write_iops_device=LIMITED_WRITES_PER_S)


@contextlib.contextmanager
def late_messages(ceph: CephCluster) -> Iterator[None]:
    """Messages of other OSDs reach this one late, pings among them."""
    ceph.ceph("tell", GUILTY, "config", "set", "ms_inject_delay_max", str(DELAY_S))
    ceph.ceph("tell", GUILTY, "config", "set", "ms_inject_delay_probability", "1")
    try:
        yield
    finally:
        ceph.ceph("tell", GUILTY, "config", "set", "ms_inject_delay_probability", "0")


def test_a_slow_device_is_the_osds_own_disk_and_canaries_that_wait_for_it_are_innocent(here: Here) -> None:
    innocent = {f"osd.{number}" for number in range(OSDS)} - {GUILTY}
    expected = {(f"{CANARY}/{osd}", operation) for osd in innocent for operation in WAITING}
    with slow_device(here.cluster, GUILTY, here.disk, WRITES_PER_S):
        here.finds("disk", "PlumblineOsdSlowDisk")
        try:
            eventually(lambda: here.called_innocent() >= expected <= here.held_back(), within_s=WITHIN_S, every_s=2.0)
        finally:
            print(here.waiting(), here.called_innocent(), here.held_back(), here.figures(), sep="\n")
        assert here.waiting() == innocent
        assert here.called_innocent() == here.held_back() == expected, "neither the guilty one nor reads"
        eventually(lambda: _told(here, "PlumblineOsdSlowDisk"), within_s=WITHIN_S, every_s=2.0)
    assert {labels["ceph_daemon"] for labels in _told(here, "PlumblineOsdSlowDisk")} == {GUILTY}
    assert not [labels for labels in _told(here, "PlumblineCanaryLatencyHigh") if _key(labels) in expected]


def _told(here: Here, name: str) -> list[dict[str, str]]:
    """Labels of the tickets of this name."""
    return [each.labels for each in here.pager.messages("tickets-storage", "firing") if each.name == name]


def _key(labels: dict[str, str]) -> tuple[str, str]:
    return labels["probe"], labels["operation"]


@pytest.mark.long
def test_a_limit_above_the_device_is_told_as_one(here: Here) -> None:
    with limit(here):
        here.finds("limit", "PlumblineOsdLimited")


@pytest.mark.long
def test_an_osd_that_has_too_much_to_do_queues(here: Here) -> None:
    with load(here.cluster, "one", "--rw=randread", "--iodepth=128"):
        here.finds("queue", "PlumblineOsdQueueing")


# test_osd_connections.py has late packets in every run
@pytest.mark.long
def test_late_messages_are_the_network(here: Here) -> None:
    with late_messages(here.cluster):
        here.finds("network", "PlumblineOsdHeartbeatSlow")
