"""The baselines as metrics. They change only when the configuration or a file does: compute once, emit often."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.baseline.selection import Comparable, Selection
from plumbline.catalogue import Kind, MetricSpec, Sample

_LABELS = ("layer", "device_class", "workload", "operation", "source", "profile", "config_hash")

LATENCY = MetricSpec(
    "plumbline_baseline_latency_seconds",
    Kind.GAUGE,
    "Latency that a baseline names for this workload, by statistic.",
    (*_LABELS, "statistic"),
)
IOPS = MetricSpec(
    "plumbline_baseline_iops", Kind.GAUGE, "Operations per second that a baseline names for this workload.", _LABELS
)
THROUGHPUT = MetricSpec(
    "plumbline_baseline_throughput_bytes_per_second",
    Kind.GAUGE,
    "Throughput that a baseline names for this workload.",
    _LABELS,
)
TOLERANCE = MetricSpec(
    "plumbline_baseline_tolerance_ratio",
    Kind.GAUGE,
    "How far the baseline's own runs strayed, as a factor of at least 1; absent where nothing is known of it.",
    _LABELS,
)
MEASURED = MetricSpec(
    "plumbline_baseline_measured_timestamp_seconds", Kind.GAUGE, "When the baseline was measured, Unix time.", _LABELS
)
JUDGES = MetricSpec(
    "plumbline_baseline_judges",
    Kind.GAUGE,
    "Whether the baseline may judge this node (1) or is shown only (0), as another site's hardware is by default.",
    _LABELS,
)
MISSING = MetricSpec(
    "plumbline_baseline_missing",
    Kind.GAUGE,
    "Whether what a probe measures has no baseline that may judge it (1); nothing is compared then.",
    ("probe", "layer", "device_class", "workload", "operation"),
)

SPECS: tuple[MetricSpec, ...] = (LATENCY, IOPS, THROUGHPUT, TOLERANCE, MEASURED, JUDGES, MISSING)


def samples(selection: Selection) -> Iterator[Sample]:
    """What a node exports of its baselines: comparable ones only, so that a fleet does not carry the whole book."""
    for one in selection.comparable:
        yield from _entry_samples(one)
    for verdict in selection.verdicts:
        target = verdict.target
        labels = (target.probe, target.layer, target.device_class, target.workload, target.operation)
        yield MISSING, labels, 1.0 if verdict.in_force is None else 0.0


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
    for spec, value in (
        (IOPS, entry.iops),
        (THROUGHPUT, entry.throughput),
        (TOLERANCE, entry.tolerance_ratio),
        (MEASURED, entry.measured),
    ):
        if value is not None:
            yield spec, labels, value
    yield JUDGES, labels, 1.0 if one.judges else 0.0
