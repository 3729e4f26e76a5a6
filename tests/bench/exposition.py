"""What a scrape's rendering costs, as ratios to ``prometheus_client`` in the same run.

``python tests/bench/exposition.py`` prints CPU time (of the process, not wall time) for 500 and 10,000 samples: the
page alone, the page compressed, and whole ``GET /metrics`` requests over a kept loopback connection. Absolute times
belong to the machine; the ratios are what to compare. ``--check`` fails when a ratio is worse than promised.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import logging
import socket
import sys
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import make_wsgi_app

from plumbline.core.histogram import HistogramValue
from plumbline.metrics.exposition import Exposition
from plumbline.metrics.rendering import Format, Renderer
from plumbline.metrics.spec import Kind, MetricSpec, Sample
from plumbline.web.routes import Site
from plumbline.web.server import Server
from support.fake_collectors import Fake, fake
from support.prometheus_bridge import PrometheusClientBridge

SIZES = (500, 10_000)
ROUNDS = 15
PROMISED = 8.0  # times less CPU than prometheus_client's page plus its gzip, level 9

LATENCY = MetricSpec("plumbline_canary_latency_seconds", Kind.HISTOGRAM, "Latency.", ("probe", "operation"))
EDGES = tuple(1e-5 * 1.1**i for i in range(120))


class Host:
    """Counters that move between scrapes as a busy host's do: most are integers, some seconds, most of them grow."""

    def __init__(self, samples: int) -> None:
        self._specs = [
            MetricSpec(f"plumbline_bench_{i}_total", Kind.COUNTER, f"Counter {i}.", ("device", "direction", "cause"))
            for i in range(25)
        ]
        histogram_lines = 2 * (len(EDGES) + 3)
        devices = max(1, (samples - histogram_lines) // len(self._specs))
        self._keys = [
            (spec, (f"enp{device}s0f0", "receive", "ring"), number % 5 == 0)
            for device in range(devices)
            for number, spec in enumerate(self._specs)
        ]
        self._scrapes = 0
        self.samples = len(self._keys) + histogram_lines

    def collector(self) -> Fake:
        return fake("bench", (*self._specs, LATENCY), lambda _skip: self.collect())

    def collect(self) -> list[Sample]:
        self._scrapes += 1
        now = self._scrapes * 1_000_003
        # as a reading would: new label strings at every scrape, not those of the last one
        rows: list[Sample] = [
            (spec, ("".join(labels[0]), *labels[1:]), now * i / 997 if seconds else now + i)
            for i, (spec, labels, seconds) in enumerate(self._keys)
        ]
        counts = tuple(itertools.accumulate(now % (i + 7) for i in range(len(EDGES))))
        value = HistogramValue(EDGES, counts, counts[-1], now / 7)
        return [*rows, (LATENCY, ("canary", "read"), value), (LATENCY, ("canary", "write"), value)]


def cpu_ms(work: Callable[[], object]) -> float:
    """Process CPU milliseconds of the fastest of several rounds: the others had company on the machine."""
    work()
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best * 1e3


REQUEST = (
    b"GET /metrics?profile=full HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Prometheus/2.42.0\r\n"
    b"Accept: application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    b"text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\nAccept-Encoding: gzip\r\n"
    b"X-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n"
)


def request_cpu_ms(exposition: Exposition) -> float:
    """CPU of one Prometheus request over a kept connection: the server, plus a client that only receives."""
    site = Site(exposition, status=str, ready=lambda: None)
    server = Server("127.0.0.1", 0, site.respond, logger=logging.getLogger("bench"))
    server.start()
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port))) as client:

        def get() -> None:
            client.sendall(REQUEST)
            head, _, body = client.recv(65536).partition(b"\r\n\r\n")
            left = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]) - len(body)
            while left:
                left -= len(client.recv(min(left, 65536)))

        try:
            return cpu_ms(get)
        finally:
            server.stop()


def measure(size: int) -> float:
    """Print one size's figures; the ratio of the whole, theirs to ours."""
    host = Host(size)
    exposition = Exposition([host.collector()], None, clock=time.perf_counter, logger=logging.getLogger("bench"))
    registry = CollectorRegistry()
    registry.register(PrometheusClientBridge(exposition))
    renderer = Renderer()
    snapshots = [exposition.scrape() for _ in range(4)]
    turn = itertools.cycle(snapshots)
    page = renderer.render(snapshots[0], Format.TEXT)
    making = cpu_ms(host.collect)  # the benchmark's own work, a collector's in a daemon
    checking = cpu_ms(exposition.scrape) - making
    ours = cpu_ms(lambda: renderer.render(next(turn), Format.TEXT))
    ours_gzip = cpu_ms(lambda: gzip.compress(page, compresslevel=1, mtime=0))
    theirs = cpu_ms(lambda: generate_latest(registry)) - making - checking
    theirs_gzip = cpu_ms(lambda: gzip.compress(page, compresslevel=9))
    request = request_cpu_ms(exposition) - making
    wsgi = make_wsgi_app(registry)
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/metrics", "HTTP_ACCEPT_ENCODING": "gzip"}
    their_request = cpu_ms(lambda: wsgi(environ, lambda *_: None)) - making - checking
    print(f"{f'{host.samples:,} samples, {len(page) / 1024:,.0f} KiB, CPU ms':<42}   ours   prometheus_client   ratio")
    for what, mine, other in (
        ("page", ours, theirs),
        ("gzip (ours level 1, theirs 9)", ours_gzip, theirs_gzip),
        ("page and gzip", ours + ours_gzip, theirs + theirs_gzip),
        ("whole request (theirs without HTTP)", request, their_request),
    ):
        print(f"  {what:<40}{mine:>7.2f}{other:>20.2f}{other / mine:>8.1f}")
    print(f"  {'guarding and checking collectors':<40}{checking:>7.2f}")
    return (theirs + theirs_gzip) / (ours + ours_gzip)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help=f"fail below a ratio of {PROMISED:g}")
    arguments = parser.parse_args()
    worst = min(measure(size) for size in SIZES)
    if arguments.check and worst < PROMISED:
        print(
            f"page and gzip: {worst:.1f} times cheaper than prometheus_client, promised are {PROMISED:g}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
