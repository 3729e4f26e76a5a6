"""One OSD's disk slowed for real under a real Ceph: one page, for the layer that clients use, which names the disk; one
ticket for the disk; nothing else.

The OSD lives on a loop device; the kernel's own throttle (blkio of cgroup v1) slows that device for the OSD and for
our canary on it alike, as a dying disk would. Above it RADOS canaries of two hosts write to and read from every OSD.
Baselines are written from the first minute; daemons, Prometheus, rules, Alertmanager and its routes are the shipped
ones, over shorter windows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from deploy.demo.webhook import Notification

from support.canary_baseline import baseline
from support.ceph_cluster import CephCluster, ceph_cluster, missing
from support.ceph_probes import set_up
from support.daemon import Daemon, command_line, eventually, running
from support.disks import disk_folder
from support.filesystems import skip_without_root
from support.loops import Loops
from support.pager import Pager, pager
from support.prometheus import CLUSTER, Prometheus, prometheus
from support.rules import rendered
from support.throttling import BLKIO, named, throttled

SLOW = {
    "PlumblineCanaryBudgetBurn",
    "PlumblineCanaryLatencyExtreme",
    "PlumblineCanaryLatencyHigh",
    "PlumblineFleetLatencyHigh",
}
"""What says that a canary is slow, as a page or as a ticket."""
GUILTY, ABOVE = "disk", "rados"
PAGER, TICKETS = "pager", "tickets-storage"
HOSTS = ("stor01", "stor02")
"""The first has the disk."""
SITE = """{ _config+:: {
  paces+: { compared: '5s', drawn: '5s', remembered: '5s', daily: '5s' },
  canary+: {
    shortWindow: '30s', meanLongWindow: '2m', fastWindow: '20s', interval: '5s', slackSeconds: 2,
    minimumOperations: { short: 5, long: 5, fast: 3 }, recoveryWindow: '10s', recoveryLongWindow: '10s',
  },
  alerts+: {
    PlumblineLayerSettling+: { keepFiringFor: '90s' },
    PlumblineCanaryLatencyExtreme+: { page+: { 'for': '10s' }, ticket+: { 'for': '10s' } },
    PlumblineCanaryLatencyHigh+: { span: '30s', capSpan: '20s', keepFiringFor: '10s' },
    PlumblineFleetLatencyHigh+: { span: '20s', keepFiringFor: '10s' },
  },
} }"""
"""The same rules over shorter windows, so that the test need not last an hour."""
OPERATIONS = {("disk", "read"), ("rados", "write"), ("rados", "read"), ("rados", "remove")}
SLOW_OSD = 1
READS_PER_S, WRITES_PER_S = 2, 6
"""What the slowed disk may do. A write in RADOS takes some of the disk's."""
GROUP_WAIT_S = 30
"""Layers notice within seconds of each other; the shipped 45 s for the shipped windows."""
WITHIN_S = 240.0

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.calm,
    pytest.mark.needs_root,
    pytest.mark.skipif(bool(missing("losetup")), reason="Ceph or losetup is not installed"),
    pytest.mark.skipif(not (BLKIO / "blkio.throttle.read_iops_device").exists(), reason="no blkio of cgroup v1"),
]


@dataclass(frozen=True, slots=True)
class Here:
    """A cluster with one OSD on ``disk``, and what watches it."""

    cluster: CephCluster
    disk: str
    daemons: tuple[Daemon, ...]
    prometheus: Prometheus
    pager: Pager

    def firing(self, layer: str) -> set[str]:
        """Alerts of canaries in this layer that Prometheus fires."""
        found = self.prometheus.query(f'ALERTS{{alertstate="firing", layer="{layer}"}}')
        return {labels["alertname"] for labels, _ in found} & SLOW

    def paged(self) -> set[tuple[str, str]]:
        """Cluster and layer of every group that rang the pager."""
        return {(each.labels.get("cluster", ""), each.labels["layer"]) for each in self.pager.messages(PAGER, "firing")}

    def told(self, receiver: str) -> list[Notification]:
        """What a receiver was told of slow canaries."""
        return [each for each in self.pager.messages(receiver, "firing") if each.name in SLOW]

    def workers(self) -> list[int]:
        """The processes that use the disk: the OSD and our canaries' workers."""
        canaries = [pid for pid in self.daemons[0].children() if "canary_worker" in command_line(pid)]
        return [self.cluster.pid(f"osd.{SLOW_OSD}"), *canaries]


