"""A small fleet with faults, as scrape targets: six storage hosts and a Ceph manager, and five recorded hosts.

What is wrong on purpose, and what that is to look like:

- stor01, 02, 03 and 05: durable writes take 2 ms and more instead of 40 µs: most of the fleet is beyond its baseline;
- stor02: one read in twenty from sdc takes a quarter of a second;
- stor03: frames are lost for want of room in the ring;
- stor01: its MTU is not that of the others, which are all in the other shard;
- stor06: does not answer;
- osd.2 is down, as Ceph's manager says.

The recorded hosts have their own troubles: arrays without disks, a bond without its partner, disks that fail.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from deploy.demo.processes import Processes
from deploy.demo.slowdown import Disk, choose, workers

from support import ceph_pages, fleet_server
from support.daemon import Daemon, eventually, run, running, write_config
from support.disks import disk_folder
from support.fleet_server import Answer
from support.moving_page import Change, MovingPage, fault, of_exposition, renamed, slower
from support.played_host import PAGES
from support.storage_host import OSDS, storage_host

from .topology import Fleet
from .verdicts import alerts, names

CLUSTER, RECORDED_CLUSTER = "north", "recorded"
STORAGE = tuple(f"stor{number:02}" for number in range(1, 7))
RECORDED = {
    "array1": "array_node", "fabric1": "fabric_node", "pcie1": "pcie_node", "virtual1": "virtual_machine",
    "mixed1": "storage_node",
}  # fmt: skip
"""Host → golden page."""
MANAGER = "mgr1:9283"
DOWN = "stor06"

_SLOW_CANARY = slower("plumbline_canary_latency_seconds_bucket", least_s=2e-3)
FAULTS: Mapping[str, tuple[Change, ...]] = {
    "stor01": (_SLOW_CANARY, fault('plumbline_nic_mtu_bytes{device="eth', value=1500.0)),
    "stor02": (
        _SLOW_CANARY,
        slower('plumbline_disk_latency_seconds_bucket{device="sdc",operation="read"', least_s=0.25, share=0.05),
    ),
    "stor03": (
        _SLOW_CANARY,
        fault('plumbline_nic_drops_total{device="eth0",direction="receive",cause="ring"', per_s=40.0),
        fault('plumbline_nic_packets_total{device="eth0"', per_s=10_000.0),
    ),
    "stor05": (_SLOW_CANARY,),
}
"""Host → what is wrong there."""

CONFIG = {"probes": [{"type": "canary", "name": "canary", "device_class": "ssd", "rate": 20, "file_size": "4MiB"}]}
FIRING = {
    "PlumblineWatchdog", "PlumblineDown", "PlumblineFleetLatencyHigh", "PlumblineCanaryLatencyExtreme",
    "PlumblineNicRingDrops", "PlumblineArrayDegraded", "PlumblineBondMisaggregated",
}  # fmt: skip
PENDING = {"PlumblineDiskLatencyOutlier", "PlumblineNicMtuMismatch", "PlumblineCephOsdDown"}
"""Of the faults, those whose alerts come later than the test waits; pending or firing."""
SETTLED_S = 1800.0


def name(host: str) -> str:
    """A target's address."""
    return f"{host}:10047"


def targets(folder: Path) -> dict[str, Answer]:
    """Address → its page; time begins now. ``folder`` is empty and goes on to be used."""
    began = time.monotonic()
    page = storage_host(folder)
    pages = {
        name(host): of_exposition(page, (*identity(number), *FAULTS.get(host, ())))
        for number, host in enumerate(STORAGE)
    }
    pages |= {
        name(host): of_exposition((PAGES / f"{golden}.prom").read_text("utf-8")) for host, golden in RECORDED.items()
    }
    manager = (ceph_pages.CAPTURED / "load-2" / "mgr-metrics.txt").read_text("utf-8")
    down = fault(re.escape('ceph_osd_up{ceph_daemon="osd.2"'), value=0.0)
    pages[MANAGER] = of_exposition(manager, (down,))

    def answer(page: MovingPage) -> Answer:
        return lambda: page.text(time.monotonic() - began, time.time()).encode()

    return {address: (lambda: None) if address == name(DOWN) else answer(page) for address, page in pages.items()}


def identity(number: int) -> tuple[Change, ...]:
    """OSDs and disks are numbered through the fleet."""
    return (
        *(renamed(rf'"osd\.{osd}"', f'"osd.N{number * OSDS + osd}"') for osd in range(OSDS)),
        renamed(r'"osd\.N(\d+)"', r'"osd.\1"'),
        renamed('serial="([^"]+)"', rf'serial="\1-{number}"'),
    )


@contextlib.contextmanager
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """All of it, served, and the real daemon."""
    short = tmp_path_factory.mktemp("f")
    with (
        disk_folder(tmp_path_factory) as folder,
        fleet_server.serving(targets(short)) as proxy,
        _slowed(folder) as daemon,
    ):
        nodes = {name(host): CLUSTER for host in STORAGE} | {name(host): RECORDED_CLUSTER for host in RECORDED}
        yield Fleet(proxy, nodes, {MANAGER: CLUSTER}, [daemon.url.removeprefix("http://")], "here")


def wait_settled(url: str) -> None:
    """Until a server's rules have found the faults."""

    def found() -> bool:
        seen = alerts(url)
        missing = FIRING - names(seen, "firing") | PENDING - names(seen, "firing") - names(seen, "pending")
        print(f"{time.strftime('%H:%M:%S')} not yet: {sorted(missing)}", flush=True)
        return not missing

    eventually(found, within_s=SETTLED_S, every_s=15)


@contextlib.contextmanager
def _slowed(folder: Path) -> Iterator[Daemon]:
    """The real daemon: its baseline recorded while the disk is quick, then its canary slowed."""
    here = folder / "daemon"
    here.mkdir()
    recorded = run(
        "baseline", "record", "--probe", "canary", "--force", "--runs", "3", "--run-duration", "1s",
        "--storage.path", here / "state", "--config.file", write_config(here, CONFIG),
    )  # fmt: skip
    assert recorded.returncode == 0, recorded.stderr
    processes, proc = Processes(here), Path("/proc")
    with running(here, config=CONFIG) as daemon:
        # so many that two servers which scrape at other times both see some in each window
        slowdown = choose(
            disk=_disk_of(here), processes=processes, directory=here / "load", duration_s=3600, proc=proc, iops=20
        )
        found = eventually(lambda: workers(daemon.pid, proc))
        slowdown.apply(found)
        try:
            yield daemon
        finally:
            slowdown.remove()
            processes.stop()


def _disk_of(folder: Path) -> Disk | None:
    number = folder.stat().st_dev
    part = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    whole = part.parent if (part / "partition").exists() else part
    return Disk(whole.name, (whole / "dev").read_text().strip()) if (whole / "dev").exists() else None
