"""Sends many queries to a Prometheus, a few at a time; the first failure ends it.

A range is queried in pieces, because Prometheus returns at most 11,000 points per series. Queries over many series ask
for whole days one by one: a subquery over a day holds one value per minute of every series in memory, and over a
quarter ninety times as many.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from plumbline.core.answers import in_turn
from plumbline.report.model import Worst
from plumbline.report.period import DAY_S, MINUTE_S, Period
from plumbline.sources.prometheus.access import OPEN, Access
from plumbline.sources.prometheus.api import Track, read_matrix, read_vector

# concurrent queries: Prometheus runs 20 by default, and has other users
AT_ONCE = 4
WINDOW = "WINDOW"
# points per series in one response, below Prometheus's limit
POINTS = 10_000


class Query(Struct, frozen=True):
    """One query; with ``step_s`` 0 it is evaluated only at ``end_s``."""

    key: str
    query: str
    start_s: float
    end_s: float
    step_s: float = 0.0


class Server(Struct, frozen=True):
    """The Prometheus server, the timeout, and the progress callback (done, total, key)."""

    url: str
    timeout_s: float
    progress: Callable[[int, int, str], None] = lambda _done, _all, _what: None
    access: Access = OPEN

    def answers(self, queries: Sequence[Query]) -> dict[str, tuple[Track, ...]]:
        """Key → series, with the pieces of a series joined in order of time; every key of ``queries`` is present."""
        self.progress(0, len(queries), queries[0].key if queries else "")
        found = []
        for done, tracks in enumerate(in_turn(queries, self._answer, AT_ONCE, what="ask-prometheus")):
            found.append((queries[done].key, tracks))
            self.progress(done + 1, len(queries), queries[done].key)
        return joined(found)

    def _answer(self, query: Query) -> tuple[Track, ...]:
        if query.step_s:
            return read_matrix(
                self.url,
                query.query,
                start_s=query.start_s,
                end_s=query.end_s,
                step_s=query.step_s,
                timeout_s=self.timeout_s,
                access=self.access,
            )
        found = read_vector(self.url, query.query, timeout_s=self.timeout_s, at_s=query.end_s, access=self.access)
        return tuple(Track({**series.labels}, ((query.end_s, series.value),)) for series in found)


def joined(answers: Iterable[tuple[str, tuple[Track, ...]]]) -> dict[str, tuple[Track, ...]]:
    """Joins the pieces with the same key and labels into one series."""
    found: dict[str, dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]] = {}
    for key, tracks in answers:
        series = found.setdefault(key, {})
        for track in tracks:
            series.setdefault(tuple(sorted(track.labels.items())), []).extend(track.points)
    return {
        key: tuple(Track(dict(labels), tuple(sorted(points))) for labels, points in series.items())
        for key, series in found.items()
    }


def moment(key: str, query: str, at_s: float) -> Query:
    return Query(key, query, at_s, at_s)


def over(key: str, query: str, period: Period, step_s: int, *, first_s: int | None = None) -> Iterator[Query]:
    """Queries for the whole period in pieces, from its first moment (or ``first_s``) to its last."""
    start = period.start_s if first_s is None else first_s
    for at in range(start, period.end_s + 1, POINTS * step_s):
        yield Query(key, query, at, min(at + (POINTS - 1) * step_s, period.end_s), step_s)


def each_day(key: str, query: str, period: Period, resolution: str, *, together: int = 1) -> Iterator[Query]:
    """``query`` over each day (replacing its ``WINDOW``), evaluated at the day's last minute, because midnight belongs
    to the next day; ``together`` days in one request. The window is half a minute short: Prometheus 2 includes both
    ends of a window, Prometheus 3 only the last. This window holds the same full minutes in both."""
    days = period.days
    whole = [end - MINUTE_S for start, end in days if end - start == DAY_S]
    daily = query.replace(WINDOW, f"{DAY_S - 30}s:{resolution}")
    for index in range(0, len(whole), together):
        piece = whole[index : index + together]
        yield Query(key, daily, piece[0], piece[-1], DAY_S if len(piece) > 1 else 0)
    start, end = days[-1]
    if end - start < DAY_S:
        yield moment(key, query.replace(WINDOW, f"{end - start - 30}s:{resolution}"), end - MINUTE_S)


def day_starts(points: Iterable[tuple[float, float]], period: Period) -> dict[int, float]:
    """Maps values taken at the last minute of a day to the beginning of that day."""
    starts = {end - MINUTE_S: start for start, end in period.days}
    return {starts[int(at)]: value for at, value in points if int(at) in starts}


def worst_days(tracks: Iterable[Track], names: Sequence[str], period: Period) -> dict[tuple[str, ...], Worst]:
    """The day with the highest value of all series with the same values of the labels ``names``."""
    found: dict[tuple[str, ...], Worst] = {}
    for track in tracks:
        days = [Worst(value, day) for day, value in day_starts(track.points, period).items()]
        if days:
            found[track.key(names)] = max(*days, found.get(track.key(names), days[0]))
    return found


def last_values(tracks: Iterable[Track], names: Sequence[str]) -> dict[tuple[str, ...], float]:
    """The last value of each series, by the values of the labels ``names``."""
    return {track.key(names): track.points[-1][1] for track in tracks}
