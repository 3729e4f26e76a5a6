"""Finds when a level changed. It works on daily medians, which have no daily cycle.

Ranks are summed up as differences from their mean (a CUSUM; with ranks one outlier day weighs no more than another).
The split with the largest deviation is the candidate. The same is done with the days in other orders, shuffled in
blocks so that similar neighbours stay together: a candidate is significant if hardly any order deviates as much. E. S.
Page, Biometrika 41 (1954); A. N. Pettitt, Applied Statistics 28 (1979). Each side is then searched in the same way.

A significant change must also matter: it has to be at least a tenth and exceed the variation between days. Where a
straight line fits better than a step, it is reported as a drift without a date.
"""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from statistics import median

from msgspec import Struct

from plumbline.core.words import DAY_S
from plumbline.report.minimums import LEVEL_DAYS

LEAST_CHANGE = math.log(1.1)
# for less than four weeks, which do not show how weekends differ
SHORT_LEAST_CHANGE = math.log(1.15)
# least change in multiples of the noise of the days; above it, the two levels hardly overlap
LEAST_NOISES = 2.5
ORDERS = 500
# highest accepted share of orders that deviate as much
CHANCE = 0.004
BLOCK_DAYS = 3
# a change of this many noises is accepted without testing orders, of which a fortnight has too few
PLAIN_NOISES = 5.0
# minimum length of a drift: over a few days, everything looks like a line
STEADY_DAYS = 10
# a change is a drift if the line's misfit is below this share of the step's
LINE_BETTER = 0.75
_WEEK = 7


class Shift(Struct, frozen=True):
    """A change of level. ``day_s``: first day of the new level or of the drift (``gradual``); ``until_s``: last day
    examined; ``known_s``: last day with data before ``day_s``. Levels are in the unit of the values."""

    day_s: int
    known_s: int
    until_s: int
    before: float
    after: float
    gradual: bool


def shifts(days: Mapping[int, float], *, seed: int = 1) -> tuple[Shift, ...]:
    """The shifts in order of time. ``days``: beginning of a day (Unix seconds) → its median; gaps are left out."""
    known = [(at, math.log(value)) for at, value in sorted(days.items()) if value > 0]
    if len(known) < 2 * LEVEL_DAYS:
        return ()
    values = _without_weekends([at for at, _ in known], [value for _, value in known])
    if not _may_have_changed(values):
        return ()
    parts = _split([at for at, _ in known], values, random.Random(seed))  # noqa: S311  (orders, no secrets)
    return tuple(sorted(parts, key=lambda shift: shift.day_s))


def _least(values: Sequence[float]) -> float:
    return LEAST_CHANGE if len(values) >= 4 * _WEEK else SHORT_LEAST_CHANGE


def _may_have_changed(values: Sequence[float]) -> bool:
    """A cheap test that spares most series the shuffling: do medians of three days ever differ by the least change?"""
    smooth = [median(values[index : index + LEVEL_DAYS]) for index in range(len(values) - LEVEL_DAYS + 1)]
    return max(smooth) - min(smooth) >= _least(values)


