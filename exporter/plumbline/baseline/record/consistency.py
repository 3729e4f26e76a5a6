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

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
    WorkloadCatalogue,
)
from plumbline.core.units import si

SLACK = 1.1
"""A figure may beat its bound by this factor, because the canary's buckets are 9 % wide."""
HDD_READ_S = 0.001
"""The fastest disks make 15,000 revolutions per minute: 2 ms for half a turn, the median wait without any seek. No disk
can reach 1 ms; a lower latency came from a cache."""
DISKS_DIFFER = 2.0
"""Two disks of one class, or outer and inner tracks of one disk, differ by up to this in sequential throughput."""
ONE_STREAM_FILLS = 1.3e9
"""Bytes per second: 10 Gb/s with headers. Above it, a CPU limits a single TCP stream, not the link."""
_FLASH = ("ssd", "nvme")


@dataclass(frozen=True, slots=True)
class Place:
    """What the rules need to know about the measuring host."""

    holds_osds: bool
    """Some of the cluster's data is on this host, so not every operation uses the network."""
    links: Mapping[str, int] = field(default_factory=dict)
    """Network device → number of ports it bonds; 1 if it is not listed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Two figures that cannot both be true. ``what`` names them; ``figures`` states them in words."""

    what: str
    figures: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.figures}; {self.why}"


@dataclass(frozen=True, slots=True)
class Measured:
    """A set of figures with its workload; ``device`` is the network device if the layer is ``network``."""

    entry: BaselineEntry
    workload: Workload
    device: str = ""

    @property
    def name(self) -> str:
        """The name in findings."""
        entry = self.entry
        return f"{entry.layer} {entry.device_class} {entry.workload} {entry.operation}"

    @property
    def p50(self) -> float | None:
        """Median latency in seconds."""
        return self.entry.latency.get("p50")


def with_workloads(
    entries: Iterable[BaselineEntry], catalogue: WorkloadCatalogue, devices: Sequence[str] = ()
) -> list[Measured]:
    """The entries of a checked file with their workloads; ``devices``: the device of each entry, in the same order."""
    listed = list(entries)
    names = [*devices, *[""] * (len(listed) - len(devices))]
    return [Measured(one, catalogue.by_id[one.workload], name) for one, name in zip(listed, names, strict=True)]


def check(measured: Sequence[Measured], place: Place) -> list[Finding]:
    """All figures that cannot be true."""
    return [
        *_rotating(measured),
        *_reads_below_the_disk(measured),
        *_writes_below_disk_and_network(measured),
        *_reads_below_the_network(measured, place),
        *_more_than_the_network(measured, place),
        *_osd_above_its_disk(measured),
    ]


def _rotating(measured: Sequence[Measured]) -> Iterator[Finding]:
    for one in measured:
        load = one.workload
        if (
            one.entry.device_class == "hdd"
            and isinstance(load, BlockWorkload)
            and load.pattern is Pattern.RANDREAD
            and load.direct
            and one.p50 is not None
            and one.p50 < HDD_READ_S
        ):
            yield Finding(
                one.name,
                f"p50 {_time(one.p50)}",
                "a rotating disk takes 2 ms for half a turn at its fastest: a cache was read; make the file or image"
                " larger than every cache, or give the true device class",
            )


def _reads_below_the_disk(measured: Sequence[Measured]) -> Iterator[Finding]:
    for one in measured:
        load = one.workload
        if one.entry.layer not in ("rbd", "filesystem") or not _single(load, "read"):
            continue
        disks = [each for each in _disks(measured, one.entry.device_class) if _same_single_read(each.workload, load)]
        bound = _lowest(disks)
        if bound is not None:
            yield from _faster(
                one,
                bound.p50,
                f"{bound.name} p50 {_time(bound.p50)}",
                "a read ends on a disk of that class: a cache on the way was read; make the image or file larger than"
                " it (BlueStore's is up to osd_memory_target for each OSD)",
            )


def _writes_below_disk_and_network(measured: Sequence[Measured]) -> Iterator[Finding]:
    trip = _lowest(each for each in measured if isinstance(each.workload, RoundTrip))
    for one in measured:
        size = _written(one)
        if size is None:
            continue
        disk = _durable(measured, one.entry.device_class, size) if one.entry.device_class in _FLASH else None
        bounds = [each for each in (disk, trip) if each is not None]
        if bounds:
            yield from _faster(
                one,
                sum(each.p50 or 0.0 for each in bounds),
                " and ".join(f"{each.name} p50 {_time(each.p50)}" for each in bounds),
                "a write is confirmed when a replica on another host has it"
                + (" on its disk" if disk else "")
                + ": a cache confirmed it (rbd_cache, or a disk's own), or the pool keeps one copy",
            )


def _reads_below_the_network(measured: Sequence[Measured], place: Place) -> Iterator[Finding]:
    trip = _lowest(each for each in measured if isinstance(each.workload, RoundTrip))
    if trip is None or place.holds_osds:
        return
    for one in measured:
        single = isinstance(one.workload, RadosOps) or _single(one.workload, "read")
        if one.entry.layer in ("rados", "rbd") and single and one.entry.operation == "read":
            yield from _faster(
                one,
                trip.p50,
                f"{trip.name} p50 {_time(trip.p50)}",
                "this host holds no OSD, so every read crosses the network: a cache on this host was read",
            )


