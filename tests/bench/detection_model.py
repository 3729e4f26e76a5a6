"""Synthetic canaries for the detection benchmark: how a healthy layer wavers, and what is done to it.

Everything is a multiple of the baseline's median. The healthy part follows the design study that the alerts were
tuned with: a log-normal body, a Pareto tail, a daily and a weekly cycle, autocorrelated noise, a nightly scrub, benign
hiccups, recoveries. What the study left open is chosen here, where in doubt against the alerts: of two overlapping
hiccups the higher one counts (a product would be easier to tell from a step), and all hosts of a cluster share blips.

Latencies are drawn as counts of operations per bucket and scrape: arrivals are a Poisson process, so the count of
every bucket is Poisson distributed with the mean that follows from the level in each slot of ten seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

SLOT_S = 10
"""Resolution of a level: hiccups begin and end on it."""
SCRAPE_S = 30
DAY_S = 86_400
SLOTS_PER_DAY = DAY_S // SLOT_S
SLOTS_PER_SCRAPE = SCRAPE_S // SLOT_S

BODY_SIGMA = 0.3
TAIL_SHARE = 0.003
TAIL_FROM = 3.0
TAIL_EXPONENT = 1.5
"""The tail's operations take at least three medians, and x times as long with probability x^-1.5."""
SLOW_FACTOR = 5.0
"""How slow an operation is that a tail regression makes slow."""

_GRID = np.linspace(-6.0, 6.0, 4801)
_NORMAL = np.array([0.5 * (1 + math.erf(z / math.sqrt(2))) for z in _GRID])


@dataclass(frozen=True, slots=True)
class Job:
    """What makes all hosts of a cluster slower now and then: so many hours, so many times the latency."""

    every_h: float
    lasts_h: tuple[float, float]
    ratio: float
    late_h: float = 0.0
    """It begins up to so many hours after its time."""
    first_day: float = 0.0


@dataclass(frozen=True, slots=True)
class Climate:
    """How a healthy layer wavers. Ratios are of the baseline's median, durations in seconds."""

    daily_amplitude: float = 0.2
    weekend_ratio: float = 0.92
    noise_sigma: float = 0.04
    noise_correlation_s: float = 1800.0
    scrub_ratio: float = 1.15
    scrub_hours: tuple[float, float] = (1.0, 5.0)
    hiccups_per_day: float = 6.0
    blips_per_week: float = 1.0
    """Hiccups of all hosts of a cluster at once."""
    hiccup_s: tuple[float, float] = (15.0, 240.0)
    hiccup_ratio: tuple[float, float] = (2.0, 8.0)
    recoveries_per_week: float = 1.0
    recovery_s: tuple[float, float] = (1800.0, 7200.0)
    recovery_ratio: tuple[float, float] = (1.5, 3.0)
    shared_noise: float = 0.0
    """Share of the noise (of its variance) that all hosts of a layer have in common."""
    load_swing: float = 1.0
    """The day's highest load over its lowest. More than 1: latency follows it as that of one server with a queue
    (M/M/1) whose mean utilisation is :data:`UTILISATION`, in place of the daily amplitude."""
    jobs: tuple[Job, ...] = ()
    day_sigma: float = 0.0
    """Of the logarithm of a day's level. It passes from one day's to the next one's within :data:`DAWN_H` hours."""
    own_days: bool = False
    """Each host has days of its own."""
    growth_per_week: float = 0.0
    production_ratio: float = 1.0
    """The baseline was recorded at rest; all else is under load, at so many times its latency."""
    periods: tuple[tuple[float, float, float], ...] = ()
    """First day, days, ratio: weeks that differ from all others."""
    clock_change_day: float = math.inf
    """From this day on everything that people and clocks begin is an hour earlier."""
    stalls_per_day: float = 0.0
    """Of a host by itself: a shingled disk that tidies up."""
    stall_s: tuple[float, float] = (60.0, 300.0)
    stall_ratio: tuple[float, float] = (20.0, 60.0)
    ops_per_second: float = 10.0


UTILISATION = 0.4
DAWN_H = 4


@dataclass(frozen=True, slots=True)
class Regression:
    """What is done to a layer from some moment on, for good."""

    name: str
    ratio: float = 1.0
    drift_s: float = 0.0
    slow_share: float = 0.0


STEPS = tuple(Regression(f"{ratio:g}x", ratio=ratio) for ratio in (1.25, 1.5, 2.0, 3.0, 5.0))
DRIFT = Regression("drift to 1.6x in 24 h", ratio=1.6, drift_s=DAY_S)
TAILS = tuple(Regression(f"{share:.0%} slow", slow_share=share) for share in (0.15, 0.03))
REGRESSIONS = (*STEPS, DRIFT, *TAILS)


