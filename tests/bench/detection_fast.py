"""The shipped rules about canaries in numpy: what they say of medians and slow shares at every scrape.

Every number comes from the rules' own configuration (``alerts/config``), what is done with it from
``alerts/rules/canary_judgement.libsonnet`` and ``alerts/alerts/canary.libsonnet``; ``detection_check`` holds the result
against those in a real Prometheus. What is simpler here:

- A figure stands from one scrape to the next, and the rules' instants are scrapes. Rules of the slow group (season,
  limit, tickets) have a result every ``paces.drawn``.
- The spread and the usual share of slow operations, over a week, are taken every six hours (``--check``: each tick).
- Nothing is missing: no scrape, no operation, no baseline.

Arrays are (series, scrapes) or, of the slow group, (series, ticks); ratios are logarithms.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import bottleneck
import numpy as np
from numpy.typing import NDArray

from bench.detection_model import BODY_SIGMA, SCRAPE_S, SLOTS_PER_SCRAPE, Array, Flags, History, share_up_to
from support.paces import seconds
from support.rules import ROOT

Floats = NDArray[np.float32]

NEAR = 0.2
"""Levels of one scrape that differ by no more than this (logarithms) count as one: a body's own sigma is 0.3."""
NEVER = -9.0
"""The logarithm of no ratio."""
ALERTS = (
    "PlumblineCanaryLatencyExtreme",
    "PlumblineCanaryLatencyHigh",
    "PlumblineFleetLatencyHigh",
    "PlumblineCanaryBudgetBurn",
)


def shipped() -> dict[str, Any]:
    """``_config`` of the mixin, as far as it is about canaries."""
    import rjsonnet  # only here: what evaluates no climate needs none

    snippet = (
        f"local c = (import {json.dumps(str(ROOT / 'alerts' / 'config.libsonnet'))})._config;"
        f"{{ canary: c.canary, tick: c.paces.drawn, alerts: {{ [n]: c.alerts[n] for n in {json.dumps(ALERTS)} }} }}"
    )
    config: dict[str, Any] = json.loads(rjsonnet.evaluate_snippet("shipped", snippet))
    return config


def scrapes(text: str) -> int:
    """``1h`` → 120."""
    return round(seconds(text) / SCRAPE_S)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """When which condition holds. Recoveries hold back nothing here: see :func:`after`."""

    beyond: Flags
    """Beyond the page's limit at this moment."""
    near: Flags
    """At least half of the way there."""
    extreme: Flags
    """Catastrophically slow at this moment."""
    burning: Flags
    """Too slow a share for the page's whole span: this vantage point agrees to a page."""
    burnt: Flags
    """The ticket of the budget: over one hour, or in bursts over six."""
    high: Mapping[str, Flags]
    """By span, at ticks: one canary's ticket."""
    limit: Floats
    """The page's, at ticks."""


def observe(rng: np.random.Generator, history: History, bound: Array, ops_per_second: Array) -> tuple[Floats, Floats]:
    """Logarithm of the measured median and share of operations above ``bound``; those two are for each series."""
    count = history.level.shape[1] // SLOTS_PER_SCRAPE
    medians = np.empty((len(history.level), count), np.float32)
    slow = np.empty_like(medians)
    levels = np.log(history.level)
    for row, (bound_of, rate) in enumerate(zip(bound, ops_per_second, strict=True)):
        level, tail, slowed = (
            each[row, : count * SLOTS_PER_SCRAPE].reshape(count, SLOTS_PER_SCRAPE)
            for each in (levels, history.tail, history.slow)
        )
        # of bodies near to each other the median is the mean of theirs
        middle = level.mean(axis=1)
        mixed = np.flatnonzero(np.ptp(level, axis=1) > NEAR)
        edge = np.array([bound_of])
        share = 1 - share_up_to(edge, np.exp(middle), tail[:, 1], slowed[:, 1])[:, 0]
        share[mixed] = 1 - share_up_to(edge, np.exp(level[mixed]), tail[mixed], slowed[mixed]).mean(axis=1)[:, 0]
        middle[mixed] = _median(level[mixed])
        operations = rate * SCRAPE_S
        # the error of a median of so many operations; the density of the body at its median is 0.4 ÷ sigma
        middle += rng.standard_normal(count) * (1.2533 * BODY_SIGMA / np.sqrt(operations))
        medians[row] = middle
        slow[row] = rng.poisson(share * operations) / operations
    return medians, slow


