"""An OSD's performance: latency histograms of its client operations, where they spend their time, and its store.

``perf histogram dump`` and ``perf dump`` on the admin socket; ``src/osd/osd_perf_counters.cc`` (what is counted),
``src/common/perf_histogram.h`` (the form) and ``src/os/bluestore/BlueStore.cc`` of Ceph::

    {"osd": {"op_w_latency_in_bytes_histogram": {
        "axes": [{"name": "Latency (usec)", "scale_type": "log2", "quant_size": 100000, "buckets": 32,
                  "ranges": [{"max": -1}, {"min": 0, "max": 99999}, {"min": 100000, "max": 199999}, …, {"min": …}]},
                 {"name": "Request size (bytes)", …}],
        "values": [[0, 0, …], …]}}}

    {"osd": {"op_w_latency": {"avgcount": 20037, "sum": 315.011732211, "avgtime": 0.015721501},
             "op_w_process_latency": {…}, "op_w_prepare_latency": {…}, "subop_w_latency": {…}, …},
     "bluestore": {"commit_lat": {…}, "state_aio_wait_lat": {…}, "kv_sync_lat": {…}, "read_lat": {…},
                   "onode_hits": 118, "onode_misses": 104, "compress_success_count": 0, "compressed_original": 0, …},
     "bluefs": {"db_total_bytes": 1073733632, "db_used_bytes": 304349184, "slow_total_bytes": 4294967296,
                "slow_used_bytes": 0, "compact_lat": {…}, …},
     "rocksdb": {"compact_completed": 1, "compact_lasted": 0.2, …}}

The latency axis is named "usec" but counts nanoseconds (measured on 16.2: operations of 1 to 13 ms fill the buckets
from 0.8 to 12.8 ms). A row of ``values`` is one latency range, a column one size range. Read-modify-write operations
have two histograms, by bytes in and by bytes out; one of them is used.

For one operation, ``latency`` is from the message's arrival to the reply, including the queue, ``process`` the same
without the queue; ``prepare`` ends when a write has been passed to the store and to the replicas. ``subop_w_latency``
is a replica's part of other OSDs' writes, from the message's arrival to this OSD's own commit; its priority is 0, so
neither of Ceph's exporters shows it. ``commit_lat`` (``txc_commit_lat`` since Ceph 17) counts every transaction,
including those of replicas and of recovery. All count since the daemon's start.

``bluefs`` is the small file system below RocksDB. ``db`` is the device with the database, ``slow`` the one with the
data, where the two differ: what stands there of the database has spilled over. With one device for both, ``db`` is
that device and ``slow_total_bytes`` is 0. ``compact_lat`` counts compactions of BlueFS's own log. Of RocksDB's
compactions only those are counted that were requested (``ceph tell osd.N compact``), since Ceph 18, and how long the
last one took.

Other commands answer about the store and the scheduler::

    bluestore allocator score block                →  {"fragmentation_rating": 0.00088365191593341218}
    config get osd_mclock_max_capacity_iops_ssd    →  {"osd_mclock_max_capacity_iops_ssd": "21500.000000"}
    config get osd_op_queue                        →  {"osd_op_queue": "mclock_scheduler"}
    config diff                                    →  {"diff": {"osd_op_num_shards_hdd": {"default": 1, "mon": 5,
                                                                                        "final": 5}, …}}

The rating is Ceph's own, 0 (one extent) to 1 (only single allocation units). Of the two capacities, the OSD uses that
of its device's type: ``_hdd`` if the kernel calls it rotational.
``config diff`` has the options that are set anywhere: the default of the running release, the values by where they are
set (``mon``: ``ceph config set``; ``file``: ``ceph.conf``), in rising order, and what counts.
https://docs.ceph.com/en/latest/rados/configuration/mclock-config-ref/
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from plumbline.core.histogram import HistogramValue
from plumbline.errors import ParseError
from plumbline.sources.ceph.adminsocket import decode

READ, WRITE, READ_MODIFY_WRITE = "read", "write", "read-modify-write"
_SHORT = {READ: "r", WRITE: "w", READ_MODIFY_WRITE: "rw"}
OPERATIONS: Mapping[str, tuple[str, str]] = {
    READ: ("op_r_latency_out_bytes_histogram", "op_r_latency"),
    WRITE: ("op_w_latency_in_bytes_histogram", "op_w_latency"),
    READ_MODIFY_WRITE: ("op_rw_latency_in_bytes_histogram", "op_rw_latency"),
}
"""Operation → its histogram, and the counter with its sum."""

EDGES_NS = tuple(100_000 << power for power in range(20))  # 0.1 ms to 52 s: Ceph's, but the ten above it count as +Inf
EDGES = tuple(edge / 1e9 for edge in EDGES_NS)

CAPACITY_OPTIONS = {"hdd": "osd_mclock_max_capacity_iops_hdd", "ssd": "osd_mclock_max_capacity_iops_ssd"}
QUEUE_OPTION = "osd_op_queue"
MEMORY_OPTION = "osd_memory_target"
MCLOCK = "mclock_scheduler"
SHARDS, THREADS = "osd_op_num_shards", "osd_op_num_threads_per_shard"
SHARD_OPTIONS = (SHARDS, THREADS, f"{SHARDS}_hdd", f"{THREADS}_hdd")
"""The first two, when set, count instead of those by device type."""

_Count = Annotated[int, Meta(ge=0)]


class LongRunAverage(msgspec.Struct, frozen=True):
    """A ``*_latency`` counter: the number of operations and their total seconds."""

    avgcount: _Count = 0
    sum: Annotated[float, Meta(ge=0)] = 0.0


class OperationStages(msgspec.Struct, frozen=True):
    """One kind of client operation; all three counters cover nearly the same operations."""

    total: LongRunAverage
    process: LongRunAverage
    prepare: LongRunAverage


class OsdStages(msgspec.Struct, frozen=True):
    """One OSD's counters. ``None``: not counted by the release, or the store is not BlueStore."""

    operations: Mapping[str, OperationStages]  # by kind of operation
    replica_writes: LongRunAverage | None = None
    commit: LongRunAverage | None = None  # the store's transactions, from submission to commit
    device: LongRunAverage | None = None  # their wait for the device; small writes to a rotating disk go to kv instead
    kv: LongRunAverage | None = None  # syncs of the key-value store; one covers many transactions
    store_read: LongRunAverage | None = None


