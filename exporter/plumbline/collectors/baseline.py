"""Baselines as metrics. They change only when the configuration or a file does: compute once, emit often."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from plumbline.baseline.budget import Budget, parts
from plumbline.baseline.fingerprint import Fingerprint, changes, compared
from plumbline.baseline.model import Source
from plumbline.baseline.selection import Comparable, Selection
from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, declared, gauge, known

_LABELS = ("layer", "device_class", "workload", "operation", "source", "profile", "config_hash")

LATENCY = gauge(
    "plumbline_baseline_latency_seconds",
    "Latency that a baseline names for this workload, by statistic.",
    (*_LABELS, "statistic"),
)
IOPS = gauge("plumbline_baseline_iops", "Operations per second that a baseline names for this workload.", _LABELS)
THROUGHPUT = gauge(
    "plumbline_baseline_throughput_bytes_per_second", "Throughput that a baseline names for this workload.", _LABELS
)
TOLERANCE = gauge(
    "plumbline_baseline_tolerance_ratio",
    "How far the baseline's own runs strayed, as a factor of at least 1; absent where nothing is known of it.",
    _LABELS,
)
MEASURED = gauge("plumbline_baseline_measured_timestamp_seconds", "When the baseline was measured, Unix time.", _LABELS)
JUDGES = gauge(
    "plumbline_baseline_judges",
    "Whether the baseline may judge this node (1) or is shown only (0), as another site's hardware is by default.",
    _LABELS,
)
MISSING = gauge(
    "plumbline_baseline_missing",
    "Whether what a probe measures has no baseline that may judge it (1); nothing is compared then.",
    ("probe", "layer", "device_class", "workload", "operation"),
)

MISMATCH = gauge(
    "plumbline_baseline_mismatch",
    "1: what a probe measures has no baseline in force, and this one would judge it, but it was measured with other"
    " parameters (config_hash), so it is never compared.",
    ("probe", "layer", "device_class", "workload", "operation", "source", "profile"),
)
CHANGED = gauge(
    "plumbline_baseline_environment_changed",
    "Whether a part of this node (ceph, kernel, fio, disks, nics, tuning) is no longer what the baseline was measured"
    " on; absent where one of the two is not known.",
    ("source", "profile", "part"),
)
BUDGET = gauge(
    "plumbline_baseline_budget_seconds",
    "Documented time that one operation of the workload spends in a stage, all passes of the stage together; the stages"
    " of a device class (the kind of link) are the whole operation.",
    ("profile", "device_class", "workload", "stage", "layer"),
)

SPECS = declared(globals())


def samples(selection: Selection) -> Iterator[Sample]:
    """A node's baseline samples: comparable baselines only, so that a fleet does not carry the whole book."""
    for one in selection.comparable:
        yield from _entry_samples(one)
    for verdict in selection.verdicts:
        target = verdict.target
        labels = (target.probe, target.layer, target.device_class, target.workload, target.operation)
        yield MISSING, labels, 1.0 if verdict.in_force is None else 0.0
    for wrong in dict.fromkeys(  # one file may hold the figure with several other parameters
        (
            one.target.probe,
            one.target.layer,
            one.target.device_class,
            one.target.workload,
            one.target.operation,
            one.entry.source.value,
            one.entry.profile,
        )
        for one in selection.mismatched
    ):
        yield MISMATCH, wrong, 1.0


def environment_samples(measured_on: Mapping[str, Fingerprint], now: Fingerprint) -> Iterator[Sample]:
    """``measured_on``: profile of a measured baseline → the fingerprint in its file."""
    for profile, then in measured_on.items():
        changed = {each.part for each in changes(then, now)}
        for part in compared(then, now):
            yield CHANGED, (Source.MEASURED.value, profile, part.value), float(part in changed)


def budget_samples(budgets: Iterable[tuple[str, Budget]]) -> Iterator[Sample]:
    """For each (profile, budget): every stage of every kind of link."""
    for profile, budget in budgets:
        for link in budget.links:
            for part in parts(budget, link):
                labels = (profile, link.device_class, budget.workload, part.stage.name, part.stage.layer)
                yield BUDGET, labels, part.seconds


def _entry_samples(one: Comparable) -> Iterator[Sample]:
    entry = one.entry
    labels = (
        entry.layer,
        entry.device_class,
        entry.workload,
        entry.operation,
        entry.source.value,
        entry.profile,
        entry.config_hash,
    )
    for statistic, seconds in entry.latency.items():
        yield LATENCY, (*labels, statistic), seconds
    yield from known(
        labels,
        (IOPS, entry.iops),
        (THROUGHPUT, entry.throughput),
        (TOLERANCE, entry.tolerance_ratio),
        (MEASURED, entry.measured),
    )
    yield JUDGES, labels, 1.0 if one.judges else 0.0


def _read(host: Host, _skip: SkipHook) -> tuple[Host, Fingerprint]:
    """A recorded baseline that can't be read fails the collector, so that an alert reports it."""
    if host.book.recorded_error is not None:
        raise host.book.recorded_error
    return host, host.parts.fingerprint()


def _samples(reading: tuple[Host, Fingerprint]) -> Iterator[Sample]:
    host, fingerprint = reading
    yield from host.baselines
    yield from environment_samples(host.book.measured_on, fingerprint)


COLLECTOR = Collector(
    "baseline",
    SPECS,
    _read,
    _samples,
    origin="the baseline files and the documented profiles",
    needs_daemon=True,
)
