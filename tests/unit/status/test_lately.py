"""What is kept of the last minutes: few families, few looks, and growth as Prometheus counts it."""

from __future__ import annotations

import sys
import tracemalloc

from plumbline.collectors import disk, latency, nic, osd, queue
from plumbline.core.histogram import HistogramValue
from plumbline.metrics.snapshot import Family, Snapshot
from plumbline.metrics.spec import MetricSpec
from plumbline.status.recent import LOOKS, Lately

EDGES = tuple(float(2**n) for n in range(27))


def snapshot(spec: MetricSpec, **values: float | HistogramValue) -> Snapshot:
    labels = tuple((name, "read", "x")[: len(spec.labels)] for name in values)
    return Snapshot((Family(spec, labels, list(values.values())),), ())


def histogram(*cumulative: int) -> HistogramValue:
    return HistogramValue((1.0, 2.0)[: len(cumulative)], cumulative, cumulative[-1], 0.0)


def test_before_the_first_look_there_is_nothing() -> None:
    assert Lately().before(5.0) is None


def test_the_oldest_of_the_last_looks_is_what_growth_counts_from() -> None:
    lately = Lately()
    for minute in range(LOOKS + 3):
        lately.remember(snapshot(disk.IO, sda=100.0 * minute), 60.0 * minute)
    earlier = lately.before(60.0 * (LOOKS + 2) + 30.0)
    assert earlier is not None
    assert earlier.age_s == 60.0 * (LOOKS - 1) + 30.0
    assert earlier.grown(disk.IO, {("sda", "read"): 1000.0}) == {("sda", "read"): 700.0}


def test_a_reset_counts_from_0_and_so_does_what_is_new() -> None:
    lately = Lately()
    lately.remember(snapshot(disk.IO, sda=500.0), 0.0)
    earlier = lately.before(60.0)
    assert earlier is not None
    assert earlier.grown(disk.IO, {("sda", "read"): 20.0, ("sdb", "read"): 7.0}) == {
        ("sda", "read"): 20.0, ("sdb", "read"): 7.0,
    }  # fmt: skip
    assert earlier.grown(nic.DROPS, {("eth0", "receive", "ring"): 7.0}) is None, "nobody looked before"


def test_histograms_are_subtracted_and_a_reset_one_is_taken_whole() -> None:
    lately = Lately()
    lately.remember(snapshot(latency.LATENCY, sda=histogram(4, 10), sdb=histogram(4, 10), sdc=histogram(4, 10)), 0.0)
    earlier = lately.before(60.0)
    assert earlier is not None
    now = {
        ("sda", "read"): histogram(5, 14),
        ("sdb", "read"): histogram(1, 3),
        ("sdc", "read"): histogram(1, 30),  # as many and more, but of another life
        ("new", "read"): histogram(2, 2),
    }
    times = earlier.times(latency.LATENCY, now)
    assert {name: list(each.cumulative) for (name, _), each in times.items()} == {
        "sda": [1, 4], "sdb": [1, 3], "sdc": [1, 30], "new": [2, 2],
    }  # fmt: skip


def test_what_is_not_needed_is_not_kept() -> None:
    lately = Lately()
    lately.remember(
        Snapshot((*snapshot(disk.IO, sda=1.0).families, *snapshot(queue.SPECS[0], sda=1.0).families), ()), 0.0
    )
    earlier = lately.before(1.0)
    assert earlier is not None
    assert [each.spec.name for each in earlier._families] == [disk.IO.name]


def test_it_stays_small_on_a_host_of_60_disks_and_60_osds() -> None:
    def look(n: int) -> Snapshot:
        def one(seed: int) -> HistogramValue:
            return HistogramValue(EDGES, tuple(10**6 + seed + n + at for at in range(27)), 10**7, 1.0)

        pairs = [(name, operation) for name in map(str, range(60)) for operation in ("read", "write")]
        return Snapshot(
            tuple(
                Family(spec, tuple(pairs), [one(at) for at in range(len(pairs))])
                for spec in (latency.LATENCY, osd.LATENCY)
            ),
            (),
        )

    lately = Lately()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for minute in range(4 * LOOKS):
        lately.remember(look(minute), 60.0 * minute)
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert sys.getsizeof(10**7) * 27 * 240 < kept < 4 << 20, kept
