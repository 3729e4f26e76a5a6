"""Classes of nodes (model and role) whose accepted figures changed in the period: the median of their own baselines."""

from collections.abc import Iterator, Mapping, Sequence

from plumbline.core.words import DAY_S
from plumbline.report.model import ClassDrift
from plumbline.report.queries import Queries
from plumbline.sources.prometheus.api import Track
from plumbline.sources.prometheus.queries import Query, last_values, moment

_BY = ("cluster", "fleet_class", "layer", "device_class", "workload", "operation", "statistic")
# the first that both moments have is compared; for the rates more is better
_FIGURES = {
    "latency.p50": ("plumbline_baseline_latency_seconds", 'statistic="p50"'),
    "latency.mean": ("plumbline_baseline_latency_seconds", 'statistic="mean"'),
    "throughput": ("plumbline_baseline_throughput_bytes_per_second", ""),
    "iops": ("plumbline_baseline_iops", ""),
}
# a mean says the same as the median of the same runs
_INSTEAD = {"latency.mean": "latency.p50"}
LATENCY = "latency"


def queries(review: Queries) -> Iterator[Query]:
    """The medians a day after the beginning, and at the end."""
    period = review.period
    info = review.sel("plumbline_baseline_fleet_class_info", 'source="measured"')
    # a baseline whose class has another name since that day is of the one that it has at the end of it
    of = (
        "topk by (cluster, instance, profile) (1, max by (cluster, instance, profile, fleet_class) ("
        f"timestamp({info}) or 0 * last_over_time({info}[1d]))) >= bool 0"
    )
    for figure, (metric, matcher) in _FIGURES.items():
        measured = review.sel(metric, 'source="measured"', matcher)
        series = f"last_over_time({measured}[1d])"
        joined = f"{series} * on (cluster, instance, profile) group_left (fleet_class) ({of})"
        for key, at in (("then", period.start_s + DAY_S), ("now", period.end_s)):
            yield moment(f"class {figure} {key}", f"quantile by ({', '.join(_BY)}) (0.5, {joined})", at)
            if figure == "latency.p50":
                yield moment(f"class nodes {key}", f"count by (cluster, fleet_class) ({of})", at)


def drifts(answers: Mapping[str, Sequence[Track]]) -> tuple[ClassDrift, ...]:
    """Every figure of a class that both moments have, the most changed first."""
    rows = []
    seen: set[tuple[str, ...]] = set()
    nodes = last_values(answers["class nodes now"], ("cluster", "fleet_class"))
    for figure in _FIGURES:
        then, now = (last_values(answers[f"class {figure} {key}"], _BY) for key in ("then", "now"))
        for key in now.keys() & then.keys():
            if (_INSTEAD.get(figure, ""), *key[:6]) in seen or not (then[key] and now[key]):
                continue
            seen.add((figure, *key[:6]))
            ratio = now[key] / then[key] if figure.startswith(LATENCY) else then[key] / now[key]
            rows.append(
                ClassDrift(
                    cluster=key[0],
                    fleet_class=key[1],
                    what=" ".join(filter(None, key[2:6])),
                    figure=figure,
                    then=then[key],
                    now=now[key],
                    ratio=ratio,
                    nodes=int(nodes.get(key[:2], 0)),
                )
            )
    return tuple(sorted(rows, key=lambda drift: (-max(drift.ratio, 1 / drift.ratio), drift.fleet_class, drift.what)))
