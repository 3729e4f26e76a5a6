"""The cluster map as samples. Every node that asks reports the same: rules take the maximum over nodes."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge
from plumbline.sources.ceph.cephmap import CephMap

_OSD, _POOL = ("ceph_daemon",), ("pool_id",)
_BYTES_PER_KIB = 1024

OSD_PLACE = gauge(
    "plumbline_ceph_osd_crush_location_info",
    "Place of an OSD in CRUSH, always 1; host is the CRUSH bucket, whose name need not be the host's. OSDs"
    " that are out keep theirs; OSDs unknown to CRUSH have none.",
    (*_OSD, "device_class", "root", "rack", "host"),
)
OSD_BUCKET = gauge(
    "plumbline_ceph_osd_crush_bucket_info",
    "A bucket above an OSD that is neither root, rack nor host, always 1: bucket_type is row, room, datacenter …",
    (*_OSD, "bucket_type", "bucket"),
)
OSD_WEIGHT = gauge("plumbline_ceph_osd_crush_weight", "CRUSH weight, usually the size in TiB; 0: no data.", _OSD)
OSD_SIZE = gauge("plumbline_ceph_osd_size_bytes", "Size of an OSD's store. Absent while it is out.", _OSD)
OSD_USED = gauge("plumbline_ceph_osd_used_bytes", "Used part of an OSD's store, including metadata.", _OSD)
OSD_REWEIGHT = gauge("plumbline_ceph_osd_reweight_ratio", "Share of its CRUSH weight that an OSD gets; 0: out.", _OSD)
OSD_IN = gauge("plumbline_ceph_osd_in", "1: the OSD is in (holds data); 0: it is out.", _OSD)
POOL = gauge(
    "plumbline_ceph_pool_info",
    "A pool and its CRUSH rule, always 1: root bucket, device class (empty: any; mixed: several) and"
    " failure_domain, the bucket type that never holds two copies (empty: unknown).",
    (*_POOL, "pool", "pool_type", "failure_domain", "root", "device_class"),
)
POOL_COPIES = gauge("plumbline_ceph_pool_copies", "The pool's size: replicas, or all chunks of erasure coding.", _POOL)
POOL_MIN_COPIES = gauge("plumbline_ceph_pool_copies_min", "The pool's min_size: below it, PGs stop serving.", _POOL)
POOL_RAW = gauge("plumbline_ceph_pool_raw_ratio", "Raw bytes per stored byte: 3 for 3 replicas, 1.5 for EC 4+2.", _POOL)
POOL_READ_UNIT = gauge(
    "plumbline_ceph_pool_read_unit_bytes",
    "Erasure coding since Ceph 20: bytes in a row on one OSD; a read asks only the OSDs that hold what it wants."
    " Absent: it asks all that hold data.",
    _POOL,
)
POOL_STORED = gauge("plumbline_ceph_pool_stored_bytes", "Data stored in the pool, before replication.", _POOL)
POOL_MAX_AVAIL = gauge(
    "plumbline_ceph_pool_max_avail_bytes",
    "Ceph's estimate of what fits until the fullest OSD is full, before replication.",
    _POOL,
)
POOL_AVAILABLE = gauge(
    "plumbline_ceph_pool_available",
    "1: all placement groups of the pool are active; 0: some are not. Ceph 20 and later, where"
    " enable_availability_tracking is set; so are the next three.",
    _POOL,
)
POOL_UP = counter(
    "plumbline_ceph_pool_available_seconds_total", "How long the pool was available since Ceph tracks it.", _POOL
)
POOL_DOWN = counter("plumbline_ceph_pool_unavailable_seconds_total", "How long it was not.", _POOL)
POOL_FAILURES = counter("plumbline_ceph_pool_failures_total", "How often it became unavailable.", _POOL)
FULL_RATIO = gauge(
    "plumbline_ceph_full_ratio",
    "Share of an OSD at which Ceph warns (nearfull), stops backfill (backfillfull) or stops writes (full).",
    ("limit",),
)
TIMESTAMP = gauge("plumbline_ceph_map_timestamp_seconds", "When the monitors sent the map, Unix time (every minute).")


def samples(cephmap: CephMap) -> Iterator[Sample]:
    yield TIMESTAMP, (), cephmap.read_ts
    for limit, ratio in cephmap.full_ratios.items():
        yield FULL_RATIO, (limit,), ratio
    yield from _osd_samples(cephmap)
    yield from _pool_samples(cephmap)


def _osd_samples(cephmap: CephMap) -> Iterator[Sample]:
    for osd in cephmap.osds:
        daemon = (osd.daemon,)
        yield OSD_REWEIGHT, daemon, osd.reweight_ratio
        yield OSD_IN, daemon, int(osd.reweight_ratio > 0)
        if (place := osd.place) is not None:
            yield OSD_PLACE, (osd.daemon, place.device_class, place.root, place.rack, place.host), 1
            for bucket in place.others:
                yield OSD_BUCKET, (osd.daemon, *bucket), 1
            yield OSD_WEIGHT, daemon, place.weight
        if (use := cephmap.osd_use.get(osd.daemon)) is not None:
            yield OSD_SIZE, daemon, use.size_kib * _BYTES_PER_KIB
            yield OSD_USED, daemon, use.used_kib * _BYTES_PER_KIB


def _pool_samples(cephmap: CephMap) -> Iterator[Sample]:
    for pool in cephmap.pools:
        number, rule = (str(pool.pool_id),), pool.rule
        yield POOL, (*number, pool.name, pool.kind, rule.failure_domain, rule.root, rule.device_class), 1
        yield POOL_COPIES, number, pool.copies
        yield POOL_MIN_COPIES, number, pool.min_copies
        if pool.raw_ratio is not None:
            yield POOL_RAW, number, pool.raw_ratio
        if pool.read_unit_bytes is not None:
            yield POOL_READ_UNIT, number, pool.read_unit_bytes
        if (use := cephmap.pool_use.get(pool.pool_id)) is not None:
            yield POOL_STORED, number, use.stored_bytes
            yield POOL_MAX_AVAIL, number, use.max_avail_bytes
        if (availability := cephmap.pool_availability.get(pool.name)) is not None:
            yield POOL_AVAILABLE, number, int(availability.available)
            yield POOL_UP, number, availability.up_s
            yield POOL_DOWN, number, availability.down_s
            yield POOL_FAILURES, number, availability.failures


def _read(host: Host, skip: SkipHook) -> CephMap:
    cephmap = host.parts.latest(CephMap)
    if cephmap.unread:
        skip(f"what is used ({cephmap.unread})", "unreadable")
    return cephmap


COLLECTOR = Collector(
    "cephmap",
    declared(globals()),
    _read,
    samples,
    skip_reasons=("unreadable",),
    origin="`osd tree`, `osd dump`, `osd crush rule dump`, `osd pool availability-status`: the monitors;"
    " `osd df`, `df`: the manager",
    sized_by=("OSD of the cluster, where the map is asked", "pool of the cluster, where the map is asked"),
    needs_daemon=True,
)