@dataclass(frozen=True, slots=True)
class History:
    """Of the hosts of one cluster: (hosts, slots) arrays, and when recovery was under way: (slots,)."""

    level: Array
    tail: Array
    slow: Array
    recovering: Flags


def healthy(
    rng: np.random.Generator, hosts: int, days: float, climate: Climate | Sequence[Climate] = Climate(), layers: int = 1
) -> History:
    """A cluster's history that begins at midnight of a Monday (UTC). Of each host its layers, one row after the other.

    Of a climate for each host the first one's cycle, blips and recoveries are the cluster's.
    """
    climates = [climate] * hosts if isinstance(climate, Climate) else climate
    whole = climates[0]
    slots = round(days * SLOTS_PER_DAY)
    time_s = np.arange(slots) * SLOT_S
    local_s = time_s + 3600 * (time_s >= whole.clock_change_day * DAY_S)
    hour = (local_s % DAY_S) / 3600
    weekend = (local_s // DAY_S) % 7 >= 5
    cycle = _cycle(whole, (hour - rng.uniform(8, 20)) * math.pi / 12)
    scrubbing = (hour >= whole.scrub_hours[0]) & (hour < whole.scrub_hours[1])
    shared = cycle * np.where(weekend, whole.weekend_ratio, 1.0) * np.where(scrubbing, whole.scrub_ratio, 1.0)

    blips = _events(rng, slots, whole.blips_per_week / 7, whole.hiccup_s, whole.hiccup_ratio)
    recovery = _events(rng, slots, whole.recoveries_per_week / 7, whole.recovery_s, whole.recovery_ratio)
    for job in whole.jobs:
        shared *= _job(rng, local_s / 3600, job)
    shared *= whole.production_ratio * (1 + whole.growth_per_week) ** (time_s / (7 * DAY_S))
    for first, length, ratio in whole.periods:
        shared[round(first * SLOTS_PER_DAY) : round((first + length) * SLOTS_PER_DAY)] *= ratio
    days_own = [_days(rng, time_s, whole.day_sigma) for _ in range(hosts if whole.own_days else bool(whole.day_sigma))]
    common = [_noise(rng, slots, whole.noise_correlation_s) for _ in range(layers)] if whole.shared_noise else []
    level = np.empty((hosts * layers, slots))
    for host, own in enumerate(climates):
        hiccups = _events(rng, slots, own.hiccups_per_day, own.hiccup_s, own.hiccup_ratio)
        events = shared * np.maximum(np.maximum(hiccups, blips), recovery)
        if own.stalls_per_day:
            events *= _events(rng, slots, own.stalls_per_day, own.stall_s, own.stall_ratio)
        if days_own:
            events *= days_own[host % len(days_own)]
        for layer in range(layers):
            noise = _noise(rng, slots, own.noise_correlation_s)
            if common:
                noise = math.sqrt(1 - whole.shared_noise) * noise + math.sqrt(whole.shared_noise) * common[layer]
            level[host * layers + layer] = events * np.exp(own.noise_sigma * noise)
    tail = np.broadcast_to(np.where(scrubbing, 2 * TAIL_SHARE, TAIL_SHARE), level.shape)
    return History(level, tail, np.broadcast_to(0.0, level.shape), recovery > 1)


def _job(rng: np.random.Generator, hours: Array, job: Job) -> Array:
    """Between two of its times 1. Lengths and delays differ from time to time."""
    since = hours - rng.uniform(0, job.every_h) + job.every_h
    times = (since // job.every_h).astype(int)
    count = int(times[-1]) + 2
    late, lasts = rng.uniform(0, job.late_h, count), rng.uniform(*job.lasts_h, count)
    within = since % job.every_h - late[times]
    there = (within >= 0) & (within < lasts[times]) & (hours >= job.first_day * 24)
    return np.where(there, job.ratio, 1.0)


def _days(rng: np.random.Generator, time_s: Array, sigma: float) -> Array:
    logs = sigma * rng.standard_normal(int(time_s[-1] // DAY_S) + 2)
    day = (time_s // DAY_S).astype(int)
    arrived = np.minimum((time_s % DAY_S) / (DAWN_H * 3600), 1)
    return np.asarray(np.exp(logs[day] + (logs[day + 1] - logs[day]) * arrived))


def _cycle(climate: Climate, phase: Array) -> Array:
    if climate.load_swing == 1:
        return 1 + climate.daily_amplitude * np.cos(phase)
    load = 1 + (climate.load_swing - 1) / (climate.load_swing + 1) * np.cos(phase)
    return (1 - UTILISATION) / (1 - UTILISATION * load)


def inject(history: History, regression: Regression, start_slot: int) -> History:
    """The same cluster with ``regression`` on all its hosts from ``start_slot`` on."""
    slots = history.level.shape[1]
    since_s = (np.arange(slots) - start_slot) * SLOT_S
    grown = np.clip(since_s / regression.drift_s, 0, 1) if regression.drift_s else (since_s >= 0).astype(float)
    level = history.level * (1 + (regression.ratio - 1) * grown)
    slow = history.slow + regression.slow_share * grown
    return History(level, history.tail, slow, history.recovering)


def share_up_to(edges: Array, level: Array, tail: Array, slow: Array) -> Array:
    """(…, edges): the share of operations up to each edge, for levels of any shape."""
    log_ratio = np.log(edges) - np.log(level)[..., None]
    body = np.interp(log_ratio / BODY_SIGMA, _GRID, _NORMAL)
    pareto = 1 - np.exp(-TAIL_EXPONENT * np.maximum(log_ratio - math.log(TAIL_FROM), 0))
    share = body + tail[..., None] * (pareto - body)
    if slow.any():
        slowed = np.interp((log_ratio - math.log(SLOW_FACTOR)) / BODY_SIGMA, _GRID, _NORMAL)
        share += slow[..., None] * (slowed - body)
    return np.asarray(share)


def draw(rng: np.random.Generator, history: History, edges: Array, ops_per_second: float) -> NDArray[np.int64]:
    """(hosts, scrapes, edges + 1) operations in each bucket between two scrapes, the one above all edges last."""
    hosts, slots = history.level.shape
    scrapes = slots // SLOTS_PER_SCRAPE
    counts = np.empty((hosts, scrapes, len(edges) + 1), np.int64)
    for host in range(hosts):
        level, tail, slow = (
            each[host, : scrapes * SLOTS_PER_SCRAPE].reshape(scrapes, SLOTS_PER_SCRAPE)
            for each in (history.level, history.tail, history.slow)
        )
        share = share_up_to(edges, level[:, 1], tail[:, 1], slow[:, 1])
        # where something begins or ends within the scrape, slot by slot; elsewhere its middle stands for it
        mixed = (np.ptp(level, axis=1) > 0.02 * level[:, 1]) | (np.ptp(slow, axis=1) > 0.02)
        share[mixed] = share_up_to(edges, level[mixed], tail[mixed], slow[mixed]).mean(axis=1)
        bucket = np.diff(share, axis=1, prepend=0.0, append=1.0)
        counts[host] = rng.poisson(np.clip(bucket, 0, 1) * (ops_per_second * SCRAPE_S))
    return counts


def _events(
    rng: np.random.Generator, slots: int, per_day: float, lasts_s: tuple[float, float], ratio: tuple[float, float]
) -> Array:
    """The level that events alone make: 1 between them, of two that overlap the higher. Heights are log-uniform."""
    level = np.ones(slots)
    for _ in range(rng.poisson(per_day * slots / SLOTS_PER_DAY)):
        start = rng.integers(slots)
        length = max(1, round(rng.uniform(*lasts_s) / SLOT_S))
        height = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        level[start : start + length] = np.maximum(level[start : start + length], height)
    return level


def _noise(rng: np.random.Generator, slots: int, correlation_s: float) -> Array:
    """An AR(1) process of unit variance, a step a minute, linear in between."""
    per_minute = 60 // SLOT_S
    minutes = slots // per_minute + 2
    keep = math.exp(-60 / correlation_s)
    shocks = rng.standard_normal(minutes) * math.sqrt(1 - keep * keep)
    values = np.empty(minutes)
    value = rng.standard_normal()
    # x[k] = keep^k (x[-1] keep + sum of shocks[i] / keep^i), in parts whose powers stay far from the least float
    part = max(1, math.floor(20 * correlation_s / 60))
    powers = keep ** np.arange(part)
    for begin in range(0, minutes, part):
        these = shocks[begin : begin + part]
        power = powers[: len(these)]
        values[begin : begin + part] = power * (keep * value + np.cumsum(these / power))
        value = values[begin + len(these) - 1]
    between = np.arange(per_minute) / per_minute
    level = values[:-1, None] + np.diff(values)[:, None] * between
    return np.asarray(level.ravel()[:slots])