class OnodeCache(msgspec.Struct, frozen=True):
    """Lookups of object metadata since the daemon's start."""

    hits: int
    misses: int


class Database(msgspec.Struct, frozen=True):
    """The OSD's key-value database, and BlueFS below it. The first four are ``None`` if one device holds it and the
    data."""

    size_bytes: int | None = None
    used_bytes: int | None = None
    data_bytes: int | None = None  # size of the device with the data
    spilled_bytes: int | None = None  # part of it on the device with the data
    log_compactions: LongRunAverage | None = None  # of BlueFS's log
    last_compaction_s: float | None = None  # of RocksDB, on request; ``None``: none yet, or Ceph before 18


class Compression(msgspec.Struct, frozen=True):
    """What BlueStore compressed since the daemon's start, and what is compressed now."""

    stored_bytes: _Count = 0  # now, before it was compressed
    compressed_bytes: _Count = 0  # the same, compressed
    allocated_bytes: _Count = 0  # the same, in whole allocation units: what it takes
    succeeded: _Count = 0  # attempts
    rejected: _Count = 0  # attempts that saved too little
    seconds: float = 0.0


class SetOption(msgspec.Struct, frozen=True):
    """An option that is set somewhere: numbers as Ceph prints them."""

    default: str  # of the release that runs
    value: str  # what counts
    where: str  # ``mon`` (``ceph config set``), ``file`` (``ceph.conf``), ``cmdline``, …; empty: unknown


class _Diff(msgspec.Struct, frozen=True):
    diff: dict[str, dict[str, Any]]


class _Range(msgspec.Struct, frozen=True):
    min: int | None = None
    max: int | None = None


class _Axis(msgspec.Struct, frozen=True):
    ranges: tuple[_Range, ...]


class _Histogram(msgspec.Struct, frozen=True):
    axes: tuple[_Axis, ...]
    values: tuple[tuple[_Count, ...], ...]


class _OsdCounters(msgspec.Struct, frozen=True):
    osd: dict[str, msgspec.Raw] = {}


class _Times(msgspec.Struct, frozen=True):
    txc_commit_lat: LongRunAverage | None = None
    commit_lat: LongRunAverage | None = None
    state_aio_wait_lat: LongRunAverage | None = None
    kv_sync_lat: LongRunAverage | None = None
    read_lat: LongRunAverage | None = None


class _StoreTimes(_OsdCounters, frozen=True):
    bluestore: _Times = _Times()


class _Onodes(msgspec.Struct, frozen=True):
    onode_hits: _Count | None = None
    onode_misses: _Count | None = None
    old_hits: _Count | None = msgspec.field(name="bluestore_onode_hits", default=None)
    old_misses: _Count | None = msgspec.field(name="bluestore_onode_misses", default=None)


