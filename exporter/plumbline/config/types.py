"""Types of configuration values: durations, sizes, and structs that refuse unknown keys.

Each ``parse`` raises ``ValueError`` with the accepted forms for anything else.
"""

from __future__ import annotations

import ipaddress
import re
import time
from datetime import date, timedelta

import msgspec

from plumbline.errors import ConfigError

CREDENTIAL = "credential:"
"""Prefix used instead of a path: a file that systemd gives the service; see :mod:`.credentials`."""
_CREDENTIAL = re.compile(r"credential:[A-Za-z0-9._-]{1,64}")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_UNITS_B = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_DAY_S = 86400
_TWO_DAYS_S = 2 * _DAY_S
_EPOCH = date(1970, 1, 1)
# System calls refuse larger numbers, long after the mistyped value was accepted.
_LONGEST_S, _BIGGEST_B = 3650 * 86400.0, 2**60


def secret_problem(path: str) -> str:
    """The error in the path of a secret; empty if it is valid."""
    if path.startswith(CREDENTIAL) and not _CREDENTIAL.fullmatch(path):
        return "expected credential:NAME, as LoadCredential= in the unit names it"
    return "" if path.startswith(("/", CREDENTIAL)) else "an absolute path, or credential:NAME"


class Duration(float):
    """Seconds, written like Prometheus durations: ``500ms``, ``15s``, ``5m``, ``6h``, ``1d``, ``1w``."""

    @classmethod
    def parse(cls, text: object) -> Duration:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", text) if isinstance(text, str) else None
        if not match:
            raise ValueError("expected a duration such as 500ms, 15s, 5m, 6h or 1d")
        seconds = float(match[1]) * _UNITS_S[match[2]]
        if seconds > _LONGEST_S:
            raise ValueError("expected a duration of at most 3650d")
        return cls(seconds)


class Size(int):
    """Bytes, written with a binary unit: ``4KiB``, ``64MiB``, ``1GiB``. MB is refused: it is another number."""

    @classmethod
    def parse(cls, text: object) -> Size:
        if isinstance(text, int) and not isinstance(text, bool):
            size = text
        else:
            match = re.fullmatch(r"(\d+)\s*(B|KiB|MiB|GiB|TiB|)", text) if isinstance(text, str) else None
            if not match:
                raise ValueError("expected bytes or a size such as 64MiB or 1GiB (binary units only)")
            size = int(match[1]) * _UNITS_B[match[2]]
        if size > _BIGGEST_B:
            raise ValueError("expected a size of at most 1048576TiB")
        return cls(size)


class Schedule(str):
    """Times of the week, in local time: ``daily 02:30``, ``Sun 03:00``, ``Mon,Wed,Fri 22:15``."""

    @classmethod
    def parse(cls, text: object) -> Schedule:
        match = re.fullmatch(r"(daily|[A-Z][a-z]{2}(?:,[A-Z][a-z]{2})*) ([01]\d|2[0-3]):[0-5]\d", str(text))
        if not isinstance(text, str) or not match or not (match[1] == "daily" or set(match[1].split(",")) <= set(DAYS)):
            raise ValueError("expected times such as 'daily 02:30', 'Sun 03:00' or 'Mon,Wed,Fri 22:15'")
        return cls(text)

    @property
    def days(self) -> frozenset[int]:
        """Days of the week, Monday is 0."""
        return _days(self.split(" ")[0])

    @property
    def minute(self) -> int:
        """Minutes since midnight."""
        return _minute(self.split(" ")[1])

    @property
    def longest_gap_s(self) -> float:
        """The longest time between two starts, in seconds."""
        days = sorted(self.days)
        gaps = [(after - day - 1) % 7 + 1 for day, after in zip(days, [*days[1:], days[0]], strict=True)]
        return max(gaps) * 86400.0

    def next_after(self, now: float) -> float:
        """The first scheduled time after ``now``; both Unix seconds. The date counts first, then the time of day: a
        time that the switch to summer time skips becomes the next existing moment, possibly on the next day; a time
        that is repeated counts once, the first time."""
        local = time.localtime(now)
        today = date(local.tm_year, local.tm_mon, local.tm_mday)
        for day in (today + timedelta(days=ahead) for ahead in range(9)):
            if day.weekday() in self.days and (moment := _first_moment(day, self.minute)) > now:
                return moment
        raise AssertionError("a week has every day")


def _first_moment(day: date, minute: int) -> float:
    """When local time first shows ``minute`` of ``day`` or, if that time is skipped, something later."""
    clock = (day - _EPOCH).days * _DAY_S + minute * 60  # as if it were UTC
    # UTC offsets around that time: rules change them by hours, or (Samoa, 2011) by a day, and not twice a week
    before, after = (time.localtime(clock + side).tm_gmtoff for side in (-_TWO_DAYS_S, _TWO_DAYS_S))
    shown = [clock - ahead for ahead in (before, after) if time.localtime(clock - ahead).tm_gmtoff == ahead]
    if shown:
        return min(shown)
    early, late = clock - max(before, after), clock - min(before, after)
    while late - early > 1:  # the change is between the two: find it to the second
        middle = (early + late) // 2
        if time.localtime(middle).tm_gmtoff == after:
            late = middle
        else:
            early = middle
    return late


