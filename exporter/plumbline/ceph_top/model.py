"""Which OSDs are slow, where their operations spend the time, and the suspected cause: ``plumbline ceph top``.

No I/O: the input is two readings of the admin sockets, or series of Prometheus; both give the same rows, also as JSON.
The times of an operation, all means over the interval::

    mean = queue + store + peers + the rest (work of the OSD's own threads)

``queue`` is total − process. For a write, process − prepare is the wait for all commits. The part of it up to the mean
time of a transaction in this OSD's own store is ``store``; the remainder was spent on replicas and the network between
(``peers``). For a read, ``store`` is the store's own mean, and process − prepare is the wait for other OSDs' shards.
The kind with the most operations is broken down. The latency covers all kinds of operations together.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf

import msgspec

from plumbline.core.histogram import added, difference
from plumbline.probes.run.histogram import quantile
from plumbline.sources.ceph.osd_connections import OsdConnections
from plumbline.sources.ceph.osd_perf import READ, LongRunAverage, OperationStages
from plumbline.sources.ceph.osds import OsdReading, OsdState

HUNG, ENDED, BLOCKED = "hung", "ended", "blocked"
"""States that are observed, not judged. The other words are the alerts' verdicts: disk, host, limit, peer, network,
queue."""


class Suspicion(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, the figures that led to it, and its source: ``sockets`` or ``prometheus``."""

    word: str
    reason: str
    source: str


class OsdPerformance(msgspec.Struct, frozen=True, kw_only=True):
    """One OSD over the interval; times in seconds. ``null``: not reported, or nothing happened that has a time."""

    daemon: str
    host: str = ""
    device_class: str = ""
    answers: bool | None = None  # Whether it answers on its admin socket
    operations_per_s: float | None = None
    operations: float | None = None  # Operations in the interval, on which the mean is based
    mean_s: float | None = None
    p50_s: float | None = None
    p99_s: float | None = None
    split_of: str = ""  # The kind of operation to which the next four fields apply
    split_mean_s: float | None = None
    queue_s: float | None = None
    store_s: float | None = None
    peers_s: float | None = None
    commit_s: float | None = None  # Mean time of a transaction in the store, including those of replicas and recovery
    device_s: float | None = None  # The part of commit_s spent waiting for data on the device
    replica_s: float | None = None  # Mean time for a write that it receives as a replica
    heartbeat_worst_s: float | None = None
    heartbeat_median_s: float | None = None
    heartbeat_peer: str = ""
    heartbeat_interface: str = ""
    rtt_worst_s: float | None = None  # TCP round trip of its worst connection to an OSD, without the deviation
    rtt_median_s: float | None = None
    rtt_peer: str = ""  # At the other end of the worst: ``osd.3``, or its address
    retransmits_per_s: float | None = None
    retransmits_peer: str = ""
    blocked: int | None = None
    blocked_stage: str = ""  # The stage in which most of them wait
    blocked_age_s: float | None = None
    suspicion: Suspicion | None = None


class Top(msgspec.Struct, frozen=True, kw_only=True):
    """One screen, slowest OSD first."""

    interval_s: float
    sources: tuple[str, ...]
    osds: tuple[OsdPerformance, ...]
    notes: tuple[str, ...] = ()  # What could not be read, and verdicts on OSDs that are not shown


def between(
    before: Sequence[OsdReading],
    after: Sequence[OsdReading],
    *,
    interval_s: float,
    host: str = "",
    classes: Mapping[str, str] | None = None,
) -> tuple[OsdPerformance, ...]:
    """What happened between two readings. An OSD that started in between, or that was missing in one, has no times."""
    earlier = {osd.daemon: osd for osd in before if osd.state is OsdState.ANSWERS}
    return tuple(_row(earlier.get(osd.daemon), osd, interval_s, host, (classes or {})) for osd in after)


def with_connections(
    osds: Iterable[OsdPerformance],
    before: Sequence[OsdConnections],
    after: Sequence[OsdConnections],
    *,
    interval_s: float,
) -> tuple[OsdPerformance, ...]:
    """The rows with what two readings say of their connections."""
    earlier, now = ({osd.daemon: osd for osd in reading} for reading in (before, after))
    return tuple(
        osd if (last := now.get(osd.daemon)) is None else _connected(osd, earlier.get(osd.daemon), last, interval_s)
        for osd in osds
    )


def _connected(
    osd: OsdPerformance, before: OsdConnections | None, after: OsdConnections, interval_s: float
) -> OsdPerformance:
    lost = None if before is None or interval_s <= 0 else max(after.retransmits - before.retransmits, 0) / interval_s
    return msgspec.structs.replace(
        osd,
        rtt_worst_s=without_deviation(after.worst_s, after.worst_deviation_s),
        rtt_median_s=without_deviation(after.median_s, after.median_deviation_s),
        rtt_peer=str(after.worst or ""),
        retransmits_per_s=lost,
        retransmits_peer=str(after.losing or ""),
    )


def without_deviation(rtt_s: float | None, deviation_s: float | None) -> float | None:
    """As ``plumbline:osd_connection_rtt:seconds``."""
    return None if rtt_s is None or deviation_s is None else max(rtt_s - deviation_s, 0.0)