def _more_than_the_network(measured: Sequence[Measured], place: Place) -> Iterator[Finding]:
    if place.holds_osds:
        return
    for one in measured:
        rate, block = one.entry.throughput, isinstance(one.workload, BlockWorkload | RadosBench | RbdBench)
        if one.entry.layer not in ("rados", "rbd") or not block or rate is None:
            continue
        direction = "transmit" if one.entry.operation == "write" else "receive"
        limits = [
            (each, each.entry.throughput * place.links.get(each.device, 1))
            for each in measured
            if isinstance(each.workload, TcpThroughput)
            and each.entry.operation == direction
            and each.entry.throughput is not None
            and (each.workload.streams >= 4 or each.entry.throughput < ONE_STREAM_FILLS)
        ]
        if not limits:
            continue
        network, limit = max(limits, key=lambda pair: pair[1])
        if rate > limit * SLACK:
            links = place.links.get(network.device, 1)
            times = f" on each of {links} ports" if links > 1 else ""
            yield Finding(
                one.name,
                f"{_rate(rate)}, {network.name} {_rate(network.entry.throughput)}{times}",
                "this host holds no OSD, so all of it crosses the network: a cache on this host was measured",
            )


def _osd_above_its_disk(measured: Sequence[Measured]) -> Iterator[Finding]:
    for one in measured:
        load, rate = one.workload, one.entry.throughput
        if not isinstance(load, OsdBench) or rate is None or load.block_size < 2**20:
            continue
        disks = [
            each
            for each in _disks(measured, one.entry.device_class)
            if isinstance(each.workload, BlockWorkload)
            and each.workload.pattern is Pattern.WRITE
            and each.workload.block_size == load.block_size
            and each.workload.iodepth * each.workload.jobs >= 4
            and each.entry.operation == "write"
            and each.entry.throughput is not None
        ]
        best = max(disks, key=lambda each: each.entry.throughput or 0.0, default=None)
        if best is not None and rate > (best.entry.throughput or 0.0) * DISKS_DIFFER:
            yield Finding(
                one.name,
                f"{_rate(rate)}, {best.name} {_rate(best.entry.throughput)}",
                "an OSD writes no faster than its disk: what it wrote was still in a cache",
            )


def _faster(one: Measured, bound: float | None, against: str, why: str) -> Iterator[Finding]:
    if one.p50 is not None and bound is not None and one.p50 * SLACK < bound:
        yield Finding(one.name, f"p50 {_time(one.p50)}, {against}", why)


def _disks(measured: Sequence[Measured], device_class: str) -> list[Measured]:
    return [one for one in measured if one.entry.layer == "disk" and one.entry.device_class == device_class]


def _single(load: Workload, operation: str) -> bool:
    """Whether the load is one random operation at a time that bypasses the page cache."""
    return (
        isinstance(load, BlockWorkload)
        and load.pattern is (Pattern.RANDREAD if operation == "read" else Pattern.RANDWRITE)
        and load.iodepth * load.jobs == 1
        and load.direct
    )


def _same_single_read(disk: Workload, upper: Workload) -> bool:
    return (
        isinstance(disk, BlockWorkload)
        and isinstance(upper, BlockWorkload)
        and _single(disk, "read")
        and disk.block_size == upper.block_size
    )


def _written(one: Measured) -> int | None:
    """Bytes of a single write that RADOS acknowledges when its replicas have it; ``None`` for other loads."""
    load = one.workload
    if one.entry.operation != "write":
        return None
    if isinstance(load, RadosOps):
        return load.object_size
    if one.entry.layer == "rbd" and isinstance(load, BlockWorkload) and _single(load, "write"):
        return load.block_size
    return None


def _durable(measured: Sequence[Measured], device_class: str, size: int) -> Measured | None:
    """The disk's single write of this size: preferably one that is on stable media when it returns, else one that may
    end in the disk's cache, which takes no longer."""

    def single_write(sync: Sync) -> Callable[[Measured], bool]:
        return lambda one: (
            isinstance(one.workload, BlockWorkload)
            and _single(one.workload, "write")
            and one.workload.block_size == size
            and one.workload.sync is sync
        )

    disks = _disks(measured, device_class)
    return _lowest(filter(single_write(Sync.DSYNC), disks)) or _lowest(filter(single_write(Sync.NONE), disks))


def _lowest(several: Iterable[Measured]) -> Measured | None:
    """The weakest bound: the lowest p50."""
    return min((one for one in several if one.p50 is not None), key=lambda one: one.p50 or 0.0, default=None)


def _time(seconds: float | None) -> str:
    return si(seconds, "s") if seconds else "unknown"


def _rate(bytes_per_second: float | None) -> str:
    return si(bytes_per_second, "B/s") if bytes_per_second else "unknown"