class _StoreOnodes(msgspec.Struct, frozen=True):
    bluestore: _Onodes = _Onodes()


class _Compressed(msgspec.Struct, frozen=True):
    compress_lat: LongRunAverage = LongRunAverage()
    compress_success_count: _Count = 0
    compress_rejected_count: _Count = 0
    compressed: _Count = 0
    compressed_allocated: _Count = 0
    compressed_original: _Count = 0
    old_compressed: _Count = msgspec.field(name="bluestore_compressed", default=0)
    old_allocated: _Count = msgspec.field(name="bluestore_compressed_allocated", default=0)
    old_original: _Count = msgspec.field(name="bluestore_compressed_original", default=0)


class _StoreCompressed(msgspec.Struct, frozen=True):
    bluestore: _Compressed = _Compressed()


class _Tier(msgspec.Struct, frozen=True):
    tier_promote: _Count = 0
    tier_flush: _Count = 0
    tier_evict: _Count = 0
    tier_proxy_read: _Count = 0
    tier_proxy_write: _Count = 0
    tier_delay: _Count = 0


class _OsdTier(msgspec.Struct, frozen=True):
    osd: _Tier = _Tier()


class _BlueFs(msgspec.Struct, frozen=True):
    db_total_bytes: _Count = 0
    db_used_bytes: _Count | None = None
    slow_total_bytes: _Count = 0
    slow_used_bytes: _Count = 0
    compact_lat: LongRunAverage | None = None


class _RocksDb(msgspec.Struct, frozen=True):
    compact_completed: _Count = 0
    compact_lasted: Annotated[float, Meta(ge=0)] = 0.0


class _StoreDatabase(msgspec.Struct, frozen=True):
    bluefs: _BlueFs | None = None
    rocksdb: _RocksDb = _RocksDb()


class _Score(msgspec.Struct, frozen=True):
    fragmentation_rating: Annotated[float, Meta(ge=0, le=1)]


def parse_latencies(histograms: bytes, counters: bytes, *, source: str) -> dict[str, HistogramValue]:
    """Parse operation → histogram in seconds, from ``perf histogram dump`` and ``perf dump`` of one daemon.

    Operations that the release does not count are omitted. The two dumps are moments apart, so the sum may include
    a few operations more than the buckets. :class:`ParseError` when the format differs.
    """
    osd_counters = decode(_OsdCounters, histograms, source=source).osd
    sums = decode(_OsdCounters, counters, source=source).osd
    return {
        operation: _collapse(osd_counters[name], _average(sums, average, source), f"{source}: {name}")
        for operation, (name, average) in OPERATIONS.items()
        if name in osd_counters
    }


def _collapse(raw: msgspec.Raw, average: LongRunAverage | None, source: str) -> HistogramValue:
    histogram = decode(_Histogram, bytes(raw), source=source)
    if not histogram.axes or len(histogram.axes[0].ranges) != len(histogram.values):
        raise ParseError(source, "the number of rows of values differs from the number of latency ranges")
    counts, total = [0] * len(EDGES_NS), 0
    for span, row in zip(histogram.axes[0].ranges, histogram.values, strict=True):
        operations = sum(row)
        total += operations
        if operations and span.max is not None:
            # a range ends one nanosecond before the next one begins
            first = bisect_right(EDGES_NS, span.max)
            if first < len(counts):
                counts[first] += operations
    return HistogramValue(EDGES, list(accumulate(counts)), total, 0.0 if average is None else average.sum)


def _average(counters: Mapping[str, msgspec.Raw], name: str, source: str) -> LongRunAverage | None:
    raw = counters.get(name)
    return None if raw is None else decode(LongRunAverage, bytes(raw), source=f"{source}: {name}")


def parse_stages(counters: bytes, *, source: str) -> OsdStages:
    """Parse ``perf dump``; a kind of operation with missing counters is omitted. :class:`ParseError` when malformed."""
    times = decode(_StoreTimes, counters, source=source)
    operations = {}
    for operation, short in _SHORT.items():
        names = (f"op_{short}_{part}latency" for part in ("", "process_", "prepare_"))
        total, process, prepare = (_average(times.osd, name, source) for name in names)
        if total is not None and process is not None and prepare is not None:
            operations[operation] = OperationStages(total, process, prepare)
    store = times.bluestore
    return OsdStages(
        operations=operations,
        replica_writes=_average(times.osd, "subop_w_latency", source),
        commit=store.commit_lat if store.txc_commit_lat is None else store.txc_commit_lat,
        device=store.state_aio_wait_lat,
        kv=store.kv_sync_lat,
        store_read=store.read_lat,
    )


