"""Samples of this host's OSDs, as they report themselves on their admin sockets."""

from collections import Counter
from collections.abc import Iterator

from plumbline.collectors.host import Host, slot_value
from plumbline.core.histogram import HistogramValue
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, histogram
from plumbline.sources.ceph.osd_operations import STAGES
from plumbline.sources.ceph.osd_perf import Compression, Database
from plumbline.sources.ceph.osds import OsdReading, OsdsReading, OsdState
from plumbline.sources.kernel.cgroup import IOPS
from plumbline.sources.kernel.meminfo import read_total

_OSD = ("ceph_daemon",)

UP = gauge(
    "plumbline_osd_socket_up",
    "1: the OSD answers on its admin socket; 0: it hangs, no answer came in time. Absent where it ended.",
    _OSD,
)
ENDED = gauge(
    "plumbline_osd_socket_ended",
    "1: the OSD left its admin socket behind and no process listens on it: it was stopped or crashed. Else absent.",
    _OSD,
)
LATENCY = histogram(
    "plumbline_osd_latency_seconds",
    "Latency of client operations from arrival to reply, including queue and replicas, counted by the OSD."
    " read-modify-write appears with the OSD's first such operation.",
    (*_OSD, "operation"),
)
SUBOP_SECONDS = counter(
    "plumbline_osd_subop_seconds_total", "Time from arrival to commit of writes received as a replica.", _OSD
)
SUBOP_OPERATIONS = counter(
    "plumbline_osd_subops_total",
    "Writes received as a replica; seconds divided by them: how long peers wait for this OSD, without the network.",
    _OSD,
)
HEARTBEAT = gauge(
    "plumbline_osd_heartbeat_seconds",
    "Round trip of pings to peers in the last minute: the worst peer's and the median. No disk is involved.",
    (*_OSD, "interface", "statistic"),
)
HEARTBEAT_WORST = gauge(
    "plumbline_osd_heartbeat_worst_peer_id",
    "Number of the OSD whose pings take longest, as this OSD sees it. A value, because as a label it would make a"
    " new series whenever it changes.",
    (*_OSD, "interface"),
)
BLOCKED = gauge(
    "plumbline_osd_blocked_operations", "Operations above osd_op_complaint_time (30 s), by stage.", (*_OSD, "stage")
)
BLOCKED_AGE = gauge("plumbline_osd_blocked_operation_age_seconds", "Age of the oldest blocked operation, or 0.", _OSD)
SLOW = gauge(
    "plumbline_osd_slow_operations",
    "Operations above osd_op_history_slow_op_threshold (10 s) in ten minutes, by longest stage; at most 20.",
    (*_OSD, "stage"),
)
FRAGMENTATION = gauge(
    "plumbline_osd_fragmentation_ratio", "BlueStore's rating of its free space: 0 contiguous, 1 fully fragmented.", _OSD
)
ONODES = counter("plumbline_osd_onode_lookups_total", "Onode look-ups in BlueStore's cache.", (*_OSD, "result"))
DB_SIZE = gauge(
    "plumbline_osd_database_size_bytes",
    "Size of the device with the OSD's database (RocksDB), where that is not the device with its data.",
    _OSD,
)
DB_USED = gauge("plumbline_osd_database_used_bytes", "Used part of it.", _OSD)
DB_SPILLED = gauge(
    "plumbline_osd_database_spilled_bytes",
    "Part of the database on the device with the data, because its own is full or was for a while; normally 0.",
    _OSD,
)
LOG_COMPACTION_SECONDS = counter(
    "plumbline_osd_bluefs_log_compaction_seconds_total",
    "Time spent compacting the log of BlueFS, the file system below the database.",
    _OSD,
)
LOG_COMPACTIONS = counter("plumbline_osd_bluefs_log_compactions_total", "Compactions of that log.", _OSD)
DB_COMPACTION = gauge(
    "plumbline_osd_database_compaction_seconds",
    "How long the last compaction of the database that somebody requested took (Ceph 18 and later). RocksDB's own"
    " are not counted.",
    _OSD,
)
COMPRESSED = gauge(
    "plumbline_osd_compressed_bytes",
    "Data that the OSD's store holds compressed: as written (stored), after it (compressed), and what it takes in"
    " allocation units (allocated). Absent where nothing was ever compressed.",
    (*_OSD, "size"),
)
COMPRESSIONS = counter(
    "plumbline_osd_compressions_total",
    "Attempts to compress: success, or rejected for too little gain.",
    (*_OSD, "result"),
)
COMPRESSION_SECONDS = counter("plumbline_osd_compression_seconds_total", "Time spent compressing.", _OSD)
TIER = counter(
    "plumbline_osd_cache_tier_operations_total",
    "What the cache tiers on this OSD did: promote, flush, evict, proxy_read, proxy_write, delay. Absent without one.",
    (*_OSD, "operation"),
)
CAPACITY = gauge(
    "plumbline_osd_mclock_capacity_iops",
    "4 KiB operations per second that mClock assumes for the OSD, by device class; it uses that of its own device.",
    (*_OSD, "device_class"),
)
CLIENT = gauge(
    "plumbline_osd_client_operations",
    "Operations in flight on all OSDs of this host, those received as a replica included, mean of two minutes, by what"
    " they are for: an image (its id), a bucket (its marker), a file (its inode in hexadecimal) or objects (their"
    " namespace). The twenty with the most, of the pools in ceph.client_pools.",
    ("pool_id", "kind", "owner"),
)
QUEUED = gauge(
    "plumbline_osd_mclock_queued_operations",
    "Operations that wait in mClock's queues, by class: client, recovery, best_effort (scrubs, trimming, deletion), and"
    " immediate, which passes by it (writes as a replica, peering). Absent in Ceph 16 and with another scheduler.",
    (*_OSD, "op_class"),
)
SHARE = gauge(
    "plumbline_osd_mclock_share_ratio",
    "What mClock's profile reserves of the OSD's capacity for a class, and its limit where it has one. Absent in Ceph"
    " 16.",
    (*_OSD, "mclock_profile", "op_class", "share"),
)
_LIMIT = (*_OSD, "device", "operation", "cgroup")
LIMIT_IOPS = gauge(
    "plumbline_osd_cgroup_limit_iops",
    "Operations per second that the OSD's control group, or one above it, allows on a device; only where it is set.",
    _LIMIT,
)
LIMIT_BYTES = gauge(
    "plumbline_osd_cgroup_limit_bytes_per_second",
    "Bytes per second that the OSD's control group, or one above it, allows on a device; only where it is set.",
    _LIMIT,
)
CPU_PERIODS = counter(
    "plumbline_osd_cgroup_cpu_periods_total",
    "Periods of the CPU quota of the OSD's control group, or of the next above it that has one; only where one is set.",
    (*_OSD, "cgroup"),
)
CPU_THROTTLED = counter(
    "plumbline_osd_cgroup_cpu_throttled_periods_total",
    "Periods in which the quota was used up, and the OSD stood still until the next.",
    (*_OSD, "cgroup"),
)
_ALWAYS = frozenset({"read", "write"})


