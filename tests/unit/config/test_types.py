"""Schedules and quiet hours: what is accepted, and when their moments are."""

from __future__ import annotations

import time

import pytest

from plumbline.config.types import QuietHours, Schedule


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> object:
    """A time zone with summer time."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M"))


@pytest.mark.parametrize(
    ("schedule", "now", "after"),
    [
        ("daily 02:30", "2026-11-21 02:29", "2026-11-21 02:30"),
        ("daily 02:30", "2026-11-21 02:30", "2026-11-22 02:30"),
        ("Sun 03:00", "2026-11-21 12:00", "2026-11-22 03:00"),
        ("Sun 03:00", "2026-11-22 03:00", "2026-11-29 03:00"),
        ("Mon,Wed,Fri 22:15", "2026-11-21 12:00", "2026-11-23 22:15"),
        ("daily 23:59", "2026-12-31 23:59", "2027-01-01 23:59"),
        ("daily 02:30", "2026-03-28 12:00", "2026-03-29 03:00"),  # 02:30 does not exist that night
    ],
)
def test_the_next_moment(schedule: str, now: str, after: str) -> None:
    assert Schedule.parse(schedule).next_after(at(now)) == at(after)


@pytest.mark.parametrize(
    ("schedule", "days"), [("daily 02:30", 1), ("Sun 03:00", 7), ("Mon,Wed,Fri 22:15", 3), ("Sat,Sun 01:00", 6)]
)
def test_the_longest_gap(schedule: str, days: int) -> None:
    assert Schedule.parse(schedule).longest_gap_s == days * 86400


@pytest.mark.parametrize(
    "text", ["", "03:00", "Sun", "sun 03:00", "Sun 24:00", "Sun 3:00", "Foo 03:00", 3, None, "Sun,F 03:00"]
)
def test_what_is_no_schedule(text: object) -> None:
    with pytest.raises(ValueError, match="expected times such as"):
        Schedule.parse(text)


@pytest.mark.parametrize("text", ["", "08:00-18:00", "Mon-Fri", "Mon-Foo 08:00-18:00", "daily 08:00", 7])
def test_what_are_no_quiet_hours(text: object) -> None:
    with pytest.raises(ValueError, match="expected periods such as"):
        QuietHours.parse(text)
