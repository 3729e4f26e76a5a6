"""Changes of level are found and dated; everyday series have none."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest

from plumbline.report.shifts import moment_of, shifts

DAY, HOUR = 86400, 3600
MONDAY = 20_001 * DAY - (20_001 + 3) % 7 * DAY


def everyday(seed: int, count: int, *, noise: float = 0.03, stubborn: float = 0.5) -> dict[int, float]:
    """Medians of days: a daily cycle of a third, quiet weekends, noise that lasts for days, a wild day now and then."""
    chance, drawn = random.Random(seed), {}
    strayed = 0.0
    for number in range(count):
        strayed = stubborn * strayed + chance.gauss(0, noise)
        weekend = -0.1 if number % 7 >= 5 else 0.0
        hours = [
            math.exp(0.3 * math.sin(math.tau * hour / 24) + weekend + strayed + chance.gauss(0, 0.05))
            for hour in range(24)
        ]
        wild = chance.choice((1.3, 2, 4)) if chance.random() < 0.02 else 1
        drawn[MONDAY + number * DAY] = median(hours) * wild
    return drawn


@pytest.mark.parametrize("count", [14, 30, 91])
def test_an_everyday_series_has_no_change(count: int) -> None:
    """One in two hundred may; of these hundred none does, with these seeds and with most."""
    found = [seed for seed in range(100) if shifts(everyday(seed, count))]
    assert len(found) <= 1, found


@pytest.mark.parametrize(("count", "place", "factor"), [(14, 8, 2.0), (30, 11, 1.5), (91, 44, 1.5), (91, 80, 2.1)])
def test_a_step_is_found_on_its_day_and_measured(count: int, place: int, factor: float) -> None:
    for seed in range(20):
        days = everyday(seed, count)
        for number, day in enumerate(days):
            days[day] *= factor if number >= place else 1
        steps = [shift for shift in shifts(days) if not shift.gradual]
        assert steps, seed
        largest = max(steps, key=lambda shift: abs(math.log(shift.after / shift.before)))
        assert abs(largest.day_s - (MONDAY + place * DAY)) <= DAY
        assert largest.after / largest.before == pytest.approx(factor, rel=0.15 if count > 14 else 0.3)


def test_a_week_out_of_line_is_two_changes() -> None:
    days = everyday(3, 91)
    for number, day in enumerate(days):
        days[day] *= 2 if 40 <= number < 47 else 1
    begun, ended = shifts(days)
    assert (begun.day_s, ended.day_s) == (MONDAY + 40 * DAY, MONDAY + 47 * DAY)
    assert begun.after / begun.before == pytest.approx(2, rel=0.15)
    assert begun.until_s == MONDAY + 46 * DAY
    assert ended.after / ended.before == pytest.approx(0.5, rel=0.15)


def test_a_drift_is_no_step() -> None:
    days = everyday(5, 91, noise=0.02)
    for number, day in enumerate(days):
        days[day] *= 1 + 0.8 * number / 90
    (drift,) = shifts(days)
    assert drift.gradual
    assert drift.before == pytest.approx(days[MONDAY], rel=0.2)
    assert drift.after / drift.before == pytest.approx(1.8, rel=0.15)


def test_less_than_a_tenth_is_none_and_two_days_are_none() -> None:
    small = everyday(7, 91, noise=0.005)
    for number, day in enumerate(small):
        small[day] *= 1.07 if number >= 45 else 1
    short = everyday(8, 91, noise=0.01, stubborn=0)
    for number, day in enumerate(short):
        short[day] *= 3 if 45 <= number < 47 else 1
    assert shifts(small) == ()
    assert shifts(short) == ()


def test_after_a_gap_the_last_known_day_is_told() -> None:
    days = everyday(9, 60)
    days = {day: value * (2 if number >= 30 else 1) for number, (day, value) in enumerate(days.items())}
    for number in range(26, 33):
        del days[MONDAY + number * DAY]
    (step,) = shifts(days)
    assert (step.known_s, step.day_s) == (MONDAY + 25 * DAY, MONDAY + 33 * DAY)


@pytest.mark.parametrize("days", [{}, {MONDAY: 1.0}, dict.fromkeys(range(MONDAY, MONDAY + 5 * DAY, DAY), 1.0)])
def test_too_little_says_nothing(days: dict[int, float]) -> None:
    assert shifts(days) == ()


def test_constant_and_zero_say_nothing() -> None:
    assert shifts(dict.fromkeys(range(MONDAY, MONDAY + 50 * DAY, DAY), 2.0)) == ()
    assert shifts(dict.fromkeys(range(MONDAY, MONDAY + 50 * DAY, DAY), 0.0)) == ()


def test_the_hour_of_a_step() -> None:
    hours = [(MONDAY + (n + 1) * HOUR, (1.0 if n < 13 else 2.1) * (1 + 0.2 * math.sin(n))) for n in range(48)]
    assert moment_of(hours, 1.0, 2.1) == (MONDAY + 13 * HOUR, MONDAY + 13 * HOUR)
    gap = [point for point in hours if not MONDAY + 10 * HOUR < point[0] <= MONDAY + 20 * HOUR]
    assert moment_of(gap, 1.0, 2.1) == (MONDAY + 10 * HOUR, MONDAY + 20 * HOUR)
    assert moment_of(hours[:1], 1.0, 2.1) is None
