"""Ceph's metrics that rules and pages read → their labels as the manager and the ceph-exporter write them, 16.2 to 20.

Where releases differ (`message` on checks and `application` on pools come later) they are given as 16.2 has them.
"""

from __future__ import annotations

_OSD = frozenset({"ceph_daemon"})
_POOL = frozenset({"pool_id"})
_IMAGE = frozenset({"pool", "namespace", "image"})
_COLLECTION = frozenset({"method"})

LABELS: dict[str, frozenset[str]] = {
    "ceph_health_status": frozenset(),
    "ceph_health_detail": frozenset({"name", "severity"}),
    "ceph_mon_quorum_status": frozenset({"ceph_daemon"}),
    "ceph_daemon_health_metrics": frozenset({"ceph_daemon", "type"}),
    "ceph_daemon_socket_up": frozenset({"ceph_daemon", "hostname"}),
    "ceph_exporter_scrape_time": frozenset({"function", "host"}),
    "ceph_osd_up": _OSD,
    "ceph_osd_in": _OSD,
    "ceph_osd_stat_bytes": _OSD,
    "ceph_osd_stat_bytes_used": _OSD,
    "ceph_osd_recovery_bytes": _OSD,
    "ceph_osd_commit_latency_ms": _OSD,
    "ceph_osd_apply_latency_ms": _OSD,
    "ceph_osd_op_w_latency_count": _OSD,
    "ceph_pool_metadata": frozenset({"compression_mode", "description", "name", "pool_id", "type"}),
    "ceph_pool_percent_used": _POOL,
    "ceph_pool_stored": _POOL,
    "ceph_pool_max_avail": _POOL,
    "ceph_pool_rd": _POOL,
    "ceph_pool_wr": _POOL,
    "ceph_pool_rd_bytes": _POOL,
    "ceph_pool_wr_bytes": _POOL,
    "ceph_pg_unknown": _POOL,
    "ceph_rbd_read_latency_sum": _IMAGE,
    "ceph_rbd_write_latency_sum": _IMAGE,
    "ceph_rbd_read_latency_count": _IMAGE,
    "ceph_rbd_write_latency_count": _IMAGE,
    # what dashboards alone show
    "ceph_healthcheck_slow_ops": frozenset(),
    "ceph_num_objects_degraded": frozenset(),
    "ceph_num_objects_misplaced": frozenset(),
    "ceph_num_objects_unfound": frozenset(),
    "ceph_pool_recovering_bytes_per_sec": _POOL,
    "ceph_pool_recovering_objects_per_sec": _POOL,
    "ceph_prometheus_collect_duration_seconds_sum": _COLLECTION,
    "ceph_prometheus_collect_duration_seconds_count": _COLLECTION,
} | {
    f"ceph_pg_{state}": _POOL
    for state in (
        "total", "active", "creating", "stale", "degraded", "recovering", "backfilling", "remapped",
        "inconsistent", "recovery_unfound", "backfill_unfound", "failed_repair",
    )
}  # fmt: skip
