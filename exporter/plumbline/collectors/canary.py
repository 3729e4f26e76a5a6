"""Samples of the canaries: latency as a growing histogram, errors, charged arrivals, and their state."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import plumbline
from plumbline.collectors import probe
from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, counter, declared, gauge, histogram, le_text
from plumbline.probes.canary.reading import CanaryReading, WorkloadReading

_PLACE = ("probe", "layer", "device_class", "workload", "operation")

LATENCY = histogram(
    "plumbline_canary_latency_seconds",
    "Latency of single operations at Poisson-distributed moments, charged arrivals included, failed ones not.",
    _PLACE,
)
ERRORS = counter(
    "plumbline_canary_errors_total",
    "Failed operations by errno; short: fewer bytes than asked for.",
    ("probe", "operation", "error"),
)
CHARGED = counter(
    "plumbline_canary_charged_total",
    "Arrivals that met a running operation: not executed, but charged the time it still took.",
    ("probe", "operation"),
)
SLOW = counter(
    "plumbline_canary_slow_operations_total",
    "Of the operations in the histogram, those above the baseline's bound, which is a bucket's le: so rules need not"
    " read every bucket to find one. Absent without a baseline in force.",
    (*_PLACE, "bound"),
)
WORKLOAD = gauge(
    "plumbline_canary_workload_info",
    "1; what the canary runs. Only figures with the same config_hash are comparable.",
    (*_PLACE, "config_hash"),
)

_OF_PROBES = (
    probe.SUCCESS,
    probe.LAST_RUN,
    probe.LAST_SUCCESS,
    probe.IN_FLIGHT,
    probe.SKIPPED,
    probe.INFO,
    probe.TARGET,
)
SPECS = (*_OF_PROBES, *declared(globals()))


def samples(readings: Iterable[CanaryReading], *, vantage: str = "") -> Iterator[Sample]:
    """Everything known of every canary. Every counter exists from the first scrape on, from 0."""
    for reading in readings:
        yield from _state(reading, vantage)
        for each in reading.workloads:
            yield from _workload(reading, each)


def _state(reading: CanaryReading, vantage: str) -> Iterator[Sample]:
    name = (reading.probe,)
    if reading.success is not None:
        yield probe.SUCCESS, name, float(reading.success)
    if reading.last_completion_ts is not None:
        yield probe.LAST_RUN, name, reading.last_completion_ts
    if reading.last_success_ts is not None:
        yield probe.LAST_SUCCESS, name, reading.last_success_ts
    yield probe.IN_FLIGHT, name, reading.in_flight_s
    for reason, count in sorted(reading.skips.items()):
        yield probe.SKIPPED, (reading.probe, reason), count
    # a canary runs several workloads: WORKLOAD has them and their hashes
    layer = reading.workloads[0].layer if reading.workloads else ""
    version = plumbline.__version__
    info = (reading.probe, reading.kind, "plumbline", version, layer, reading.device_class, "", "", vantage)
    yield probe.INFO, info, 1
    if reading.target:
        yield probe.TARGET, (reading.probe, reading.target, reading.device), 1


def _workload(reading: CanaryReading, each: WorkloadReading) -> Iterator[Sample]:
    place = (reading.probe, each.layer, reading.device_class, each.workload, each.operation)
    yield WORKLOAD, (*place, each.config_hash), 1
    yield LATENCY, place, each.latency
    yield CHARGED, (reading.probe, each.operation), each.charged
    for error, count in each.errors.items():
        yield ERRORS, (reading.probe, each.operation, error), count
    for bound in each.bounds:
        within = each.latency.cumulative[bisect_left(each.latency.edges, bound)]  # a bound is an edge
        yield SLOW, (*place, le_text(bound)), each.latency.count - within


COLLECTOR: Collector[Host, tuple[tuple[CanaryReading, ...], str]] = Collector(
    "canary",
    SPECS,
    lambda host, _skip: (tuple(host.parts.canaries()), host.parts.vantage),
    lambda reading: samples(reading[0], vantage=reading[1]),
    origin="our own single operations in a file, on a raw disk (read only) or on objects",
    sized_by=("canary, each operation",),
    needs_daemon=True,
)
