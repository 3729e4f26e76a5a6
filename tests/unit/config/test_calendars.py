"""Calendars in every time zone there is: the next moment always comes, in time, once a day or week."""

from __future__ import annotations

import os
import random
import time
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from plumbline.config.types import DAYS, Schedule

DATABASE = Path("/usr/share/zoneinfo")
ZONES = sorted(zone for zone in zoneinfo.available_timezones() if (DATABASE / zone).is_file())
"""What both Python and the C library know."""
FIRST, LAST = datetime(2016, 1, 1, tzinfo=UTC), datetime(2035, 12, 31, tzinfo=UTC)
DAY_S = 86400.0


@pytest.fixture(autouse=True)
def zone_again() -> Iterator[None]:
    """The tests set the zone of this process."""
    before = os.environ.get("TZ")
    yield
    if before is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = before
    time.tzset()


def use(zone: str) -> zoneinfo.ZoneInfo:
    os.environ["TZ"] = f":{zone}"
    time.tzset()
    return zoneinfo.ZoneInfo(zone)


def changes(zone: zoneinfo.ZoneInfo) -> list[float]:
    """Every change of the clock within the twenty years, Unix seconds, to the second; found by looking each day."""

    def ahead(at: int) -> timedelta | None:
        return datetime.fromtimestamp(at, zone).utcoffset()

    found = []
    for day in range(int(FIRST.timestamp()), int(LAST.timestamp()), int(DAY_S)):
        early, late = day, day + int(DAY_S)
        if ahead(early) != ahead(late):
            was = ahead(early)
            while late - early > 1:
                middle = (early + late) // 2
                early, late = (middle, late) if ahead(middle) == was else (early, middle)
            found.append(float(late))
    return found


def first_at_or_after(wanted: datetime, steps: list[tuple[float, float]]) -> float:
    """When the wall clock first shows ``wanted`` (no zone) or more, by what it is ahead of UTC from when on."""
    shown = wanted.replace(tzinfo=UTC).timestamp()
    for index, (since, ahead) in enumerate(steps):
        at = max(since, shown - ahead)
        if index + 1 == len(steps) or at < steps[index + 1][0]:
            return at
    raise AssertionError("no steps")


def clock_of(zone: zoneinfo.ZoneInfo, found: list[float]) -> list[tuple[float, float]]:
    """From when on (Unix seconds) local time is how many seconds ahead of UTC."""
    ends = [FIRST.timestamp() - 4 * DAY_S, *found]
    return [(at, (datetime.fromtimestamp(at, zone).utcoffset() or timedelta()).total_seconds()) for at in ends]


def check(schedule: Schedule, zone: zoneinfo.ZoneInfo, change: float, steps: list[tuple[float, float]]) -> None:
    """Follow a calendar from two days before a change of the clock until it has come again after it."""
    begun = now = change - 2 * DAY_S
    asked: list[float] = []
    while now < change + 2 * DAY_S:
        moment = schedule.next_after(now)
        assert now < moment <= now + 8 * DAY_S, (schedule, now, moment)
        assert schedule.next_after(moment - 1) == moment, (schedule, now)  # whoever looks meanwhile sees the same
        asked.append(moment)
        now = moment
    expected: list[float] = []
    day = datetime.fromtimestamp(begun, zone).date() - timedelta(days=1)
    while not expected or expected[-1] < asked[-1]:
        if day.weekday() in schedule.days:
            expected.append(first_at_or_after(wall(day, schedule.minute), steps))
        day += timedelta(days=1)
    assert asked == [moment for moment in expected if moment > begun], (schedule, zone.key, change)


def wall(day: date, minute: int) -> datetime:
    return datetime(day.year, day.month, day.day, *divmod(minute, 60))


def schedules(zone: zoneinfo.ZoneInfo, change: float, rng: random.Random) -> Iterator[Schedule]:
    """Daily and weekly, around the time at which the clock changes there, where it hurts."""
    for side in (-1, 1):
        local = datetime.fromtimestamp(change + side * 60 * rng.randrange(1, 100), zone)
        yield Schedule.parse(f"{rng.choice(['daily', DAYS[local.weekday()]])} {local:%H:%M}")
    skipped = datetime.fromtimestamp(change - 60, zone).replace(tzinfo=None) + timedelta(minutes=rng.randrange(1, 60))
    for days in ("daily", DAYS[skipped.weekday()]):
        yield Schedule.parse(f"{days} {skipped:%H:%M}")


def test_nuuk_skips_the_last_hour_of_a_saturday() -> None:
    zone = use("America/Nuuk")
    friday = datetime(2026, 3, 27, 12, tzinfo=zone).timestamp()
    moment = Schedule.parse("Sat 23:30").next_after(friday)
    assert datetime.fromtimestamp(moment, zone).isoformat() == "2026-03-29T00:00:00-01:00"
    following = Schedule.parse("Sat 23:30").next_after(moment)
    assert datetime.fromtimestamp(following, zone).isoformat() == "2026-04-04T23:30:00-01:00"


def test_a_time_that_comes_twice_is_one_moment() -> None:
    zone = use("Europe/Berlin")
    saturday = datetime(2026, 10, 24, 12, tzinfo=zone).timestamp()
    first = Schedule.parse("daily 02:30").next_after(saturday)
    assert datetime.fromtimestamp(first, zone).isoformat() == "2026-10-25T02:30:00+02:00"
    second = Schedule.parse("daily 02:30").next_after(first)
    assert datetime.fromtimestamp(second, zone).isoformat() == "2026-10-26T02:30:00+01:00"


def test_some_changes_of_some_zones() -> None:
    rng = random.Random(16)
    assert len(ZONES) > 300
    for name in ["America/Nuuk", "Africa/Casablanca", "Australia/Lord_Howe", *rng.sample(ZONES, 20)]:
        follow(name, rng, changes_at_most=3)


@pytest.mark.long
def test_every_change_of_every_zone() -> None:
    rng = random.Random(2035)
    for name in {zoneinfo_file(zone): zone for zone in ZONES}.values():  # many are other names of the same
        follow(name, rng)


def zoneinfo_file(zone: str) -> bytes:
    return (DATABASE / zone).read_bytes()


def follow(name: str, rng: random.Random, *, changes_at_most: int = 1000) -> None:
    zone = use(name)
    found = changes(zone)
    steps = clock_of(zone, found)
    for change in rng.sample(found, min(changes_at_most, len(found))) or [FIRST.timestamp()]:
        for schedule in schedules(zone, change, rng):
            check(schedule, zone, change, steps)
