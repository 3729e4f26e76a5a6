"""Computes one entry of the file from the runs of a recording: medians, percentiles, spread, and what is wrong.

All comparable runs (layer, device class, workload, operation, ``config_hash``) make one entry, however many disks, OSDs
or peers were measured: a baseline describes the kind. Percentiles are over the operations of all runs together, if the
tool reports a distribution.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import TypeVar

import msgspec

from plumbline.baseline.files import Latencies
from plumbline.baseline.model import Target, experiment
from plumbline.baseline.record.level import Level, Slice, joined, level_of
from plumbline.baseline.site import IopsAtLatency, LevelSpread, SiteEntry
from plumbline.baseline.units import Iops, Latency, Quantity, Throughput
from plumbline.core.grouping import grouped
from plumbline.core.histogram import HistogramValue, added
from plumbline.core.units import base_text, si
from plumbline.errors import BaselineError

K = TypeVar("K", bound=Quantity)

# Five runs within minutes do not show a day's load, temperature, scrubs or a fuller device, and the canary's histogram
# is off by up to 9 % by itself: a smaller factor would be met only by luck. The rules have the same minimum.
TOLERANCE_FLOOR = 1.25
# A run whose figure is more than this many times the median of all runs, or less than the inverse, measured something
# else. The alerts exist to find a factor of 2.
SPREAD_LIMIT = 2.0
_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
# A percentile is recorded only if at least this many operations lie above it. With fewer it is merely the maximum, and
# the next recording would give another value.
_MIN_ABOVE = 3
_DIGITS = 4


class RunFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Figures of one run for one operation of one workload: seconds, operations and bytes per second.

    With a ``histogram`` or ``bins`` (midpoint in seconds, operations; ascending) the percentiles are computed from
    them; ``latency`` is for tools that report only statistics. ``iops`` and ``throughput`` are ``None`` if they don't
    describe the device, as in a paced or capped run. ``disturbed``: why the device was not quiet before the run; empty
    if it was or if that is unknown. ``sought``: (seconds, percentile) of a search for the most IOPS at a latency, of
    which ``iops`` is the result and ``depth`` the operations in flight; 0: even one at a time misses the latency.
    ``slices``: the run in pieces, over the edges of its ``histogram``. ``load``: operations and bytes per second that
    the disk served for others meanwhile; ``None`` if unknown.
    """

    probe: str
    workload: str
    operation: str
    histogram: HistogramValue | None = None
    bins: tuple[tuple[float, int], ...] = ()
    latency: dict[str, float] = {}
    iops: float | None = None
    throughput: float | None = None
    slices: tuple[Slice, ...] = ()
    load: tuple[float, float] | None = None
    disturbed: str = ""
    sought: tuple[float, float] | None = None
    depth: int = 0

    @property
    def empty(self) -> bool:
        if self.histogram is not None:
            return not self.histogram.count
        return not (self.latency or self.iops or self.throughput)


# like PromQL's ``histogram_quantile``, so that baselines and live figures are computed alike
Quantile = Callable[[HistogramValue, float], float | None]


class EntryRecord(msgspec.Struct, frozen=True):
    """One entry and its sources. ``targets`` are comparable with each other; warnings are one line each, and
    ``refusals`` are those for which no baseline should be written."""

    targets: tuple[Target, ...]
    entry: SiteEntry
    warnings: tuple[str, ...]
    refusals: tuple[str, ...]
    level: Level | None = None  # None: the tool keeps no slices

    @property
    def layer(self) -> str:
        return self.targets[0].layer


def likenesses(targets: Iterable[Target]) -> list[tuple[Target, ...]]:
    """Targets that share an entry, in order of first appearance."""
    return [tuple(group) for group in grouped(targets, experiment).values()]