def parse_onode_cache(counters: bytes, *, source: str) -> OnodeCache | None:
    """Parse ``perf dump``; ``None`` when the release lacks these counters. Before 17, their names were longer."""
    onodes = decode(_StoreOnodes, counters, source=source).bluestore
    hits = onodes.old_hits if onodes.onode_hits is None else onodes.onode_hits
    misses = onodes.old_misses if onodes.onode_misses is None else onodes.onode_misses
    return None if hits is None or misses is None else OnodeCache(hits, misses)


def parse_database(counters: bytes, *, source: str) -> Database | None:
    """Parse ``perf dump``; ``None`` when the store is not BlueStore."""
    database = decode(_StoreDatabase, counters, source=source)
    bluefs, rocksdb = database.bluefs, database.rocksdb
    if bluefs is None:
        return None
    separate = bluefs.slow_total_bytes > 0 and bluefs.db_total_bytes > 0
    return Database(
        size_bytes=bluefs.db_total_bytes if separate else None,
        used_bytes=bluefs.db_used_bytes if separate else None,
        data_bytes=bluefs.slow_total_bytes if separate else None,
        spilled_bytes=bluefs.slow_used_bytes if separate else None,
        log_compactions=bluefs.compact_lat,
        last_compaction_s=rocksdb.compact_lasted if rocksdb.compact_completed else None,
    )


def parse_compression(counters: bytes, *, source: str) -> Compression | None:
    """Parse ``perf dump``; ``None`` where nothing was compressed and nothing is. Before 17, names were longer."""
    store = decode(_StoreCompressed, counters, source=source).bluestore
    compression = Compression(
        stored_bytes=store.compressed_original or store.old_original,
        compressed_bytes=store.compressed or store.old_compressed,
        allocated_bytes=store.compressed_allocated or store.old_allocated,
        succeeded=store.compress_success_count,
        rejected=store.compress_rejected_count,
        seconds=store.compress_lat.sum,
    )
    return None if compression == Compression() else compression


def parse_tier(counters: bytes, *, source: str) -> dict[str, int]:
    """Parse ``perf dump``: what a cache tier did since the daemon's start, by operation; empty where none is at work.
    ``tier_dirty`` is no sign of one: every pool's writes count there."""
    tier = msgspec.structs.asdict(decode(_OsdTier, counters, source=source).osd)
    return {name.removeprefix("tier_"): count for name, count in tier.items()} if any(tier.values()) else {}


def parse_fragmentation(data: bytes, *, source: str) -> float:
    """Parse ``bluestore allocator score block``: a ratio."""
    return decode(_Score, data, source=source).fragmentation_rating


def parse_option(data: bytes, option: str, *, source: str) -> str:
    """The value of one option from ``config get``; :class:`ParseError` when it is missing."""
    values = decode(dict[str, str], data, source=source)
    if option not in values:
        raise ParseError(source, f"no {option}")
    return values[option]


def parse_bytes(data: bytes, option: str, *, source: str) -> int:
    """An option that is a number of bytes, which ``config get`` prints as such."""
    text = parse_option(data, option, source=source)
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ParseError(source, f"no number of bytes: {text[:40]!r}")
    return int(text)


def parse_capacity(data: bytes, option: str, *, source: str) -> float:
    """The value of a capacity option, in operations of 4 KiB per second; :class:`ParseError` when not a number."""
    text = parse_option(data, option, source=source)
    try:
        iops = float(text)
    except ValueError:
        raise ParseError(source, f"{option} = {text[:40]!r}: not a number") from None
    if not 0 <= iops < 1e12:  # also rejects nan
        raise ParseError(source, f"{option} = {text[:40]!r}: out of range")
    return iops


def parse_set_options(data: bytes, options: Iterable[str], *, source: str) -> dict[str, SetOption]:
    """Of these options those that are set somewhere, from ``config diff``; :class:`ParseError` when malformed."""
    in_force = decode(_Diff, data, source=source).diff
    return {option: _set_option(in_force[option], f"{source}: {option}") for option in options if option in in_force}


def _set_option(levels: Mapping[str, Any], source: str) -> SetOption:
    if not levels.keys() >= {"default", "final"}:
        raise ParseError(source, "no default, or no final value")
    where = [level for level in levels if level not in ("default", "final")]
    return SetOption(str(levels["default"]), str(levels["final"]), where[-1] if where else "")
