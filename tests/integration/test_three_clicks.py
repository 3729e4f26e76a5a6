"""From the matrix of all clusters to the slow disk, by the links that Grafana would follow, on live data.

Four loop devices are read by clients, and each by the canary; on one of them the kernel's own throttle (blkio of cgroup
v1) holds back the canary and a client. That disk must be what every page on the way shows first.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import dashboards
from support.daemon import Daemon, command_line, eventually, running
from support.grafana_links import ALL, Click, Grafana, Page
from support.prometheus import CLUSTER, prometheus
from support.rules import rendered
from support.slow_disk import disks, one_slow
from support.throttling import named, throttled

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.needs_root, pytest.mark.timeout(900)]

WITHIN_S = 300.0
SITE_RULES = """{ _config+:: {
  paces+: { compared: '5s', drawn: '5s', remembered: '5s', daily: '5s' },
  disk+: { window: '1m', minimumOperationsPerSecond: 1 },
  canary+: { minimumOperations+: { short: 10 } },
  alerts+: { PlumblineDiskLatencyOutlier+: { 'for': '30s' } },
} }"""
"""The same rules over shorter windows, so that a test need not last an hour."""
ACCEPTED = {
    "schema_version": 1,
    "entries": [
        {"workload": "randread-4k-qd1-j1", "device_class": "ssd",
         "latency": {"p50": "20ms", "p99": "50ms", "mean": "20ms"}},
    ],
}  # fmt: skip
"""What the disks were accepted with: far above what a busy test machine needs, far below the throttle."""
CANARY_PER_SECOND, HELD_TO_PER_SECOND = 20, 8
OSD = 7
DISKS = 4


@dataclass(frozen=True)
class Slow:
    """The stack with one slow disk."""

    grafana: Grafana
    instance: str
    disk: str
    disks: list[str]


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slow]:
    with disks(tmp_path_factory, DISKS) as (devices, folder):
        yield from _start(devices, folder, tmp_path_factory.mktemp("clicks"))


def _start(devices: list[Path], folder: Path, tmp_path: Path) -> Iterator[Slow]:
    names = [device.name for device in devices]
    ill = names[1]
    (tmp_path / "site.yaml").write_text(json.dumps(ACCEPTED))
    rules = rendered(tmp_path, SITE_RULES)
    osd = tmp_path / "var/lib/ceph/osd" / f"ceph-{OSD}"
    osd.mkdir(parents=True)
    (osd / "block").symlink_to(f"/dev/{ill}")
    canary = {"type": "raw-canary", "device_class": "ssd", "rate": CANARY_PER_SECOND}
    config = {
        "baseline": {"files": [str(tmp_path / "site.yaml")]},
        "devices": {"disk_exclude": rf"(?!(?:{'|'.join(names)})$).*"},
        # two workers: a throttle holds back a process
        "probes": [
            {**canary, "name": "raw", "devices": [name for name in names if name != ill]},
            {**canary, "name": "rawslow", "devices": [ill]},
        ],
        "collectors": {"health": False},
    }
    with ExitStack() as stack:
        daemon = stack.enter_context(running(tmp_path, "--path.var", tmp_path / "var", config=config))
        if not daemon.metrics().get("plumbline_collector_available", collector="latency"):
            pytest.skip(f"no latency histograms here: {daemon.said()[-300:]}")
        worker = eventually(lambda: _worker(daemon, ill))
        stack.enter_context(throttled(named(ill), [worker], read_iops_device=HELD_TO_PER_SECOND))
        target = daemon.url.removeprefix("http://")
        server = stack.enter_context(prometheus(tmp_path, target=target, interval_s=2, rules=rules))
        stack.enter_context(one_slow(devices, folder, slow=devices[1]))
        firing = f'ALERTS{{alertname="PlumblineDiskLatencyOutlier", alertstate="firing", device="{ill}"}}'
        eventually(lambda: server.query(firing), within_s=WITHIN_S, every_s=2)
        yield Slow(Grafana(server.query, server.variable), target, ill, names)


def _worker(daemon: Daemon, disk: str) -> int | None:
    """The process that reads this disk and no other, once it does."""
    found = [pid for pid in daemon.children() if re.search(rf'canary_worker.*"{disk}"', command_line(pid).strip())]
    return found[0] if found else None


def test_matrix_disks_disk(slow: Slow) -> None:
    overview = slow.grafana.open("/d/plumbline-overview")
    assert overview.variables["cluster"] == ALL
    tolerance = _matrix_steps(overview)[-1]

    def red() -> bool:
        (row,) = overview.table("Degradation by layer and cluster").rows()
        return row["cluster"] == CLUSTER and float(row["disk"] or 0) >= tolerance

    eventually(red, within_s=WITHIN_S, every_s=2)

    disks = overview.click("Degradation by layer and cluster", column="disk")
    assert (disks.uid, disks.variables["cluster"]) == ("plumbline-disks", CLUSTER)
    worst = disks.table("Slowest disks").rows()
    assert {row["disk"] for row in worst} == set(slow.disks)
    assert (worst[0]["disk"], worst[0]["operation"], worst[0]["OSD"]) == (slow.disk, "read", f"osd.{OSD}")
    assert float(worst[0]["to peers"] or 0) >= 4
    assert float(worst[1]["to peers"] or 0) < 4

    disk = disks.click("Slowest disks", column="disk")
    assert disk.uid == "plumbline-disk"
    assert disk.variables == {
        "datasource": "prometheus", "cluster": CLUSTER, "instance": slow.instance, "device": slow.disk,
    }  # fmt: skip
    (shown,) = disk.table("This disk").rows()
    assert (shown["disk"], shown["node"], shown["OSD"]) == (slow.disk, slow.instance, f"osd.{OSD}")
    assert (disk.value("To its peers") or 0) >= 4
    assert (disk.value("Degradation") or 0) >= tolerance
    assert "PlumblineDiskLatencyOutlier" in [row["alert"] for row in disk.table("Its alerts, and since when").rows()]
    back = disk.click("This disk", column="node")
    assert (back.uid, back.variables["instance"]) == ("plumbline-node", slow.instance)


def test_straight_from_the_overview(slow: Slow) -> None:
    """One click, from what is out of line and from the worst figure."""
    overview = slow.grafana.open("/d/plumbline-overview")
    alerts = overview.table("Out of line, and since when").rows()
    row, told = next((n, each) for n, each in enumerate(alerts) if each["alert"] == "PlumblineDiskLatencyOutlier")
    assert (told["layer"], told["device"], told["node"]) == ("disk", slow.disk, slow.instance)
    assert 0 < float(told["for"] or 0) < time.time() - float(told["since"] or 0) / 1000 + 5
    for page in (
        overview.click("Out of line, and since when", column="device", row=row, link="Open Disk"),
        overview.click("Worst latencies", column="device", link="Open Disk"),
    ):
        assert (page.uid, page.variables["device"]) == ("plumbline-disk", slow.disk)
    worst = overview.table("Worst latencies").rows()[0]
    assert worst["probe"] == f"rawslow/{slow.disk}"
    # the rules went on between the queries
    expected = float(worst["degradation"] or 0) * float(worst["baseline"] or 0)
    assert float(worst["measured"] or 0) == pytest.approx(expected, rel=0.5)
    (firing,) = overview.table("Firing alerts by layer and cluster").rows()
    assert float(firing["disk"] or 0) >= 1
    assert overview.click("Firing alerts by layer and cluster", column="disk").uid == "plumbline-disks"

    def suspected() -> set[object]:
        return {row["suspected layer"] for row in overview.table("Suspected layer of each cluster").rows()}

    # recorded from the alerts by a group of its own, which may not have run since the alert fired
    eventually(lambda: suspected() == {"disk"}, within_s=WITHIN_S, every_s=1)


EMPTY = {
    "plumbline-overview": {
        "Suspected OSDs": "there is no Ceph here",
        "In recovery": "there is no Ceph here",
        "Recovery": "there is no Ceph here",
        "Worst IOPS and throughput": "canaries have none, and no fio probe runs here",
    },
    "plumbline-disks": {
        "First worn out": "loop devices tell nothing of their health",
        "Wear and health": "loop devices tell nothing of their health",
        "Errors": "loop devices tell nothing of their health",
        "PCIe links below their best": "loop devices have no link",
        "Hung disks now": "none hangs",
        "Settings and findings": "no disk of a profile's class here breaks a rule",
    },
    "plumbline-disk": {
        "To its past": "the disk is minutes old",
        "Endurance left": "loop devices tell nothing of their health",
        "Latency of writes": "the test only reads",
        "Latency of flushes": "the test only reads",
        "Latency of its OSD": "the OSD is a name without a daemon",
        "Its OSD to its class": "the OSD is a name without a daemon",
        "Its findings": "none is open for a loop device",
        "Its PCIe link": "loop devices have no link",
        "Wear and spare": "loop devices tell nothing of their health",
        "Errors since its beginning": "loop devices tell nothing of their health",
        "Temperature": "loop devices tell nothing of their health",
    },
}
"""Panels that can't have data here, and why."""