def summarise(
    targets: Sequence[Target], runs: Mapping[Target, Sequence[RunFigures]], quantile: Quantile
) -> EntryRecord:
    """The entry of comparable ``targets``, each with the same number of ``runs``, in the order in which they were made.
    Raises :class:`BaselineError` if a run gave no figure."""
    figures = {target: [run for run in runs[target] if run.sought is None] for target in targets}
    every = [figure for target in targets for figure in figures[target]]
    per_target = {target: _Series.of(target, figures[target], quantile) for target in targets}
    whole, first = _Series.joined(list(per_target.values())), targets[0]
    warnings, refusals = _remarks(per_target, figures)
    tolerance = rounded(max(TOLERANCE_FLOOR, *whole.worst(per_target.values())))
    level = _level(list(figures.values()), tolerance, quantile)
    load = _load(list(figures.values()))
    entry = SiteEntry(
        workload=first.workload,
        operation=first.operation,
        device_class=first.device_class,
        device=first.device if len({target.device for target in targets}) == 1 else "",
        targets=tuple(_short_name(target) for target in targets) if len(targets) > 1 else (),
        rate_iops=first.rate_iops,
        latency=Latencies(**{name: Latency.of(rounded(value)) for name, value in _pooled(every, quantile).items()}),
        iops=quantity(Iops, median_of(run.iops for run in every)),
        throughput=quantity(Throughput, median_of(run.throughput for run in every)),
        iops_at_latency=_at_latency([run for target in targets for run in runs[target] if run.sought is not None]),
        tolerance_ratio=tolerance,
        level_spread=LevelSpread.of({span: rounded(spread) for span, spread in level.spread.items()} if level else {}),
        calm_seconds=rounded(level.calm_s) if level and level.calm_s is not None else None,
        load_ops_per_second=rounded(load[0]) if load else None,
        load_bytes_per_second=rounded(load[1]) if load else None,
        runs=len(figures[first]),
        p50_of_runs=_quantities(Latency, whole.p50),
        mean_of_runs=_quantities(Latency, whole.mean),
        throughput_of_runs=_quantities(Throughput, whole.throughput),
        iops_of_runs=() if whole.throughput else _quantities(Iops, whole.iops),
        median_of_runs=quantity(Latency, median(whole.latency)) if whole.latency else None,
        mad_ratio=rounded(mad(whole.main)),
        spread_ratio=rounded(max(whole.main) / min(whole.main)),
        config_hash=first.config_hash,
        note="; ".join(_notes(targets, runs)),
    )
    return EntryRecord(tuple(targets), entry, tuple(warnings), tuple(refusals), level)


class _Series(msgspec.Struct, frozen=True):
    """One figure per run, in seconds, bytes or operations per second; a field is empty if the tool does not report it.
    ``mean`` is used only without ``p50``."""

    p50: tuple[float, ...]
    mean: tuple[float, ...]
    throughput: tuple[float, ...]
    iops: tuple[float, ...]

    @classmethod
    def of(cls, target: Target, figures: Sequence[RunFigures], quantile: Quantile) -> _Series:
        for run, entry in enumerate(figures, 1):
            if entry.empty:
                raise BaselineError(name_of(target), f"run {run} completed no operation; does the device respond?")
        p50 = _all(_p50(figure, quantile) for figure in figures)
        series = cls(
            p50=p50,
            mean=() if p50 else _all(figure.latency.get("mean") for figure in figures),
            throughput=_all(figure.throughput for figure in figures),
            iops=_all(figure.iops for figure in figures),
        )
        if not series.main:
            raise BaselineError(name_of(target), "the runs reported neither a latency nor a rate")
        return series

    @classmethod
    def joined(cls, several: Sequence[_Series]) -> _Series:
        """The median over the targets for each run."""
        columns = zip(*((series.p50, series.mean, series.throughput, series.iops) for series in several), strict=True)
        return cls(*(tuple(map(median, zip(*rows, strict=True))) if all(rows) else () for rows in columns))

    @property
    def latency(self) -> tuple[float, ...]:
        return self.p50 or self.mean

    @property
    def rate(self) -> tuple[float, ...]:
        return self.throughput or self.iops

    @property
    def main(self) -> tuple[float, ...]:
        """The figures whose spread is recorded."""
        return self.latency or self.rate

    def worst(self, several: Iterable[_Series]) -> Iterator[float]:
        """How far the worst run of ``several``, which this one joins, was from the median: a factor of at least 1."""
        for series in several:
            if self.latency:
                yield max(series.latency) / median(self.latency)
            if self.rate:
                yield median(self.rate) / min(series.rate)


