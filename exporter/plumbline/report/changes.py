"""Changes of level: which series to examine, how to name a change, and at which hour it happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plumbline.config.workloads import WorkloadCatalogue
from plumbline.report.asking import Ask, day_starts, over
from plumbline.report.attainment import figure_words
from plumbline.report.model import Change, Days, Recorded
from plumbline.report.period import DAY_S, Period
from plumbline.report.queries import LEVELS, Queries
from plumbline.report.shifts import Shift, moment_of, shifts
from plumbline.sources.prometheus.api import Track

MOST = 40
"""The largest changes are dated to the hour and reported. More than this have a common cause."""
HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Candidate:
    """A shift of one series, not yet dated to the hour."""

    kind: str
    labels: Mapping[str, str]
    days: Days
    shift: Shift


def candidates(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[int, tuple[Candidate, ...]]:
    """The number of series examined, and the shifts in them, largest first."""
    found: list[Candidate] = []
    looked = 0
    for kind in LEVELS:
        tracks = answers[f"levels {kind}"]
        for track in _judging(tracks) if kind == "ratio" else tracks:
            days = day_starts(track.points, period)
            looked += 1
            drawn = tuple(sorted(days.items()))
            found += [Candidate(kind, track.labels, drawn, shift) for shift in shifts(days)]
    found.sort(key=lambda each: (-_size(each.shift), sorted(each.labels.items())))
    return looked, tuple(found[:MOST])


def _size(shift: Shift) -> float:
    return max(shift.after / shift.before, shift.before / shift.after)


def _judging(tracks: Iterable[Track]) -> Iterator[Track]:
    """The series with the median, or the mean if there is no median, as in the alerts."""
    known = {_but_statistic(track) for track in tracks if track.labels.get("statistic") == "p50"}
    return (track for track in tracks if track.labels.get("statistic") != "mean" or _but_statistic(track) not in known)


def _but_statistic(track: Track) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in track.labels.items() if name != "statistic"))


def closer(found: Sequence[Candidate], queries: Queries, period: Period) -> Iterator[Ask]:
    """Queries for the hours around each step."""
    for index, each in enumerate(found):
        if each.shift.gradual:
            continue
        start = max(each.shift.known_s, period.start_s) + HOUR_S
        end = min(each.shift.day_s + 2 * DAY_S, period.end_s)
        if each.shift.day_s - each.shift.known_s > DAY_S:
            start = each.shift.known_s + HOUR_S  # covers the last day with data, the gap, and the first day after it
        query = queries.hours(each.kind, each.labels)
        yield from over(hours_key(index), query, Period(int(start), int(end)), HOUR_S)


def hours_key(index: int) -> str:
    """The key of the hours of the candidate at that index."""
    return f"hours of change {index + 1}"


def told(
    found: Sequence[Candidate],
    answers: Mapping[str, Sequence[Track]],
    recorded: Sequence[Recorded],
    catalogue: WorkloadCatalogue,
) -> tuple[Change, ...]:
    """The changes, dated and named, in order of size."""
    made = []
    for index, each in enumerate(found):
        shift, labels = each.shift, each.labels
        at, not_before, until = float(shift.day_s), float(shift.known_s), float(shift.until_s + DAY_S)
        hours = [point for track in answers.get(hours_key(index), ()) for point in track.points]
        moment = None if shift.gradual else moment_of(hours, shift.before, shift.after)
        if moment is not None:
            not_before, at = moment
        cluster, host = labels.get("cluster", ""), labels.get("instance", "")
        layer = labels.get("layer", "")
        again = each.kind == "ratio" and any(
            one.cluster == cluster and one.host == host and one.layer == layer and abs(one.at_s - at) <= DAY_S
            for one in recorded
        )
        made.append(
            Change(
                cluster=cluster,
                host=host or labels.get("ceph_daemon", ""),
                what=_what(each.kind, labels, catalogue),
                kind="ratio" if each.kind == "ratio" else "latency",
                at_s=at,
                not_before_s=not_before,
                until_s=until,
                before=shift.before,
                after=shift.after,
                gradual=shift.gradual,
                rerecorded=again,
                days=each.days,
            )
        )
    return tuple(made)


def _what(kind: str, labels: Mapping[str, str], catalogue: WorkloadCatalogue) -> str:
    operation = labels.get("operation", "")
    if kind == "disk":
        return f"disk {labels.get('device', '')}: median {operation} latency"
    if kind == "osd":
        return f"{labels.get('ceph_daemon', '')}: mean {operation} latency"
    return figure_words(labels, catalogue)
