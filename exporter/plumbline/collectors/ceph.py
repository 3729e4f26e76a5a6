"""The Ceph cluster as probes see it: whether it answers, and which gates are open."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, declared, gauge
from plumbline.probes.ceph.ceph_status import GATES
from plumbline.probes.ceph.cluster import ClusterView

REACHABLE = gauge("plumbline_ceph_reachable", "1: the monitors answer the probes' user in time. Absent if none asks.")
GATE_OPEN = gauge(
    "plumbline_ceph_gate_open",
    "0: the cluster's state keeps probes from running: health, recovery, full or maintenance. Absent while"
    " the cluster does not answer, which stops them too.",
    ("gate",),
)
FLAG = gauge(
    "plumbline_ceph_maintenance_flag",
    "1: a flag that announces maintenance is set for a host (`ceph osd set-group`, cephadm's maintenance mode), or,"
    " without a host, for the whole cluster. Absent otherwise.",
    ("host", "flag"),
)
CHECK = gauge(
    "plumbline_ceph_health_check",
    "How many OSDs, placement groups or pools a health check is about that the monitors raise and nobody muted; 1 where"
    " Ceph gives no number. Absent otherwise.",
    ("name", "severity"),
)
LOCK_HELD = gauge(
    "plumbline_ceph_lock_held", "1: this node holds the lock for heavy probes; one node in the cluster does."
)


def samples(view: ClusterView) -> Iterator[Sample]:
    yield REACHABLE, (), int(view.reachable)
    if view.reachable:
        for gate in GATES:
            yield GATE_OPEN, (gate,), int(gate not in view.closed)
    for labels in view.flags:
        yield FLAG, labels, 1
    for name, severity, count in view.checks:
        yield CHECK, (name, severity), count
    yield LOCK_HELD, (), int(view.lock_held)


COLLECTOR: Collector[Host, ClusterView] = Collector(
    "ceph",
    declared(globals()),
    lambda host, _skip: host.parts.latest(ClusterView),
    samples,
    origin="the monitors, as the probes see them",
    needs_daemon=True,
)
