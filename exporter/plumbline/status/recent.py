"""The host's counters of the last minutes, for the status page: what has grown recently, not only since boot.

The daemon reads the host every minute anyway to judge it; the few counters below are kept. Memory is bounded by
:data:`LOOKS` times them: about 4 MB on a host of 60 disks and 60 OSDs, mostly histograms
(``tests/unit/status/test_recent_counters.py`` counts).
"""

from collections.abc import Mapping

from msgspec import Struct, field

from plumbline.collectors import latency, osd
from plumbline.core.histogram import HistogramValue, difference
from plumbline.metrics.snapshot import Readings
from plumbline.sources.ceph.osds import OsdsReading
from plumbline.sources.disk.blocklatency import LatencyReading
from plumbline.sources.kernel.squeeze import SoftnetReading
from plumbline.sources.net.network import LinksReading, LossesReading

LOOKS = 6  # One collection per minute: the oldest is five to six minutes old

Counts = Mapping[tuple[str, ...], int]
Histograms = Mapping[tuple[str, str], HistogramValue]


class Counters(Struct, frozen=True):
    """What one collection counted, from its typed readings; empty for a collector that read nothing."""

    drops: Counts = field(default_factory=dict)  # by device, direction and cause
    errors: Counts = field(default_factory=dict)
    packets: Counts = field(default_factory=dict)  # by device and direction
    softnet_dropped: Counts = field(default_factory=dict)  # by CPU
    time_squeezes: Counts = field(default_factory=dict)
    disk_times: Histograms = field(default_factory=dict)  # by device and operation
    osd_times: Histograms = field(default_factory=dict)  # by daemon and operation


def counters_of(readings: Readings) -> Counters:
    ports, disks = readings.or_empty(LossesReading), readings.or_empty(LatencyReading)
    cpus, osds = readings.or_empty(SoftnetReading).cpus, readings.or_empty(OsdsReading).osds
    return Counters(
        drops={(port.device, *cause): frames for port in ports for *cause, frames in port.loss.drops},
        errors={(port.device, *cause): frames for port in ports for *cause, frames in port.loss.errors},
        packets={
            (link.name, direction): packets
            for link in readings.or_empty(LinksReading).links
            if link.stats
            for direction, packets in (("receive", link.stats.rx_packets), ("transmit", link.stats.tx_packets))
        },
        softnet_dropped={(str(cpu.cpu),): cpu.dropped for cpu in cpus},
        time_squeezes={(str(cpu.cpu),): cpu.time_squeeze for cpu in cpus},
        disk_times={
            (device, operation): latency.histogram_value(times.device)
            for device, operation, times in latency.operations(disks)
        },
        osd_times={(daemon.daemon, operation): times for daemon in osds for operation, times in osd.operations(daemon)},
    )


def grown(before: Counts, now: Counts) -> dict[tuple[str, ...], int] | None:
    """How much each counter grew. As in Prometheus, one that fell was reset and counts from 0; so does a new one.
    ``None``: there were no counters before."""
    if not before:
        return None
    return {key: total - was if total >= (was := before.get(key, 0)) else total for key, total in now.items()}


def since(before: HistogramValue | None, total: HistogramValue) -> HistogramValue:
    """What was counted since ``before``; a histogram that was reset or is new counts completely."""
    counted = difference(before, total) if before is not None else None
    return total if counted is None else counted


class RecentCounters:
    """Keeps the counters of the last collections. One thread may call :meth:`remember`; any thread may read."""

    def __init__(self) -> None:
        self._looks: tuple[tuple[float, Counters], ...] = ()

    def remember(self, readings: Readings, now: float) -> None:
        """Keep a collection made at ``now``, in monotonic seconds."""
        self._looks = (*self._looks, (now, counters_of(readings)))[-LOOKS:]

    def oldest(self, now: float) -> tuple[float, Counters] | None:
        """The age in seconds of the oldest collection, and its counters; ``None`` if there is none."""
        looks = self._looks
        return (now - looks[0][0], looks[0][1]) if looks else None
