"""The status page's figures, gathered: one collection, the canaries' last minutes, the baselines in force."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

from plumbline import __version__
from plumbline.baseline import standing
from plumbline.baseline.book import Book
from plumbline.baseline.model import BaselineEntry, Source, Target
from plumbline.catalogue import HistogramValue, MetricSpec
from plumbline.checks.model import Finding
from plumbline.collectors import disk, nic, probe, softnet
from plumbline.fingerprint import Fingerprint
from plumbline.probes.canary_reading import CanaryReading
from plumbline.probes.histogram import quantile
from plumbline.probes.model import PeriodicProbe
from plumbline.probes.result import OperationResult, Outcome
from plumbline.probing import Probing, interval_s
from plumbline.snapshot import Snapshot
from plumbline.status_model import Comparison, DiskRow, FailureRow, Loss, NicRow, ProbeRow, SoftnetRow, StatusModel

STUCK_AFTER_S = 5.0  # below it a failing canary fails for another reason
ENDED_WITHIN_S = 60.0
"""Beyond a run's timeout: locks and gates before it, SIGTERM and SIGKILL after it; as the alert has it."""

Totals = Mapping[tuple[str, ...], float]


class Overview:
    """Builds the model; remembers the counters of the last look, to say what has grown since."""

    def __init__(self, *, host: str, started: float) -> None:
        self._host, self._started = host, started
        self._last: tuple[float, Snapshot] | None = None

    def model(
        self,
        snapshot: Snapshot,
        *,
        probing: Probing,
        book: Book,
        findings: tuple[Finding, ...] | None,
        waiting_for: str | None,
        config_error: str,
        recordable: Container[str] = (),
        fingerprint: Fingerprint = Fingerprint(),  # noqa: B008  (frozen)
    ) -> StatusModel:
        """Everything the page says, at this moment. Not for several threads at once.

        ``recordable``: names of the probes that a recording gives a baseline; ``fingerprint``: what this node is now.
        """
        now = time.time()
        before, self._last = self._last, (now, snapshot)
        return StatusModel(
            host=self._host,
            version=__version__,
            now_ts=now,
            started_ts=self._started,
            waiting_for=waiting_for,
            config_error=config_error,
            last_look_s=now - before[0] if before else None,
            probes=tuple(
                replace(row, recordable=row.probe in recordable)
                for row in (
                    *(row for reading in probing.readings() for row in _canary_rows(reading, probing, book, now)),
                    *(row for each in probing.periodic() for row in _periodic_rows(each, probing, book, now)),
                )
            ),
            standing=(*standing.mismatched(book.selection), *standing.outdated(book.measured_on, fingerprint)),
            failures=tuple(_failures(probing, now)),
            disks=tuple(_disks(snapshot)),
            nics=tuple(_nics(snapshot, before[1] if before else None)),
            softnet=_softnet(snapshot, before[1] if before else None),
            findings=findings,
            collectors=snapshot.collectors,
        )


def _canary_rows(reading: CanaryReading, probing: Probing, book: Book, now: float) -> Iterator[ProbeRow]:
    for each in reading.workloads:
        target = Target(
            reading.probe, each.layer, reading.device_class, each.workload, each.operation, each.config_hash
        )
        shown = book.shown(target)
        recent = probing.recent(reading.probe, each.workload, each.operation)
        lately = recent.difference(each.latency) if recent else None
        yield ProbeRow(
            probe=reading.probe,
            layer=each.layer,
            device_class=reading.device_class,
            workload=each.workload,
            operation=each.operation,
            success=reading.success,
            age_s=now - each.last_completion_ts if each.last_completion_ts else None,
            p50=_compared(_quantile(lately, 0.5), shown, "p50"),
            p99=_compared(_quantile(lately, 0.99), shown, "p99"),
            baseline=_source_text(shown),
            judges=book.in_force(target) is not None,
            message=reading.message,
            stuck_s=each.in_flight_s if reading.success is False and each.in_flight_s > STUCK_AFTER_S else None,
        )


def _periodic_rows(periodic: PeriodicProbe, probing: Probing, book: Book, now: float) -> Iterator[ProbeRow]:
    record, identity = probing.record(periodic), periodic.identity
    # what ran with other parameters was another experiment
    last, good = (
        each if each is not None and each.config_hash == identity.config_hash else None
        for each in (record.result, record.success)
    )
    last_ended = last.started + last.duration if last else None
    good_ended = good.started + good.duration if good else None
    figures = {each.operation: each for each in good.operations} if good else {}
    for operation in identity.operations:
        target = Target(
            identity.probe,
            identity.layer,
            identity.device_class,
            identity.workload,
            operation,
            identity.config_hash,
        )
        shown = book.shown(target)
        measured = figures.get(operation, OperationResult(operation=operation)).latency
        yield ProbeRow(
            probe=identity.probe,
            layer=identity.layer,
            device_class=identity.device_class,
            workload=identity.workload,
            operation=operation,
            success=None if last is None else last.outcome is Outcome.SUCCESS,
            age_s=now - last_ended if last_ended else None,
            p50=_compared(measured.get("p50"), shown, "p50"),
            p99=_compared(measured.get("p99"), shown, "p99"),
            baseline=_source_text(shown),
            judges=book.in_force(target) is not None,
            message=record.last_skip or (last.message if last else ""),
            overdue=bool(good_ended and now - good_ended > probe.STALE_AFTER_INTERVALS * interval_s(periodic)),
            stuck_s=_stuck(periodic, probing.in_flight(periodic)),
            next_s=probing.next_start(periodic),
            skipped=record.skipped,
        )


