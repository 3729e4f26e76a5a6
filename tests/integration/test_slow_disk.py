"""One of four disks slowed on purpose: its tail shows in the kernel's histogram, diskstats' mean hides it, and the
outlier alert of a real Prometheus names that disk and no other.

The disks are loop devices with direct I/O. All four are read at the same pace; on one of them one operation in fifty is
held back for a tenth of a second by the kernel's own throttle (blkio of cgroup v1, on the disk below the image).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.daemon import running
from support.prometheus import prometheus
from support.rules import rendered
from support.slow_disk import disks, one_slow

SITE = """{ _config+:: {
  paces+: { compared: '5s', drawn: '5s', remembered: '5s', daily: '5s' },
  disk+: { window: '1m', minimumOperationsPerSecond: 1 },
  alerts+: { PlumblineDiskLatencyOutlier+: { 'for': '30s', keepFiringFor: '10s' } },
} }"""
"""The same rules over shorter windows, so that a test need not last an hour."""
DISKS = 4
OUTLIER = 'ALERTS{alertname="PlumblineDiskLatencyOutlier", alertstate="firing"}'
FIGURES = {
    "p99": 'plumbline:disk_latency:p99_seconds{operation="read"}',
    "operations a second": 'plumbline:disk_latency:ops_per_second{operation="read"}',
    "diskstats' mean": 'rate(plumbline_disk_io_seconds_total{operation="read"}[1m])'
    ' / rate(plumbline_disk_ios_total{operation="read"}[1m])',
}

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.needs_root, pytest.mark.timeout(600)]


@pytest.fixture
def loops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Path], Path]]:
    with disks(tmp_path_factory, DISKS) as made:
        yield made


def test_the_tail_of_one_disk_is_found_and_no_other(loops: tuple[list[Path], Path], tmp_path: Path) -> None:
    devices, folder = loops
    names = [device.name for device in devices]
    rules = rendered(tmp_path, SITE)
    config = {
        "devices": {"disk_exclude": rf"(?!(?:{'|'.join(names)})$).*"},
        "probes": [],
        "collectors": {"health": False},
    }
    with ExitStack() as stack:
        daemon = stack.enter_context(running(tmp_path, config=config))
        available = daemon.metrics().get("plumbline_collector_available", collector="latency")
        if not available:
            pytest.skip(f"no latency histograms here: {daemon.said()[-300:]}")
        target = daemon.url.removeprefix("http://")
        metrics = stack.enter_context(prometheus(tmp_path, target=target, interval_s=2, rules=rules))
        slow = names[1]
        stack.enter_context(one_slow(devices, folder, slow=devices[1]))

        fired: set[str] = set()
        deadline = time.monotonic() + 300
        while slow not in fired and time.monotonic() < deadline:
            time.sleep(2)
            fired |= {labels["device"] for labels, _ in metrics.query(OUTLIER)}
        figures = {
            name: {labels["device"]: value for labels, value in metrics.query(expression)}
            for name, expression in FIGURES.items()
        }
        time.sleep(20)
        fired |= {labels["device"] for labels, _ in metrics.query(OUTLIER)}

    others = [name for name in names if name != slow]
    print(figures)
    assert fired == {slow}, figures
    tail, mean = (
        figures[figure][slow] / max(figures[figure][name] for name in others) for figure in ("p99", "diskstats' mean")
    )
    assert tail >= 4
    assert mean < tail / 2  # what an alert on means would have to be set to, to see the same, is noise
