"""Which link is stacked on which: VLANs, bonds, bridges. A frame lost below is often counted again above.

https://man7.org/linux/man-pages/man7/rtnetlink.7.html (``IFLA_LINK``, ``IFLA_MASTER``)

Rules use the losses of the lowest link: one that is never the ``device`` of a relation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plumbline.sources.net.links import Link

# kinds that come in pairs: their ``IFLA_LINK`` is the peer, not a link below
_PEERS = frozenset({"veth", "vxcan", "netkit"})


@dataclass(frozen=True, slots=True)
class Relation:
    """``device`` is stacked on ``lower``; ``kind`` joins them: ``vlan``, ``bond``, ``bridge``, ``macvlan`` …"""

    device: str
    lower: str
    kind: str


def relations(links: Mapping[int, Link]) -> tuple[Relation, ...]:
    """All relations inside one network namespace; an end in another namespace is omitted."""
    found = []
    for index, link in links.items():
        lower = links.get(link.lower_index)
        if lower is not None and link.lower_index != index and link.kind not in _PEERS:
            found.append(Relation(link.name, lower.name, link.kind))
        master = links.get(link.master_index)
        if master is not None:
            found.append(Relation(master.name, link.name, link.slave_kind or master.kind))
    return tuple(found)
