"""What the OSDs of a host cost its daemon: 60 OSDs with 59 peers each, as a real one answers under load.

``python -m bench.osds`` asks their admin sockets as the daemon does every 15 s, and prints the CPU time of that, the
series, and the page with them as a ratio to a page without. The sockets are served by another process: what answering
costs is the OSDs' own and is not in it. The ratios are what to compare.
"""

from __future__ import annotations

import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.large_host import cpu_s as of_scrapes
from bench.large_host import samples
from plumbline.background.ceph import OSD_STORES_EVERY_S, OSDS_EVERY_S, OsdWatch
from plumbline.baseline.book import load_book
from plumbline.collectors.registry import NAMES, collectors, configured
from plumbline.config.model import BaselineConfig, Config
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.metrics.exposition import Exposition
from plumbline.metrics.rendering import Format, Renderer
from plumbline.status.page import render_status
from support.hosts import parts
from support.large_host import LargeHost
from support.osd_fleet import osd_fleet
from support.status_models import large_model

OSDS = 60
LOOKS = 9
PROBING = ("canary", "probe", "baseline")


def main() -> int:
    """Exit code 0: measured. Nothing is judged here."""
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as root, tempfile.TemporaryDirectory() as folder:
        with osd_fleet(Path(folder), OSDS, peers=OSDS - 1):
            watch = OsdWatch(lambda: [f"{folder}/*.asok"], timeout_s=60.0)
            look, took = _cost(watch.osds.refresh)
            store, _ = _cost(watch.stores.refresh)
        host = LargeHost(Path(root))
        page, without = (_page(host, Path(root), osds) for osds in (watch, None))
        cpu, cpu_without = of_scrapes(host, page), of_scrapes(host, without)
        now, then = page(), without()
    share = look / OSDS_EVERY_S + store / OSD_STORES_EVERY_S
    print(f"\n{OSDS} OSDs, {OSDS - 1} peers each, served by another process: medians of {LOOKS} looks")
    print(f"a look every {OSDS_EVERY_S:.0f} s: {look * 1e3:.3g} ms CPU, {took * 1e3:.3g} ms until all have answered")
    print(f"what changes slowly, every {OSD_STORES_EVERY_S:.0f} s: {store * 1e3:.3g} ms CPU")
    print(f"both: {share:.2%} of one CPU, {share / OSDS:.4%} an OSD")
    print(f"{'page':16}{'without OSDs':>16}{'with them':>16}{'ratio':>8}")
    for name, unit, before, after in (
        ("CPU a scrape", "ms", cpu_without * 1e3, cpu * 1e3),
        ("series", "", samples(then), samples(now)),
        ("page", "B", len(then), len(now)),
    ):
        shown = "{:.0f}" if unit in ("", "B") else "{:.3g}"
        print(
            f"{name:16}{f'{shown.format(before)} {unit}':>16}{f'{shown.format(after)} {unit}':>16}"
            f"{after / before:>8.2f}",
            flush=True,
        )
    print(f"series an OSD: {(samples(now) - samples(then)) / OSDS:.1f}", flush=True)
    shown, _ = _cost(lambda: render_status(large_model()))
    print(f"status page of 60 disks, 60 OSDs, 200 findings: {shown * 1e3:.3g} ms CPU, {shown / cpu:.2f} of that scrape")
    return 0


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    """Medians of CPU and wall seconds."""
    cpu, wall = [], []
    for _ in range(LOOKS + 2):
        began = time.process_time(), time.perf_counter()
        work()
        cpu.append(time.process_time() - began[0])
        wall.append(time.perf_counter() - began[1])
    return statistics.median(cpu[2:]), statistics.median(wall[2:])


def _page(host: LargeHost, root: Path, osds: OsdWatch | None) -> Callable[[], bytes]:
    """The page of one replayed host; its OSDs as they answered last."""
    on = {name: name not in PROBING and (name != "osd" or osds is not None) for name in NAMES}
    config = Config(collectors=on)
    given = replace(parts(Roots.under(root), host.transports), osds=osds)
    given.network.refresh()
    book = load_book(
        BaselineConfig(), where="bench", storage=root / "state", host="bench", catalogue=load_catalogue(), targets=()
    )
    exposition = Exposition(
        collectors(config), configured(given, config, book), clock=time.perf_counter, logger=logging.getLogger("bench")
    )
    renderer = Renderer()
    return lambda: renderer.render(exposition.scrape(), Format.TEXT)


if __name__ == "__main__":
    sys.exit(main())
