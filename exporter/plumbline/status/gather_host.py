"""The status page's rows about the host: disks, OSDs and network, from the typed readings of one collection and the
counters of one some minutes earlier."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from plumbline.collectors.disk import in_flight
from plumbline.core.histogram import HistogramValue
from plumbline.metrics.snapshot import Readings
from plumbline.probes.run.histogram import quantile
from plumbline.sources.ceph.osds import OsdsReading, OsdState
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.disk.diskstats import DiskStatsReading
from plumbline.sources.kernel.squeeze import SoftnetReading
from plumbline.sources.net.network import LinksReading, LossesReading, RingsReading
from plumbline.status.model import DiskRow, Loss, NicRow, OsdRow, SoftnetRow, Times
from plumbline.status.recent import Counters, Histograms, grown, since


def disk_rows(readings: Readings, now: Counters, earlier: Counters | None) -> Iterator[DiskRow]:
    counted = {stats.name: stats for stats in readings.or_empty(DiskStatsReading)}
    blocks, osds = readings.or_empty(DevicesReading)
    devices = {block.name: block for block in blocks}
    times = _times(now.disk_times, earlier.disk_times if earlier else None)
    for name in sorted(counted.keys() | devices.keys()):
        device, stats = devices.get(name), counted.get(name)
        yield DiskRow(
            device=name,
            model=(device.model if device else None) or "",
            device_class=(device.device_class if device else None) or "",
            size_bytes=device.size_bytes if device else None,
            reads=stats.reads if stats else None,
            writes=stats.writes if stats else None,
            read_mean_s=stats.reading_ms / 1000 / stats.reads if stats and stats.reads else None,
            write_mean_s=stats.writing_ms / 1000 / stats.writes if stats and stats.writes else None,
            in_flight=in_flight(stats) if stats else None,
            osd=osds.get(name, "") if device else "",
            times=tuple(times.get(name, ())),
            transport=(device.transport if device else None) or "",
        )


def osd_rows(readings: Readings, now: Counters, earlier: Counters | None, disks: Iterable[DiskRow]) -> Iterator[OsdRow]:
    """OSDs by number; without those that may not be queried."""
    times = _times(now.osd_times, earlier.osd_times if earlier else None)
    disks_of: dict[str, list[str]] = defaultdict(list)
    for row in disks:
        for daemon in row.osds:
            disks_of[daemon].append(row.device)
    for reading in sorted(readings.or_empty(OsdsReading).osds, key=lambda osd: _number(osd.daemon)):
        if reading.state is OsdState.UNKNOWN:
            continue
        waiting = reading.blocked.by_stage if reading.blocked else {}
        worst = max(reading.heartbeats, key=lambda heartbeat: (heartbeat.worst_s, heartbeat.interface), default=None)
        yield OsdRow(
            daemon=reading.daemon,
            answer=reading.state,
            disks=tuple(disks_of[reading.daemon]),
            times=tuple(times.get(reading.daemon, ())),
            blocked=sum(waiting.values()) if reading.blocked else None,
            blocked_age_s=reading.blocked.oldest_s if reading.blocked else None,
            slow=None if reading.slow is None else len(reading.slow),
            ping_worst_s=worst.worst_s if worst else None,
            ping_peer=f"osd.{worst.worst_peer}" if worst else "",
            blocked_stage=max(waiting, key=lambda stage: waiting[stage]) if any(waiting.values()) else "",
        )


def nic_rows(readings: Readings, now: Counters, earlier: Counters | None) -> Iterator[NicRow]:
    losses: dict[str, list[Loss]] = defaultdict(list)
    packets = grown(earlier.packets if earlier else {}, now.packets) or {}
    for what, totals, before in (
        ("drops", now.drops, earlier.drops if earlier else {}),
        ("errors", now.errors, earlier.errors if earlier else {}),
    ):
        growth = grown(before, totals)
        for key, total in totals.items():
            if total:
                device, direction, cause = key
                more = growth[key] if growth else None
                losses[device].append(Loss(what, direction, cause, total, more, packets.get((device, direction))))
    reading = readings.or_empty(LinksReading)
    links = {link.name: link for link in reading.links}
    speeds = reading.speeds_mbps
    ports = {port.device: port for port in readings.or_empty(LossesReading)}
    rings = dict(readings.or_empty(RingsReading))
    for name in sorted(links.keys() | ports.keys()):
        link, ring = links.get(name), rings.get(name)
        speed = speeds.get(link.ifindex) if link else None
        yield NicRow(
            device=name,
            driver=ports[name].driver if name in ports else "",
            up=link.up if link else None,
            speed_bytes_per_second=None if speed is None else speed * 125_000,
            mtu_bytes=link.mtu_bytes if link else None,
            rx_ring=(ring.rx, ring.rx_max) if ring and ring.rx is not None and ring.rx_max is not None else None,
            losses=tuple(losses[name]),
        )


def softnet_row(readings: Readings, now: Counters, earlier: Counters | None) -> SoftnetRow | None:
    """The sum over all CPUs; ``None`` without softnet data."""
    reading = readings.get(SoftnetReading)
    if reading is None:
        return None
    dropped = grown(earlier.softnet_dropped, now.softnet_dropped) if earlier else None
    squeezes = grown(earlier.time_squeezes, now.time_squeezes) if earlier else None
    return SoftnetRow(
        cpus=len(reading.cpus),
        processed=sum(cpu.processed for cpu in reading.cpus),
        dropped=sum(now.softnet_dropped.values()),
        time_squeeze=sum(now.time_squeezes.values()),
        dropped_grew=None if dropped is None else sum(dropped.values()),
        time_squeeze_grew=None if squeezes is None else sum(squeezes.values()),
    )


def quantile_of(value: HistogramValue | None, q: float) -> float | None:
    """The quantile in seconds; ``None`` if nothing was counted."""
    return quantile(value, q) if value and value.count else None


def _times(now: Histograms, before: Histograms | None) -> dict[str, list[Times]]:
    """By device or daemon: the operations since ``before``; empty without it."""
    by_name: dict[str, list[Times]] = defaultdict(list)
    if before is not None:
        for (name, operation), total in now.items():
            recent = since(before.get((name, operation)), total)
            times = Times(operation, recent.count, quantile_of(recent, 0.5), quantile_of(recent, 0.99))
            by_name[name].append(times)
    return by_name


def _number(daemon: str) -> tuple[int, str]:
    number = daemon.rpartition(".")[2]
    return (int(number) if number.isdecimal() else 0, daemon)
