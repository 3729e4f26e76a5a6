"""Recording what this node's devices give while they are known to be good.

Several short runs instead of one long: their spread says how far the baseline itself can be trusted, and a run that
fell into something else's I/O shows. The runs of all probes take turns, so that a busy moment hits one run of each
and not all runs of one. Percentiles come from all runs' operations together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from statistics import median

from plumbline.baseline.files import SCHEMA_VERSION, Latencies
from plumbline.baseline.model import Target
from plumbline.baseline.site import Device, SiteEntry, SiteFile
from plumbline.baseline.units import Iops, Latency, Throughput
from plumbline.catalogue import HistogramValue
from plumbline.errors import BaselineError

TOTAL_S = 60.0
"""How long recording takes by default, all runs of all probes together."""
SHORTEST_RUN_S = 2.0

TOLERANCE_FLOOR = 1.25
"""Five runs within a minute know nothing of a day's load, temperature, scrubs or a fuller device, and the canary's
histogram is up to 9 % off by itself: a smaller factor would be luck. The same as the rules' minimum."""

SPREAD_LIMIT = 2.0
"""A run whose median is so many times the median of all runs (or less than that part of it) measured something else:
2 is what the alerts are there to find."""

_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_MIN_ABOVE = 3
"""A percentile is written down only where at least so many operations lie above it; with fewer it is the maximum
under another name, and the next recording would give another one."""
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What one run gave for one operation of one workload. Seconds, operations and bytes per second.

    With a ``histogram`` the percentiles are taken from it; ``latency`` is for tools that give statistics only.
    ``iops`` and ``throughput`` are ``None`` where they say nothing of the device, as in a paced or capped run.
    """

    workload: str
    operation: str
    histogram: HistogramValue | None = None
    latency: Mapping[str, float] = field(default_factory=dict)
    iops: float | None = None
    throughput: float | None = None


Measure = Callable[[tuple[Target, ...], float], Sequence[RunFigures]]
"""One run of one probe: its targets and seconds in, figures of each target out."""
Quantile = Callable[[HistogramValue, float], float | None]
"""As PromQL's ``histogram_quantile``, so that the baseline is computed as the live figures are."""
Busy = Callable[[str], str]
"""Asked before each run with the device's name: why it is not quiet, or empty."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where and with what the recording was made; ``recorded`` has a time zone."""

    host: str
    recorded: datetime
    kernel: str = ""
    tools: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """Told before each run, and once at the end (``done == total``). ``run`` counts from 1."""

    done: int
    total: int
    probe: str
    run: int
    run_duration_s: float


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """One target's statistics: medians of the runs in seconds, and what is wrong with them, if anything is."""

    target: Target
    p50_of_runs: tuple[float, ...]
    entry: SiteEntry
    outliers: tuple[int, ...]
    """Runs (from 1) beyond :data:`SPREAD_LIMIT`."""
    busy: Mapping[int, str]
    """Run → why the device was not quiet before it."""


@dataclass(frozen=True, slots=True)
class RecordedBaseline:
    """A recording that may be written; ``warnings`` are one line each."""

    file: SiteFile
    records: tuple[TargetRecord, ...]
    warnings: tuple[str, ...]


def record(
    targets: Sequence[Target],
    *,
    measure: Measure,
    quantile: Quantile,
    environment: Environment,
    runs: int = 5,
    run_duration_s: float | None = None,
    busy: Busy = lambda _: "",
    progress: Callable[[Progress], None] = lambda _: None,
    force: bool = False,
) -> RecordedBaseline:
    """Measure every target ``runs`` times. ``measure`` is called once per run and probe, with all its targets.

    Raises :class:`BaselineError` when there is nothing to record, a run gave no figures, or (without ``force``) the
    host was too busy for a baseline: runs far apart, or most of them on a busy device.
    """
    if not targets:
        raise BaselineError("record", "no probe measures anything here; enable one in the configuration")
    if runs < 2:
        raise BaselineError("record", "one run says nothing of its spread; use at least 2", key="runs", value=runs)
    probes = [(name, tuple(group)) for name, group in groupby(sorted(targets, key=_by_probe), key=_by_probe)]
    duration_s = run_duration_s or max(SHORTEST_RUN_S, TOTAL_S / (runs * len(probes)))
    figures: dict[Target, list[RunFigures]] = {target: [] for target in targets}
    disturbed: dict[Target, dict[int, str]] = {target: {} for target in targets}
    total = runs * len(probes)
    for done in range(total):
        run, (probe, group) = done // len(probes) + 1, probes[done % len(probes)]
        progress(Progress(done, total, probe, run, duration_s))
        reasons = {device: busy(device) for device in sorted({target.device for target in group})}
        for target in group:
            if reasons[target.device]:
                disturbed[target][run] = reasons[target.device]
        found = {(one.workload, one.operation): one for one in measure(group, duration_s)}
        for target in group:
            figures[target].append(_of_target(found, target, run))
    progress(Progress(total, total, probes[-1][0], runs, duration_s))
    records = tuple(_record(target, figures[target], disturbed[target], quantile) for target in targets)
    warnings = tuple(warning for one in records for warning in _warnings(one))
    refusals = [warning for one in records for warning in _warnings(one) if one.outliers or _mostly_busy(one)]
    if refusals and not force:
        advice = "wait until this host is quiet, or accept it with --force"
        raise BaselineError("record", f"{'; '.join(refusals)}. Nothing was written: {advice}")
    return RecordedBaseline(_file(environment, records), records, warnings)


