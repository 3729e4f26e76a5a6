"""Ceph's metrics that rules and pages read → their labels, who writes them and in which releases, 16.2 to 20.

``tests/rules/test_ceph_schema.py`` holds each row against the captured pages of 16.2, 18.2 and 20.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .ceph_pages import EXPORTER, MANAGER, WITH_COUNTERS

STATE = frozenset({MANAGER, WITH_COUNTERS})
"""The cluster's state: every manager."""
COUNTERS = frozenset({WITH_COUNTERS, EXPORTER})
"""What a daemon counts: the ceph-exporter, and a manager that is not told to leave it to the ceph-exporter."""
OF_EXPORTER = frozenset({EXPORTER})

_OSD = frozenset({"ceph_daemon"})
_POOL = frozenset({"pool_id"})
_IMAGE = frozenset({"pool", "namespace", "image"})
_COLLECTION = frozenset({"method"})
_RGW = frozenset({"instance_id"})
_NO_IMAGES = dict.fromkeys((16, 18, 20), "mgr/prometheus/rbd_stats_pools names no pool")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its labels as the oldest release writes them, its producers, the first and last release with it."""

    labels: frozenset[str]
    producers: frozenset[str] = STATE
    since: int = 16
    until: int = 20
    later: Mapping[str, int] = field(default_factory=dict)
    """Label → the release that added it."""
    uncaptured: Mapping[int, str] = field(default_factory=dict)
    """Release → why no captured page of it has the metric all the same."""

    def written(self, release: int, producer: str) -> bool:
        """Whether this producer's captured page of the release has it."""
        named = producer in self.producers and self.since <= release <= self.until
        return named and release not in self.uncaptured

    def labels_in(self, release: int) -> frozenset[str]:
        """Its labels as this release writes them."""
        return self.labels | {label for label, since in self.later.items() if since <= release}


def _averages(prefix: str, names: str, *, since: int = 16, until: int = 20) -> dict[str, Metric]:
    """Sum and count of each."""
    return {
        f"{prefix}{name}_{suffix}": Metric(_OSD, COUNTERS, since, until)
        for name in names.split()
        for suffix in ("sum", "count")
    }


METRICS: dict[str, Metric] = {
    "ceph_health_status": Metric(frozenset()),
    "ceph_health_detail": Metric(frozenset({"name", "severity"})),
    "ceph_healthcheck_slow_ops": Metric(frozenset()),
    "ceph_mon_quorum_status": Metric(frozenset({"ceph_daemon"})),
    "ceph_mon_metadata": Metric(frozenset({"ceph_daemon", "ceph_version", "hostname", "public_addr", "rank"})),
    "ceph_daemon_health_metrics": Metric(frozenset({"ceph_daemon", "type"})),
    "ceph_daemon_socket_up": Metric(frozenset({"ceph_daemon", "hostname"}), OF_EXPORTER, since=18),
    "ceph_exporter_scrape_time": Metric(frozenset({"function", "host"}), OF_EXPORTER, since=18),
    "ceph_osd_metadata": Metric(
        frozenset(
            {"back_iface", "ceph_daemon", "ceph_version", "cluster_addr", "device_class", "front_iface", "hostname",
             "objectstore", "public_addr"}
        )
    ),
    "ceph_osd_up": Metric(_OSD),
    "ceph_osd_in": Metric(_OSD),
    "ceph_osd_flag_noout": Metric(frozenset()),
    "ceph_osd_stat_bytes": Metric(_OSD, COUNTERS),
    "ceph_osd_stat_bytes_used": Metric(_OSD, COUNTERS),
    "ceph_osd_recovery_bytes": Metric(_OSD, COUNTERS),
    "ceph_osd_numpg": Metric(_OSD, COUNTERS),
    "ceph_pool_metadata": Metric(
        frozenset({"compression_mode", "description", "name", "pool_id", "type"}), later={"application": 19}
    ),
    "ceph_prometheus_collect_duration_seconds_sum": Metric(_COLLECTION),
    "ceph_prometheus_collect_duration_seconds_count": Metric(_COLLECTION),
    **_averages(
        "ceph_osd_op_",
        "r_latency r_process_latency r_prepare_latency w_latency w_process_latency w_prepare_latency "
        "rw_latency rw_process_latency rw_prepare_latency",
    ),
    **_averages("ceph_bluestore_", "state_aio_wait_lat kv_sync_lat read_lat"),
    **_averages("ceph_bluestore_", "commit_lat submit_lat", until=16),
    **_averages("ceph_bluestore_", "txc_commit_lat txc_submit_lat", since=17),
} | {
    "ceph_rgw_metadata": Metric(frozenset({"ceph_daemon", "ceph_version", "hostname", "instance_id"})),
    **{f"ceph_rgw_{what}": Metric(_RGW, COUNTERS) for what in ("req", "failed_req", "qactive")},
    **{
        f"ceph_rgw_{operation}{what}": Metric(_RGW, COUNTERS, until=18)
        for operation in ("get", "put")
        for what in ("", "_b", "_initial_lat_sum", "_initial_lat_count")
    },
    **{
        f"ceph_rgw_op_{operation}_obj_{what}": Metric(_RGW, COUNTERS, since=19)
        for operation in ("get", "put")
        for what in ("ops", "bytes", "lat_sum", "lat_count")
    },
    **{f"ceph_mds_{what}": Metric(_OSD, COUNTERS) for what in ("caps", "inodes", "log_seg", "sessions_session_count")},
    **_averages("ceph_mds_log_", "jlat"),
    **_averages(
        "ceph_mds_server_req_",
        "create_latency getattr_latency lookup_latency open_latency readdir_latency unlink_latency",
    ),
    # written by a gateway's own exporter, of which there is no capture: as published (ceph-nvmeof, prometheus.py)
    **{
        f"ceph_nvmeof_bdev_{what}_total": Metric(frozenset({"bdev_name"}), frozenset())
        for what in ("reads_completed", "writes_completed", "read_seconds", "write_seconds")
    },
} | {
    f"ceph_bluestore_slow_{step}_count": Metric(_OSD, COUNTERS, since=18)
    for step in ("aio_wait", "committed_kv", "read_onode_meta", "read_wait_aio")
} | {
    f"ceph_rbd_{operation}_latency_{suffix}": Metric(_IMAGE, uncaptured=_NO_IMAGES)
    for operation in ("read", "write")
    for suffix in ("sum", "count")
} | {
    f"ceph_num_objects_{state}": Metric(frozenset()) for state in ("degraded", "misplaced", "unfound")
} | {
    f"ceph_pool_{what}": Metric(_POOL)
    for what in (
        "percent_used", "stored", "max_avail", "rd", "wr", "rd_bytes", "wr_bytes", "recovering_bytes_per_sec",
        "objects", "quota_bytes", "quota_objects",
    )
} | {
    f"ceph_pg_{state}": Metric(_POOL)
    for state in (
        "total", "active", "creating", "stale", "degraded", "undersized", "recovering", "backfilling", "remapped",
        "inconsistent", "recovery_unfound", "backfill_unfound", "failed_repair", "snaptrim", "snaptrim_wait",
    )
}  # fmt: skip

LABELS: dict[str, frozenset[str]] = {name: metric.labels for name, metric in METRICS.items()}
"""Name → labels as 16.2, or the first release that has it, writes them."""