def _median(levels: Array) -> Array:
    """Of the bodies at several levels (logarithms) together: by bisection."""
    low, high = levels.min(axis=1), levels.max(axis=1)
    ones, none = np.ones(levels.shape), np.zeros(levels.shape)
    edge = np.array([1.0])
    for _ in range(20):
        middle = (low + high) / 2
        below = share_up_to(edge, ones * np.exp(levels - middle[:, None]), none, none)[..., 0].mean(axis=1) < 0.5
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def judge(
    config: Mapping[str, Any],
    now: Floats,
    slow: Floats,
    layers: NDArray[np.int64] | None = None,
    first: int = 0,
    weekly: str = "6h",
    loaded: bool = False,
) -> Verdicts:
    """``now``: the logarithm of measured ÷ baseline, ``slow``: the share of slow operations.

    ``layers``: which layer of which cluster each series is of, one a host (default: all of one). ``first``: the scrape
    that the first tick sees. ``weekly``: how often a week's quantiles are taken. ``loaded``: all of it under
    clearly more load than the baseline.
    """
    canary, alerts = config["canary"], config["alerts"]
    high, burn = alerts[ALERTS[1]], alerts[ALERTS[3]]
    if layers is None:
        layers = np.zeros(len(now), np.int64)
    tolerance = np.log(config["tolerance"])
    step = scrapes(config["tick"])
    ticks = np.arange(first, now.shape[1], step)

    def of(window: str) -> int:
        return scrapes(window) // step

    hour = _hour(now, ticks, scrapes(canary["seasonWindow"]))
    # an offset of 23 h 30 m: the last result before that
    lags = [-(-scrapes(offset) // step) for offset in canary["seasonOffsets"]]
    past = [_earlier(hour, lag) for lag in lags]
    season = _median_of_past(past, lags, of(canary["seasonWindow"]))
    upper = _hour(now, ticks, scrapes(canary["seasonWindow"]), canary["job"]["quantile"])
    residual = now[:, ticks] - season
    every = of(weekly)
    spread = _spread(residual, canary, of, every, config["spread"])
    fleet_spread = np.empty_like(spread)
    for layer in np.unique(layers):
        rows = layers == layer
        fleet_spread[rows] = _spread(np.median(residual[rows], axis=0)[None], canary, of, every, config["spread"])

    whole_day = int(np.isnan(hour[0]).sum()) + of(canary["dayWindow"])
    days = np.nan_to_num(_median_of_day(hour, of(canary["dayWindow"]) + 1))
    day = np.log(_mean(np.exp(np.nan_to_num(season)), of(canary["dayWindow"])))

    # how much more than the season jobs of this hour make: of last week, the week before, and yesterday if it is over
    highest = _highest(upper, of(canary["job"]["window"]) + 1)
    over = days <= day + np.log(canary["job"]["least"])
    over[:, :whole_day] = False
    yesterday = np.where(over, _earlier(highest, of(canary["job"]["yesterday"])), np.nan)
    memory = np.fmax.reduce([yesterday, *(_earlier(highest, of(each)) for each in canary["job"]["offsets"])]) - season
    least = np.maximum(np.log(canary["job"]["least"]), canary["spreads"] * np.log1p(spread))
    job = np.where(np.nan_to_num(memory, nan=NEVER) > least, memory, 0).astype(np.float32)

    # what the canary may be for a day: of hosts that all serve more than the baseline did, as much more as their
    # median; on the first day, for an hour
    so_far = days.copy()
    so_far[:, :whole_day] = np.nan_to_num(hour[:, :whole_day])
    tolerated = np.full(season.shape, tolerance, np.float32)
    outgrown = np.zeros(season.shape, bool)
    for layer in np.unique(layers) if loaded else ():
        fleet = np.median(so_far[layers == layer], axis=0)
        shifted = fleet > np.log(high["hoursRatio"])
        tolerated[layers == layer] += np.where(shifted, fleet, 0)
        outgrown[layers == layer] = shifted

    # the season, but not of a day that is beyond what is tolerated
    week = _earlier(_highest(hour, of(canary["seasonWindow"]) + 1), of(canary["weekOffset"]))
    other = np.where(np.nan_to_num(week - season, nan=NEVER) > np.log1p(spread), week, season)
    other = np.where(job > 0, season + job, other)
    least = np.log(canary["leastSeason"])
    expected = np.maximum(other - np.maximum(day - tolerated, 0), least)
    expected = np.where(np.isnan(season), tolerated, expected)

    def limit(least: str, restless: Floats) -> Floats:
        times = np.maximum(np.log(canary[least]), canary["spreads"] * np.log1p(restless))
        most = np.clip(expected + times, tolerance, np.log(canary["cap"]))
        return np.asarray(np.maximum(most, expected + np.log(canary[least])), np.float32)

    page, ticket = limit("beyond", fleet_spread), limit("ticketBeyond", spread)
    near = np.log((np.exp(page) + np.exp(expected)) / 2)
    of_tick = np.maximum(np.arange(now.shape[1]) - first, 0) // step
    long = _share_beyond(now, ticks, ticket, scrapes(high["span"])) > 1 - high["quantile"]
    lowest = -_highest(-now, scrapes(high["capSpan"]) + 1)[:, ticks]
    cap = np.nan_to_num(lowest, nan=NEVER) > np.maximum(np.log(canary["cap"]), ticket)

    span = of(high["driftSpan"])
    middle = _earlier(expected, of(canary["seasonDelay"]))
    level = _mean(np.exp(np.nan_to_num(hour)), span + 1)
    drift = level / _mean(np.exp(np.nan_to_num(middle)), span + 1)
    begin = int(np.isnan(hour[0]).sum()) + span
    drift[:, :begin] = np.nan
    usual = _spread(np.log(drift), canary, of, every, np.nan)
    usual = np.where(np.isnan(usual), (1 + spread) ** high["driftFirstSpreads"], (1 + usual) ** high["driftSpreads"])
    drifted = np.nan_to_num(drift) > np.maximum(high["driftRatio"], usual)
    # no slower than two weeks ago: what was better for a while is as it was
    drifted &= ~(level <= (1 + spread) * _earlier(level, of(high["driftReturns"])))
    hours = rolling(hour > np.log(high["hoursRatio"]), of(high["hoursWindow"]) + 1) > 0.5
    long_day = (days > np.maximum(tolerated, np.log(usual))) & hours

    budget, page_burn, ticket_burn = canary["slowOperationsBudget"], burn["page"], burn["ticket"]
    hour_scrapes, long_scrapes = scrapes(ticket_burn["span"]), scrapes(ticket_burn["long"])
    steady = np.nan_to_num(_hour(slow, ticks, hour_scrapes))
    bursts = _mean(slow, long_scrapes)[:, ticks]
    usual_steady, usual_bursts = (
        np.nan_to_num(
            np.fmax.reduce(
                [
                    _of_week(
                        level, [canary["usualQuantile"]], begin // step, canary, of, every, of(canary["dayWindow"]), 1
                    )[0],
                    *(
                        _earlier(_highest(level, of(canary["job"]["window"]) + 1), of(offset))
                        for offset in canary["job"]["offsets"]
                    ),
                    _bursts_of_yesterday(level, canary["job"], of, canary["dayWindow"], burn["page"]["usual"]),
                ]
            )
        )
        for level, begin in ((steady, hour_scrapes), (bursts, long_scrapes))
    )
    least = ticket_burn["burstBurn"] * budget
    # what a higher median explains has its own ticket
    burnt = steady > np.maximum(ticket_burn["burn"] * budget, ticket_burn["usual"] * usual_steady)
    burnt &= ~(hour > expected + np.log1p(spread)) & (job == 0)
    burst = bursts > np.maximum(least, ticket_burn["burstUsual"] * usual_bursts)
    # a baseline that does not describe the load has no budget either, until it is known what is usual
    outgrown[:, of(canary["dayWindow"]) + of(burn["knownFor"]) + hour_scrapes // step :] = False
    burnt = burnt[:, of_tick] | burst[:, of_tick] & (_mean(slow, scrapes(ticket_burn["short"])) > least)
    lowest = -_highest(-slow, scrapes(page_burn["span"]) + 1)
    burning = lowest > np.maximum(page_burn["burn"] * budget, page_burn["usual"] * usual_steady[:, of_tick])
    # a known job's median is within its limit
    burning &= (job[:, of_tick] == 0) | (now > page[:, of_tick])
    burning &= ~outgrown[:, of_tick]
    burnt &= ~outgrown[:, of_tick]
    return Verdicts(
        beyond=now > page[:, of_tick],
        near=now > near[:, of_tick],
        extreme=now >= np.log(alerts[ALERTS[0]]["ratio"]) + job[:, of_tick],
        burning=burning,
        burnt=lasting(burnt, scrapes(ticket_burn["for"]) + 1),
        high={high["span"]: long | cap, high["driftSpan"]: drifted, canary["dayWindow"]: long_day},
        limit=page,
    )


def agreed(config: Mapping[str, Any], beyond: Flags, near: Flags, every_s: float) -> Flags:
    """When most hosts are a page, from those that are beyond and near to their limits: (hosts, instants) each."""
    fleet = config["alerts"][ALERTS[2]]

    def all_through(flags: Flags, share: float, span: str) -> Flags:
        return lasting(flags.mean(axis=-2) > share, round(seconds(fleet[span]) / every_s) + 1)

    soon = all_through(beyond, fleet["share"], "span") & all_through(near, fleet["nearShare"], "span")
    return soon | all_through(beyond, fleet["share"], "mostSpan")


def catastrophe(config: Mapping[str, Any], extreme: Flags, every_s: float) -> Flags:
    """Which hosts' canaries are a page: (hosts, instants) both. Two hosts at once, or one for the whole span."""
    page = config["alerts"][ALERTS[0]]["page"]
    together = extreme & (extreme.sum(axis=-2, keepdims=True) >= config["canary"]["minimumHosts"]["client"])
    alone = lasting(extreme, round(seconds(page["span"]) / every_s) + 1)
    return lasting(together | alone, round(seconds(page["for"]) / every_s) + 1)


def lasting(flags: Flags, count: int) -> Flags:
    """Where this and the ``count - 1`` before it are all set."""
    return np.asarray(rolling(flags, count) == 1)


def after(flags: Flags, count: int) -> Flags:
    """Where one of this and the ``count`` before it is set."""
    return ~lasting(~np.pad(flags, [(0, 0)] * (flags.ndim - 1) + [(count, 0)]), count + 1)[..., count:]


def rolling(flags: Flags, count: int) -> Floats:
    """Share of the last ``count`` that are set; none as long as there are fewer."""
    total = np.cumsum(np.pad(flags, [(0, 0)] * (flags.ndim - 1) + [(1, 0)]), axis=-1, dtype=np.int32)
    share = np.zeros(flags.shape, np.float32)
    share[..., count - 1 :] = (total[..., count:] - total[..., :-count]) / np.float32(count)
    return share


def _mean(values: Floats, count: int) -> Floats:
    """Of the last ``count``; 0 as long as there are fewer."""
    total = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1, dtype=np.float64)
    mean = np.full(values.shape, 1e-9, np.float32)
    mean[:, count - 1 :] = (total[:, count:] - total[:, :-count]) / count
    return mean


def _earlier(values: Floats, lag: int) -> Floats:
    out = np.full_like(values, np.nan)
    out[:, lag:] = values[:, : max(values.shape[1] - lag, 0)]
    return out


def _hour(now: Floats, ticks: NDArray[np.int64], window: int, quantile: float = 0.5) -> Floats:
    """The median, or another quantile, of what the last hour has."""
    hour = np.full((len(now), len(ticks)), np.nan, np.float32)
    full = ticks >= window
    begins = ticks[full] - window + 1
    if quantile == 0.5:
        hour[:, full] = bottleneck.move_median(now, window, axis=1)[:, ticks[full]]
        return hour
    for row, values in enumerate(now):
        windows = np.lib.stride_tricks.sliding_window_view(values, window)[begins]
        place = quantile * (window - 1)
        below, above = math.floor(place), math.ceil(place)
        ordered = np.partition(windows, [below, above], axis=1)
        hour[row, full] = ordered[:, below] + (place - below) * (ordered[:, above] - ordered[:, below])
    return hour


def _median_of_past(past: list[Floats], lags: list[int], first: int) -> Floats:
    """Of those days that there are."""
    season = np.full_like(past[0], np.nan)
    begins = [lag + first + 1 for lag in lags]
    for days, (begin, end) in enumerate(zip(begins, [*begins[1:], season.shape[1]], strict=True), 1):
        season[:, begin:end] = np.median([each[:, begin:end] for each in past[:days]], axis=0)
    return season


def _spread(residual: Floats, canary: Mapping[str, Any], of: Any, every: int, recorded: float) -> Floats:
    """Relative, as soon as there is a day of it; until then the baseline's."""
    begin = int(np.isnan(residual[0]).sum())
    quantiles = [canary["spreadQuantiles"][each] for each in ("low", "high")]
    low, high = _of_week(residual, quantiles, begin, canary, of, every, 0)
    return np.where(np.isnan(low), np.float32(recorded), np.expm1((high - low) / 2)).astype(np.float32)


def _of_week(
    values: Floats,
    quantiles: Sequence[float],
    begin: int,
    canary: Mapping[str, Any],
    of: Any,
    every: int,
    lag: int,
    least: int = 0,
) -> Floats:
    """Those quantiles of the week that ends ``lag`` ticks ago, as soon as there are ``least`` of it (0: a day)."""
    found = np.full((len(quantiles), *values.shape), np.nan, np.float32)
    week = of(canary["spreadWindow"])
    for tick in range(begin + lag + (least or of(canary["dayWindow"])), values.shape[1], every):
        those = values[:, max(begin, tick - lag - week) : tick - lag + 1]
        places = np.array(quantiles) * (those.shape[1] - 1)
        below, above = np.floor(places).astype(int), np.ceil(places).astype(int)
        ordered = np.partition(those, np.union1d(below, above), axis=1)
        chosen = ordered[:, below] + (places - below) * (ordered[:, above] - ordered[:, below])
        found[:, :, tick : tick + every] = chosen.T[:, :, None]
    return found


def _median_of_day(values: Floats, count: int) -> Floats:
    """Of the last ``count``; nothing as long as there are fewer."""
    return np.asarray(bottleneck.move_median(values, count, axis=1))


def _bursts_of_yesterday(level: Floats, job: Mapping[str, Any], of: Any, day: str, times: float) -> Floats:
    """What the level was around this moment of yesterday, if that is more than so many times its median since."""
    highest = _earlier(_highest(level, of(job["window"]) + 1), of(job["yesterday"]))
    return np.where(highest > times * _median_of_day(level, of(day) + 1), highest, np.nan)


def _highest(values: Floats, count: int) -> Floats:
    """Of the last ``count``; nothing as long as there are fewer."""
    return np.asarray(bottleneck.move_max(values, count, axis=1))


def _share_beyond(values: Floats, at: NDArray[np.int64], limit: Floats, count: int) -> Floats:
    """Share of the last ``count`` that are above what is the limit now."""
    above = np.zeros(limit.shape, np.int16)
    for back in range(count):
        chosen = at - back
        there = chosen >= 0
        above[:, there] += values[:, chosen[there]] > limit[:, there]
    return (above / np.float32(count)).astype(np.float32)
