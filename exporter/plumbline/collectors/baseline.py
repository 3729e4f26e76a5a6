"""Baselines as metrics. They change only when the configuration or a file does: compute once, emit often."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from plumbline.baseline.budget import Budget, parts
from plumbline.baseline.fingerprint import Fingerprint, changes, compared
from plumbline.baseline.model import Source, Target
from plumbline.baseline.selection import Comparable, Selection
from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, declared, gauge, known

_LABELS = ("layer", "device_class", "workload", "operation", "source", "profile", "config_hash")

LATENCY = gauge("plumbline_baseline_latency_seconds", "Baseline latency, by statistic.", (*_LABELS, "statistic"))
IOPS = gauge("plumbline_baseline_iops", "Baseline operations per second for this workload.", _LABELS)
THROUGHPUT = gauge("plumbline_baseline_throughput_bytes_per_second", "Baseline throughput for this workload.", _LABELS)
TOLERANCE = gauge(
    "plumbline_baseline_tolerance_ratio", "Spread of the baseline's own runs, a factor ≥ 1; absent if unknown.", _LABELS
)
SPREAD = gauge(
    "plumbline_baseline_spread_ratio",
    "How far medians of this span strayed upwards in the recording: 0.9 quantile ÷ median − 1; 0 is perfectly calm.",
    (*_LABELS, "span"),
)
CALM = gauge(
    "plumbline_baseline_calm_seconds",
    "Longest time in the recording until the level was back within tolerance; 0 if it never left it.",
    _LABELS,
)
LOAD_OPS = gauge(
    "plumbline_baseline_load_ops_per_second", "What the disk served for others while it was recorded.", _LABELS
)
LOAD_BYTES = gauge(
    "plumbline_baseline_load_bytes_per_second", "Bytes the disk served for others while it was recorded.", _LABELS
)
MEASURED = gauge("plumbline_baseline_measured_timestamp_seconds", "When the baseline was measured, Unix time.", _LABELS)
JUDGES = gauge("plumbline_baseline_applicable", "1: the baseline may judge this node; 0: shown only.", _LABELS)
MISSING = gauge(
    "plumbline_baseline_missing",
    "1: the probe's results have no baseline that may judge them, so nothing is compared.",
    ("probe", "layer", "device_class", "workload", "operation"),
)

MISMATCH = gauge(
    "plumbline_baseline_mismatch",
    "1: this baseline would judge the probe but used other parameters (config_hash); no other is in force.",
    ("probe", "layer", "device_class", "workload", "operation", "source", "profile"),
)
CHANGED = gauge(
    "plumbline_baseline_environment_changed",
    "Whether this part (ceph, kernel, fio, disks, nics, tuning) changed since the baseline; absent if unknown.",
    ("source", "profile", "part"),
)
FLEET_CLASS = gauge(
    "plumbline_baseline_fleet_class_info",
    "Class of nodes (model and role) that a measured baseline belongs to, or whose figures these are, always 1.",
    ("source", "profile", "fleet_class"),
)
BUDGET = gauge(
    "plumbline_baseline_budget_seconds",
    "Documented time of a stage within one operation, all passes; all stages of a device class form the whole"
    " operation.",
    ("profile", "device_class", "workload", "stage", "layer"),
)


def samples(selection: Selection) -> Iterator[Sample]:
    """A node's baseline samples: comparable baselines only, so that a fleet does not carry the whole book."""
    for comparable in selection.comparable:
        yield from _entry_samples(comparable)
    for verdict in selection.verdicts:
        yield MISSING, _labels(verdict.target), 1.0 if verdict.in_force is None else 0.0
    mismatched = (
        (*_labels(target.target), target.entry.source.value, target.entry.profile) for target in selection.mismatched
    )
    for labels in dict.fromkeys(mismatched):  # one file may hold the figure with several other parameters
        yield MISMATCH, labels, 1.0


def _labels(target: Target) -> tuple[str, ...]:
    return target.probe, target.layer, target.device_class, target.workload, target.operation


def environment_samples(measured_on: Mapping[str, Fingerprint], now: Fingerprint) -> Iterator[Sample]:
    """``measured_on``: profile of a measured baseline → the fingerprint in its file."""
    for profile, then in measured_on.items():
        changed = {change.part for change in changes(then, now)}
        for part in compared(then, now):
            yield CHANGED, (Source.MEASURED.value, profile, part.value), float(part in changed)


def budget_samples(budgets: Iterable[tuple[str, Budget]]) -> Iterator[Sample]:
    """For each (profile, budget): every stage of every kind of link."""
    for profile, budget in budgets:
        for link in budget.links:
            for part in parts(budget, link):
                labels = (profile, link.device_class, budget.workload, part.stage.name, part.stage.layer)
                yield BUDGET, labels, part.seconds


def _entry_samples(comparable: Comparable) -> Iterator[Sample]:
    entry = comparable.entry
    place = (entry.layer, entry.device_class, entry.workload, entry.operation)
    labels = (*place, entry.source.value, entry.profile, entry.config_hash)
    for statistic, seconds in entry.latency.items():
        yield LATENCY, (*labels, statistic), seconds
    for span, spread in entry.level_spread.items():
        yield SPREAD, (*labels, span), spread
    yield from known(
        labels,
        (IOPS, entry.iops),
        (THROUGHPUT, entry.throughput),
        (TOLERANCE, entry.tolerance_ratio),
        (CALM, entry.calm_seconds),
        (LOAD_OPS, entry.load_ops_per_second),
        (LOAD_BYTES, entry.load_bytes_per_second),
        (MEASURED, entry.measured),
    )
    yield JUDGES, labels, 1.0 if comparable.judges else 0.0


class BaselineReading(NamedTuple):
    host: Host
    fingerprint: Fingerprint


def _read(host: Host, skip: SkipHook) -> BaselineReading:
    """A recorded baseline that can't be read fails the collector, so that an alert reports it; that of a class is
    skipped and counted."""
    if host.book.recorded_error is not None:
        raise host.book.recorded_error
    if (refused := host.book.class_error) is not None:
        skip(str(refused), "unreadable")
    return BaselineReading(host, host.parts.latest(Fingerprint))


def _samples(reading: BaselineReading) -> Iterator[Sample]:
    host, fingerprint = reading
    yield from host.baselines
    yield from environment_samples(host.book.measured_on, fingerprint)
    for labels in dict.fromkeys(host.book.fleet_classes):
        yield FLEET_CLASS, labels, 1.0


COLLECTOR = Collector(
    "baseline",
    declared(globals()),
    _read,
    _samples,
    origin="the baseline files and the documented profiles",
    needs_daemon=True,
)