def _stuck(periodic: PeriodicProbe, in_flight_s: float | None) -> float | None:
    """How long a run has been going on that should have been ended."""
    limit = float(periodic.config.timeout) + ENDED_WITHIN_S
    return in_flight_s if in_flight_s is not None and in_flight_s > limit else None


def _failures(probing: Probing, now: float) -> list[FailureRow]:
    """The last few of each probe, the newest first."""
    failed = [
        FailureRow(each.probe, each.outcome.value, now - each.started - each.duration, each.duration, each.message)
        for periodic in probing.periodic()
        for each in probing.record(periodic).failures
    ]
    return sorted(failed, key=lambda row: row.age_s)


def _compared(measured: float | None, baseline: BaselineEntry | None, statistic: str) -> Comparison:
    if baseline is None:
        return Comparison(measured)
    return Comparison(measured, baseline.latency.get(statistic), baseline.tolerance_ratio)


def _source_text(entry: BaselineEntry | None) -> str:
    if entry is None:
        return ""
    return "measured here" if entry.source is Source.MEASURED else f"{entry.source}: {entry.profile}"


def _quantile(lately: HistogramValue | None, q: float) -> float | None:
    return quantile(lately, q) if lately and lately.count else None


def _values(snapshot: Snapshot | None, spec: MetricSpec) -> dict[tuple[str, ...], float]:
    """A family's numbers by label values; empty where the family is absent."""
    for family in snapshot.families if snapshot else ():
        if family.spec is spec:
            return {
                labels: value
                for labels, value in zip(family.labels, family.values, strict=True)
                if not isinstance(value, HistogramValue)
            }
    return {}


def _disks(snapshot: Snapshot) -> Iterator[DiskRow]:
    io, seconds = _values(snapshot, disk.IO), _values(snapshot, disk.IO_SECONDS)
    queue, sizes = _values(snapshot, disk.QUEUE_LENGTH), _values(snapshot, disk.SIZE)
    info = {labels[0]: dict(zip(disk.INFO.labels, labels, strict=True)) for labels in _values(snapshot, disk.INFO)}
    for device in sorted({name for name, _ in io} | info.keys()):
        facts = info.get(device, {})
        yield DiskRow(
            device=device,
            model=facts.get("model", ""),
            device_class=facts.get("device_class", ""),
            size_bytes=_whole(sizes.get((device,))),
            reads=_whole(io.get((device, "read"))),
            writes=_whole(io.get((device, "write"))),
            read_mean_s=_mean(seconds, io, (device, "read")),
            write_mean_s=_mean(seconds, io, (device, "write")),
            in_flight=_whole(queue.get((device,))),
            osd=facts.get("osd", ""),
        )


def _nics(snapshot: Snapshot, before: Snapshot | None) -> Iterator[NicRow]:
    losses: dict[str, list[Loss]] = defaultdict(list)
    for what, spec in (("drops", nic.DROPS), ("errors", nic.ERRORS)):
        then = _values(before, spec)
        for labels, total in _values(snapshot, spec).items():
            device, direction, cause = labels
            if total:
                losses[device].append(Loss(what, direction, cause, int(total), _grown(then, labels, total)))
    info = {labels[0]: dict(zip(nic.INFO.labels, labels, strict=True)) for labels in _values(snapshot, nic.INFO)}
    up, speed, mtu = (_values(snapshot, spec) for spec in (nic.UP, nic.SPEED, nic.MTU))
    ring, ring_max = _values(snapshot, nic.RING_ENTRIES), _values(snapshot, nic.RING_MAX_ENTRIES)
    for device in sorted({name for (name,) in up} | info.keys()):
        rx = (ring.get((device, "rx")), ring_max.get((device, "rx")))
        yield NicRow(
            device=device,
            driver=info.get(device, {}).get("driver", ""),
            up=bool(up[(device,)]) if (device,) in up else None,
            speed_bits_per_second=speed.get((device,)),
            mtu_bytes=_whole(mtu.get((device,))),
            rx_ring=(int(rx[0]), int(rx[1])) if rx[0] is not None and rx[1] is not None else None,
            losses=tuple(losses[device]),
        )


def _softnet(snapshot: Snapshot, before: Snapshot | None) -> SoftnetRow | None:
    specs = (softnet.PROCESSED, softnet.DROPPED, softnet.TIME_SQUEEZE)
    processed, dropped, squeezed = (_values(snapshot, spec) for spec in specs)
    if not processed:
        return None
    return SoftnetRow(
        cpus=len(processed),
        processed=_sum(processed),
        dropped=_sum(dropped),
        time_squeeze=_sum(squeezed),
        dropped_grew=_grown_sum(_values(before, softnet.DROPPED), dropped),
        time_squeeze_grew=_grown_sum(_values(before, softnet.TIME_SQUEEZE), squeezed),
    )


def _sum(totals: Totals) -> int:
    return int(sum(totals.values()))


def _grown(before: Totals, labels: tuple[str, ...], total: float) -> int | None:
    """How much a counter grew; a reset (driver reload) counts from 0, as Prometheus does."""
    if not before:
        return None
    then = before.get(labels, 0)
    return int(total - then if total >= then else total)


def _grown_sum(before: Totals, now: Totals) -> int | None:
    if not before:
        return None
    return sum(_grown(before, labels, total) or 0 for labels, total in now.items())


def _mean(seconds: Totals, io: Totals, labels: tuple[str, ...]) -> float | None:
    count = io.get(labels)
    return seconds[labels] / count if count and labels in seconds else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
