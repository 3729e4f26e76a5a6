"""Changes of level: which series to examine, how to name a change, and at which hour it happened."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from plumbline.core.words import DAY_S
from plumbline.report.attainment import figure_words
from plumbline.report.minimums import LEVEL_DAYS
from plumbline.report.model import Change, Days, Recorded
from plumbline.report.period import Period, day_starts
from plumbline.report.queries import LEVELS, Queries, over
from plumbline.report.shifts import Shift, moment_of, shifts
from plumbline.sources.prometheus.api import Track
from plumbline.sources.prometheus.queries import Query

# the largest changes are dated to the hour and reported; more than this have a common cause
MOST = 40
HOUR_S = 3600


class Candidate(Struct, frozen=True):
    """A shift of one series, not yet dated to the hour."""

    kind: str
    labels: Mapping[str, str]
    days: Days
    shift: Shift


def candidates(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[int, tuple[Candidate, ...]]:
    """The number of series long enough to be examined, and the shifts in them, largest first."""
    looked = 0
    chosen: list[Candidate] = []
    tracks = [(kind, track) for kind in LEVELS for track in _judging(answers[f"levels {kind}"])]
    for kind, track in tracks:
        days = day_starts(track.points, period)
        looked += len(days) >= 2 * LEVEL_DAYS
        drawn = tuple(sorted(days.items()))
        chosen += [Candidate(kind, track.labels, drawn, shift) for shift in shifts(days)]
    chosen.sort(key=lambda candidate: (-_size(candidate.shift), sorted(candidate.labels.items())))
    return looked, tuple(chosen[:MOST])


def _size(shift: Shift) -> float:
    return max(shift.after / shift.before, shift.before / shift.after)


def _judging(tracks: Iterable[Track]) -> Iterator[Track]:
    """Of series with a statistic, the median, or the mean if there is no median, as in the alerts."""
    medians = {_but_statistic(track) for track in tracks if track.labels.get("statistic") == "p50"}
    return (
        track for track in tracks if track.labels.get("statistic") != "mean" or _but_statistic(track) not in medians
    )


def _but_statistic(track: Track) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in track.labels.items() if name != "statistic"))


def closer(chosen: Sequence[Candidate], queries: Queries, period: Period) -> Iterator[Query]:
    """Queries for the hours around each step."""
    for index, candidate in enumerate(chosen):
        shift = candidate.shift
        if shift.gradual:
            continue
        start = max(shift.known_s, period.start_s) + HOUR_S
        if shift.day_s - shift.known_s > DAY_S:
            start = shift.known_s + HOUR_S  # covers the last day with data, the gap, and the first day after it
        hours = Period(int(start), int(min(shift.day_s + 2 * DAY_S, period.end_s)))
        yield from over(hours_key(index), queries.hours(candidate.kind, candidate.labels), hours, HOUR_S)


def hours_key(index: int) -> str:
    return f"hours of change {index + 1}"


def changes_of(
    chosen: Sequence[Candidate],
    answers: Mapping[str, Sequence[Track]],
    recorded: Sequence[Recorded],
) -> tuple[Change, ...]:
    """The changes, dated and named, in order of size."""
    made = []
    for index, candidate in enumerate(chosen):
        shift, labels = candidate.shift, candidate.labels
        hours = [point for track in answers.get(hours_key(index), ()) for point in track.points]
        moment = None if shift.gradual else moment_of(hours, shift.before, shift.after)
        not_before, at = moment or (float(shift.known_s), float(shift.day_s))
        cluster, host, layer = (labels.get(name, "") for name in ("cluster", "instance", "layer"))
        again = candidate.kind == "ratio" and any(
            (entry.cluster, entry.host, entry.layer) == (cluster, host, layer) and abs(entry.at_s - at) <= DAY_S
            for entry in recorded
        )
        made.append(
            Change(
                cluster=cluster,
                host=host or labels.get("ceph_daemon", ""),
                what=_what(candidate.kind, labels),
                unit="ratio" if candidate.kind == "ratio" else "s",
                at_s=at,
                not_before_s=not_before,
                until_s=float(shift.until_s + DAY_S),
                before=shift.before,
                after=shift.after,
                gradual=shift.gradual,
                rerecorded=again,
                days=candidate.days,
            )
        )
    return tuple(made)


def _what(kind: str, labels: Mapping[str, str]) -> str:
    operation = labels.get("operation", "")
    if kind == "disk":
        return f"disk {labels.get('device', '')}: median {operation} latency"
    if kind == "osd":
        return f"{labels.get('ceph_daemon', '')}: mean {operation} latency"
    return figure_words(labels)
