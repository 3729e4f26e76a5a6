"""What is kept of the last minutes: few counters, few looks, and growth as Prometheus counts it."""

from __future__ import annotations

import sys
import tracemalloc

from msgspec.structs import fields

from plumbline.core.histogram import HistogramValue
from plumbline.metrics.snapshot import Readings
from plumbline.sources.ceph.osds import OsdReading, OsdsReading, OsdState
from plumbline.sources.disk.blocklatency import DiskLatency, LatencyReading
from plumbline.sources.disk.latencymaps import BUCKETS, Histogram, Times
from plumbline.sources.disk.queuesettings import QueueReading
from plumbline.sources.net.drivers import NicLoss
from plumbline.sources.net.network import LossesReading, PortLosses
from plumbline.status.recent import LOOKS, Counters, RecentCounters, counters_of, grown, since

EDGES = tuple(float(2**n) for n in range(27))
RING = ("eth0", "receive", "ring")


def losses(frames: int) -> Readings:
    loss = NicLoss((("receive", "ring", frames),), ())
    return Readings.of(LossesReading((PortLosses("eth0", "ixgbe", "", "", "", "driver", loss),)))


def histogram(*cumulative: int) -> HistogramValue:
    return HistogramValue((1.0, 2.0)[: len(cumulative)], cumulative, cumulative[-1], 0.0)


def test_before_the_first_look_there_is_nothing() -> None:
    assert RecentCounters().oldest(5.0) is None


def test_the_oldest_of_the_last_looks_is_what_growth_counts_from() -> None:
    recent = RecentCounters()
    for minute in range(LOOKS + 3):
        recent.remember(losses(100 * minute), 60.0 * minute)
    oldest = recent.oldest(60.0 * (LOOKS + 2) + 30.0)
    assert oldest is not None
    age_s, counters = oldest
    assert age_s == 60.0 * (LOOKS - 1) + 30.0
    assert grown(counters.drops, counters_of(losses(1000)).drops) == {RING: 700}


def test_a_reset_counts_from_0_and_so_does_what_is_new() -> None:
    before = counters_of(losses(500))
    new = ("eth1", "receive", "ring")
    assert grown(before.drops, {RING: 20, new: 7}) == {RING: 20, new: 7}
    assert grown(before.errors, {("eth0", "receive", "crc"): 7}) is None, "nobody looked before"


def test_histograms_are_subtracted_and_a_reset_one_is_taken_whole() -> None:
    before = histogram(4, 10)
    for then, now, counted in (
        (before, histogram(5, 14), [1, 4]),
        (before, histogram(1, 3), [1, 3]),
        (before, histogram(1, 30), [1, 30]),  # as many and more, but of another life
        (None, histogram(2, 2), [2, 2]),
    ):
        assert list(since(then, now).cumulative) == counted


def test_what_is_not_needed_is_not_kept() -> None:
    counters = counters_of(Readings({**losses(1).by_type, QueueReading: QueueReading()}))
    assert counters == Counters(drops={RING: 1})
    assert {each.name for each in fields(Counters)} == {
        "drops", "errors", "packets", "softnet_dropped", "time_squeezes", "disk_times", "osd_times",
    }  # fmt: skip


def test_it_stays_small_on_a_host_of_60_disks_and_60_osds() -> None:
    def look(n: int) -> Readings:
        def one(seed: int) -> HistogramValue:
            return HistogramValue(EDGES, tuple(10**6 + seed + n + at for at in range(27)), 10**7, 1.0)

        def times(seed: int) -> Times:
            counts = Histogram(tuple(10**6 + seed + n + at for at in range(BUCKETS)), 10**9)
            return Times(counts, counts)

        operations = ("read", "write")
        return Readings.of(
            LatencyReading(
                tuple(DiskLatency(str(at), {each: times(at) for each in operations}) for at in range(60)), {}
            ),
            OsdsReading(
                tuple(
                    OsdReading(f"osd.{at}", "", OsdState.ANSWERS, latencies={each: one(at) for each in operations})
                    for at in range(60)
                ),
                (),
            ),
        )

    recent = RecentCounters()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for minute in range(4 * LOOKS):
        recent.remember(look(minute), 60.0 * minute)
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert sys.getsizeof(10**7) * 27 * 240 < kept < 4 << 20, kept
