"""Samples of the canaries: latency as a growing histogram, errors, charged arrivals, and their state."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import plumbline
from plumbline.collectors import probe
from plumbline.collectors.host import Host
from plumbline.core.histogram import Coarse
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, counter, declared, gauge, histogram, le_text
from plumbline.probes.run.reading import CanaryReading, WorkloadReading

_PLACE = ("probe", "layer", "device_class", "workload", "operation")

LATENCY = histogram(
    "plumbline_canary_latency_seconds",
    "Latency of successful operations at Poisson-distributed times, including charged arrivals.",
    _PLACE,
)
ERRORS = counter(
    "plumbline_canary_errors_total",
    "Failed operations by errno; short: short reads. S3: by class of the HTTP status, or timeout, connection, content.",
    ("probe", "operation", "error"),
)
CHARGED = counter(
    "plumbline_canary_operations_charged_total",
    "Arrivals during a running operation: not executed, but charged its remaining time.",
    ("probe", "operation"),
)
SLOW = counter(
    "plumbline_canary_slow_operations_total",
    "Operations above the baseline's bound, which is a bucket's le. Absent without a baseline in force.",
    (*_PLACE, "bound"),
)
WORKLOAD = gauge(
    "plumbline_canary_workload_info", "Always 1. Figures compare only by config_hash.", (*_PLACE, "config_hash")
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


class CanariesReading(NamedTuple):
    canaries: tuple[CanaryReading, ...] = ()
    vantage: str = ""  # the value of the label


def samples(canaries: CanariesReading) -> Iterator[Sample]:
    """Everything known of every canary. Every counter exists from the first scrape on, from 0."""
    for reading in canaries.canaries:
        # a canary runs several workloads: WORKLOAD has them and their hashes
        layer = reading.workloads[0].layer if reading.workloads else ""
        yield from probe.state_samples(
            reading.probe,
            success=reading.success,
            last_run_ts=reading.last_completion_ts,
            last_success_ts=reading.last_success_ts,
            in_flight_s=reading.in_flight_s,
            skipped=reading.skips,
            info=(reading.kind, "plumbline", plumbline.__version__, layer, reading.device_class, ""),
            config_hash="",
            vantage=canaries.vantage,
            target=(reading.target, reading.device),
        )
        for workload in reading.workloads:
            yield from _workload(reading, workload)


def _workload(reading: CanaryReading, workload: WorkloadReading) -> Iterator[Sample]:
    place = (reading.probe, workload.layer, reading.device_class, workload.workload, workload.operation)
    yield WORKLOAD, (*place, workload.config_hash), 1
    yield LATENCY, place, replace(workload.latency, coarse=_coarse(workload.latency.edges, workload.bounds))
    yield CHARGED, (reading.probe, workload.operation), workload.charged
    for error, count in workload.errors.items():
        yield ERRORS, (reading.probe, workload.operation, error), count
    for bound in workload.bounds:
        within = workload.latency.cumulative[bisect_left(workload.latency.edges, bound)]  # a bound is an edge
        yield SLOW, (*place, le_text(bound)), workload.latency.count - within


@lru_cache(maxsize=256)
def _coarse(edges: tuple[float, ...], bounds: tuple[float, ...]) -> Coarse | None:
    """All edges where the baseline's figures lie and where a verdict may change: a bound is a high percentile times the
    tolerance, the median seldom less than a sixteenth of it, and the highest limit three times the baseline. Elsewhere
    every fourth. ``None``: nothing is accepted yet, so it may be anywhere."""
    if not bounds:
        return None
    fine = tuple((bound / 16, 2 * bound) for bound in bounds)
    places = {edge: index for index, edge in enumerate(edges)}
    return Coarse.of(edges, lambda edge: places[edge] % 4 == 0 or any(least <= edge <= most for least, most in fine))


COLLECTOR: Collector[Host, CanariesReading] = Collector(
    "canary",
    (*_OF_PROBES, *declared(globals())),
    lambda host, _skip: host.parts.latest(CanariesReading),
    samples,
    origin="our own single operations in a file, on a raw disk (read only), on a mount or on objects",
    sized_by=("canary, each operation",),
    needs_daemon=True,
)