def _without_weekends(at: Sequence[int], values: Sequence[float]) -> list[float]:
    """Subtracts the difference of weekends from the days around them, if there are at least four weeks to show it."""
    weekend = [(day // DAY_S + 3) % _WEEK >= _WEEK - 2 for day in at]  # the epoch was a Thursday
    if len(values) < 4 * _WEEK:
        return list(values)
    around = [median(values[max(0, index - 3) : index + 4]) for index in range(len(values))]
    off = [value - middle for value, middle, end in zip(values, around, weekend, strict=True) if end]
    on = [value - middle for value, middle, end in zip(values, around, weekend, strict=True) if not end]
    if not off or not on:
        return list(values)
    lift = median(off) - median(on)
    return [value - lift if end else value for value, end in zip(values, weekend, strict=True)]


def _split(at: Sequence[int], values: Sequence[float], chance: random.Random) -> list[Shift]:
    if len(values) < 2 * LEVEL_DAYS:
        return []
    where, strayed = _farthest(_ranks(values))
    near = range(max(LEVEL_DAYS, where - _WEEK), min(len(values) - LEVEL_DAYS, where + _WEEK) + 1)
    where = _best_place(values, median(values[:where]), median(values[where:]), near)
    before, after = values[:where], values[where:]
    low, high = median(before), median(after)
    if _drifts(values, before, after):
        slope, first = _line(values)
        last = first + slope * (len(values) - 1)
        if abs(last - first) >= _least(values) and _significant(values, strayed, chance):
            return [Shift(at[0], at[0], at[-1], math.exp(first), math.exp(last), gradual=True)]
        return []
    noise = _noise(before, after)
    matters = abs(high - low) >= max(_least(values), LEAST_NOISES * noise)
    plain = matters and abs(high - low) >= PLAIN_NOISES * noise
    if not plain and not _significant(values, strayed, chance):
        return _excursion(at, values)
    inner = [*_split(at[:where], before, chance), *_split(at[where:], after, chance)]
    if matters or inner:
        # levels of the neighbouring intervals only, not of everything before and after
        known = sorted({shift.day_s for shift in inner if not shift.gradual})
        left = max((at.index(day) for day in known if day < at[where]), default=0)
        right = min((at.index(day) for day in known if day > at[where]), default=len(at))
        low, high = median(values[left:where]), median(values[where:right])
        if abs(high - low) >= max(_least(values), LEAST_NOISES * _noise(values[left:where], values[where:right])):
            inner.append(Shift(at[where], at[where - 1], at[right - 1], math.exp(low), math.exp(high), gradual=False))
    return inner


def _best_place(values: Sequence[float], low: float, high: float, places: range) -> int:
    """The place of the step with the smallest sum of distances to both levels."""
    left = [0.0, *accumulate(abs(value - low) for value in values)]
    right = [0.0, *accumulate(abs(value - high) for value in values)]
    return min(places, key=lambda place: left[place] + right[-1] - right[place])


def _excursion(at: Sequence[int], values: Sequence[float]) -> list[Shift]:
    """A few days at another level, which rank sums over a quarter hardly show: one shift there and one back."""
    usual = median(values)
    least = max(_least(values), PLAIN_NOISES * _noise(values))
    sides = [(value - usual >= least) - (usual - value >= least) for value in values]
    longest, end = [], 0
    for side, run in groupby(sides):
        begin, end = end, end + len(list(run))
        if not side or end - begin < LEVEL_DAYS:
            continue
        level = median(values[begin:end])
        if begin:
            longest.append(
                Shift(at[begin], at[begin - 1], at[end - 1], math.exp(usual), math.exp(level), gradual=False)
            )
        if end < len(values):
            longest.append(Shift(at[end], at[end - 1], at[-1], math.exp(level), math.exp(usual), gradual=False))
    return longest


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value) + 1) / 2 for value in values]


def _farthest(ranks: Sequence[float]) -> tuple[int, float]:
    """The largest deviation of the sums, normalised by place: (first index of the right side, deviation)."""
    count = len(ranks)
    mean = (count + 1) / 2
    sums = list(accumulate(rank - mean for rank in ranks))
    places = range(LEVEL_DAYS, count - LEVEL_DAYS + 1)
    best = max(places, key=lambda place: abs(sums[place - 1]) / math.sqrt(place * (count - place)))
    return best, abs(sums[best - 1]) / math.sqrt(best * (count - best))


def _significant(values: Sequence[float], strayed: float, chance: random.Random) -> bool:
    ranks = _ranks(values)
    length = BLOCK_DAYS if len(ranks) >= 4 * BLOCK_DAYS else 1
    reached, most = 0, int(CHANCE * ORDERS)
    for _ in range(ORDERS):
        offset = chance.randrange(length)
        blocks = [ranks[:offset], *(ranks[index : index + length] for index in range(offset, len(ranks), length))]
        chance.shuffle(blocks)
        reached += _farthest([rank for block in blocks for rank in block])[1] >= strayed
        if reached > most:
            return False
    return True


def _noise(*sides: Sequence[float]) -> float:
    """The noise of a day around its level as a standard deviation (1.4826 × the median absolute deviation)."""
    return 1.4826 * median(abs(value - median(side)) for side in sides for value in side)


def _drifts(values: Sequence[float], before: Sequence[float], after: Sequence[float]) -> bool:
    if len(values) < STEADY_DAYS:
        return False
    slope, start = _line(values)
    line = sum(abs(value - start - slope * index) for index, value in enumerate(values))
    step = sum(abs(value - median(side)) for side in (before, after) for value in side)
    return line < LINE_BETTER * step


def _line(values: Sequence[float]) -> tuple[float, float]:
    """Slope and start after Theil and Sen: the slope is the median over the slopes of all pairs."""
    count = len(values)
    slope = median(
        (values[right] - values[left]) / (right - left) for left in range(count) for right in range(left + 1, count)
    )
    return slope, median(value - slope * index for index, value in enumerate(values))


def moment_of(hours: Sequence[tuple[float, float]], before: float, after: float) -> tuple[float, float] | None:
    """The hour of a step, from hourly medians (end of the hour, value): last moment of the old level, first of the new.
    It is where the sum of distances to both levels is smallest; there may be a gap in between."""
    logs = [(at, math.log(value)) for at, value in hours if value > 0]
    if len(logs) < 2:
        return None
    place = _best_place([value for _, value in logs], math.log(before), math.log(after), range(1, len(logs)))
    return logs[place - 1][0], logs[place][0] - 3600
