"""The shipped rules about canaries in numpy: what they say of medians and slow shares at every scrape.

Every number comes from the rules' own configuration (``alerts/config``), what is done with it from
``alerts/rules/canary_judgement.libsonnet`` and ``alerts/alerts/canary.libsonnet``; ``detection_check`` holds the result
against those in a real Prometheus. What is simpler here:

- A figure stands from one scrape to the next, and the rules' instants are scrapes. Rules of the slow group (season,
  limit, tickets) have a result every ``paces.drawn``.
- The spread, over a week, is taken every six hours.
- Nothing is missing: no scrape, no operation, no baseline.

Arrays are (series, scrapes) or, of the slow group, (series, ticks); ratios are logarithms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.detection_model import BODY_SIGMA, SCRAPE_S, SLOTS_PER_SCRAPE, Array, Flags, History, share_up_to
from bench.detection_rules import duration_s
from support.rules import ROOT

Floats = NDArray[np.float32]

NEVER = -9.0
"""The logarithm of no ratio."""
SPREAD_EVERY = "6h"
ALERTS = (
    "PlumblineCanaryLatencyExtreme",
    "PlumblineCanaryLatencyHigh",
    "PlumblineFleetLatencyHigh",
    "PlumblineCanaryBudgetBurn",
)


def shipped() -> dict[str, Any]:
    """``_config`` of the mixin, as far as it is about canaries."""
    import _gojsonnet  # only here: what evaluates no climate needs none

    snippet = (
        f"local c = (import {json.dumps(str(ROOT / 'alerts' / 'config.libsonnet'))})._config;"
        f"{{ canary: c.canary, tick: c.paces.drawn, alerts: {{ [n]: c.alerts[n] for n in {json.dumps(ALERTS)} }} }}"
    )
    config: dict[str, Any] = json.loads(_gojsonnet.evaluate_snippet("shipped", snippet))
    return config


def scrapes(text: str) -> int:
    """``1h`` → 120."""
    return round(duration_s(text) / SCRAPE_S)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """When which condition holds. Recoveries hold back nothing here: see :func:`after`."""

    beyond: Flags
    """Beyond the page's limit for its whole span: this vantage point agrees to a page."""
    extreme: Flags
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
    for row, (bound_of, rate) in enumerate(zip(bound, ops_per_second, strict=True)):
        level, tail, slowed = (
            each[row, : count * SLOTS_PER_SCRAPE].reshape(count, SLOTS_PER_SCRAPE)
            for each in (history.level, history.tail, history.slow)
        )
        mixed = np.flatnonzero(np.ptp(level, axis=1) > 0.02 * level[:, 1])
        middle = np.log(level[:, 1])
        middle[mixed] = _median(np.log(level[mixed]))
        operations = rate * SCRAPE_S
        # the error of a median of so many operations; the density of the body at its median is 0.4 ÷ sigma
        middle += rng.standard_normal(count) * (1.2533 * BODY_SIGMA / np.sqrt(operations))
        edge = np.array([bound_of])
        share = 1 - share_up_to(edge, level[:, 1], tail[:, 1], slowed[:, 1])[:, 0]
        share[mixed] = 1 - share_up_to(edge, level[mixed], tail[mixed], slowed[mixed]).mean(axis=1)[:, 0]
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