def slowest_first(osds: Iterable[OsdPerformance]) -> tuple[OsdPerformance, ...]:
    """OSDs that hang, have ended or have blocked operations first, then by p99, then by the mean; idle ones last."""

    def slow(osd: OsdPerformance) -> tuple[int, float, float, int]:
        seen = (osd.suspicion.word if osd.suspicion else "") in (HUNG, ENDED, BLOCKED)
        number = osd.daemon.rpartition(".")[2]
        return (
            0 if seen else 1,
            -(osd.p99_s if osd.p99_s is not None else -inf),
            -(osd.mean_s if osd.mean_s is not None else -inf),
            int(number) if number.isdigit() else 0,
        )

    return tuple(sorted(osds, key=slow))


def _row(
    before: OsdReading | None, after: OsdReading, interval_s: float, host: str, classes: Mapping[str, str]
) -> OsdPerformance:
    known = {"daemon": after.daemon, "host": host, "device_class": classes.get(after.daemon, "")}
    if after.state is not OsdState.ANSWERS:
        word = ENDED if after.state is OsdState.ENDED else HUNG
        suspicion = Suspicion(word=word, reason=after.why, source="sockets")
        return OsdPerformance(**known, answers=False, suspicion=suspicion)  # type: ignore[arg-type]
    worst = max(after.heartbeats, key=lambda heartbeat: heartbeat.worst_s, default=None)
    stage = ""
    if after.blocked is not None and (most := max(after.blocked.by_stage.values(), default=0)):
        stage = next(name for name, count in after.blocked.by_stage.items() if count == most)
    row = OsdPerformance(
        **known,  # type: ignore[arg-type]
        answers=True,
        heartbeat_worst_s=worst.worst_s if worst else None,
        heartbeat_median_s=worst.median_s if worst else None,
        heartbeat_peer=f"osd.{worst.worst_peer}" if worst else "",
        heartbeat_interface=worst.interface if worst else "",
        blocked=None if after.blocked is None else sum(after.blocked.by_stage.values()),
        blocked_stage=stage,
        blocked_age_s=after.blocked.oldest_s if after.blocked else None,
    )
    return row if before is None or interval_s <= 0 else _with_times(row, before, after, interval_s)


def _with_times(row: OsdPerformance, before: OsdReading, after: OsdReading, interval_s: float) -> OsdPerformance:
    first, last = before.stages, after.stages
    if first is None or last is None:
        return row
    kinds = {
        name: done
        for name, stages in last.operations.items()
        if name in first.operations and (done := _done(first.operations[name], stages)) is not None
    }
    if len(kinds) < len(last.operations):
        return row  # restarted: its counters begin again
    operations = sum(kind.total.avgcount for kind in kinds.values())
    latencies = [
        difference(before.latencies[name], histogram)
        for name, histogram in after.latencies.items()
        if name in before.latencies
    ]
    counted = [latency for latency in latencies if latency is not None]
    together = added(counted) if counted else None
    commit, device, replica = (
        _mean(_since(getattr(first, name), getattr(last, name))) for name in ("commit", "device", "replica_writes")
    )
    split = max(kinds, key=lambda name: kinds[name].total.avgcount, default="")
    queue, store, peers = (
        _split(split, kinds[split], _mean(_since(first.store_read, last.store_read)) if split == READ else commit)
        if operations
        else (None, None, None)
    )
    return msgspec.structs.replace(
        row,
        operations_per_s=operations / interval_s,
        operations=operations,
        mean_s=sum(kind.total.sum for kind in kinds.values()) / operations if operations else None,
        p50_s=together and quantile(together, 0.5),
        p99_s=together and quantile(together, 0.99),
        split_of=split if operations else "",
        split_mean_s=_mean(kinds[split].total) if operations else None,
        queue_s=queue,
        store_s=store,
        peers_s=peers,
        commit_s=commit,
        device_s=device,
        replica_s=replica,
    )


def _split(kind: str, done: OperationStages, in_store: float | None) -> tuple[float | None, float | None, float | None]:
    total, process, prepare = _mean(done.total), _mean(done.process), _mean(done.prepare)
    if total is None or process is None or prepare is None:
        return None, None, None
    return parts(kind, queue=total - process, process=process, waits=process - prepare, in_store=in_store)


def parts(
    kind: str, *, queue: float, process: float, waits: float, in_store: float | None
) -> tuple[float, float | None, float | None]:
    """Queue, store and peers of one operation; ``waits`` is process − prepare, ``in_store`` the store's own mean. The
    counters are not read at the same instant, so differences are limited to 0 from below. ``peers`` of a write is
    ``None`` if the store's part of the wait is unknown."""
    queue, waits = max(queue, 0.0), max(waits, 0.0)
    if kind == READ:
        return queue, None if in_store is None else min(in_store, max(process, 0.0)), waits
    if in_store is None:
        return queue, None, None
    return queue, min(in_store, waits), max(waits - in_store, 0.0)


def _done(before: OperationStages, after: OperationStages) -> OperationStages | None:
    total, process, prepare = (
        _since(getattr(before, name), getattr(after, name)) for name in ("total", "process", "prepare")
    )
    if total is None or process is None or prepare is None:
        return None
    return OperationStages(total, process, prepare)


def _since(before: LongRunAverage | None, after: LongRunAverage | None) -> LongRunAverage | None:
    """``None`` if the counter went back, because the daemon restarted or somebody reset it."""
    if before is None or after is None or after.avgcount < before.avgcount or after.sum < before.sum:
        return None
    return LongRunAverage(after.avgcount - before.avgcount, after.sum - before.sum)


def _mean(counter: LongRunAverage | None) -> float | None:
    return counter.sum / counter.avgcount if counter is not None and counter.avgcount else None