def name_of(target: Target) -> str:
    """``canary, randread-4k-qd1-j1 read``."""
    return f"{target.probe}, {target.workload} {target.operation}"


def _short_name(target: Target) -> str:
    """``sdb`` of ``raw/sdb``; the probe's name if it has no target."""
    return target.probe.partition("/")[2] or target.probe


def _remarks(
    per_target: Mapping[Target, _Series], figures: Mapping[Target, Sequence[RunFigures]]
) -> tuple[list[str], list[str]]:
    """All warnings, and the subset for which no baseline should be written."""
    warnings: list[str] = []
    refusals: list[str] = []
    middles = {target: median(series.main) for target, series in per_target.items()}
    typical = median(middles.values())
    for target, series in per_target.items():
        unit = "s" if series.latency else "B/s" if series.throughput else "IOPS"
        quantity = partial(si if unit != "IOPS" else base_text, unit=unit)
        for run, value in enumerate(series.main, 1):
            if not _near(value, middles[target]):
                had = f"a median of {quantity(value)}" if series.p50 else quantity(value)
                what = f"{had}; the median of all runs is {quantity(middles[target])}"
                refusals.append(f"{name_of(target)}: run {run} of {len(series.main)} had {what}")
        if len(middles) > 1 and not _near(middles[target], typical):
            others = f"all {len(middles)} comparable targets together {quantity(typical)}"
            had = f"measured {quantity(middles[target])}; {others}: it differs too much from them"
            refusals.append(f"{name_of(target)}: {had}")
        busy = [
            f"before run {run}, {figure.disturbed}" for run, figure in enumerate(figures[target], 1) if figure.disturbed
        ]
        lines = [f"{name_of(target)}: {number}" for number in busy]
        (refusals if 2 * len(busy) > len(figures[target]) else warnings).extend(lines)
    return warnings + refusals, refusals


def _near(value: float, middle: float) -> bool:
    return 1 / SPREAD_LIMIT <= value / middle <= SPREAD_LIMIT


def _notes(targets: Sequence[Target], runs: Mapping[Target, Sequence[RunFigures]]) -> Iterator[str]:
    for target in targets:
        where = f"{_short_name(target)} " if len(targets) > 1 else ""
        for run, entry in enumerate((run for run in runs[target] if run.sought is None), 1):
            if entry.disturbed:
                yield f"{where}run {run}: {entry.disturbed}"
        for entry in runs[target]:
            if entry.sought is not None and not entry.depth:
                seconds, percentile = entry.sought
                latency = si(seconds, "s")
                yield f"{where}even one operation at a time does not complete {percentile:g} % within {latency}"


def _level(figures: Sequence[Sequence[RunFigures]], tolerance: float, quantile: Quantile) -> Level | None:
    levels = []
    for runs in figures:
        histograms = [run.histogram for run in runs if run.slices and run.histogram is not None]
        if not histograms:
            return None
        slices = sorted((piece for run in runs for piece in run.slices), key=lambda level: level.ended)
        levels.append(level_of(slices, histograms[0].edges, tolerance=tolerance, quantile=quantile))
    return joined(levels)


def _load(figures: Sequence[Sequence[RunFigures]]) -> tuple[float, float] | None:
    """The median of all runs of all targets; ``None`` if one is unknown."""
    loads = [run.load for runs in figures for run in runs]
    known = [load for load in loads if load is not None]
    if not known or len(known) < len(loads):
        return None
    return median(operations for operations, _ in known), median(octets for _, octets in known)


