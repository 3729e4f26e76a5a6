"""Arrivals, charges and the load cap, against brute force."""

from __future__ import annotations

import random
import time
from bisect import bisect_left
from itertools import accumulate

import pytest

from plumbline.probes.canary.pacing import EXACT_ARRIVALS, Charge, LoadCap, charge, gap_ns
from plumbline.probes.run.histogram import edge_ns, latency_edges

EDGES_NS = [edge_ns(edge) for edge in latency_edges()]
SECOND = 10**9


def brute_force(draw: random.Random, rate: float, elapsed_ns: int) -> Charge:
    """Arrivals one after another on a clock, each waiting for the end."""
    found = Charge()
    now = 0.0
    while (now := now + draw.expovariate(rate)) * SECOND < elapsed_ns:
        wait = round(elapsed_ns - now * SECOND)
        index = bisect_left(EDGES_NS, wait)
        found.buckets[index] = found.buckets.get(index, 0) + 1
        found.sum_ns += wait
        found.total += 1
    return found


def shares(charges: list[Charge]) -> list[float]:
    """Cumulative share of arrivals up to each edge."""
    counts = [0] * (len(EDGES_NS) + 1)
    for one in charges:
        for index, count in one.buckets.items():
            counts[index] += count
    total = sum(counts)
    return [reached / total for reached in accumulate(counts)]