def samples(reading: OsdsReading) -> Iterator[Sample]:
    """Each OSD as it last answered; only its state for one that does not answer, nothing for one whose state is
    unknown."""
    for osd in reading.osds:
        if osd.state is OsdState.UNKNOWN:
            continue
        if osd.state is OsdState.ENDED:
            yield ENDED, (osd.daemon,), 1
        else:
            yield UP, (osd.daemon,), int(osd.state is OsdState.ANSWERS)
        yield from _samples_of(osd)
    for store in reading.stores:
        if store.fragmentation is not None:
            yield FRAGMENTATION, (store.daemon,), store.fragmentation
        for device_class, iops in store.capacity_iops.items():
            yield CAPACITY, (store.daemon, device_class), iops
        for (kind, share), ratio in store.shares.items():
            if ratio or share != "limit":  # 0: no limit
                yield SHARE, (store.daemon, store.profile, kind, share), ratio
    for owner, operations_in_flight in reading.clients.items():
        yield CLIENT, (str(owner.pool), owner.kind, owner.name), operations_in_flight


def operations(osd: OsdReading) -> Iterator[tuple[str, HistogramValue]]:
    """Latencies by operation; read-modify-write only once the OSD had one."""
    for operation, latency in osd.latencies.items():
        if latency.count or operation in _ALWAYS:
            yield operation, latency