class QuietHours(str):
    """Periods of the week, in local time: ``Mon-Fri 08:00-18:00``, ``daily 22:00-06:00`` (over midnight)."""

    @classmethod
    def parse(cls, text: object) -> QuietHours:
        clock = r"(?:[01]\d|2[0-3]):[0-5]\d"
        match = re.fullmatch(rf"(daily|[A-Z][a-z]{{2}}(?:[,-][A-Z][a-z]{{2}})*) {clock}-{clock}", str(text))
        if (
            not isinstance(text, str)
            or not match
            or not (match[1] == "daily" or set(re.split("[,-]", match[1])) <= set(DAYS))
        ):
            raise ValueError("expected periods such as 'Mon-Fri 08:00-18:00' or 'daily 22:00-06:00'")
        return cls(text)

    def holds(self, day: int, minute: int) -> bool:
        """Whether a time (day of the week, Monday is 0; minutes since midnight) is within the period."""
        words, _, times = self.partition(" ")
        days, (start, end) = _days(words), map(_minute, times.split("-"))
        if start < end:
            return day in days and start <= minute < end
        return (day in days and minute >= start) or ((day - 1) % 7 in days and minute < end)


class Endpoint(str):
    """A host, by name or address, with an optional port: ``stor02``, ``10.0.0.12:10048``, ``[fd00::12]:10048``."""

    @classmethod
    def parse(cls, text: object) -> Endpoint:
        _split_endpoint(text)
        return cls(text)

    @property
    def host(self) -> str:
        """Name or address, without brackets."""
        return _split_endpoint(self)[0]

    @property
    def port(self) -> int | None:
        """The port; ``None`` if none was given."""
        return _split_endpoint(self)[1]


class LocalAddress(str):
    """One of this host's IP addresses: ``10.0.0.11``, ``fd00::11``."""

    @classmethod
    def parse(cls, text: object) -> LocalAddress:
        try:
            return cls(ipaddress.ip_address(text if isinstance(text, str) else ""))
        except ValueError:
            raise ValueError("expected an IP address of this host such as 10.0.0.11 or fd00::11") from None


_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_ENDPOINT = re.compile(
    rf"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>{_LABEL}(?:\.{_LABEL})*))(?::(?P<port>[0-9]{{1,5}}))?"
)


def _split_endpoint(text: object) -> tuple[str, int | None]:
    expected = "expected a host such as stor02, 10.0.0.12:10048 or [fd00::12]:10048"
    if not isinstance(text, str):
        raise ValueError(expected)
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"  # an IPv6 address alone needs no brackets
    match = _ENDPOINT.fullmatch(text)
    port = int(match["port"]) if match and match["port"] else None
    if not match or (port is not None and not 0 < port < 65536):
        raise ValueError(expected)
    try:
        if match["six"]:
            return str(ipaddress.IPv6Address(match["six"])), port
        if re.fullmatch(r"[0-9.]+", match["host"]):  # 10.0.0.300 is a mistake, not a name
            ipaddress.IPv4Address(match["host"])
    except ValueError:
        raise ValueError(expected) from None
    return match["host"], port


def _days(text: str) -> frozenset[int]:
    if text == "daily":
        return frozenset(range(7))
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        start, end = DAYS.index(first), DAYS.index(last or first)
        numbers |= {(start + step) % 7 for step in range((end - start) % 7 + 1)}
    return frozenset(numbers)


def _minute(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


class Secret(str):
    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> Secret:
        if not isinstance(text, str):
            raise ValueError("expected text; put it in quotes")
        return cls(text)

    def __repr__(self) -> str:
        return "Secret(…)"


class FieldError(ValueError):
    """A field of a struct is invalid; msgspec adds the struct's path if it is raised in ``__post_init__``."""

    def __init__(self, field: str, reason: str, value: object = None) -> None:
        self.field, self.reason = field, reason
        self.value = f"{value:g}s" if isinstance(value, Duration) else [*value] if isinstance(value, tuple) else value
        super().__init__(reason)

    def at(self, where: str, path: str) -> ConfigError:
        """The same error for a file; ``path`` is the struct's, empty for the file itself."""
        return ConfigError(where, self.reason, key=f"{path}.{self.field}".lstrip("."), value=self.value)


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Refuses unknown keys; values never change after loading."""

    def mistake(self, field: str, reason: str) -> FieldError:
        """An error to raise for one of its fields; includes the field's value."""
        return FieldError(field, reason, getattr(self, field))
