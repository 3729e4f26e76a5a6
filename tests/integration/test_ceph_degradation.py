"""One OSD's disk slowed for real under a real Ceph: one page, for the disk, with RADOS' own alerts inhibited.

The OSD lives on a loop device; the kernel's own throttle (blkio of cgroup v1) slows that device for the OSD and for
our canary on it alike, as a dying disk would. Above it our RADOS canary writes to and reads from every OSD. Baselines
are written from the first minute; daemon, Prometheus, rules, Alertmanager and its routes are the shipped ones, over
shorter windows.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.ceph_cluster import CephCluster, ceph_cluster, missing
from support.ceph_probes import set_up
from support.daemon import Daemon, command_line, eventually, running
from support.disks import disk_folder
from support.filesystems import skip_without_root
from support.loops import Loops
from support.pager import Pager, pager
from support.prometheus import Prometheus, prometheus
from support.throttling import BLKIO, named, throttled

ROOT = Path(__file__).parents[2]
PAGES = {"PlumblineCanaryLatencyExtreme", "PlumblineCanaryLatencyHigh"}
"""What says that a canary is slow, as a page or as a ticket."""
GUILTY, ABOVE = "disk", "rados"
PAGER = "pager"
SITE = """{ _config+:: {
  paces: { compared: '5s', drawn: '5s' },
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
SHORT = "plumbline:canary_latency:seconds"
"""Recorded: a canary's latency over the short window."""
OPERATIONS = {("disk", "read"), ("rados", "write"), ("rados", "read"), ("rados", "remove")}
SLOW_OSD = 1
READS_PER_S, WRITES_PER_S = 2, 6
"""What the slowed disk may do. A write in RADOS takes some of the disk's."""
SLACK = 2.0
"""The baseline is so much above the first medians: this machine does other things beside."""
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
    daemon: Daemon
    prometheus: Prometheus
    pager: Pager

    def firing(self, layer: str) -> set[str]:
        """Alerts of canaries in this layer that Prometheus fires."""
        found = self.prometheus.query(f'ALERTS{{alertstate="firing", layer="{layer}"}}')
        return {labels["alertname"] for labels, _ in found} & PAGES

    def paged(self) -> set[tuple[str, str]]:
        """Cluster and layer of every group that rang the pager."""
        return {(each.labels.get("cluster", ""), each.labels["layer"]) for each in self.pager.messages(PAGER, "firing")}

    def known(self, layer: str) -> list[dict[str, Any]]:
        """Alertmanager's alerts of canaries in this layer."""
        labels_of = [(alert["labels"], alert) for alert in self.pager.alerts()]
        return [alert for labels, alert in labels_of if labels["layer"] == layer and labels["alertname"] in PAGES]

    def workers(self) -> list[int]:
        """The processes that use the disk: the OSD and our canaries' workers."""
        canaries = [pid for pid in self.daemon.children() if "canary_worker" in command_line(pid)]
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
        config = {
            "ceph": {"conf": ceph.conf, "keyring": ceph.keyring, "timeout": "20s"},
            "probes": [
                {"type": "raw-canary", "name": "raw", "devices": [disk], "device_class": "loop", "rate": 10},
                {"type": "rados-canary", "name": "objects", "osds": ["all"], "rate": 6},
            ],
            "devices": {"disk_exclude": "ram.*"},
        }
        rules = tmp_path / "rules"
        (tmp_path / "site.libsonnet").write_text(SITE)
        site = ["--site", tmp_path / "site.libsonnet", "--out", rules]
        subprocess.run([sys.executable, ROOT / "render.py", "--only", "rules", *site], check=True)
        daemon = stack.enter_context(running(tmp_path, config=config))
        told = stack.enter_context(pager(tmp_path, group_wait_s=GROUP_WAIT_S))
        metrics = stack.enter_context(
            prometheus(
                tmp_path,
                target=daemon.url.removeprefix("http://"),
                interval_s=2,
                rules=rules,
                alertmanager=told.address,
            )
        )
        site = tmp_path / "baseline.yaml"
        site.write_text(baseline(metrics))
        assert daemon.reload(config | {"baseline": {"files": [str(site)]}}).rstrip().endswith("configuration reloaded")
        yield Here(cluster, disk, daemon, metrics, told)


def baseline(metrics: Prometheus) -> str:
    """A site file of what the canaries measured so far, as soon as they measured everything."""

    def medians() -> dict[tuple[str, str, str, str], float]:
        found: dict[tuple[str, str, str, str], float] = {}
        for labels, value in metrics.query(f'{SHORT}{{statistic="p50"}}'):
            key = labels["layer"], labels["operation"], labels["workload"], labels["device_class"]
            found[key] = max(value, found.get(key, 0.0))
        return found if {key[:2] for key in found} == OPERATIONS else {}

    eventually(medians, within_s=WITHIN_S)
    time.sleep(40)  # the short window has filled
    lines = ["schema_version: 1", "entries:"]
    for (_, operation, workload, device_class), value in sorted(medians().items()):
        latency = f"{{p50: {SLACK * value * 1e6:.0f}us, p99: {10 * SLACK * value * 1e6:.0f}us}}"
        lines.append(
            f"- {{workload: {workload}, operation: {operation}, device_class: {device_class}, latency: {latency}}}"
        )
    return "\n".join(lines) + "\n"


def slowed(here: Here) -> AbstractContextManager[object]:
    """The disk does little for everybody who uses it; others of this host keep theirs."""
    limits = {"read_iops_device": READS_PER_S, "write_iops_device": WRITES_PER_S}
    return throttled(named(here.disk), here.workers(), **limits)


@pytest.mark.timeout(1500)
def test_a_slow_disk_below_an_osd_pages_once_for_the_disk(here: Here) -> None:
    time.sleep(GROUP_WAIT_S)
    assert here.paged() == set(), "quiet before"
    with slowed(here):
        eventually(lambda: here.firing(GUILTY), within_s=WITHIN_S, every_s=1)
        eventually(lambda: here.firing(ABOVE), within_s=WITHIN_S, every_s=1)
        eventually(here.paged, within_s=WITHIN_S, every_s=1)
        time.sleep(2 * GROUP_WAIT_S)  # whoever else wants to ring has had the time
        assert {layer for _, layer in here.paged()} == {GUILTY}, here.pager.received
        assert len(here.paged()) == 1
        suppressed = here.known(ABOVE)
        assert suppressed, "RADOS noticed"
        assert all(alert["status"]["inhibitedBy"] for alert in suppressed), suppressed
        assert any(not alert["status"]["inhibitedBy"] for alert in here.known(GUILTY))
        assert psutil.pid_exists(here.cluster.pid(f"osd.{SLOW_OSD}"))
    eventually(lambda: here.pager.messages(PAGER, "resolved"), within_s=WITHIN_S, every_s=1)
    eventually(lambda: not here.firing(GUILTY) | here.firing(ABOVE), within_s=WITHIN_S, every_s=1)
    time.sleep(GROUP_WAIT_S)
    assert {layer for _, layer in here.paged()} == {GUILTY}, "what recovers later is no second page"
