"""Which link stands on which: VLANs, bonds, bridges. A frame lost below is often counted above once more.

https://man7.org/linux/man-pages/man7/rtnetlink.7.html (``IFLA_LINK``, ``IFLA_MASTER``)

Rules take losses of the lowest link: the one that is no ``device`` of any relation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plumbline.sources.net.links import Link

_PEERS = frozenset({"veth", "vxcan", "netkit"})
"""Kinds that are pairs: there ``IFLA_LINK`` is the other end, which stands beside and not below."""


@dataclass(frozen=True, slots=True)
class Relation:
    """``device`` stands on ``lower``; ``kind`` is what joins them: ``vlan``, ``bond``, ``bridge``, ``macvlan`` …"""

    device: str
    lower: str
    kind: str


def relations(links: Mapping[int, Link]) -> tuple[Relation, ...]:
    """All relations inside one network namespace; an end in another namespace is not shown."""
    found = []
    for index, link in links.items():
        lower = links.get(link.lower_index)
        if lower is not None and link.lower_index != index and link.kind not in _PEERS:
            found.append(Relation(link.name, lower.name, link.kind))
        master = links.get(link.master_index)
        if master is not None:
            found.append(Relation(master.name, link.name, link.slave_kind or master.kind))
    return tuple(found)
