"""What a host with 60 disks and 60 OSDs costs its daemon, beside an ordinary one with 12 and 10.

``python -m bench.osds`` asks the OSDs' admin sockets as the daemon does every 15 s (59 peers each, as a real one
answers under load), reads their control groups, renders the page with the disks' histograms, and the status page. The
sockets are served by another process: what answering costs is the OSDs' own and is not in it. Each host is a process
of its own, so that memory can be compared.
"""

from __future__ import annotations

import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from msgspec.structs import replace

from bench.large_host import cpu_s as of_scrapes
from bench.large_host import samples
from plumbline.background.ceph import LIMITS_EVERY_S, OSD_STORES_EVERY_S, OSDS_EVERY_S, OsdWatch
from plumbline.baseline.book import load_book
from plumbline.collectors.registry import NAMES, collectors, configured
from plumbline.config.model import BaselineConfig, Config
from plumbline.core.roots import Roots
from plumbline.metrics.default_page import DefaultPage
from plumbline.metrics.exposition import Exposition
from plumbline.metrics.rendering import Format, Renderer
from plumbline.sources.disk.blocklatency import DiskLatency, LatencyReading
from plumbline.sources.disk.latencymaps import Histogram, Times
from plumbline.sources.kernel.cgroup import read_limits
from plumbline.status.page import render_status
from support.hosts import knowing, parts
from support.large_host import LargeHost
from support.osd_fleet import osd_fleet
from support.status_models import large_model

PEERS = 59
HOSTS = {"ordinary": (12, 10), "large": (60, 60)}
"""Disks and OSDs."""
LOOKS = 9
PROBING = ("canary", "probe", "baseline")
GROUP = "system.slice/system-ceph.slice/ceph-osd@1.service"
"""Of each OSD: three groups on the way to the root, without limits."""
ROWS = {
    "a look at the OSDs": ("ms CPU", "{:.3g}"),
    "until all have answered": ("ms", "{:.3g}"),
    "what changes slowly": ("ms CPU", "{:.3g}"),
    "control groups": ("ms CPU", "{:.3g}"),
    "all three, of one CPU": ("%", "{:.2f}"),
    "CPU a scrape": ("ms", "{:.3g}"),
    "CPU a scrape, default page": ("ms", "{:.3g}"),
    "series": ("", "{:.0f}"),
    "series, default page": ("", "{:.0f}"),
    "page": ("B", "{:.0f}"),
    "page, default": ("B", "{:.0f}"),
    "RSS of this bench": ("MiB", "{:.3g}"),
}


def main() -> int:
    """Exit code 0: measured. Nothing is judged here."""
    if sys.argv[1:]:
        print(json.dumps(measured(*map(int, sys.argv[1:]))))
        return 0
    found = {}
    for name, sizes in HOSTS.items():
        argv = [sys.executable, "-m", "bench.osds", *map(str, sizes)]
        found[name] = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    print(f"\nhosts of {' and '.join(f'{d} disks and {o} OSDs' for d, o in HOSTS.values())}: medians of {LOOKS}")
    often = (OSDS_EVERY_S, OSD_STORES_EVERY_S, LIMITS_EVERY_S)
    print("a look every {:.0f} s, slow values every {:.0f} s, control groups every {:.0f} s".format(*often))
    print(f"{'':28}" + "".join(f"{name:>16}" for name in found) + f"{'ratio':>8}")
    for row, (unit, form) in ROWS.items():
        one, other = (values[row] for values in found.values())
        shown = "".join(f"{f'{form.format(value)} {unit}'.strip():>16}" for value in (one, other))
        print(f"{row:28}{shown}{other / one:>8.2f}", flush=True)
    status, _ = _cost(lambda: render_status(large_model()))
    print(f"status page of 60 disks, 60 OSDs, 200 findings: {status * 1e3:.3g} ms CPU", flush=True)
    return 0


def measured(disks: int, osds: int) -> dict[str, float]:
    """Of one host, by the names of :data:`ROWS`."""
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as name, tempfile.TemporaryDirectory() as folder:
        root = Path(name)
        with osd_fleet(Path(folder), osds, peers=PEERS):
            (fleet,) = psutil.Process().children()
            roots = _with_groups(root / "groups", fleet.pid)
            watch = OsdWatch(lambda: [f"{folder}/*.asok"], timeout_s=60.0)
            look, took = _cost(watch.osds.refresh)
            store, _ = _cost(watch.stores.refresh)
            one, _ = _cost(lambda: [read_limits(roots, fleet.pid) for _ in range(osds)])
        host = LargeHost(root)
        exposition = _exposition(host, root, watch, disks)
        page, default = Renderer(), DefaultPage()
        default_page = Renderer()

        def whole() -> bytes:
            return page.render(exposition.scrape(), Format.TEXT)

        def less() -> bytes:
            return default_page.render(default.of(exposition.scrape()), Format.TEXT)

        return {
            "a look at the OSDs": look * 1e3,
            "until all have answered": took * 1e3,
            "what changes slowly": store * 1e3,
            "control groups": one * 1e3,
            "all three, of one CPU": 100 * (look / OSDS_EVERY_S + store / OSD_STORES_EVERY_S + one / LIMITS_EVERY_S),
            "CPU a scrape": of_scrapes(host, whole) * 1e3,
            "CPU a scrape, default page": of_scrapes(host, less) * 1e3,
            "series": samples(whole()),
            "series, default page": samples(less()),
            "page": len(whole()),
            "page, default": len(less()),
            "RSS of this bench": psutil.Process().memory_info().rss / 2**20,
        }


def _with_groups(root: Path, pid: int) -> Roots:
    """A host on which this process is in :data:`GROUP`."""
    (root / f"proc/{pid}").mkdir(parents=True)
    (root / f"proc/{pid}/cgroup").write_text(f"0::/{GROUP}\n")
    group = root / "sys/fs/cgroup" / GROUP
    group.mkdir(parents=True)
    while group.name != "cgroup":
        (group / "io.max").write_text("")
        (group / "cpu.max").write_text("max 100000\n")
        group = group.parent
    return Roots.under(root)


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    """Medians of CPU and wall seconds."""
    cpu, wall = [], []
    for _ in range(LOOKS + 2):
        began = time.process_time(), time.perf_counter()
        work()
        cpu.append(time.process_time() - began[0])
        wall.append(time.perf_counter() - began[1])
    return statistics.median(cpu[2:]), statistics.median(wall[2:])


def _exposition(host: LargeHost, root: Path, osds: OsdWatch, disks: int) -> Exposition:
    """Of the replayed host with so many disks that read, write and flush; its OSDs as they answered last."""
    names = [f"sd{number}" for number in range(disks)]
    for name in names:
        (root / "sys/block" / name).mkdir(parents=True)
    used, waited = Histogram((*[0] * 5, 2, 20, 468, 406, 31, *[0] * 18), 63_527_717), Histogram((40, *[0] * 27), 1000)
    times = dict.fromkeys(("read", "write", "flush"), Times(used, waited))
    timed = LatencyReading(tuple(DiskLatency(name, times) for name in names), {})
    config = Config(collectors={name: name not in PROBING for name in NAMES})
    given = replace(knowing(parts(Roots.under(root), host.transports), {LatencyReading: lambda: timed}), osds=osds)
    given.network.refresh()
    book = load_book(BaselineConfig(), where="bench", storage=root / "state", host="bench", targets=())
    return Exposition(
        collectors(config), configured(given, config, book), clock=time.perf_counter, logger=logging.getLogger("bench")
    )


if __name__ == "__main__":
    sys.exit(main())
