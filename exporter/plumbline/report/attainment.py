"""How much of the period was observed, how much of that was within tolerance, and which figures were beyond it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from plumbline.config.workloads import LAYERS, WorkloadCatalogue
from plumbline.report.asking import day_starts
from plumbline.report.baseline.words import described
from plumbline.report.model import Attainment, Coverage, FigureOffender, Span
from plumbline.report.period import MINUTE_S, Period
from plumbline.report.queries import COVERAGE_STEP_S
from plumbline.sources.prometheus.api import Track

OFFENDERS = 15
"""Rows of the table of the worst figures; more than this have a common cause."""
_Figure = tuple[str, ...]


def coverage(tracks: Iterable[Track], period: Period) -> tuple[Coverage, ...]:
    """The coverage of each cluster, from the count of its nodes every five minutes."""
    found = []
    for track in tracks:
        seen = sorted({at for at, _ in track.points})
        gaps = _gaps(seen, period)
        observed = period.length_s - sum(gap.length_s for gap in gaps)
        hosts = int(max(value for _, value in track.points))
        found.append(Coverage(track.labels.get("cluster", ""), hosts, observed, gaps))
    return tuple(sorted(found, key=lambda each: each.cluster))


def _gaps(seen: Sequence[float], period: Period) -> tuple[Span, ...]:
    """Intervals without a node between two samples that are further apart than the step."""
    gaps, at = [], float(period.start_s)
    for moment in [*seen, float(period.end_s)]:
        if moment - at > COVERAGE_STEP_S * 1.5:
            gaps.append(Span(at, moment))
        at = moment
    return tuple(gaps)


def attainment(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[Attainment, ...]:
    """One row for each cluster and layer that a baseline judged, bottom-up."""
    figures: dict[tuple[str, str], set[_Figure]] = defaultdict(set)
    judged: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    beyond: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for sums, name in ((judged, "figures judged"), (beyond, "figures beyond")):
        for track in answers[name]:
            key = (track.labels.get("cluster", ""), track.labels.get("layer", ""))
            figures[key].add(track.key(_LABELS))
            for day, minutes in day_starts(track.points, period).items():
                sums[key][day] += minutes * MINUTE_S
    observed, out = _minutes(answers["layers judged"]), _minutes(answers["layers out of line"])
    rows = [
        Attainment(
            cluster=key[0],
            layer=key[1],
            figures=len(figures[key]),
            judged_s=sum(days.values()),
            beyond_s=sum(beyond[key].values()),
            observed_s=observed.get(key, 0.0) * MINUTE_S,
            out_of_line_s=out.get(key, 0.0) * MINUTE_S,
            days=tuple((day, 1 - beyond[key][day] / seconds) for day, seconds in sorted(days.items()) if seconds),
        )
        for key, days in judged.items()
        if sum(days.values())
    ]
    return tuple(sorted(rows, key=lambda row: (row.cluster, _height(row.layer))))


def _minutes(tracks: Iterable[Track]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = defaultdict(float)
    for track in tracks:
        key = (track.labels.get("cluster", ""), track.labels.get("layer", ""))
        found[key] += sum(value for _, value in track.points)
    return found


def _height(layer: str) -> int:
    return LAYERS.index(layer) if layer in LAYERS else len(LAYERS)


def figure_offenders(
    answers: Mapping[str, Sequence[Track]], period: Period, catalogue: WorkloadCatalogue
) -> tuple[FigureOffender, ...]:
    """The figures that were beyond tolerance for longest, with the median ratio of their worst day."""
    judged = {track.key(_LABELS): sum(value for _, value in track.points) for track in answers["figures judged"]}
    ratios: dict[_Figure, list[tuple[float, int]]] = defaultdict(list)
    for track in answers["levels ratio"]:
        ratios[track.key(_LABELS)] += [(value, day) for day, value in day_starts(track.points, period).items()]
    found = []
    for track in answers["figures beyond"]:
        seconds = sum(value for _, value in track.points) * MINUTE_S
        if seconds:
            key = track.key(_LABELS)
            worst, day = max(ratios[key]) if ratios[key] else (None, None)
            found.append(
                FigureOffender(
                    cluster=track.labels.get("cluster", ""),
                    host=track.labels.get("instance", ""),
                    layer=track.labels.get("layer", ""),
                    what=figure_words(track.labels, catalogue),
                    beyond_s=seconds,
                    judged_s=judged.get(key, 0.0) * MINUTE_S,
                    worst=worst,
                    worst_day_s=day,
                )
            )
    return tuple(sorted(found, key=lambda each: (-each.beyond_s, each.host, each.what))[:OFFENDERS])


def figure_words(labels: Mapping[str, str], catalogue: WorkloadCatalogue) -> str:
    """``median latency of random writes, 4 KiB, 1 in flight (probe canary-sdb, ssd)``; a workload that is not in
    ``catalogue`` is named by its id."""
    names = {"p50": "median latency", "mean": "mean latency", "iops": "operations per second"}
    statistic, operation, workload = (labels.get(name, "") for name in ("statistic", "operation", "workload"))
    known = catalogue.by_id.get(workload)
    said = described(known, operation) if known is not None else " ".join(filter(None, (workload, operation)))
    of = ", ".join(filter(None, (f"probe {labels.get('probe', '')}", labels.get("device_class", ""))))
    return f"{names.get(statistic, statistic)} of {said[:1].lower()}{said[1:]} ({of})"


_LABELS = ("cluster", "instance", "probe", "layer", "device_class", "workload", "operation", "statistic")