@pytest.mark.parametrize("uid", EMPTY)
def test_every_panel_on_the_way_has_data(slow: Slow, uid: str) -> None:
    page = _open(slow, uid)
    titles = [panel["title"] for panel in dashboards.data_panels(page.dashboard)]
    assert EMPTY[uid].keys() <= set(titles)
    lacking = [title for title in titles if title not in EMPTY[uid] and not any(page.vectors(title))]
    assert lacking == []


def test_every_link_on_the_way_opens_a_page(slow: Slow) -> None:
    """Of each row and column that has links: the address names a page we render, with variables it has."""
    for uid in EMPTY:
        for address in _addresses(_open(slow, uid)):
            assert "${" not in address
            if slow.grafana.has(address):
                slow.grafana.open(address)


def _open(slow: Slow, uid: str) -> Page:
    one = f"&var-instance={slow.instance}&var-device={slow.disk}" if uid == "plumbline-disk" else ""
    return slow.grafana.open(f"/d/{uid}?var-cluster={CLUSTER}{one}")


def _addresses(page: Page) -> Iterator[str]:
    for panel in dashboards.data_panels(page.dashboard):
        if panel["type"] == "table":
            shown = page.table(panel["title"])
            for row in range(len(shown)):
                for column in shown.columns:
                    yield from page.addresses(panel["title"], Click(shown, row), column.heading).values()
        else:
            for vector in page.vectors(panel["title"]):
                for labels, _ in vector:
                    yield from page.addresses(panel["title"], Click(labels=labels)).values()


def _matrix_steps(page: Page) -> list[float]:
    steps = page.panel("Degradation by layer and cluster")["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return [step["value"] for step in steps if step["value"] is not None]
