"""How links are stacked, the roles Ceph gives them, and what they are connected to; for rules to join on."""

from collections.abc import Iterator

from plumbline.collectors.host import Host, part
from plumbline.metrics.guard import Collector, SkipHook
from plumbline.metrics.spec import Sample, declared, gauge, known
from plumbline.sources.net.lldp import NeighbourReading
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
NEIGHBOUR = gauge(
    "plumbline_nic_neighbor_info",
    "What device is connected to, as lldpd heard it; switch is its name. Absent without lldpd.",
    ("device", "switch", "switch_port", "switch_port_description"),
)
NEIGHBOUR_FRAME = gauge(
    "plumbline_nic_neighbor_max_frame_bytes",
    "Largest frame that the other side says it takes, with its headers.",
    ("device", "switch", "switch_port"),
)


def samples(reading: TopologyReading) -> Iterator[Sample]:
    for relation in reading.relations:
        yield RELATION, (relation.device, relation.lower, relation.kind), 1
    for role in reading.roles:
        yield ROLE, (role.device, role.role), 1
    for other in reading.neighbours:
        yield NEIGHBOUR, (other.device, other.system, other.port, other.description), 1
    largest = {(other.device, other.system, other.port): other.max_frame_bytes for other in reading.neighbours}
    for labels, frame in largest.items():
        yield from known(labels, (NEIGHBOUR_FRAME, frame))


def _read(host: Host, skip: SkipHook) -> TopologyReading:
    neighbours = part(lambda: host.parts.latest(NeighbourReading), "the neighbours of ports", skip)
    return TopologyReading(
        host.parts.network.read_relations(), host.parts.links.roles, neighbours or NeighbourReading()
    )


COLLECTOR: Collector[Host, TopologyReading] = Collector(
    "topology",
    declared(globals()),
    _read,
    samples,
    skip_reasons=("unreadable",),
    origin="rtnetlink (`IFLA_LINK`, `IFLA_MASTER`), `ceph.conf`, open sockets of Ceph's daemons, `lldpcli`",
    sized_by=("network port",),
)
