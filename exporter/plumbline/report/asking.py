"""Asks a Prometheus many things, a few at a time; the first that fails ends it.

A range is asked in pieces, because Prometheus gives no more than 11,000 points of a series. Whole days are asked one by
one where many series stand behind them: a subquery over a day holds a minute's value of every series in memory, over a
quarter ninety times that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plumbline.core.parallel import in_turn
from plumbline.report.period import DAY_S, MINUTE_S, Period
from plumbline.sources.prometheus.access import OPEN, Access
from plumbline.sources.prometheus.api import Track, read_matrix, read_vector

AT_ONCE = 4
"""Queries under way together: Prometheus runs 20 by default, and others ask it, too."""
WINDOW = "WINDOW"
POINTS = 10_000
"""Of one series in one answer, below Prometheus's limit."""


@dataclass(frozen=True, slots=True)
class Ask:
    """``step_s`` 0: for the moment ``end_s``."""

    key: str
    query: str
    start_s: float
    end_s: float
    step_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Server:
    """Which Prometheus, how patiently, and who is told how far it is (done, of all, what)."""

    url: str
    timeout_s: float
    told: Callable[[int, int, str], None] = lambda _done, _all, _what: None
    access: Access = OPEN

    def answers(self, asks: Sequence[Ask]) -> dict[str, tuple[Track, ...]]:
        """Key → series, the pieces of a series put together in the order of time. Every key of ``asks`` is there."""
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
    """Pieces of the same key and labels become one series."""
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
    """One value of each series."""
    return Ask(key, query, at_s, at_s)


def over(key: str, query: str, period: Period, step_s: int, *, first_s: int | None = None) -> Iterator[Ask]:
    """The whole period in pieces, from its first moment (or ``first_s``) to its last."""
    at = period.start_s if first_s is None else first_s
    while at <= period.end_s:
        end = min(at + (POINTS - 1) * step_s, period.end_s)
        yield Ask(key, query, at, end, step_s)
        at += POINTS * step_s


def each_day(key: str, query: str, period: Period, resolution: str, *, together: int = 1) -> Iterator[Ask]:
    """``query`` over each day (its ``WINDOW`` is filled in), asked at
    its last minute, for midnight is the next day's; ``together`` days in one request.

    The window is half a minute short: with Prometheus 2 a window holds both its ends, with 3 only its last, and this
    one holds the same full minutes in both.
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
    """Values that were asked at the last minute of a day by the beginning of that day."""
    starts: Mapping[int, int] = {end - MINUTE_S: start for start, end in period.days}
    return {starts[int(at)]: value for at, value in points if int(at) in starts}
