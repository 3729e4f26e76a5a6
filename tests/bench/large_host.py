"""What a large host costs: 256 CPUs, 12 ports of 1,500 ``ethtool -S`` statistics each, replayed in this process.

``python -m bench.large_host`` prints the CPU of one collection with its page for all of our network collectors, and
beside it that of ``prometheus_client`` exposing the same ports' statistics raw, as untyped samples: what an exporter
does that passes on whatever the driver counts. Reading is the same replay on both sides; what the kernel and its
drivers take for it is in neither. The ratios are what to compare.
"""

from __future__ import annotations

import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric, UnknownMetricFamily

from plumbline.baseline.book import load_book
from plumbline.collectors.registry import NAMES, collectors, configured
from plumbline.config.model import BaselineConfig, Config
from plumbline.core.roots import Roots
from plumbline.metrics.exposition import Exposition
from plumbline.metrics.rendering import Format, Renderer
from plumbline.sources.net.ethtool import Ethtool
from support.hosts import parts
from support.large_host import CPUS, PORTS, STATISTICS, LargeHost

ROUNDS = 25
OURS = ("softnet", "link", "ethtool", "ring", "pause", "channel", "coalesce", "offload", "linkmode", "topology")


class RawStatistics:
    """``ethtool -S`` as it is: one untyped family a statistic, one sample a port."""

    def __init__(self, host: LargeHost) -> None:
        self._host, self._ethtool = host, Ethtool(host.ioctl)

    def collect(self) -> Iterator[Metric]:
        families = [UnknownMetricFamily(f"node_ethtool_{name}", name, labels=("device",)) for name in self._host.names]
        for device in self._host.devices:
            values = self._ethtool.stats(device.encode(), STATISTICS)
            assert values is not None
            for family, value in zip(families, values, strict=True):
                family.add_metric((device,), value)
        yield from families


def cpu_s(host: LargeHost, work: Callable[[], object]) -> float:
    """Median CPU seconds of one scrape; the host goes on between them."""
    spent = []
    for _ in range(ROUNDS + 3):
        host.go_on()
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return statistics.median(spent[3:])


def samples(page: bytes) -> int:
    """Lines that are neither comment nor empty."""
    return sum(1 for line in page.splitlines() if line and not line.startswith(b"#"))


def main() -> int:
    """Exit code 0: measured."""
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as folder:
        root = Path(folder)
        host = LargeHost(root)
        config = Config(collectors={name: name in OURS for name in NAMES})
        given = parts(Roots.under(root), host.transports)
        given.network.refresh()
        book = load_book(BaselineConfig(), where="bench", storage=root / "state", host="bench", targets=())
        exposition = Exposition(
            collectors(config),
            configured(given, config, book),
            clock=time.perf_counter,
            logger=logging.getLogger("bench"),
        )
        renderer = Renderer()
        registry = CollectorRegistry()
        registry.register(RawStatistics(host))

        def scrape() -> bytes:
            return renderer.render(exposition.scrape(), Format.TEXT)

        broken = [each for each in exposition.scrape().collectors if not (each.success and each.available)]
        if broken:
            print(f"not measured: {broken}", file=sys.stderr)
            return 1
        own, own_samples = cpu_s(host, scrape), samples(scrape())
        raw, raw_samples = cpu_s(host, lambda: generate_latest(registry)), samples(generate_latest(registry))
    print(f"\n{CPUS} CPUs, {PORTS} ports of {STATISTICS:,} statistics, replayed: medians of {ROUNDS} pages each")
    print(f"{'':16}{'raw statistics':>16}{'plumbline':>16}{'ratio':>8}")
    for name, unit, theirs, ours in (
        ("CPU a scrape", "ms", raw * 1e3, own * 1e3),
        ("CPU a sample", "µs", raw / raw_samples * 1e6, own / own_samples * 1e6),
        ("samples", "", raw_samples, own_samples),
    ):
        shown = "{:.3g}" if unit else "{:.0f}"
        print(
            f"{name:16}{f'{shown.format(theirs)} {unit}':>16}{f'{shown.format(ours)} {unit}':>16}{ours / theirs:>8.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