@pytest.fixture
def here(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Here]:
    skip_without_root("makes a loop device")
    with ExitStack() as stack:
        folder = stack.enter_context(disk_folder(tmp_path_factory))
        loops = Loops(folder)
        stack.callback(loops.close)
        disk = loops.sparse(gib=4)
        cluster = stack.enter_context(ceph_cluster(disks={SLOW_OSD: disk}))
        ceph = stack.enter_context(set_up(cluster, timeout_s=20.0))
        objects = {"type": "rados-canary", "name": "objects", "osds": ["all"], "rate": 6}
        raw = {"type": "raw-canary", "name": "raw", "devices": [disk], "device_class": "loop", "rate": 10}
        common = {
            "ceph": {"conf": ceph.conf, "keyring": ceph.keyring, "timeout": "20s"},
            "devices": {"disk_exclude": "ram.*"},
        }
        configs = [common | {"probes": [raw, objects]}, common | {"probes": [objects]}]
        rules = rendered(tmp_path, SITE)
        daemons = []
        for host, config in zip(HOSTS, configs, strict=True):
            (tmp_path / host).mkdir()
            # a name of its own: canaries name their objects by it
            prefix = ("unshare", "--uts", "sh", "-c", f'hostname {host}; exec "$@"', "sh")
            daemons.append(stack.enter_context(running(tmp_path / host, config=config, prefix=prefix)))
        told = stack.enter_context(pager(tmp_path, group_wait_s=GROUP_WAIT_S))
        scrapes = [
            {
                "job_name": host,
                "static_configs": [
                    {
                        "targets": [daemon.url.removeprefix("http://")],
                        "labels": {"cluster": CLUSTER, "instance": host, "job": "plumbline"},
                    }
                ],
            }
            for host, daemon in zip(HOSTS, daemons, strict=True)
        ]
        metrics = stack.enter_context(
            prometheus(tmp_path, interval_s=2, rules=rules, alertmanager=told.address, scrapes=scrapes)
        )
        accepted = tmp_path / "baseline.yaml"
        accepted.write_text(baseline(metrics, OPERATIONS))
        for daemon, config in zip(daemons, configs, strict=True):
            said = daemon.reload(config | {"baseline": {"files": [str(accepted)]}})
            assert said.rstrip().endswith("configuration reloaded")
        yield Here(cluster, disk, tuple(daemons), metrics, told)


def slowed(here: Here) -> AbstractContextManager[object]:
    """The disk does little for everybody who uses it; others of this host keep theirs."""
    limits = {"read_iops_device": READS_PER_S, "write_iops_device": WRITES_PER_S}
    return throttled(named(here.disk), here.workers(), **limits)


@pytest.mark.timeout(1500)
def test_a_slow_disk_below_an_osd_pages_once_for_what_clients_feel(here: Here) -> None:
    time.sleep(GROUP_WAIT_S)
    assert here.paged() == set(), "quiet before"
    with slowed(here):
        eventually(lambda: here.firing(GUILTY), within_s=WITHIN_S, every_s=1)
        eventually(here.paged, within_s=WITHIN_S, every_s=1)
        eventually(lambda: here.told(TICKETS), within_s=WITHIN_S, every_s=1)
        time.sleep(2 * GROUP_WAIT_S)  # whoever else wants to ring has had the time
        pages, tickets = here.told(PAGER), here.told(TICKETS)
        print(*(f"{each.receiver} {each.labels} {each.annotations}" for each in pages + tickets), sep="\n")
        assert here.paged() == {(CLUSTER, ABOVE)}
        assert any(f"{here.disk} on {HOSTS[0]}" in each.annotations["description"] for each in pages), (
            "the disk is suspected"
        )
        assert {(each.labels["layer"], each.labels["instance"]) for each in tickets} == {(GUILTY, HOSTS[0])}
        assert psutil.pid_exists(here.cluster.pid(f"osd.{SLOW_OSD}"))
    eventually(lambda: here.pager.messages(PAGER, "resolved"), within_s=WITHIN_S, every_s=1)
    eventually(lambda: not here.firing(GUILTY) | here.firing(ABOVE), within_s=WITHIN_S, every_s=1)
    time.sleep(GROUP_WAIT_S)
    assert here.paged() == {(CLUSTER, ABOVE)}, "what recovers later is no second page"
