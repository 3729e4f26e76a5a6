"""How links are stacked, and the roles Ceph gives them; for rules to join on."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import Sample, declared, gauge
from plumbline.sources.net.roles import TopologyReading

RELATION = gauge(
    "plumbline_nic_relation_info",
    "device is stacked on lower (vlan, bond, bridge …), so a frame may be counted on both.",
    ("device", "lower", "relation"),
)
ROLE = gauge(
    "plumbline_nic_role_info",
    "Ceph traffic on device: ceph_public (clients, monitors) or ceph_cluster (replication, recovery).",
    ("device", "role"),
)


def samples(reading: TopologyReading) -> Iterator[Sample]:
    for relation in reading.relations:
        yield RELATION, (relation.device, relation.lower, relation.kind), 1
    for role in reading.roles:
        yield ROLE, (role.device, role.role), 1


COLLECTOR: Collector[Host, TopologyReading] = Collector(
    "topology",
    declared(globals()),
    lambda host, _skip: TopologyReading(host.parts.network.read_relations(), host.parts.links.roles),
    samples,
    origin="rtnetlink (`IFLA_LINK`, `IFLA_MASTER`), `ceph.conf`, open sockets of Ceph's daemons",
    sized_by=("network port",),
)
