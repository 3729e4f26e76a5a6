"""Samples of the periodic probes, and those they share with the canary: when, how often, how it went."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, counter, declared, gauge, histogram, known
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.schedule import ProbeStatus
from plumbline.probes.run.state import RECENT_RUNS

_PLACE = ("probe", "layer", "device_class", "workload", "operation")

SUCCESS = gauge("plumbline_probe_success", "Whether the latest run succeeded (absent before the first).", ("probe",))
LAST_RUN = gauge("plumbline_probe_last_run_timestamp_seconds", "When the latest run finished.", ("probe",))
LAST_SUCCESS = gauge("plumbline_probe_last_success_timestamp_seconds", "When the latest success finished.", ("probe",))
DURATION = gauge("plumbline_probe_duration_seconds", "How long the commands of the latest run took.", ("probe",))
IN_FLIGHT = gauge("plumbline_probe_in_flight_seconds", "Age of the current run or operation; 0 when idle.", ("probe",))
INTERVAL = gauge("plumbline_probe_interval_seconds", "Time between the starts of a periodic probe.", ("probe",))
TIMEOUT = gauge("plumbline_probe_timeout_seconds", "How long a run of a periodic probe may take.", ("probe",))
RUNS = counter("plumbline_probe_runs_total", "Finished runs of a periodic probe by result.", ("probe", "result"))
SKIPPED = counter("plumbline_probe_runs_skipped_total", "Skipped runs by reason.", ("probe", "reason"))
INFO = gauge(
    "plumbline_probe_info",
    "The probe and its vantage: host, vm, container; always 1. Only figures with the same config_hash are comparable.",
    ("probe", "probe_type", "tool", "tool_version", "layer", "device_class", "workload", "config_hash", "vantage"),
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
    "What the probe measures (OSD, disk, address, mount point; empty: a directory of its own), and through which"
    " local device; always 1.",
    ("probe", "target", "device"),
)
RETRANSMITS = gauge("plumbline_probe_retransmits", "TCP segments retransmitted in the latest successful run.", _PLACE)
LOSS = gauge("plumbline_probe_loss_ratio", "Share of unanswered packets in the latest successful run.", _PLACE)
MTU = gauge("plumbline_probe_path_mtu_bytes", "Largest packet that arrived unfragmented, with IP header.", _PLACE)

_RECENT = "median of the last three successful runs with these parameters; absent with fewer or if stale."
RECENT_LATENCY = gauge(
    "plumbline_probe_median_of_three_latency_seconds",
    f"Latency of one operation, mean or p50: {_RECENT}",
    (*_PLACE, "statistic"),
)
RECENT_IOPS = gauge("plumbline_probe_median_of_three_iops", f"Operations per second: {_RECENT}", _PLACE)
RECENT_THROUGHPUT = gauge(
    "plumbline_probe_median_of_three_throughput_bytes_per_second", f"Throughput: {_RECENT}", _PLACE
)
RECENT_LOSS = gauge(
    "plumbline_probe_median_of_three_loss_ratio", f"Share of packets without an answer: {_RECENT}", _PLACE
)

STALE_AFTER_INTERVALS = 3.0  # One missed run is a skip; after three the figures are no longer current

# What alerts judge a run by; its tail has too few operations
_JUDGED_STATISTICS = ("mean", "p50")


class ProbesReading(NamedTuple):
    statuses: tuple[ProbeStatus, ...] = ()
    now: float = 0.0  # Unix seconds


def samples(reading: ProbesReading) -> Iterator[Sample]:
    """Everything known of every probe; ``now``, in Unix seconds, decides which figures are stale."""
    for status in reading.statuses:
        identity, record = status.identity, status.record
        result, success = record.result, record.success
        tool = (identity.tool, success.tool_version if success else "")
        experiment = (identity.layer, identity.device_class, identity.workload)
        yield from state_samples(
            identity.probe,
            success=result.outcome is Outcome.SUCCESS if result else None,
            last_run_ts=result.finished if result else None,
            last_success_ts=success.finished if success else None,
            in_flight_s=status.in_flight_s or 0.0,
            skipped=record.skipped,
            info=(identity.kind, *tool, *experiment),
            config_hash=identity.config_hash,
            vantage=status.vantage,
            target=(identity.target, identity.device),
        )
        lasted = result.duration if result else None
        durations = (DURATION, lasted), (INTERVAL, status.interval_s), (TIMEOUT, status.timeout_s)
        yield from known((identity.probe,), *durations)
        for outcome in Outcome:
            yield RUNS, (identity.probe, outcome.value), record.runs.get(outcome, 0)
        if status.comparable:
            for operation, totals in record.totals.items():
                yield OPERATIONS, (identity.probe, *experiment, operation), totals.histogram()
        yield from _figures(status, reading.now)


def state_samples(
    probe: str,
    *,
    success: bool | None,
    last_run_ts: float | None,
    last_success_ts: float | None,
    in_flight_s: float,
    skipped: Mapping[str, int],
    info: tuple[str, ...],
    config_hash: str,
    vantage: str,
    target: tuple[str, str],
) -> Iterator[Sample]:
    """What canaries and periodic probes share. ``info``: kind, tool, its version, layer, device class and workload;
    ``target``: what is measured, and by which local device."""
    succeeded = None if success is None else float(success)
    times = (LAST_RUN, last_run_ts), (LAST_SUCCESS, last_success_ts), (IN_FLIGHT, in_flight_s)
    yield from known((probe,), (SUCCESS, succeeded), *times)
    for reason, count in sorted(skipped.items()):
        yield SKIPPED, (probe, reason), count
    yield INFO, (probe, *info, config_hash, vantage), 1
    if any(target):
        yield TARGET, (probe, *target), 1


def _figures(status: ProbeStatus, now: float) -> Iterator[Sample]:
    result = status.record.success
    # A result with other parameters (the configuration changed) says nothing about the probe as it is now.
    if result is None or not status.comparable:
        return
    if now - result.finished > STALE_AFTER_INTERVALS * status.interval_s:
        return
    for operation in result.operations:
        place = (result.probe, result.layer, result.device_class, result.workload, operation.operation)
        for statistic, value in operation.latency.items():
            yield LATENCY, (*place, statistic), value
        yield from known(
            place,
            (IOPS, operation.iops),
            (THROUGHPUT, operation.throughput),
            (RETRANSMITS, operation.retransmits),
            (LOSS, operation.loss_ratio),
            (MTU, operation.mtu_bytes),
        )
    yield from _medians(status.record.recent, result)


def _medians(recent: Sequence[Sequence[OperationResult]], result: ProbeResult) -> Iterator[Sample]:
    """Two of three runs are beyond a limit exactly when their median is: one bad run never counts, whatever the
    interval, and no rule has to look back further than the last scrape."""
    if len(recent) < RECENT_RUNS:
        return
    for name in dict.fromkeys(operation.operation for run in recent for operation in run):
        runs = [operation for run in recent for operation in run if operation.operation == name]
        place = (result.probe, result.layer, result.device_class, result.workload, name)
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
    measured = [figure for figure in figures if figure is not None]
    return median(measured) if len(measured) >= RECENT_RUNS else None


COLLECTOR: Collector[Host, ProbesReading] = Collector(
    "probe",
    declared(globals()),
    lambda host, _skip: host.parts.latest(ProbesReading),
    samples,
    origin="our own periodic measurements",
    sized_by=("periodic probe, each operation",),
    needs_daemon=True,
)
