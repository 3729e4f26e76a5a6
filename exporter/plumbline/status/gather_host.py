"""The status page's rows about the host: disks, OSDs and network, from one collection and one some minutes earlier."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from plumbline.collectors import disk, latency, nic, osd, softnet
from plumbline.core.histogram import HistogramValue
from plumbline.metrics.snapshot import Snapshot
from plumbline.metrics.spec import MetricSpec
from plumbline.probes.histogram import quantile
from plumbline.status.model import DiskRow, Loss, NicRow, OsdRow, SoftnetRow, Times
from plumbline.status.recent import Earlier, histograms, values

Totals = Mapping[tuple[str, ...], float]


def disk_rows(snapshot: Snapshot, earlier: Earlier | None) -> Iterator[DiskRow]:
    """Disks by name."""
    families = snapshot.families
    io, seconds = values(families, disk.IO), values(families, disk.IO_SECONDS)
    queue, sizes = values(families, disk.QUEUE_LENGTH), values(families, disk.SIZE)
    info = _infos(snapshot, disk.INFO)
    times = _times(snapshot, earlier, latency.LATENCY)
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
            times=tuple(times.get(device, ())),
        )


def osd_rows(snapshot: Snapshot, earlier: Earlier | None, disks: Iterable[DiskRow]) -> Iterator[OsdRow]:
    """OSDs by number."""
    families = snapshot.families
    times = _times(snapshot, earlier, osd.LATENCY)
    waiting = values(families, osd.BLOCKED)
    blocked, slow = _by_daemon(waiting), _by_daemon(values(families, osd.SLOW))
    age, pings = values(families, osd.BLOCKED_AGE), values(families, osd.HEARTBEAT)
    peers = values(families, osd.HEARTBEAT_WORST)
    on: dict[str, list[str]] = defaultdict(list)
    for row in disks:
        for daemon in filter(None, row.osd.split(",")):
            on[daemon].append(row.device)
    up = {daemon: value for (daemon,), value in values(families, osd.UP).items()}
    worst_of: dict[str, tuple[float, str]] = {}
    for (daemon, interface, statistic), seconds in pings.items():
        if statistic == "worst":
            worst_of[daemon] = max(worst_of.get(daemon, (seconds, interface)), (seconds, interface))
    for daemon in sorted(up, key=_number):
        worst = worst_of.get(daemon)
        peer = peers.get((daemon, worst[1])) if worst else None
        yield OsdRow(
            daemon=daemon,
            up=bool(up[daemon]),
            disks=tuple(on[daemon]),
            times=tuple(times.get(daemon, ())),
            blocked=_whole(blocked.get(daemon)),
            blocked_age_s=age.get((daemon,)),
            slow=_whole(slow.get(daemon)),
            ping_worst_s=worst[0] if worst else None,
            ping_peer=f"osd.{peer:.0f}" if peer is not None else "",
            blocked_stage=_most_of(waiting, daemon),
        )


def nic_rows(snapshot: Snapshot, earlier: Earlier | None) -> Iterator[NicRow]:
    """Network devices by name."""
    families = snapshot.families
    losses: dict[str, list[Loss]] = defaultdict(list)
    for what, spec in (("drops", nic.DROPS), ("errors", nic.ERRORS)):
        now = values(families, spec)
        grown = earlier.grown(spec, now) if earlier else None
        for labels, total in now.items():
            device, direction, cause = labels
            if total:
                grew = None if grown is None else int(grown[labels])
                losses[device].append(Loss(what, direction, cause, int(total), grew))
    info = _infos(snapshot, nic.INFO)
    up, speed, mtu = (values(families, spec) for spec in (nic.UP, nic.SPEED, nic.MTU))
    ring, ring_max = values(families, nic.RING_ENTRIES), values(families, nic.RING_MAX_ENTRIES)
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


def softnet_row(snapshot: Snapshot, earlier: Earlier | None) -> SoftnetRow | None:
    """The sum over all CPUs; ``None`` without softnet data."""
    specs = (softnet.PROCESSED, softnet.DROPPED, softnet.TIME_SQUEEZE)
    processed, dropped, squeezed = (values(snapshot.families, spec) for spec in specs)
    if not processed:
        return None
    return SoftnetRow(
        cpus=len(processed),
        processed=_sum(processed),
        dropped=_sum(dropped),
        time_squeeze=_sum(squeezed),
        dropped_grew=_grown_sum(earlier, softnet.DROPPED, dropped),
        time_squeeze_grew=_grown_sum(earlier, softnet.TIME_SQUEEZE, squeezed),
    )


def _infos(snapshot: Snapshot, spec: MetricSpec) -> dict[str, dict[str, str]]:
    """The labels of an info metric, by its first label."""
    return {labels[0]: dict(zip(spec.labels, labels, strict=True)) for labels in values(snapshot.families, spec)}


def _times(snapshot: Snapshot, earlier: Earlier | None, spec: MetricSpec) -> dict[str, list[Times]]:
    """For histograms by (device or daemon, operation): what happened since ``earlier``; empty without it."""
    found: dict[str, list[Times]] = defaultdict(list)
    if earlier is not None:
        for (name, operation), since in earlier.times(spec, histograms(snapshot.families, spec)).items():
            found[name].append(Times(operation, since.count, _quantile(since, 0.5), _quantile(since, 0.99)))
    return found


def _quantile(since: HistogramValue, q: float) -> float | None:
    return quantile(since, q) if since.count else None


def _by_daemon(totals: Totals) -> dict[str, float]:
    """Sums over stages."""
    found: dict[str, float] = {}
    for (daemon, _stage), count in totals.items():
        found[daemon] = found.get(daemon, 0.0) + count
    return found


def _most_of(waiting: Totals, daemon: str) -> str:
    """The stage in which most operations wait; empty if none waits."""
    stages = {stage: count for (name, stage), count in waiting.items() if name == daemon and count}
    return max(stages, key=lambda stage: stages[stage], default="")


def _number(daemon: str) -> tuple[int, str]:
    number = daemon.rpartition(".")[2]
    return (int(number) if number.isdecimal() else 0, daemon)


def _sum(totals: Totals) -> int:
    return int(sum(totals.values()))


def _grown_sum(earlier: Earlier | None, spec: MetricSpec, now: Totals) -> int | None:
    grown = earlier.grown(spec, now) if earlier else None
    return None if grown is None else _sum(grown)


def _mean(seconds: Totals, io: Totals, labels: tuple[str, ...]) -> float | None:
    count = io.get(labels)
    return seconds[labels] / count if count and labels in seconds else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
