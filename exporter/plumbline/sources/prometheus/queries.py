"""Sends many queries to a Prometheus, a few at a time; the first failure ends it."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from plumbline.core.answers import in_turn
from plumbline.sources.prometheus.access import OPEN, Access
from plumbline.sources.prometheus.api import Track, read_matrix, read_vector

# concurrent queries: Prometheus runs 20 by default, and has other users
AT_ONCE = 4


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
        series = []
        for done, tracks in enumerate(in_turn(queries, self._answer, AT_ONCE, what="ask-prometheus")):
            series.append((queries[done].key, tracks))
            self.progress(done + 1, len(queries), queries[done].key)
        return joined(series)

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
        vector = read_vector(self.url, query.query, timeout_s=self.timeout_s, at_s=query.end_s, access=self.access)
        return tuple(Track({**series.labels}, ((query.end_s, series.value),)) for series in vector)


def joined(answers: Iterable[tuple[str, tuple[Track, ...]]]) -> dict[str, tuple[Track, ...]]:
    """Joins the pieces with the same key and labels into one series."""
    by_series: dict[str, dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]] = {}
    for key, tracks in answers:
        series = by_series.setdefault(key, {})
        for track in tracks:
            series.setdefault(tuple(sorted(track.labels.items())), []).extend(track.points)
    return {
        key: tuple(Track(dict(labels), tuple(sorted(points))) for labels, points in series.items())
        for key, series in by_series.items()
    }


def moment(key: str, query: str, at_s: float) -> Query:
    return Query(key, query, at_s, at_s)


def last_values(tracks: Iterable[Track], names: Sequence[str]) -> dict[tuple[str, ...], float]:
    """The last value of each series, by the values of the labels ``names``."""
    return {track.key(names): track.points[-1][1] for track in tracks}


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
