"""Which interfaces carry Ceph's traffic: from its clients (public) and between OSDs (cluster).

Of three sources the first that says anything holds, for each role by itself: this exporter's configuration,
``ceph.conf`` (networks and daemons' addresses), open sockets. Without a cluster network Ceph uses the public one for
both, and so does this. A role reaches down: if a VLAN on a bond has the address, the VLAN, the bond and the bond's
ports carry the traffic.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from plumbline.core.roots import Roots
from plumbline.errors import Unavailable
from plumbline.sources.ceph.ceph_conf import CephConf, read_ceph_conf
from plumbline.sources.ceph.ceph_sockets import CephSockets, read_sockets
from plumbline.sources.net.addresses import Address, read_addresses
from plumbline.sources.net.links import Link, read_links
from plumbline.sources.net.netlink import Netlink
from plumbline.sources.net.relations import relations

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
PUBLIC, CLUSTER = "ceph_public", "ceph_cluster"
_CARRIERS = frozenset({"bond", "team", "vlan", "bridge"})
"""Software kinds that may stand between an address and a port; a bridge's other ports are guests."""


@dataclass(frozen=True, slots=True, order=True)
class Role:
    """``device`` carries this traffic."""

    device: str
    role: str


Configured = Mapping[str, tuple[str, ...]]
"""Devices by role, as the configuration has them; a role that is absent or empty is to be found out."""


def assign(
    links: Mapping[int, Link],
    addresses: Iterable[Address],
    *,
    configured: Configured,
    conf: CephConf | None,
    sockets: Callable[[], CephSockets],
) -> tuple[Role, ...]:
    """Roles in order. ``sockets`` is asked only when nothing else says where Ceph is, and only on a node of Ceph."""
    local = [
        (links[each.ifindex].name, each.address)
        for each in addresses
        if each.ifindex in links and not each.address.is_loopback
    ]
    told: Mapping[str, Sequence[str]] = _by_conf(local, conf) if conf is not None else {}
    if conf is not None and not told and not all(configured.get(role) for role in (PUBLIC, CLUSTER)):
        seen = sockets()
        told = {
            PUBLIC: [name for name, address in local if address in seen.public],
            CLUSTER: [name for name, address in local if address in seen.cluster],
        }
    lowers = _lowers(links)
    roles = set()
    for role in (PUBLIC, CLUSTER):
        for device in configured.get(role) or told.get(role, ()):
            roles |= {Role(each, role) for each in _with_lowers(device, lowers)}
    present = {link.name for link in links.values()}
    return tuple(sorted(each for each in roles if each.device in present))


def read_roles(roots: Roots, route: Netlink, *, configured: Configured) -> tuple[Role, ...]:
    """As things are now; raises when links or addresses can't be listed or ``ceph.conf`` is malformed."""
    conf: CephConf | None
    try:
        conf = read_ceph_conf(roots)
    except Unavailable:
        # cephadm's files are not for everybody; that there is such a directory is
        conf = CephConf() if (roots.var / "lib" / "ceph").is_dir() else None
    return assign(
        read_links(route),
        read_addresses(route),
        configured=configured,
        conf=conf,
        sockets=lambda: read_sockets(roots),
    )


def _by_conf(local: list[tuple[str, IpAddress]], conf: CephConf) -> dict[str, list[str]]:
    """Devices by role; empty when the file names neither network nor address that is here."""
    public = [
        name
        for name, address in local
        if address in conf.public_addresses or any(address in network for network in conf.public_networks)
    ]
    cluster = [
        name
        for name, address in local
        if address in conf.cluster_addresses or any(address in network for network in conf.cluster_networks)
    ]
    if not public and not cluster:
        return {}
    separate = conf.cluster_networks or conf.cluster_addresses
    return {PUBLIC: public, CLUSTER: cluster if separate else public}


def _lowers(links: Mapping[int, Link]) -> dict[str, list[str]]:
    kinds = {link.name: link for link in links.values()}
    found: dict[str, list[str]] = defaultdict(list)
    for each in relations(links):
        lower = kinds[each.lower]
        if lower.hardware or lower.kind in _CARRIERS:
            found[each.device].append(each.lower)
    return found


def _with_lowers(device: str, lowers: Mapping[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [device]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(lowers.get(name, ()))
    return reached
