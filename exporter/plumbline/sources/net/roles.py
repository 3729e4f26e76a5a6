"""Which interfaces carry Ceph's traffic: from its clients (public), and between OSDs (cluster).

A role comes from this exporter's configuration, else from ``ceph.conf`` (networks and daemon addresses), or from open
sockets if that gives no role at all. Without a cluster network, the public one counts for both, as for Ceph. A role
extends downwards: with a VLAN on a bond, the VLAN, the bond and its ports carry the traffic.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import Unavailable
from plumbline.sources.ceph.ceph_conf import CephConf, read_ceph_conf
from plumbline.sources.ceph.ceph_sockets import CephSockets, read_sockets
from plumbline.sources.net.links import Link, Relation, read_links, relations
from plumbline.sources.net.lldp import NeighbourReading
from plumbline.sources.net.netlink import Netlink
from plumbline.sources.net.routes import Address, IpAddress, IpNetwork, read_addresses

PUBLIC, CLUSTER = "ceph_public", "ceph_cluster"
# software kinds that may lie between an address and a port; other ports of a bridge belong to guests
_CARRIERS = frozenset({"bond", "team", "vlan", "bridge"})


class Role(Struct, frozen=True, order=True):
    """``device`` carries traffic of this role."""

    device: str
    role: str


Configured = Mapping[str, tuple[str, ...]]  # Devices by role; one that is absent or empty is detected


class TopologyReading(NamedTuple):
    """How links are stacked, what Ceph uses them for, and what is at the other end."""

    relations: tuple[Relation, ...] = ()
    roles: tuple[Role, ...] = ()
    neighbours: NeighbourReading = NeighbourReading()


def assign(
    links: Mapping[int, Link],
    addresses: Iterable[Address],
    *,
    configured: Configured,
    conf: CephConf | None,
    sockets: Callable[[], CephSockets],
) -> tuple[Role, ...]:
    """Roles in order. ``sockets`` is called only on a Ceph node, if neither ``conf`` nor ``configured`` suffices."""
    local = [
        (links[address.ifindex].name, address.address)
        for address in addresses
        if address.ifindex in links and not address.address.is_loopback
    ]
    detected: Mapping[str, Sequence[str]] = _by_conf(local, conf) if conf is not None else {}
    if conf is not None and not detected and not all(configured.get(role) for role in (PUBLIC, CLUSTER)):
        open_sockets = sockets()
        detected = {
            PUBLIC: [name for name, address in local if address in open_sockets.public],
            CLUSTER: [name for name, address in local if address in open_sockets.cluster],
        }
    lowers = _lowers(links)
    roles = set()
    for role in (PUBLIC, CLUSTER):
        for device in configured.get(role) or detected.get(role, ()):
            roles |= {Role(carrier, role) for carrier in _with_lowers(device, lowers)}
    present = {link.name for link in links.values()}
    return tuple(sorted(role for role in roles if role.device in present))


def read_roles(roots: Roots, route: Netlink, *, configured: Configured) -> tuple[Role, ...]:
    """The current roles; raises when links or addresses can't be listed or ``ceph.conf`` is malformed."""
    conf: CephConf | None
    try:
        conf = read_ceph_conf(roots)
    except Unavailable:
        # cephadm's files may be unreadable, but the directory shows that Ceph is here
        conf = CephConf() if (roots.var / "lib" / "ceph").is_dir() else None
    return assign(
        read_links(route), read_addresses(route), configured=configured, conf=conf, sockets=lambda: read_sockets(roots)
    )


def _by_conf(local: list[tuple[str, IpAddress]], conf: CephConf) -> dict[str, list[str]]:
    """Devices by role; empty when the file names no local network or address."""

    def devices(addresses: Container[IpAddress], networks: Iterable[IpNetwork]) -> list[str]:
        return [
            name for name, address in local if address in addresses or any(address in network for network in networks)
        ]

    public = devices(conf.public_addresses, conf.public_networks)
    cluster = devices(conf.cluster_addresses, conf.cluster_networks)
    if not public and not cluster:
        return {}
    separate = conf.cluster_networks or conf.cluster_addresses
    return {PUBLIC: public, CLUSTER: cluster if separate else public}


def _lowers(links: Mapping[int, Link]) -> dict[str, list[str]]:
    kinds = {link.name: link for link in links.values()}
    lowers: dict[str, list[str]] = defaultdict(list)
    for relation in relations(links):
        lower = kinds[relation.lower]
        if lower.hardware or lower.kind in _CARRIERS:
            lowers[relation.device].append(relation.lower)
    return lowers


def _with_lowers(device: str, lowers: Mapping[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [device]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(lowers.get(name, ()))
    return reached
