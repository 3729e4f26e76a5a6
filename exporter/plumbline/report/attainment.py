"""How much of the period was observed, how much of that was within tolerance, and which figures were beyond it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from plumbline.config.workloads import LAYERS, load_catalogue
from plumbline.core.grouping import sums
from plumbline.report.baseline.words import described
from plumbline.report.model import Attainment, Coverage, FigureOffender, PoolService, Span, worst_days
from plumbline.report.period import MINUTE_S, Period, day_starts
from plumbline.report.queries import COVERAGE_STEP_S
from plumbline.sources.prometheus.api import Track
from plumbline.sources.prometheus.queries import last_values

# rows of the table of the worst figures; more than this have a common cause
OFFENDERS = 15
_LAYER = ("cluster", "layer")
_POOL = ("cluster", "pool_id", "pool")
_FIGURE = ("cluster", "instance", "layer", "probe", "device_class", "workload", "operation", "statistic")


def coverage(tracks: Iterable[Track], period: Period) -> tuple[Coverage, ...]:
    """The coverage of each cluster, from the count of its nodes every five minutes."""
    rows = []
    for track in tracks:
        # a gap: two samples that are further apart than the step
        samples = (float(period.start_s), *sorted({at for at, _ in track.points}), float(period.end_s))
        gaps = tuple(Span(at, end) for at, end in pairwise(samples) if end - at > COVERAGE_STEP_S * 1.5)
        observed = period.length_s - sum(gap.length_s for gap in gaps)
        hosts = int(max(value for _, value in track.points))
        rows.append(Coverage(track.labels.get("cluster", ""), hosts, observed, gaps))
    return tuple(sorted(rows, key=lambda row: row.cluster))


def attainment(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[Attainment, ...]:
    """One row for each cluster and layer that a baseline judged, bottom-up."""
    figures: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    judged: dict[tuple[str, ...], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    beyond: dict[tuple[str, ...], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for seconds, name in ((judged, "figures judged"), (beyond, "figures beyond")):
        for track in answers[name]:
            key = track.key(_LAYER)
            figures[key].add(track.key(_FIGURE))
            for day, minutes in day_starts(track.points, period).items():
                seconds[key][day] += minutes * MINUTE_S
    observed, out = _minutes(answers["layers judged"], _LAYER), _minutes(answers["layers out of line"], _LAYER)
    rows = [
        Attainment(
            cluster=key[0],
            layer=key[1],
            figures=len(figures[key]),
            judged_s=sum(days.values()),
            beyond_s=sum(beyond[key].values()),
            observed_s=observed[key] * MINUTE_S,
            out_of_line_s=out[key] * MINUTE_S,
            days=tuple((day, 1 - beyond[key][day] / seconds) for day, seconds in sorted(days.items()) if seconds),
        )
        for key, days in judged.items()
        if sum(days.values())
    ]
    return tuple(sorted(rows, key=lambda row: (row.cluster, _height(row.layer))))


def pool_services(answers: Mapping[str, Sequence[Track]]) -> tuple[PoolService, ...]:
    """Each pool of which anything was seen, the one that was unavailable longest first."""
    seen, unavailable, reduced = (
        _minutes(answers[f"pools {name}"], _POOL) for name in ("seen", "unavailable", "reduced")
    )
    score, mtbf, mttr = (last_values(answers[f"pools {name}"], _POOL) for name in ("score", "mtbf", "mttr"))
    services = (
        PoolService(
            cluster=key[0],
            pool=key[2] or key[1],
            seen_s=seen[key] * MINUTE_S,
            unavailable_s=unavailable[key] * MINUTE_S,
            reduced_s=reduced[key] * MINUTE_S,
            score=score.get(key),
            mtbf_s=mtbf.get(key),
            mttr_s=mttr.get(key),
        )
        for key in list(seen)
        if seen[key]
    )
    return tuple(sorted(services, key=lambda row: (-row.unavailable_s, -row.reduced_s, row.cluster, row.pool)))


def _minutes(tracks: Iterable[Track], names: Sequence[str]) -> defaultdict[tuple[str, ...], float]:
    return sums((track.key(names), value) for track in tracks for _, value in track.points)


def _height(layer: str) -> int:
    return LAYERS.index(layer) if layer in LAYERS else len(LAYERS)


def figure_offenders(answers: Mapping[str, Sequence[Track]], period: Period) -> tuple[FigureOffender, ...]:
    judged = _minutes(answers["figures judged"], _FIGURE)
    worst = worst_days(answers["levels ratio"], _FIGURE, period)
    rows = []
    for track in answers["figures beyond"]:
        seconds = sum(value for _, value in track.points) * MINUTE_S
        if seconds:
            cluster, host, layer, *_ = key = track.key(_FIGURE)
            what = figure_words(track.labels)
            judged_s = judged[key] * MINUTE_S
            rows.append(FigureOffender(cluster, host, layer, what, seconds, judged_s, worst.get(key)))
    return tuple(sorted(rows, key=lambda row: (-row.beyond_s, row.host, row.what))[:OFFENDERS])


def figure_words(labels: Mapping[str, str]) -> str:
    """``median latency of random writes, 4 KiB, 1 in flight (probe canary-sdb, ssd)``; a workload that is not in
    the catalogue is named by its id."""
    names = {"p50": "median latency", "mean": "mean latency", "iops": "operations per second"}
    statistic, operation, workload = (labels.get(name, "") for name in ("statistic", "operation", "workload"))
    known = load_catalogue().by_id.get(workload)
    experiment = described(known, operation) if known is not None else " ".join(filter(None, (workload, operation)))
    of = ", ".join(filter(None, (f"probe {labels.get('probe', '')}", labels.get("device_class", ""))))
    return f"{names.get(statistic, statistic)} of {experiment[:1].lower()}{experiment[1:]} ({of})"
