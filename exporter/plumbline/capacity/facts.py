"""The facts of what-if from Prometheus: the recording rules of capacity, and what Ceph's manager adds to them.

One instant query each, at one moment; a fact that has no series is unknown. Of the manager's metrics are used (names as
on the pages of Ceph 16 to 20): ``ceph_osd_numpg``, ``ceph_pg_total``, ``ceph_pool_objects``, ``ceph_pool_quota_bytes``,
``ceph_pool_quota_objects`` (0: no quota), ``ceph_pool_rd``, ``ceph_pool_wr`` and ``ceph_pool_metadata``. Which OSDs
share a database's disk is from Plumbline, because the manager names volumes instead of disks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from plumbline.capacity.model import HOST, SLOPES, Buckets, DataOsd, DataPool, Facts, Load
from plumbline.core import words as say
from plumbline.errors import PlumblineError
from plumbline.sources.prometheus.api import Track
from plumbline.sources.prometheus.queries import Query, last_values, moment, quoted

_PLACE = "ceph_daemon, device_class, root, host"
_RULE = "pool_id, pool, failure_domain, root, device_class"
# a day has its busy and its quiet hours; only how pools share a class's operations is taken from it
_DAY = "1d"
_Key = tuple[str, ...]
_By = Mapping[_Key, float]

# key → metric, labels beside the cluster
RECORDED = {
    "size": ("plumbline:capacity_osd_size:bytes", _PLACE),
    "used": ("plumbline:capacity_osd_used:bytes", _PLACE),
    "domains": ("plumbline:capacity_osd_domain:info", "ceph_daemon, failure_domain, bucket"),
    "limit": ("plumbline:capacity_limit:ratio", "limit"),
    "pools": ("plumbline:capacity_pool:info", _RULE),
    "copies": ("plumbline:capacity_pool_copies:count", "pool_id"),
    "raw": ("plumbline:capacity_pool_raw:ratio", "pool_id"),
    "read_osds": ("plumbline:capacity_pool_read_osds:count", "pool_id"),
    "stored": ("plumbline:capacity_pool_stored:bytes", "pool_id"),
    "growth": ("plumbline:capacity_growth:bytes_per_second", "device_class, slope"),
    "pool_growth": ("plumbline:capacity_pool_growth:bytes_per_second", "pool_id, slope"),
    "asked": ("plumbline:capacity_asked_busiest:iops", "device_class"),
    "measured": ("plumbline:capacity_osd_measured:iops", "device_class, measured_by"),
    "recovery": ("plumbline:capacity_recovery_rate:bytes_per_second", "device_class"),
}
# of Ceph's manager; after a failover the old manager's series last for another five minutes
CEPHS = {
    "osd_pgs": ("ceph_osd_numpg", "ceph_daemon"),
    "pool_pgs": ("ceph_pg_total", "pool_id"),
    "objects": ("ceph_pool_objects", "pool_id"),
    "quota_bytes": ("ceph_pool_quota_bytes", "pool_id"),
    "quota_objects": ("ceph_pool_quota_objects", "pool_id"),
    "application": ("ceph_pool_metadata", "pool_id, application"),
}
_COUNTED = {"reads": "ceph_pool_rd", "writes": "ceph_pool_wr"}


def queries(at_s: float, cluster: str | None) -> Iterator[Query]:
    """All queries, at ``at_s``; of all clusters without ``cluster``."""
    mine = f"{{cluster={quoted(cluster)}}}" if cluster is not None else ""
    for key, (metric, labels) in {**RECORDED, **CEPHS}.items():
        yield moment(key, f"max by (cluster, {labels}) ({metric}{mine})", at_s)
    for key, metric in _COUNTED.items():
        # as in the rules: sums over placement groups go back a little at times, and a new manager begins with zeros
        day = f"{metric}{mine}[{_DAY}]"
        begun = f"(min_over_time({day}) == 0 and max_over_time({day}) > 0)"
        yield moment(key, f"max by (cluster, pool_id) (clamp_min(delta({day}), 0) unless {begun}) / 86400", at_s)
    use = f"plumbline_disk_use_info{mine}" if cluster is not None else "plumbline_disk_use_info"
    yield moment("db", f"group by (cluster, instance, device, use, user) ({use})", at_s)


def facts_of(answers: Mapping[str, Sequence[Track]]) -> dict[str, Facts]:
    """Cluster → its facts, of clusters with OSDs whose size and use are known. ``answers`` has each key of
    :func:`queries`."""
    by = {key: _values(answers[key], labels) for key, (_, labels) in {**RECORDED, **CEPHS}.items()}
    by |= {key: _values(answers[key], "pool_id") for key in _COUNTED}
    databases = {
        track.key(("cluster", "user")): f"{say.host(track.labels.get('instance', ''))}/{track.labels.get('device', '')}"
        for track in answers["db"]
        if track.labels.get("use") == "osd-db"
    }
    clusters = (_cluster(cluster, by, databases) for cluster in sorted({key[0] for key in by["size"]}))
    return {facts.cluster: facts for facts in clusters if facts.osds}


def only(clusters: Mapping[str, Facts], *, cluster: str | None, url: str) -> Facts:
    """The facts of the cluster that was asked for, or of the only one; else :class:`PlumblineError`."""
    names = ", ".join(name or "one without a name" for name in clusters)
    if not clusters:
        of = f" of a cluster {cluster!r}" if cluster is not None else ""
        raise PlumblineError(
            f"{url}: no OSD's size{of} (plumbline:capacity_osd_size:bytes and …_used:bytes); are the recording rules of"
            " alerts/ loaded there, and does it scrape a node that reads the cluster's map or Ceph's manager?"
        )
    if cluster is None and len(clusters) > 1:
        raise PlumblineError(f"{url}: several clusters ({names}); choose one with --cluster")
    return next(iter(clusters.values()))


def _values(tracks: Sequence[Track], labels: str) -> _By:
    return last_values(tracks, ("cluster", *labels.split(", ")))


def _cluster(cluster: str, by: Mapping[str, _By], databases: Mapping[_Key, str]) -> Facts:
    buckets: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key in sorted(by["domains"]):
        if key[0] == cluster and key[2] != HOST:
            buckets[key[1]].append((key[2], key[3]))
    osds = tuple(
        _osd(key, size, by, tuple(buckets[key[1]]), databases.get((cluster, key[1]), ""))
        for key, size in sorted(by["size"].items())
        if key[0] == cluster and key in by["used"] and size > 0
    )
    growth, pool_growth = _slopes(by["growth"]), _slopes(by["pool_growth"])
    pools = tuple(
        _pool(key, by, pool_growth.get((cluster, key[1]), {}))
        for key in sorted(by["pools"])
        if key[0] == cluster and (cluster, key[1]) in by["copies"]
    )
    limits = {key[1]: value for key, value in by["limit"].items() if key[0] == cluster}
    return Facts(
        cluster=cluster,
        osds=osds,
        pools=pools,
        backfillfull=limits.get("backfillfull", 0.9),
        full=limits.get("full", 0.95),
        loads={
            name: _load((cluster, name), by, growth.get((cluster, name), {}), count)
            for name, count in Counter(osd.device_class for osd in osds).items()
        },
    )


def _osd(key: _Key, size: float, by: Mapping[str, _By], buckets: Buckets, database: str) -> DataOsd:
    cluster, daemon, device_class, root, host = key
    pgs = by["osd_pgs"].get((cluster, daemon))
    return DataOsd(daemon, device_class, root, buckets, host, size, by["used"][key], pgs, database)


def _pool(key: _Key, by: Mapping[str, _By], growth: Mapping[str, float]) -> DataPool:
    cluster, number, name, domain, root, device_class = key
    mine = (cluster, number)
    applications = [key[2] for key in by["application"] if key[:2] == mine]
    return DataPool(
        name=name or number,
        failure_domain=domain,
        root=root,
        device_class=device_class,
        copies=round(by["copies"][mine]),
        raw_ratio=by["raw"].get(mine),
        read_osds=by["read_osds"].get(mine),
        stored=by["stored"].get(mine),
        reads=by["reads"].get(mine),
        writes=by["writes"].get(mine),
        growth=growth,
        pgs=by["pool_pgs"].get(mine),
        objects=by["objects"].get(mine),
        quota_bytes=by["quota_bytes"].get(mine) or None,
        quota_objects=by["quota_objects"].get(mine) or None,
        application=applications[0] if applications else "",
    )


def _load(key: _Key, by: Mapping[str, _By], growth: Mapping[str, float], osds: int) -> Load:
    benched, assumed = (by["measured"].get((*key, source)) for source in ("osd-bench", "mclock"))
    return Load(
        growth=growth,
        asked=by["asked"].get(key),
        osd_iops=assumed if benched is None else benched,
        measured_by="osd-bench" if benched is not None else "mclock" if assumed is not None else "",
        recovery=by["recovery"].get(key),
        recovered_by=osds,
    )


def _slopes(values: _By) -> Mapping[_Key, Mapping[str, float]]:
    """Key without its slope → slope → value, the shortest slope first."""
    slopes: dict[_Key, dict[str, float]] = defaultdict(dict)
    for key, value in values.items():
        slopes[key[:-1]][key[-1]] = value
    return {key: {slope: of[slope] for slope in SLOPES if slope in of} for key, of in slopes.items()}
