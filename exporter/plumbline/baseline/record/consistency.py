"""Checks whether a recording is plausible: a layer faster than the one below it was measured in a cache.

Each rule says why the upper figure cannot be better than the lower one. Compared figures have the same device class,
block size, queue depth and operation, according to the workloads' typed parameters; of several lower figures the
weakest bound counts. Cases that are not certain are not judged:

- RADOS reads against disk reads: the canary reads what it has just written, which the OSD may still cache. It observes
  the OSD, not the disk.
- Reads of RADOS or RBD against the network on a host with OSDs: only the primary answers a read, and it may be on this
  host. The same holds for throughput, part of which never leaves the host.
- Writes of RADOS or RBD against the disk on rotational disks: BlueStore acknowledges a small write once it is in its
  log, which is written sequentially and may be on an SSD; that is legitimate, and faster than a random write.
- Writes of a file system against the disk: an intent log (ZFS) or a server's battery-backed memory is legitimate too.
- RBD against RADOS: an overwrite creates no object, and a steady load keeps CPUs awake that a canary lets sleep.
- Objects (S3): the endpoint may belong to another cluster.
- `osd bench` of 4 KiB: the OSD combines many of them into one write.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

from msgspec import Struct, field

from plumbline.baseline.arithmetic import size_of
from plumbline.baseline.model import BaselineEntry
from plumbline.config.workloads import (
    BlockWorkload,
    OsdBench,
    Pattern,
    RadosBench,
    RadosOps,
    RbdBench,
    RoundTrip,
    Sync,
    TcpThroughput,
    Workload,
    load_catalogue,
)
from plumbline.core.units import si

# a figure may beat its bound by this factor, because the canary's buckets are 9 % wide
SLACK = 1.1
# The fastest disks make 15,000 revolutions per minute: 2 ms for half a turn, the median wait without any seek. No disk
# can reach 1 ms; a lower latency came from a cache.
HDD_READ_S = 0.001
# two disks of one class, or outer and inner tracks of one disk, differ by up to this in sequential throughput
DISKS_DIFFER = 2.0
# bytes per second: 10 Gb/s with headers; above it, a CPU limits a single TCP stream, not the link
ONE_STREAM_FILLS = 1.3e9
_FLASH = ("ssd", "nvme")


class Place(Struct, frozen=True):
    """What the rules need to know about the measuring host. ``holds_osds``: some of the cluster's data is on it, so not
    every operation uses the network. ``links``: network device → number of ports it bonds; 1 if it is not listed."""

    holds_osds: bool
    links: Mapping[str, int] = field(default_factory=dict)


class Finding(Struct, frozen=True):
    """Two figures that cannot both be true. ``what`` names them; ``figures`` states them in words."""

    what: str
    figures: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.figures}; {self.why}"


class Measured(Struct, frozen=True):
    """A set of figures with its workload; ``device`` is the network device if the layer is ``network``."""

    entry: BaselineEntry
    workload: Workload
    device: str = ""

    @property
    def name(self) -> str:
        entry = self.entry
        return f"{entry.layer} {entry.device_class} {entry.workload} {entry.operation}"

    @property
    def p50(self) -> float | None:
        return self.entry.latency.get("p50")


def with_workloads(entries: Iterable[BaselineEntry], devices: Sequence[str] = ()) -> list[Measured]:
    """The entries of a checked file with their workloads; ``devices``: the device of each entry, in the same order."""
    listed = list(entries)
    names = [*devices, *[""] * (len(listed) - len(devices))]
    return [Measured(row, load_catalogue().by_id[row.workload], name) for row, name in zip(listed, names, strict=True)]


def check(measured: Sequence[Measured], place: Place) -> list[Finding]:
    trip = _lowest(row for row in measured if isinstance(row.workload, RoundTrip))
    here = _Recording(measured, place, trip)
    rules = (
        _rotating,
        _read_below_the_disk,
        _write_below_disk_and_network,
        _read_below_the_network,
        _more_than_the_network,
        _osd_above_its_disk,
    )
    return [finding for rule in rules for row in measured if (finding := rule(row, here)) is not None]


class _Recording(Struct, frozen=True):
    """What a figure is compared with; ``trip`` is the shortest round trip of the network."""

    measured: Sequence[Measured]
    place: Place
    trip: Measured | None

    def disks(self, device_class: str) -> list[Measured]:
        return [row for row in self.measured if row.entry.layer == "disk" and row.entry.device_class == device_class]


def _rotating(measured: Measured, _: _Recording) -> Finding | None:
    load = measured.workload
    random_read = isinstance(load, BlockWorkload) and load.pattern is Pattern.RANDREAD and load.direct
    if measured.entry.device_class != "hdd" or not random_read or measured.p50 is None or measured.p50 >= HDD_READ_S:
        return None
    why = (
        "even the fastest rotating disk takes 2 ms for half a turn, so a cache was read; make the file or image larger"
        " than every cache, or set the correct device class"
    )
    return Finding(measured.name, f"p50 {_time(measured.p50)}", why)


def _read_below_the_disk(measured: Measured, here: _Recording) -> Finding | None:
    load = measured.workload
    if measured.entry.layer not in ("rbd", "filesystem") or not _single(load, "read"):
        return None
    disks = here.disks(measured.entry.device_class)
    return _faster(
        measured,
        [_lowest(disk for disk in disks if _single(disk.workload, "read") and size_of(disk.workload) == size_of(load))],
        "a read ends on a disk of that class, so a cache was read; make the image or file larger than the cache"
        " (BlueStore's is up to osd_memory_target for each OSD)",
    )


def _write_below_disk_and_network(measured: Measured, here: _Recording) -> Finding | None:
    size = _written(measured)
    if size is None:
        return None
    disk = _durable(here.disks(measured.entry.device_class), size) if measured.entry.device_class in _FLASH else None
    on_disk = " on its disk" if disk else ""
    return _faster(
        measured,
        [disk, here.trip],
        f"a write is confirmed when a replica on another host has it{on_disk}, so a cache confirmed it (rbd_cache, or a"
        " disk's own), or the pool keeps a single copy",
    )


def _read_below_the_network(measured: Measured, here: _Recording) -> Finding | None:
    single = isinstance(measured.workload, RadosOps) or _single(measured.workload, "read")
    if (
        here.place.holds_osds
        or measured.entry.layer not in ("rados", "rbd")
        or measured.entry.operation != "read"
        or not single
    ):
        return None
    why = "this host holds no OSD, so every read crosses the network; a cache on this host was read"
    return _faster(measured, [here.trip], why)


def _more_than_the_network(measured: Measured, here: _Recording) -> Finding | None:
    rate, block = measured.entry.throughput, isinstance(measured.workload, BlockWorkload | RadosBench | RbdBench)
    if here.place.holds_osds or measured.entry.layer not in ("rados", "rbd") or not block or rate is None:
        return None
    direction, links = "transmit" if measured.entry.operation == "write" else "receive", here.place.links
    limits = [
        (row, row.entry.throughput * links.get(row.device, 1))
        for row in here.measured
        if isinstance(row.workload, TcpThroughput)
        and row.entry.operation == direction
        and row.entry.throughput is not None
        and (row.workload.streams >= 4 or row.entry.throughput < ONE_STREAM_FILLS)
    ]
    network, limit = max(limits, key=lambda pair: pair[1], default=(measured, math.inf))
    if rate <= limit * SLACK:
        return None
    ports = links.get(network.device, 1)
    times = f" on each of {ports} ports" if ports > 1 else ""
    why = "this host holds no OSD, so all data crosses the network; a cache on this host was measured"
    return Finding(measured.name, f"{_rate(rate)}, {network.name} {_rate(network.entry.throughput)}{times}", why)


def _osd_above_its_disk(measured: Measured, here: _Recording) -> Finding | None:
    load, rate = measured.workload, measured.entry.throughput
    if not isinstance(load, OsdBench) or rate is None or load.block_size < 2**20:
        return None
    disks = [
        disk
        for disk in here.disks(measured.entry.device_class)
        if isinstance(disk.workload, BlockWorkload)
        and disk.workload.pattern is Pattern.WRITE
        and disk.workload.block_size == load.block_size
        and disk.workload.iodepth * disk.workload.jobs >= 4
        and disk.entry.operation == "write"
        and disk.entry.throughput is not None
    ]
    best = max(disks, key=lambda disk: disk.entry.throughput or 0.0, default=None)
    if best is None or rate <= (best.entry.throughput or 0.0) * DISKS_DIFFER:
        return None
    why = "an OSD writes no faster than its disk; the data was still in a cache"
    return Finding(measured.name, f"{_rate(rate)}, {best.name} {_rate(best.entry.throughput)}", why)


def _faster(measured: Measured, bounds: Sequence[Measured | None], why: str) -> Finding | None:
    """A finding if ``one`` is faster than all bounds together, those that were measured."""
    slower = [(bound.name, bound.p50) for bound in bounds if bound is not None and bound.p50 is not None]
    if measured.p50 is None or measured.p50 * SLACK >= sum(p50 for _, p50 in slower):
        return None
    against = " and ".join(f"{name} p50 {_time(p50)}" for name, p50 in slower)
    return Finding(measured.name, f"p50 {_time(measured.p50)}, {against}", why)


def _single(load: Workload, operation: str) -> TypeGuard[BlockWorkload]:
    """Whether the load is one random operation at a time that bypasses the page cache."""
    return (
        isinstance(load, BlockWorkload)
        and load.pattern is (Pattern.RANDREAD if operation == "read" else Pattern.RANDWRITE)
        and load.iodepth * load.jobs == 1
        and load.direct
    )


def _written(measured: Measured) -> int | None:
    """Bytes of a single write that RADOS acknowledges when its replicas have it; ``None`` for other loads."""
    load = measured.workload
    if measured.entry.operation != "write":
        return None
    if isinstance(load, RadosOps):
        return load.object_size
    if measured.entry.layer == "rbd" and _single(load, "write"):
        return load.block_size
    return None


def _durable(disks: Sequence[Measured], size: int) -> Measured | None:
    """The disk's single write of this size: preferably one that is on stable media when it returns, else one that may
    end in the disk's cache, which takes no longer."""
    writes = [
        (disk, disk.workload.sync)
        for disk in disks
        if _single(disk.workload, "write") and disk.workload.block_size == size
    ]
    durable = _lowest(row for row, sync in writes if sync is Sync.DSYNC)
    return durable or _lowest(row for row, sync in writes if sync is Sync.NONE)


def _lowest(several: Iterable[Measured]) -> Measured | None:
    return min((row for row in several if row.p50 is not None), key=lambda row: row.p50 or 0.0, default=None)


def _time(seconds: float | None) -> str:
    return si(seconds, "s") if seconds else "unknown"


def _rate(bytes_per_second: float | None) -> str:
    return si(bytes_per_second, "B/s") if bytes_per_second else "unknown"
