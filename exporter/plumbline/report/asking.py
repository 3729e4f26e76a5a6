"""Sends many queries to a Prometheus, a few at a time; the first failure ends it.

A range is queried in pieces, because Prometheus returns at most 11,000 points per series. Queries over many series ask
for whole days one by one: a subquery over a day holds one value per minute of every series in memory, and over a
quarter ninety times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plumbline.core.parallel import in_turn
from plumbline.report.period import DAY_S, MINUTE_S, Period
from plumbline.sources.prometheus.access import OPEN, Access
from plumbline.sources.prometheus.api import Track, read_matrix, read_vector

AT_ONCE = 4
"""Concurrent queries: Prometheus runs 20 by default, and has other users."""
WINDOW = "WINDOW"
POINTS = 10_000
"""Points per series in one response, below Prometheus's limit."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One query; with ``step_s`` 0 it is evaluated only at ``end_s``."""

    key: str
    query: str
    start_s: float
    end_s: float
    step_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Server:
    """The Prometheus server, the timeout, and the progress callback (done, total, key)."""

    url: str
    timeout_s: float
    told: Callable[[int, int, str], None] = lambda _done, _all, _what: None
    access: Access = OPEN

    def answers(self, asks: Sequence[Ask]) -> dict[str, tuple[Track, ...]]:
        """Key → series, with the pieces of a series joined in order of time; every key of ``asks`` is present."""
        self.told(0, len(asks), asks[0].key if asks else "")
        found = []
        for done, tracks in enumerate(in_turn(asks, self._one, AT_ONCE, what="ask-prometheus")):
            found.append((asks[done].key, tracks))
            self.told(done + 1, len(asks), asks[done].key)
        return joined(found)

    def _one(self, ask: Ask) -> tuple[Track, ...]:
        if ask.step_s:
            return read_matrix(
                self.url,
                ask.query,
                start_s=ask.start_s,
                end_s=ask.end_s,
                step_s=ask.step_s,
                timeout_s=self.timeout_s,
                access=self.access,
            )
        found = read_vector(self.url, ask.query, timeout_s=self.timeout_s, at_s=ask.end_s, access=self.access)
        return tuple(Track({**each.labels}, ((ask.end_s, each.value),)) for each in found)


def joined(answers: Iterable[tuple[str, tuple[Track, ...]]]) -> dict[str, tuple[Track, ...]]:
    """Joins the pieces with the same key and labels into one series."""
    found: dict[str, dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]] = {}
    for key, tracks in answers:
        of = found.setdefault(key, {})
        for track in tracks:
            of.setdefault(tuple(sorted(track.labels.items())), []).extend(track.points)
    return {
        key: tuple(Track(dict(labels), tuple(sorted(points))) for labels, points in of.items())
        for key, of in found.items()
    }


def moment(key: str, query: str, at_s: float) -> Ask:
    """A query for one value of each series."""
    return Ask(key, query, at_s, at_s)


def over(key: str, query: str, period: Period, step_s: int, *, first_s: int | None = None) -> Iterator[Ask]:
    """Queries for the whole period in pieces, from its first moment (or ``first_s``) to its last."""
    at = period.start_s if first_s is None else first_s
    while at <= period.end_s:
        end = min(at + (POINTS - 1) * step_s, period.end_s)
        yield Ask(key, query, at, end, step_s)
        at += POINTS * step_s


def each_day(key: str, query: str, period: Period, resolution: str, *, together: int = 1) -> Iterator[Ask]:
    """``query`` over each day (replacing its ``WINDOW``), evaluated at the day's last minute, because midnight belongs
    to the next day; ``together`` days in one request.

    The window is half a minute short: Prometheus 2 includes both ends of a window, Prometheus 3 only the last. This
    window holds the same full minutes in both.
    """
    days = period.days
    whole = [end - MINUTE_S for start, end in days if end - start == DAY_S]
    for index in range(0, len(whole), together):
        piece = whole[index : index + together]
        asked = query.replace(WINDOW, f"{DAY_S - 30}s:{resolution}")
        yield Ask(key, asked, piece[0], piece[-1], DAY_S) if len(piece) > 1 else moment(key, asked, piece[0])
    start, end = days[-1]
    if end - start < DAY_S:
        yield moment(key, query.replace(WINDOW, f"{end - start - 30}s:{resolution}"), end - MINUTE_S)


def day_starts(points: Iterable[tuple[float, float]], period: Period) -> dict[int, float]:
    """Maps values taken at the last minute of a day to the beginning of that day."""
    starts: Mapping[int, int] = {end - MINUTE_S: start for start, end in period.days}
    return {starts[int(at)]: value for at, value in points if int(at) in starts}