def _by_probe(target: Target) -> str:
    return target.probe


def _of_target(found: Mapping[tuple[str, str], RunFigures], target: Target, run: int) -> RunFigures:
    one = found.get((target.workload, target.operation))
    if one is None or (one.histogram is not None and not one.histogram.count):
        raise BaselineError(_name(target), f"run {run} did no operation; is the device answering?")
    return one


def _record(target: Target, figures: Sequence[RunFigures], busy: Mapping[int, str], quantile: Quantile) -> TargetRecord:
    medians = tuple(_p50(one, target, run, quantile) for run, one in enumerate(figures, 1))
    middle = median(medians)
    outliers = tuple(run for run, p50 in enumerate(medians, 1) if not 1 / SPREAD_LIMIT <= p50 / middle <= SPREAD_LIMIT)
    iops, throughput = _median(one.iops for one in figures), _median(one.throughput for one in figures)
    latency = {name: Latency.of(_rounded(value)) for name, value in _pooled(figures, quantile).items()}
    entry = SiteEntry(
        workload=target.workload,
        operation=target.operation,
        device_class=target.device_class,
        device=target.device,
        rate_iops=target.rate_iops,
        latency=Latencies(**latency),
        iops=Iops.of(iops) if iops else None,
        throughput=Throughput.of(throughput) if throughput else None,
        tolerance_ratio=_rounded(max(TOLERANCE_FLOOR, max(medians) / middle)),
        runs=len(figures),
        p50_of_runs=tuple(Latency.of(_rounded(p50)) for p50 in medians),
        median_of_runs=Latency.of(_rounded(middle)),
        mad_ratio=_rounded(median(abs(p50 - middle) for p50 in medians) / middle),
        spread_ratio=_rounded(max(medians) / min(medians)),
        config_hash=target.config_hash,
        note="; ".join(f"run {run}: {reason}" for run, reason in busy.items()),
    )
    return TargetRecord(target, medians, entry, outliers, dict(busy))


def _p50(one: RunFigures, target: Target, run: int, quantile: Quantile) -> float:
    p50 = quantile(one.histogram, 0.5) if one.histogram is not None else one.latency.get("p50")
    if not p50:
        raise BaselineError(_name(target), f"run {run} gave no median latency")
    return p50


def _pooled(figures: Sequence[RunFigures], quantile: Quantile) -> dict[str, float]:
    """Statistics over all runs' operations.

    From statistics alone no pooled percentile can be had: then the median run's stands for it, and the highest
    ``max``.
    """
    histograms = [one.histogram for one in figures if one.histogram is not None]
    if len(histograms) == len(figures):
        return _of_histogram(_sum(histograms), quantile)
    pooled = {}
    for statistic in ("mean", *_QUANTILES, "max"):
        values = [one.latency[statistic] for one in figures if one.latency.get(statistic)]
        if len(values) == len(figures):
            pooled[statistic] = max(values) if statistic == "max" else median(values)
    return pooled


def _of_histogram(histogram: HistogramValue, quantile: Quantile) -> dict[str, float]:
    statistics = {"mean": histogram.sum / histogram.count}
    for statistic, q in _QUANTILES.items():
        value = quantile(histogram, q)
        if value is not None and histogram.count * (1 - q) >= _MIN_ABOVE:
            statistics[statistic] = value
    return statistics


def _sum(histograms: Sequence[HistogramValue]) -> HistogramValue:
    """All runs in one; they come from one probe, so their edges are the same."""
    return HistogramValue(
        edges=histograms[0].edges,
        cumulative=[sum(counts) for counts in zip(*(one.cumulative for one in histograms), strict=True)],
        count=sum(one.count for one in histograms),
        sum=sum(one.sum for one in histograms),
    )


def _median(values: Iterable[float | None]) -> float | None:
    """``None`` where a run has no figure."""
    known = list(values)
    figures = [value for value in known if value is not None]
    return _rounded(median(figures)) if len(figures) == len(known) else None


def _warnings(one: TargetRecord) -> Iterator[str]:
    middle = median(one.p50_of_runs)
    for run in one.outliers:
        p50 = one.p50_of_runs[run - 1]
        yield (
            f"{_name(one.target)}: run {run} of {len(one.p50_of_runs)} had a median of "
            f"{Latency.of(_short(p50)).text}; the median of all runs is {Latency.of(_short(middle)).text}"
        )
    for run, reason in one.busy.items():
        yield f"{_name(one.target)}: before run {run}, {reason}"


def _mostly_busy(one: TargetRecord) -> bool:
    return 2 * len(one.busy) > len(one.p50_of_runs)


def _file(environment: Environment, records: Sequence[TargetRecord]) -> SiteFile:
    return SiteFile(
        schema_version=SCHEMA_VERSION,
        source="measured",
        name=environment.host,  # what an alert calls it: "the measured baseline stor01"
        host=environment.host,
        recorded=environment.recorded.replace(microsecond=0),
        kernel=environment.kernel,
        tools=dict(environment.tools),
        devices=environment.devices,
        entries=tuple(one.entry for one in records),
    )


def _name(target: Target) -> str:
    return f"{target.probe}, {target.workload} {target.operation}"


def _rounded(value: float) -> float:
    """Six significant digits: what lies behind is noise, and a person reads the file."""
    return float(f"{value:.{_DIGITS}g}")


def _short(value: float) -> float:
    return float(f"{value:.3g}")