def _samples_of(osd: OsdReading) -> Iterator[Sample]:
    daemon = osd.daemon
    for operation, latency in operations(osd):
        yield LATENCY, (daemon, operation), latency
    if osd.stages is not None and osd.stages.replica_writes is not None:
        yield SUBOP_SECONDS, (daemon,), osd.stages.replica_writes.sum
        yield SUBOP_OPERATIONS, (daemon,), osd.stages.replica_writes.avgcount
    for heartbeat in osd.heartbeats:
        yield HEARTBEAT, (daemon, heartbeat.interface, "worst"), heartbeat.worst_s
        yield HEARTBEAT, (daemon, heartbeat.interface, "median"), heartbeat.median_s
        yield HEARTBEAT_WORST, (daemon, heartbeat.interface), heartbeat.worst_peer
    if osd.blocked is not None:
        for stage, count in osd.blocked.by_stage.items():
            yield BLOCKED, (daemon, stage), count
        yield BLOCKED_AGE, (daemon,), osd.blocked.oldest_s
    if osd.slow is not None:
        by_stage = Counter(operation.stage for operation in osd.slow)
        for stage in STAGES:
            yield SLOW, (daemon, stage), by_stage[stage]
    for kind, count in osd.queues.items():
        yield QUEUED, (daemon, kind), count
    yield from _store_samples(osd)
    if osd.limits is not None:
        for limit in osd.limits.io:
            spec = LIMIT_IOPS if limit.unit == IOPS else LIMIT_BYTES
            yield spec, (daemon, limit.device, limit.operation, limit.group), limit.limit
        if (cpu := osd.limits.cpu) is not None:
            yield CPU_PERIODS, (daemon, cpu.group), cpu.periods
            yield CPU_THROTTLED, (daemon, cpu.group), cpu.throttled


def _store_samples(osd: OsdReading) -> Iterator[Sample]:
    daemon = osd.daemon
    if osd.onodes is not None:
        yield ONODES, (daemon, "hit"), osd.onodes.hits
        yield ONODES, (daemon, "miss"), osd.onodes.misses
    if osd.database is not None:
        yield from _database_samples(daemon, osd.database)
    if osd.compression is not None:
        yield from _compression_samples(daemon, osd.compression)
    for operation, count in osd.tier.items():
        yield TIER, (daemon, operation), count


def _database_samples(daemon: str, database: Database) -> Iterator[Sample]:
    figures = (
        (DB_SIZE, database.size_bytes),
        (DB_USED, database.used_bytes),
        (DB_SPILLED, database.spilled_bytes),
        (DB_COMPACTION, database.last_compaction_s),
    )
    for spec, value in figures:
        if value is not None:
            yield spec, (daemon,), value
    if (compactions := database.log_compactions) is not None:
        yield LOG_COMPACTION_SECONDS, (daemon,), compactions.sum
        yield LOG_COMPACTIONS, (daemon,), compactions.avgcount


def _compression_samples(daemon: str, compression: Compression) -> Iterator[Sample]:
    yield COMPRESSED, (daemon, "stored"), compression.stored_bytes
    yield COMPRESSED, (daemon, "compressed"), compression.compressed_bytes
    yield COMPRESSED, (daemon, "allocated"), compression.allocated_bytes
    yield COMPRESSIONS, (daemon, "success"), compression.succeeded
    yield COMPRESSIONS, (daemon, "rejected"), compression.rejected
    yield COMPRESSION_SECONDS, (daemon,), compression.seconds


def _read(host: Host, skip: SkipHook) -> OsdsReading:
    watch = host.parts.osds
    osds = watch.osds.value
    for osd in osds:
        if osd.state is OsdState.UNKNOWN:
            skip(osd.daemon, "unreadable")
        for command, reason in osd.unread:
            skip(f"{osd.daemon} {command}", reason)
    stores = slot_value(watch.stores, "the OSDs' stores", skip) or ()
    clients = slot_value(watch.clients, "the OSDs' clients", skip) or {}
    return OsdsReading(osds, stores, read_total(host.parts.roots), clients)


COLLECTOR = Collector(
    "osd",
    declared(globals()),
    _read,
    samples,
    skip_reasons=ITEM_REASONS,
    origin="the OSDs' admin sockets: `perf dump`, `perf histogram dump`, `dump_osd_network`, `dump_blocked_ops`, …;"
    " `/proc/PID/cgroup` and the control groups of these processes",
)