def judge(config: Mapping[str, Any], now: Floats, slow: Floats, first: int = 0) -> Verdicts:
    """``now``: the logarithm of measured ÷ baseline, ``slow``: the share of slow operations.

    ``first``: the scrape that the first tick sees.
    """
    canary, alerts = config["canary"], config["alerts"]
    high, fleet, burn = alerts[ALERTS[1]], alerts[ALERTS[2]], alerts[ALERTS[3]]
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
    spread = _spread(now[:, ticks] - season, canary, of, config["spread"])

    # the season, but not of a day that is beyond the tolerance
    other = np.where(np.nan_to_num(past[-1] - season, nan=NEVER) > np.log1p(spread), past[-1], season)
    day = np.log(_mean(np.exp(np.nan_to_num(season)), of(canary["dayWindow"])))
    least = np.log(canary["leastSeason"])
    expected = np.maximum(other - np.maximum(day - tolerance, 0), least)
    expected = np.where(np.isnan(season), tolerance, expected)

    def limit(verdict: str) -> Floats:
        times = np.maximum(canary["beyond"], 1 + canary["spreads"][verdict] * spread)
        most: Floats = np.clip(expected + np.log(times), tolerance, np.log(canary["cap"])).astype(np.float32)
        return most

    page, ticket = limit("page"), limit("ticket")
    for_page = page[:, np.maximum(np.arange(now.shape[1]) - first, 0) // step]
    long = _share_beyond(now, ticks, ticket, scrapes(high["span"])) > 1 - high["quantile"]
    cap = lasting(now > np.log(canary["cap"]), scrapes(high["capSpan"]) + 1)[:, ticks]

    excess = hour - _earlier(expected, of(canary["seasonDelay"]))
    drifted = np.log(np.maximum(high["driftRatio"], 1 + high["driftSpreads"] * spread))
    drift = _share_beyond(excess, np.arange(len(ticks)), drifted, of(high["driftSpan"]) + 1) > 0.5
    hours = rolling(hour > np.log(high["hoursRatio"]), of(high["hoursWindow"]) + 1) > 0.5
    long_day = (_mean(np.exp(np.nan_to_num(hour)), of(canary["dayWindow"])) > config["tolerance"]) & hours

    budget = canary["slowOperationsBudget"]
    page_burn, ticket_burn = burn["page"], burn["ticket"]
    bursts = ticket_burn["burstBurn"] * budget
    burnt = rolling(slow > ticket_burn["burn"] * budget, scrapes(ticket_burn["span"])) > 0.5
    burnt |= (_mean(slow, scrapes(ticket_burn["long"])) > bursts) & (
        _mean(slow, scrapes(ticket_burn["short"])) > bursts
    )
    return Verdicts(
        beyond=_all_beyond(now, for_page, scrapes(fleet["span"]) + 1),
        extreme=lasting(now >= np.log(alerts[ALERTS[0]]["ratio"]), scrapes(alerts[ALERTS[0]]["page"]["for"]) + 1),
        burning=lasting(slow > page_burn["burn"] * budget, scrapes(page_burn["span"]) + 1),
        burnt=lasting(burnt, scrapes(ticket_burn["for"]) + 1),
        high={high["span"]: long | cap, high["driftSpan"]: drift, canary["dayWindow"]: long_day},
        limit=page,
    )


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


def _hour(now: Floats, ticks: NDArray[np.int64], window: int) -> Floats:
    """The median of what the last hour has; of an even number of scrapes the upper one."""
    hour = np.full((len(now), len(ticks)), np.nan, np.float32)
    full = ticks >= window
    begins = ticks[full] - window + 1
    for row, values in enumerate(now):
        windows = np.lib.stride_tricks.sliding_window_view(values, window)[begins]
        hour[row, full] = np.partition(windows, window // 2, axis=1)[:, window // 2]
    return hour


def _median_of_past(past: list[Floats], lags: list[int], first: int) -> Floats:
    """Of those days that there are."""
    season = np.full_like(past[0], np.nan)
    begins = [lag + first + 1 for lag in lags]
    for days, (begin, end) in enumerate(zip(begins, [*begins[1:], season.shape[1]], strict=True), 1):
        season[:, begin:end] = np.median([each[:, begin:end] for each in past[:days]], axis=0)
    return season


def _spread(residual: Floats, canary: Mapping[str, Any], of: Any, recorded: float) -> Floats:
    """Relative, as soon as there is a day of it; until then the baseline's."""
    spread = np.full_like(residual, recorded)
    begin = int(np.isnan(residual[0]).sum())
    week, every = of(canary["spreadWindow"]), of(SPREAD_EVERY)
    quantiles = [canary["spreadQuantiles"]["low"], canary["spreadQuantiles"]["high"]]
    for tick in range(begin + of(canary["dayWindow"]), residual.shape[1], every):
        low, high = np.quantile(residual[:, max(begin, tick - week) : tick + 1], quantiles, axis=1)
        spread[:, tick : tick + every] = np.expm1((high - low) / 2)[:, None]
    return spread


def _share_beyond(values: Floats, at: NDArray[np.int64], limit: Floats, count: int) -> Floats:
    """Share of the last ``count`` that are above what is the limit now."""
    above = np.zeros(limit.shape, np.int16)
    for back in range(count):
        chosen = at - back
        there = chosen >= 0
        above[:, there] += values[:, chosen[there]] > limit[:, there]
    return (above / np.float32(count)).astype(np.float32)


def _all_beyond(values: Floats, limit: Floats, count: int) -> Flags:
    beyond = values > limit
    for back in range(1, count):
        beyond[:, back:] &= values[:, :-back] > limit[:, back:]
    beyond[:, : count - 1] = False
    return beyond
