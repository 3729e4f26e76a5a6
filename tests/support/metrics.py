"""Every metric name that rules and dashboards may use."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from plumbline.collectors.registry import every_spec
from plumbline.metrics.spec import Kind

from .ceph_schema import LABELS
from .rulefiles import load

ROOT = Path(__file__).parents[2]
PROCESS = (
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_open_fds",
)

OF_PROMETHEUS: dict[str, frozenset[str]] = {
    "scrape_duration_seconds": frozenset(),
    "process_max_fds": frozenset(),
    "prometheus_notifications_dropped_total": frozenset(),
    "prometheus_rule_evaluation_failures_total": frozenset({"rule_group"}),
    "prometheus_rule_group_iterations_missed_total": frozenset({"rule_group"}),
    "prometheus_target_scrape_pool_exceeded_label_limits_total": frozenset(),
    "prometheus_target_scrape_pool_exceeded_target_limit_total": frozenset(),
    "prometheus_target_scrapes_exceeded_body_size_limit_total": frozenset(),
    "prometheus_target_scrapes_exceeded_sample_limit_total": frozenset(),
    "alertmanager_notifications_failed_total": frozenset({"integration"}),
}
"""What Prometheus and Alertmanager say of themselves, as far as rules read it → its labels but the target's."""

_PORT = frozenset({"ifIndex", "ifName", "ifDescr"})
SNMP: dict[str, frozenset[str] | None] = {
    "sysName": frozenset({"sysName"}),
    **dict.fromkeys(("ifInDiscards", "ifOutDiscards", "ifInErrors", "dot3InPauseFrames", "dot3OutPauseFrames"), _PORT),
}
"""What snmp_exporter makes of a switch: modules ``system``, ``if_mib``, and EtherLike-MIB with the same look-ups."""
FOREIGN: dict[str, frozenset[str] | None] = {
    "up": None,
    "ALERTS": None,
    **LABELS,
    **SNMP,
}
"""Series of others that rules read → their labels as Ceph's manager writes them (16.2 to 20); ``None``: whatever the
target and the alert have."""


@cache
def known_metrics() -> frozenset[str]:
    """Sample names of our catalogue, our recording rules, and the process metrics of prometheus_client."""
    names: set[str] = set(PROCESS)
    for spec in every_spec():
        # the bare name is that of a native histogram
        suffixes = ("", "_bucket", "_sum", "_count") if spec.kind is Kind.HISTOGRAM else ("",)
        names |= {spec.name + suffix for suffix in suffixes}
    for file in (ROOT / "alerts" / "out").glob("*.yaml"):
        for group in load(file).get("groups", []):
            names |= {rule["record"] for rule in group["rules"] if "record" in rule}
    return frozenset(names)


LAYER: dict[str, frozenset[str]] = {
    "plumbline:osd_operations:rate5m": frozenset({"ceph_daemon", "operation"}),
    "plumbline:osd_latency:mean5m": frozenset({"ceph_daemon", "operation", "part"}),
    "plumbline:osd_store_latency:mean5m": frozenset({"ceph_daemon", "part"}),
    "plumbline:osd:info": frozenset({"back_iface", "ceph_daemon", "device_class", "front_iface", "hostname"}),
    "plumbline:osd_latency:p99_seconds": frozenset({"ceph_daemon", "operation"}),
}
"""What is recorded from Ceph's own metrics → its labels. Tests of what stands on it begin there."""
FOREIGN |= LAYER
