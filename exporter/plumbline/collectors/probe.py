"""Samples of the periodic probes, and those they share with the canary: when, how often, how it went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, counter, declared, gauge, histogram
from plumbline.probes.probe_status import ProbeStatus
from plumbline.probes.result import Outcome, ProbeResult
from plumbline.probes.state import RECENT_RUNS

_PLACE = ("probe", "layer", "device_class", "workload", "operation")

SUCCESS = gauge(
    "plumbline_probe_success", "Whether the probe's latest run succeeded (absent before the first).", ("probe",)
)
LAST_RUN = gauge("plumbline_probe_last_run_timestamp_seconds", "When the probe's latest run finished.", ("probe",))
LAST_SUCCESS = gauge(
    "plumbline_probe_last_success_timestamp_seconds", "When the probe's latest successful run finished.", ("probe",)
)
DURATION = gauge(
    "plumbline_probe_duration_seconds", "How long the commands of the probe's latest run took.", ("probe",)
)
IN_FLIGHT = gauge(
    "plumbline_probe_in_flight_seconds",
    "How long the run or operation under way has been going on; 0 when idle.",
    ("probe",),
)
INTERVAL = gauge("plumbline_probe_interval_seconds", "Time between the starts of a periodic probe.", ("probe",))
TIMEOUT = gauge(
    "plumbline_probe_timeout_seconds", "How long a run of a periodic probe may take before it is ended.", ("probe",)
)
RUNS = counter("plumbline_probe_runs_total", "Finished runs of a periodic probe by result.", ("probe", "result"))
SKIPPED = counter("plumbline_probe_skipped_total", "Runs that were not begun, by the reason.", ("probe", "reason"))
INFO = gauge(
    "plumbline_probe_info",
    "1; what the probe is, and where it looks from: host, vm, container. Only figures with the same config_hash"
    " are comparable.",
    ("probe", "kind", "tool", "tool_version", "layer", "device_class", "workload", "config_hash", "vantage"),
)
LATENCY = gauge(
    "plumbline_probe_latency_seconds",
    "Latency of one operation in the latest successful run; absent once older than three intervals.",
    (*_PLACE, "statistic"),
)
OPERATIONS = histogram(
    "plumbline_probe_operation_latency_seconds",
    "Latency of the operations of all successful runs with these parameters; survives restarts.",
    _PLACE,
)
IOPS = gauge(
    "plumbline_probe_iops",
    "Operations per second of the latest successful run; absent once older than three intervals.",
    _PLACE,
)
THROUGHPUT = gauge(
    "plumbline_probe_throughput_bytes_per_second",
    "Throughput of the latest successful run; absent once older than three intervals.",
    _PLACE,
)

TARGET = gauge(
    "plumbline_probe_target_info",
    "1; what the probe measures, where that is not the node itself: an OSD, a disk, an address, a mount point; and by"
    " which disk or network port of this node (empty: not known).",
    ("probe", "target", "device"),
)
RETRANSMITS = gauge("plumbline_probe_retransmits", "TCP segments sent again in the latest successful run.", _PLACE)
LOSS = gauge("plumbline_probe_loss_ratio", "Share of packets without an answer in the latest successful run.", _PLACE)
MTU = gauge(
    "plumbline_probe_path_mtu_bytes",
    "The biggest packet that reached the target unfragmented in the latest successful run, IP header included.",
    _PLACE,
)

_RECENT = "median of the last three successful runs with these parameters; absent with fewer, or once stale."
RECENT_LATENCY = gauge(
    "plumbline_probe_recent_latency_seconds",
    f"Latency of one operation, mean or p50: {_RECENT}",
    (*_PLACE, "statistic"),
)
RECENT_IOPS = gauge("plumbline_probe_recent_iops", f"Operations per second: {_RECENT}", _PLACE)
RECENT_THROUGHPUT = gauge("plumbline_probe_recent_throughput_bytes_per_second", f"Throughput: {_RECENT}", _PLACE)
RECENT_LOSS = gauge("plumbline_probe_recent_loss_ratio", f"Share of packets without an answer: {_RECENT}", _PLACE)

SPECS = declared(globals())

STALE_AFTER_INTERVALS = 3.0
"""One missed run is a skip; after three the figures are no longer current."""

# What alerts judge a run by; its tail has too few operations
_JUDGED_STATISTICS = ("mean", "p50")


def samples(statuses: Iterable[ProbeStatus], *, now: float) -> Iterator[Sample]:
    """Everything known of every probe; ``now``, in Unix seconds, decides which figures are stale."""
    for status in statuses:
        yield from _state(status)
        if status.interval_s is not None:
            yield from _periodic(status, status.interval_s)
            yield from _operations(status)
            yield from _figures(status, status.interval_s, now)


def _state(status: ProbeStatus) -> Iterator[Sample]:
    name = (status.probe,)
    if status.success is not None:
        yield SUCCESS, name, float(status.success)
    if status.last_success_ts is not None:
        yield LAST_SUCCESS, name, status.last_success_ts
    if status.result is not None:
        yield LAST_RUN, name, _finished(status.result)
        yield DURATION, name, status.result.duration
    yield IN_FLIGHT, name, status.in_flight_s or 0.0
    for reason in sorted(status.skipped):
        yield SKIPPED, (status.probe, reason), status.skipped[reason]
    yield (
        INFO,
        (
            status.probe,
            status.kind,
            status.tool,
            status.tool_version,
            status.layer,
            status.device_class,
            status.workload,
            status.config_hash,
            status.vantage,
        ),
        1,
    )
    if status.target:
        yield TARGET, (status.probe, status.target, status.device), 1


def _periodic(status: ProbeStatus, interval_s: float) -> Iterator[Sample]:
    yield INTERVAL, (status.probe,), interval_s
    if status.timeout_s is not None:
        yield TIMEOUT, (status.probe,), status.timeout_s
    for outcome in Outcome:
        yield RUNS, (status.probe, outcome.value), status.runs.get(outcome, 0)


def _operations(status: ProbeStatus) -> Iterator[Sample]:
    for operation, latency in status.operations.items():
        place = (status.probe, status.layer, status.device_class, status.workload, operation)
        yield OPERATIONS, place, latency


def _figures(status: ProbeStatus, interval_s: float, now: float) -> Iterator[Sample]:
    result = status.result
    if result is None or result.outcome is not Outcome.SUCCESS:
        result = status.good_result
    # A result with other parameters (the configuration changed) says nothing about the probe as it is now.
    if result is None or result.outcome is not Outcome.SUCCESS or result.config_hash != status.config_hash:
        return
    if now - _finished(result) > STALE_AFTER_INTERVALS * interval_s:
        return
    for operation in result.operations:
        place = (status.probe, result.layer, result.device_class, result.workload, operation.operation)
        for statistic, value in operation.latency.items():
            yield LATENCY, (*place, statistic), value
        if operation.iops is not None:
            yield IOPS, place, operation.iops
        if operation.throughput is not None:
            yield THROUGHPUT, place, operation.throughput
        if operation.retransmits is not None:
            yield RETRANSMITS, place, operation.retransmits
        if operation.loss_ratio is not None:
            yield LOSS, place, operation.loss_ratio
        if operation.mtu_bytes is not None:
            yield MTU, place, operation.mtu_bytes
    yield from _medians(status, result)


def _medians(status: ProbeStatus, result: ProbeResult) -> Iterator[Sample]:
    """Two of three runs are beyond a limit exactly when their median is: one bad run never counts, whatever the
    interval, and no rule has to look back further than the last scrape."""
    if len(status.recent) < RECENT_RUNS:
        return
    for name in dict.fromkeys(operation.operation for run in status.recent for operation in run):
        runs = [operation for run in status.recent for operation in run if operation.operation == name]
        place = (status.probe, result.layer, result.device_class, result.workload, name)
        for statistic in _JUDGED_STATISTICS:
            if (value := _median([run.latency.get(statistic) for run in runs])) is not None:
                yield RECENT_LATENCY, (*place, statistic), value
        for spec, figures in (
            (RECENT_IOPS, [run.iops for run in runs]),
            (RECENT_THROUGHPUT, [run.throughput for run in runs]),
            (RECENT_LOSS, [run.loss_ratio for run in runs]),
        ):
            if (value := _median(figures)) is not None:
                yield spec, place, value


def _median(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return median(known) if len(known) >= RECENT_RUNS else None


def _finished(result: ProbeResult) -> float:
    return result.started + result.duration


COLLECTOR: Collector[Host, tuple[tuple[ProbeStatus, ...], float]] = Collector(
    "probe",
    SPECS,
    lambda host, _skip: (tuple(host.parts.probes()), host.parts.wall()),
    lambda reading: samples(reading[0], now=reading[1]),
    origin="our own periodic measurements",
    sized_by=("periodic probe, each operation",),
    needs_daemon=True,
)
