"""Latency histograms of a host full of disks, as promtool input: synthetic, to rank designs and not as field figures.

Each disk's operations are log-normal (sigma 0.3) with a tail of 0.3 % that takes five times as long, and a Poisson
number of them falls into each bucket. :meth:`Fleet.everyday` is the model of normal variation that the canary's
alerts were tuned on: a daily cycle of load and latency, a slow wander of each disk, a scrub every night, hiccups of
each disk alone (2 to 8 times, up to four minutes), and one recovery a week that all disks share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from random import Random

BUCKETS_SECONDS = tuple(2**k / 1e6 for k in range(8, 18))
"""256 µs to 0.13 s: of the daemon's 27 those that a disk of a millisecond can reach."""
DAY_SECONDS = 86400


@dataclass(frozen=True, slots=True)
class Moment:
    """How one disk behaves at one time. ``slow_share`` of its operations take ``slow_factor`` times as long."""

    operations_per_second: float
    median_seconds: float
    tail_share: float = 0.003
    slow_share: float = 0.0
    slow_factor: float = 1.0

    def below(self, edge_seconds: float) -> float:
        """Share of operations that take at most this long."""
        body = _lognormal(edge_seconds / self.median_seconds)
        tail = _lognormal(edge_seconds / self.median_seconds / 5, sigma=0.6)
        slow = _lognormal(edge_seconds / self.median_seconds / self.slow_factor)
        quick = (1 - self.tail_share) * body + self.tail_share * tail
        return (1 - self.slow_share) * quick + self.slow_share * slow

    def mean_seconds(self) -> float:
        """Of the model, hence no sampling noise in it."""
        quick = (1 - self.tail_share) * math.exp(0.045) + self.tail_share * 5 * math.exp(0.18)
        slow = self.slow_factor * math.exp(0.045)
        return self.median_seconds * ((1 - self.slow_share) * quick + self.slow_share * slow)


Behaviour = Callable[[int], Iterator[Moment]]
"""Disk number → its moments, step by step."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """``disks`` disks called ``sda`` onwards, sampled every ``step_seconds`` for ``duration_seconds``."""

    disks: int
    duration_seconds: int
    step_seconds: int
    seed: int = 4

    @property
    def names(self) -> list[str]:
        return [f"sd{chr(ord('a') + number)}" for number in range(self.disks)]

    def series(self, behaviour: Behaviour) -> list[dict[str, str]]:
        """``input_series`` of a promtool test: identity and read latency of each disk."""
        found = []
        for number, name in enumerate(self.names):
            random = Random(f"{self.seed} {name}")
            counts: list[list[int]] = [[] for _ in range(len(BUCKETS_SECONDS) + 1)]
            sums: list[float] = []
            for moment in behaviour(number):
                expected, below = moment.operations_per_second * self.step_seconds, 0.0
                total = 0
                for bucket, edge in enumerate((*BUCKETS_SECONDS, math.inf)):
                    reached = 1.0 if edge == math.inf else moment.below(edge)
                    total += _poisson(random, expected * (reached - below))
                    below = reached
                    counts[bucket].append(total)
                sums.append(total * moment.mean_seconds())
            labels = f'device="{name}",instance="stor01.example:10047",job="plumbline"'
            identity = (
                f'device_class="ssd",firmware="1",model="M",osd="",rotational="0",serial="{name}",transport="sas"'
            )
            steps = self.duration_seconds // self.step_seconds
            found.append({"series": f"plumbline_disk_info{{{labels},{identity}}}", "values": f"1x{steps}"})
            read = f'{labels},operation="read"'
            for bucket, edge in enumerate((*BUCKETS_SECONDS, math.inf)):
                le = "+Inf" if edge == math.inf else repr(edge)
                values = _cumulative(counts[bucket])
                found.append({"series": f'plumbline_disk_latency_seconds_bucket{{{read},le="{le}"}}', "values": values})
            found.append(
                {"series": f"plumbline_disk_latency_seconds_count{{{read}}}", "values": _cumulative(counts[-1])}
            )
            found.append({"series": f"plumbline_disk_latency_seconds_sum{{{read}}}", "values": _cumulative(sums)})
        return found

    def everyday(self, number: int) -> Iterator[Moment]:
        """Normal variation, as the module says; the same for every run of one seed."""
        shared, own = Random(f"{self.seed} shared"), Random(f"{self.seed} disk {number}")
        recovery = shared.uniform(0, max(1, self.duration_seconds - 7200))
        recovered, burden = recovery + shared.uniform(1800, 7200), shared.uniform(1.5, 3)
        base_seconds, wander = 1e-3 * own.uniform(0.85, 1.2), 0.0
        hiccup_end, hiccup_factor = 0.0, 1.0
        for now in range(0, self.duration_seconds, self.step_seconds):
            cycle = math.sin(2 * math.pi * now / DAY_SECONDS)
            wander = 0.98 * wander + own.gauss(0, 0.02)
            scrub = now % DAY_SECONDS < 3 * 3600
            if now >= hiccup_end and own.random() < 6 * self.step_seconds / DAY_SECONDS:
                hiccup_end, hiccup_factor = now + own.uniform(15, 240), own.uniform(2, 8)
            share = min(1.0, max(0.0, hiccup_end - now) / self.step_seconds)
            yield Moment(
                operations_per_second=20 * (1 + 0.6 * cycle) * own.uniform(0.8, 1.2),
                median_seconds=base_seconds
                * (1 + 0.2 * cycle)
                * math.exp(wander)
                * (1.15 if scrub else 1)
                * (burden if recovery <= now < recovered else 1),
                tail_share=0.006 if scrub else 0.003,
                slow_share=share,
                slow_factor=hiccup_factor,
            )


def _lognormal(ratio: float, sigma: float = 0.3) -> float:
    return 0.5 * (1 + math.erf(math.log(ratio) / sigma / math.sqrt(2)))


def _poisson(random: Random, expected: float) -> int:
    if expected > 50:
        return max(0, round(random.gauss(expected, math.sqrt(expected))))
    limit, product, count = math.exp(-expected), random.random(), 0
    while product > limit:
        product *= random.random()
        count += 1
    return count


def _cumulative(counts: list[int] | list[float]) -> str:
    return " ".join(format(value, ".9g") if isinstance(value, float) else str(value) for value in accumulate(counts))