def _p50(figures: RunFigures, quantile: Quantile) -> float | None:
    return figures.latency.get("p50") if figures.histogram is None else quantile(figures.histogram, 0.5)


def _pooled(figures: Sequence[RunFigures], quantile: Quantile) -> dict[str, float]:
    """Statistics over the operations of all runs. Percentiles cannot be pooled from statistics alone; then the median
    of the runs is used, and the highest ``max``."""
    histograms = [figure.histogram for figure in figures if figure.histogram is not None]
    if len(histograms) == len(figures):  # edges differ only between releases, and runs of another release are not kept
        return _of_histogram(added(histograms), quantile)
    pooled = {}
    for statistic in ("mean", *_QUANTILES, "max"):
        values = _all(figure.latency.get(statistic) for figure in figures)
        if values:
            pooled[statistic] = max(values) if statistic == "max" else median(values)
    if all(figure.bins for figure in figures):
        pooled = {name: value for name, value in pooled.items() if name not in _QUANTILES}
        pooled |= _of_bins(figures, at_most=pooled.get("max", math.inf))
    return pooled


def _of_bins(figures: Sequence[RunFigures], *, at_most: float) -> dict[str, float]:
    """By nearest rank, as fio does; a bin's midpoint may exceed the highest value in it."""
    counts: Counter[float] = Counter()
    for figure in figures:
        for seconds, count in figure.bins:
            counts[seconds] += count
    total = sum(counts.values())
    bins, below = {}, 0
    left = {name: q for name, q in _QUANTILES.items() if total * (1 - q) >= _MIN_ABOVE}
    for seconds in sorted(counts):
        below += counts[seconds]
        for name in [name for name, q in left.items() if below >= math.ceil(q * total)]:
            bins[name] = min(seconds, at_most)
            del left[name]
    return bins


def _of_histogram(histogram: HistogramValue, quantile: Quantile) -> dict[str, float]:
    statistics = {"mean": histogram.sum / histogram.count}
    for statistic, q in _QUANTILES.items():
        value = quantile(histogram, q)
        if value is not None and histogram.count * (1 - q) >= _MIN_ABOVE:
            statistics[statistic] = value
    return statistics


def _at_latency(searches: Sequence[RunFigures]) -> IopsAtLatency | None:
    """The median disk's figures; ``None`` if one of the disks misses the latency."""
    if not searches or not all(search.depth and search.iops for search in searches):
        return None
    ordered = sorted(searches, key=lambda search: search.iops or 0.0)
    middle = ordered[(len(ordered) - 1) // 2]
    seconds, percentile = middle.sought or (0.0, 0.0)
    return IopsAtLatency(
        target=Latency.of(seconds),
        percentile=percentile,
        iops=Iops.of(rounded(middle.iops or 0.0)),
        queue_depth=middle.depth,
    )


def mad(values: Sequence[float]) -> float:
    middle = median(values)
    return median(abs(value - middle) for value in values) / middle


def _all(values: Iterable[float | None]) -> tuple[float, ...]:
    """The values, or nothing if a run has no figure."""
    known = list(values)
    figures = tuple(value for value in known if value)
    return figures if len(figures) == len(known) else ()


def median_of(values: Iterable[float | None]) -> float | None:
    """``None`` unless every run, or node, has the figure."""
    figures = _all(values)
    return median(figures) if figures else None


def quantity(kind: type[K], value: float | None) -> K | None:
    return kind.of(rounded(value)) if value else None


def _quantities(kind: type[K], values: Iterable[float]) -> tuple[K, ...]:
    return tuple(kind.of(rounded(value)) for value in values)


def rounded(value: float) -> float:
    """Four significant digits: the rest is noise, and people read the file."""
    return float(f"{value:.{_DIGITS}g}")
