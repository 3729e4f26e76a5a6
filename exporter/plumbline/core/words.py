"""Dates, durations, shares and ratios in words. All times are UTC."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from plumbline.core.units import count_text, duration_text, si

count, duration = count_text, duration_text
DAY_S = 86400
_MINUTE, _HOUR, _YEAR = 60, 3600, 365.25 * DAY_S
# a forecast of more than ten years only means: not soon
LONG_DAYS = 3650.0
_LAST_S = 253_402_300_799.0  # the end of the year 9999


def _utc(at_s: float) -> datetime:
    """A time that no calendar has, as a false figure may be, is the first or the last that it has."""
    return datetime.fromtimestamp(min(max(at_s, 0.0), _LAST_S), UTC)


def day(at_s: float) -> str:
    """``14 September 2026``."""
    at = _utc(at_s)
    return f"{at.day} {at:%B %Y}"


def moment(at_s: float) -> str:
    """``2026-09-14 13:00``."""
    return f"{_utc(at_s):%Y-%m-%d %H:%M}"


def date(at_s: float) -> str:
    """``2026-09-14``."""
    return f"{_utc(at_s):%Y-%m-%d}"


def minutes(seconds: float) -> str:
    """``1,234 min (20 h 34 min)``."""
    text = f"{seconds / _MINUTE:,.0f} min"
    return text if seconds < 2 * _HOUR else f"{text} ({duration(seconds)})"


def share(value: float) -> str:
    """``97.13 %``; a share below 1 never reads as 100 %, and one above 0 never as 0 %."""
    percent = value * 100
    if value >= 1 or value <= 0:
        return f"{percent:.0f} %"
    if percent > 99.99:
        return "> 99.99 %"
    if percent < 0.01:
        return "< 0.01 %"
    return f"{percent:.2f} %"


def times(ratio: float) -> str:
    return f"{number(ratio)} times"


def number(value: float) -> str:
    """Two decimals below ten, one below a hundred, none above."""
    if not math.isfinite(value):
        return "endless"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}"


def level(value: float, unit: str) -> str:
    """A value in a base unit, a ``ratio`` or a ``share``: ``1.68 ms``, ``× 2.10``, ``97.13 %``."""
    if unit == "share":
        return share(value)
    return f"× {number(value)}" if unit == "ratio" else si(value, unit)


def days_range(forecasts: Iterable[tuple[str, float]]) -> str:
    """``61 to 94 days``: the lowest and the highest forecast of the slopes; empty if there is none."""
    values = sorted(days for _, days in forecasts if not math.isnan(days))
    if not values:
        return ""
    low, high = values[0], values[-1]
    if low > LONG_DAYS:
        return "more than ten years"
    if low <= 0:
        return "now" if high <= 0 else f"now to {_days(high)}"
    if _days(low) == _days(high):
        return _days(low)
    return f"{low:,.0f} to {_days(high)}" if high <= LONG_DAYS else f"{_days(low)} to more than ten years"


def _days(value: float) -> str:
    return "more than ten years" if value > LONG_DAYS else f"{value:,.0f} day{'' if round(value) == 1 else 's'}"


def years(seconds: float) -> str:
    """``240 days``, ``2.4 years``."""
    return f"{seconds / _YEAR:.1f} years" if seconds > 2 * _YEAR else _days(seconds / DAY_S)


def host(instance: str) -> str:
    """``stor01.example`` of ``stor01.example:10047``, because the port is only the exporter's."""
    name, _, port = instance.rpartition(":")
    return name if name and port.isdigit() else instance


def first_few(names: Iterable[str], most: int = 4) -> str:
    """``sda, sdb, sdc, sdd and 57 more``."""
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def listed(names: Sequence[str], most: int = 3) -> str:
    """``a, b and c``; ``a, b, c and 4 others``."""
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
