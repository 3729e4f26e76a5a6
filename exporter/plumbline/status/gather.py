"""Gathers the status page's data: one collection, the last minutes of the canaries, the baselines in force."""

import time
from collections.abc import Container, Iterable, Iterator, Sequence

from plumbline import __version__
from plumbline.background.leases import Leases
from plumbline.baseline.book import Book, mismatched, outdated
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import Source, Target
from plumbline.baseline.selection import DEFAULT_TOLERANCE
from plumbline.collectors import probe
from plumbline.metrics.snapshot import Snapshot
from plumbline.probes.run.plan import targets_of
from plumbline.probes.run.result import OperationResult, Outcome
from plumbline.probes.run.schedule import Followed, ProbeStatus, Probing
from plumbline.probes.run.state import ProbeRecord
from plumbline.status.gather_host import disk_rows, nic_rows, osd_rows, quantile_of, softnet_row
from plumbline.status.model import Comparison, FailureRow, Measure, ProbeRow, StatusModel, Trend
from plumbline.status.recent import RecentCounters, counters_of

STUCK_AFTER_S = 5.0  # with less time in flight, a failing canary has another cause
ENDED_WITHIN_S = 60.0
"""Allowed beyond a run's timeout, as in the alert: locks and gates before the run, SIGTERM and SIGKILL after it."""


class Overview:
    """Builds the model; :meth:`remember` stores the data that "the last minutes" are computed from."""

    def __init__(self, *, host: str, started: float, recent: RecentCounters | None = None) -> None:
        self._host, self._started = host, started
        self._recent = recent or RecentCounters()

    def remember(self, snapshot: Snapshot) -> None:
        """Store one collection; the daemon calls this every minute."""
        self._recent.remember(snapshot.readings, time.monotonic())

    def model(
        self,
        snapshot: Snapshot,
        *,
        probing: Probing,
        book: Book,
        recordable: Container[str] = (),
        fingerprint: Fingerprint = Fingerprint(),  # noqa: B008  (frozen)
        reported: Sequence[ProbeStatus] = (),
    ) -> StatusModel:
        """Everything on the page, as of now, but what only the daemon knows of itself. Callable from any thread,
        because it changes no state. ``recordable``: names of the probes for which a recording writes a baseline;
        ``fingerprint``: this node's current environment; ``reported``: probes that other processes run."""
        now = time.time()
        readings = snapshot.readings
        counters = counters_of(readings)
        age_s, earlier = self._recent.oldest(time.monotonic()) or (None, None)
        disks = tuple(disk_rows(readings, counters, earlier))
        own = [(probing.status(entry), probing.next_start(entry)) for entry in probing.periodic()]
        periodic = [*own, *((report, None) for report in reported)]
        return StatusModel(
            host=self._host,
            version=__version__,
            now_ts=now,
            started_ts=self._started,
            maintenance=tuple(lease.text for lease in readings.or_empty(Leases).in_force(now)),
            window_s=age_s,
            probes=(
                *(row for followed in probing.followed() for row in _canary_rows(followed, book, recordable, now)),
                *(row for pair, next_s in periodic for row in _periodic_rows(pair, next_s, book, recordable, now)),
            ),
            standing=(*mismatched(book.selection), *outdated(book.measured_on, fingerprint)),
            failures=tuple(_failures([pair.record for pair, _ in periodic], now)),
            osds=tuple(osd_rows(readings, counters, earlier, disks)),
            disks=disks,
            nics=tuple(nic_rows(readings, counters, earlier)),
            softnet=softnet_row(readings, counters, earlier),
            collectors=snapshot.collectors,
        )


_MEASURES = {"throughput": Measure.THROUGHPUT, "iops": Measure.IOPS}


