"""The period of a review: whole days in UTC; the last one may end at the present."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct

from plumbline.core.words import DAY_S
from plumbline.errors import ConfigError

MINUTE_S = 60
# a little more than two years: longer queries and pages would serve no reader
LONGEST_DAYS = 800
# no Prometheus has older samples, and Python's dates end
_FIRST_YEAR, _LAST_YEAR = 1990, 9000


class Period(Struct, frozen=True):
    """Unix seconds; ``start_s`` is a midnight, ``end_s`` the next midnight or a full minute of the last day."""

    start_s: int
    end_s: int

    @property
    def length_s(self) -> int:
        return self.end_s - self.start_s

    @property
    def days(self) -> tuple[tuple[int, int], ...]:
        starts = range(self.start_s, self.end_s, DAY_S)
        return tuple((start, min(start + DAY_S, self.end_s)) for start in starts)


def parse_period(*, first: str | None, last: str | None, days: int | None, now_s: float) -> Period:
    """The period from day ``first`` to day ``last``, both included. Without ``last`` it ends with yesterday; without
    ``first`` it is ``days`` long (default 90). Raises :class:`ConfigError` for an invalid date, a day in the future, an
    empty or too long period, and for all three arguments together."""
    if first is not None and last is not None and days is not None:
        raise ConfigError("--days", "--from and --to already set the length; leave one of the three out", value=days)
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise ConfigError("--days", f"from 1 to {LONGEST_DAYS}", value=days)
    length = timedelta(days=days or 90)
    today = datetime.fromtimestamp(now_s, UTC).date()
    if first is not None:
        begin = _day(first, "--from")
        end = min(begin + length, today) - timedelta(1) if days else today - timedelta(1)
        end = _day(last, "--to") if last else max(end, begin)
    else:
        end = _day(last, "--to") if last else today - timedelta(1)
        begin = end - length + timedelta(1)
    if begin > today:
        raise ConfigError("--from", f"is in the future; today is {today} (UTC)", value=str(begin))
    if end > today:
        raise ConfigError("--to", f"is in the future; today is {today} (UTC)", value=str(end))
    if end < begin:
        raise ConfigError("--to", f"must not be before the first day, {begin}", value=str(end))
    if (end - begin).days >= LONGEST_DAYS:
        raise ConfigError("--from", f"the period must not exceed {LONGEST_DAYS} days", value=str(begin))
    start_s, end_s = _seconds(begin), _seconds(end + timedelta(1))
    if end_s > now_s:
        end_s = int(now_s) // MINUTE_S * MINUTE_S
    if end_s - start_s < MINUTE_S:
        raise ConfigError("--from", "the day has not begun yet (UTC)", value=str(begin))
    return Period(start_s, end_s)


def parse_compared(text: str, period: Period, *, now_s: float) -> Period:
    """``previous``: as long, just before ``period``; or ``DAY..DAY``. Raises :class:`ConfigError`."""
    if text == "previous":
        days = -(-period.length_s // DAY_S)
        return Period(period.start_s - days * DAY_S, period.start_s)
    first, separator, last = text.partition("..")
    if not separator:
        raise ConfigError("--beside", "expected previous, or two days: 2026-04-01..2026-06-30", value=text)
    return parse_period(first=first, last=last, days=None, now_s=now_s)


def _day(text: str, flag: str) -> date:
    try:
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            raise ValueError(text)
        day = date.fromisoformat(text)
        if not _FIRST_YEAR <= day.year <= _LAST_YEAR:
            raise ValueError(text)
        return day
    except ValueError:
        raise ConfigError(flag, "not a date; write it as 2026-08-01", value=text) from None


def _seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def day_starts(points: Iterable[tuple[float, float]], period: Period) -> dict[int, float]:
    """Maps values taken at the last minute of a day to the beginning of that day."""
    starts = {end - MINUTE_S: start for start, end in period.days}
    return {starts[int(at)]: value for at, value in points if int(at) in starts}