class TestArrivals:
    def test_gaps_are_exponential(self) -> None:
        draw = random.Random(1)
        gaps = sorted(gap_ns(draw, 10) / SECOND for _ in range(20_000))
        assert sum(gaps) / len(gaps) == pytest.approx(0.1, rel=0.03)
        assert gaps[len(gaps) // 2] == pytest.approx(0.0693, rel=0.04)
        assert gaps[int(len(gaps) * 0.99)] == pytest.approx(0.4605, rel=0.08)

    @pytest.mark.parametrize("latency_s", [0.0001, 0.05, 0.2])
    def test_come_at_the_rate_however_slow_operations_are(self, latency_s: float) -> None:
        """Executed and charged together: pace does not depend on completions."""
        draw = random.Random(2)
        now = executed = charged = 0
        while now < 2000 * SECOND:
            now += gap_ns(draw, 10)
            executed += 1
            elapsed = round(latency_s * SECOND)
            charged += charge(draw, 10, elapsed, EDGES_NS).total
            now += elapsed
        assert (executed + charged) / 2000 == pytest.approx(10, rel=0.03)
        assert executed / 2000 == pytest.approx(10 / (1 + 10 * latency_s), rel=0.05)

    def test_see_time_averages(self) -> None:
        """PASTA: a device that hangs for 10 of every 100 s is found hanging by 10 % of arrivals, not by 1 %."""
        draw = random.Random(3)
        now = slow = total = 0
        while now < 20_000 * SECOND:
            now += gap_ns(draw, 5)
            into = now % (100 * SECOND)
            elapsed = max(SECOND // 10_000, 10 * SECOND - into)
            met = charge(draw, 5, elapsed, EDGES_NS)
            total += 1 + met.total
            slow += (elapsed > SECOND // 100) + sum(
                n for index, n in met.buckets.items() if EDGES_NS[index - 1] > SECOND // 100
            )
            now += elapsed
        assert slow / total == pytest.approx(0.1, abs=0.01)


class TestCharge:
    def test_nothing_arrives_in_no_time(self) -> None:
        found = charge(random.Random(1), 100, 0, EDGES_NS)
        assert (found.buckets, found.sum_ns, found.total) == ({}, 0, 0)

    @pytest.mark.parametrize(("rate", "elapsed_s"), [(10, 0.003), (10, 0.4), (5, 20), (100, 4.9)])
    def test_one_by_one_as_brute_force(self, rate: float, elapsed_s: float) -> None:
        runs = 2000 if rate * elapsed_s < 10 else 200
        elapsed = round(elapsed_s * SECOND)
        ours, theirs = random.Random(4), random.Random(5)
        mine = [charge(ours, rate, elapsed, EDGES_NS) for _ in range(runs)]
        brute = [brute_force(theirs, rate, elapsed) for _ in range(runs)]
        expected = rate * elapsed_s * runs
        deviation = 5 * expected**0.5
        assert sum(one.total for one in mine) == pytest.approx(expected, abs=deviation)
        assert sum(one.sum_ns for one in mine) == pytest.approx(expected * elapsed / 2, abs=deviation * elapsed)
        if expected > 1000:
            assert shares(mine) == pytest.approx(shares(brute), abs=0.04)

    @pytest.mark.parametrize(("rate", "elapsed_s"), [(10, 60), (100, 3600)])
    def test_at_once_as_brute_force(self, rate: float, elapsed_s: int) -> None:
        assert rate * elapsed_s > EXACT_ARRIVALS
        mine = [charge(random.Random(seed), rate, elapsed_s * SECOND, EDGES_NS) for seed in range(50)]
        brute = [brute_force(random.Random(99), rate, elapsed_s * SECOND)]
        assert shares(mine) == pytest.approx(shares(brute), abs=0.04)
        assert max(max(one.buckets) for one in mine) == max(brute[0].buckets)
        for one in mine:
            assert sum(one.buckets.values()) == one.total
            assert one.total == pytest.approx(rate * elapsed_s, abs=6 * (rate * elapsed_s) ** 0.5)
            assert one.sum_ns / one.total == pytest.approx(elapsed_s * SECOND / 2, rel=1e-6)

    def test_at_once_is_unbiased_in_every_bucket(self) -> None:
        """Small buckets get less than one arrival each time; on average they must still get their share."""
        edges = [1 * SECOND, 2 * SECOND, 400 * SECOND, 500 * SECOND]
        draw = random.Random(6)
        runs = 4000
        first = sum(charge(draw, 1.7, 1000 * SECOND, edges).buckets.get(0, 0) for _ in range(runs))
        assert first / runs == pytest.approx(1.7, rel=0.03)

    def test_on_an_edge_belongs_to_it(self) -> None:
        found = charge(random.Random(7), 1000, 10 * SECOND, [SECOND, 10 * SECOND])
        assert sorted(found.buckets) == [0, 1]
        assert sum(found.buckets.values()) == found.total

    def test_above_the_last_edge(self) -> None:
        found = charge(random.Random(8), 1000, 10 * SECOND, [SECOND])
        assert sorted(found.buckets) == [0, 1]
        assert found.buckets[1] == pytest.approx(found.total * 0.9, abs=1)

    def test_a_stall_of_a_day_is_cheap(self) -> None:
        began = time.process_time()
        found = charge(random.Random(9), 10, 86_400 * SECOND, EDGES_NS)
        assert time.process_time() - began < 0.05
        assert found.total == pytest.approx(864_000, rel=0.01)


class TestLoadCap:
    def observe(self, cap: LoadCap, latency_s: float, count: int = LoadCap.WINDOW) -> float:
        for _ in range(count):
            cap.observe(round(latency_s * SECOND))
        return cap.rate

    def test_leaves_a_quick_device_alone(self) -> None:
        cap = LoadCap(10, max_busy=0.01, floor=0.2)
        assert self.observe(cap, 0.0002) == 10

    def test_keeps_a_slower_one_busy_for_one_percent(self) -> None:
        cap = LoadCap(10, max_busy=0.01, floor=0.2)
        assert self.observe(cap, 0.004) == pytest.approx(2.5)

    def test_decides_after_a_whole_window_only(self) -> None:
        cap = LoadCap(10, max_busy=0.01, floor=0.2)
        assert self.observe(cap, 0.004, LoadCap.WINDOW - 1) == 10
        assert self.observe(cap, 0.004, 1) == pytest.approx(2.5)

    def test_watches_a_device_that_became_slow_as_closely_as_before(self) -> None:
        cap = LoadCap(10, max_busy=0.01, floor=0.2)
        self.observe(cap, 0.001)
        assert self.observe(cap, 0.5, 10 * LoadCap.WINDOW) == 10

    def test_rises_with_a_device_that_was_slow_at_first(self) -> None:
        cap = LoadCap(10, max_busy=0.01, floor=0.2)
        assert self.observe(cap, 1.0) == 0.2
        assert self.observe(cap, 0.002) == pytest.approx(5)

    def test_never_raises_a_rate_that_was_asked_for(self) -> None:
        cap = LoadCap(0.1, max_busy=0.01, floor=0.2)
        assert self.observe(cap, 10.0) == 0.1

    def test_goes_on_from_what_the_worker_before_knew(self) -> None:
        cap = LoadCap(10, max_busy=0.01, floor=0.2, healthy_ns=2 * SECOND // 1000)
        assert cap.rate == pytest.approx(5)
        assert self.observe(cap, 1.0) == pytest.approx(5)