class _Accepted:
    """The baseline shown beside a target's figures, if any. Figures: ``p50``, ``p99``, ``throughput``, ``iops``."""

    def __init__(self, book: Book, target: Target) -> None:
        self._entry = book.shown(target)
        self.judges = book.in_force(target) is not None

    @property
    def source(self) -> str:
        """``measured here``, ``documented: unnoba-2020``, ``class: hdd; none recorded here``; empty: no baseline."""
        if self._entry is None:
            return ""
        if self._entry.source is Source.MEASURED:
            return "measured here"
        own = "; none recorded here" if self._entry.source is Source.CLASS else ""
        return f"{self._entry.source}: {self._entry.profile}{own}"

    def compared(self, figure: str, measured: float | None) -> Comparison:
        return Comparison(measured, self._value(figure), self._tolerance, _MEASURES.get(figure, Measure.LATENCY))

    def rate(self, measured: OperationResult) -> Comparison | None:
        """Throughput, else IOPS; ``None`` if the probe measures neither."""
        rates = {"throughput": measured.throughput, "iops": measured.iops}
        return next((self.compared(name, value) for name, value in rates.items() if value is not None), None)

    def trend(self, figure: str, over: str, values: tuple[float | None, ...]) -> Trend | None:
        """The trend of a figure; ``None`` with fewer than two values."""
        if sum(value is not None for value in values) < 2:
            return None
        return Trend(f"{figure}, last {over}", values, self._value(figure), _MEASURES.get(figure, Measure.LATENCY))

    def _value(self, figure: str) -> float | None:
        if self._entry is None:
            return None
        rates = {"throughput": self._entry.throughput, "iops": self._entry.iops}
        return rates[figure] if figure in rates else self._entry.latency.get(figure)

    @property
    def _tolerance(self) -> float | None:
        """The baseline's tolerance; if it judges without stating one, the default of the alerts."""
        if self._entry is None:
            return None
        return DEFAULT_TOLERANCE if self.judges and self._entry.tolerance_ratio is None else self._entry.tolerance_ratio


def _canary_rows(followed: Followed, book: Book, recordable: Container[str], now: float) -> Iterator[ProbeRow]:
    reading = followed.canary.read()
    for workload in reading.workloads:
        target = Target(
            reading.probe,
            workload.layer,
            reading.device_class,
            workload.workload,
            workload.operation,
            workload.config_hash,
        )
        accepted, recent, medians = _Accepted(book, target), followed.recent(workload), followed.medians(workload)
        yield ProbeRow(
            probe=reading.probe,
            canary=True,
            layer=workload.layer,
            device_class=reading.device_class,
            workload=workload.workload,
            operation=workload.operation,
            success=reading.success,
            age_s=max(0.0, now - workload.last_completion_ts) if workload.last_completion_ts else None,
            p50=accepted.compared("p50", quantile_of(recent, 0.5)),
            p99=accepted.compared("p99", quantile_of(recent, 0.99)),
            trend=accepted.trend("p50", f"{len(medians)} min", medians),
            baseline=accepted.source,
            judges=accepted.judges,
            documented=book.documented(target),
            message=reading.message,
            recordable=reading.probe in recordable,
            stuck_s=workload.in_flight_s if reading.success is False and workload.in_flight_s > STUCK_AFTER_S else None,
        )


def _periodic_rows(
    status: ProbeStatus, next_s: float | None, book: Book, recordable: Container[str], now: float
) -> Iterator[ProbeRow]:
    record, identity = status.record, status.identity
    # a run with other parameters was another experiment
    last, good = (
        result if result is not None and result.config_hash == identity.config_hash else None
        for result in (record.result, record.success)
    )
    figures = {operation.operation: operation for operation in good.operations} if good else {}
    in_flight_s, timeout_s = status.in_flight_s or 0.0, status.timeout_s or 0.0
    for operation, target in zip(identity.operations, targets_of(identity), strict=True):
        accepted, measured = _Accepted(book, target), figures.get(operation, OperationResult(operation=operation))
        history = record.history.get(operation, ()) if good else ()
        yield ProbeRow(
            probe=identity.probe,
            layer=identity.layer,
            device_class=identity.device_class,
            workload=identity.workload,
            operation=operation,
            success=None if last is None else last.outcome is Outcome.SUCCESS,
            age_s=max(0.0, now - last.finished) if last else None,
            p50=accepted.compared("p50", measured.latency.get("p50")),
            p99=accepted.compared("p99", measured.latency.get("p99")),
            rate=accepted.rate(measured),
            trend=accepted.trend(measured.leading[0], f"{len(history)} runs", history) if measured.leading else None,
            baseline=accepted.source,
            judges=accepted.judges,
            documented=book.documented(target),
            message=record.last_skip or (last.message if last else ""),
            last_skip=record.last_skip,
            overdue=bool(good and now - good.finished > probe.STALE_AFTER_INTERVALS * status.interval_s),
            stuck_s=in_flight_s if in_flight_s > timeout_s + ENDED_WITHIN_S else None,
            next_s=next_s,
            skipped=record.skipped,
            recordable=identity.probe in recordable,
        )


def _failures(records: Iterable[ProbeRecord], now: float) -> list[FailureRow]:
    failed = [
        FailureRow(
            failure.probe, failure.outcome.value, max(0.0, now - failure.finished), failure.duration, failure.message
        )
        for record in records
        for failure in record.failures
    ]
    return sorted(failed, key=lambda row: row.age_s)
