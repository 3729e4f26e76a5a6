"""The cluster's OSDs as its monitors report them: their host, their CRUSH class, whether they are up and in.

    ceph osd tree -f json     {"nodes": [{"id": -5, "name": "node-0", "type": "host", "children": [0]},
                               {"id": 0, "type": "osd", "device_class": "hdd", "status": "up", "reweight": 1, …}], "stray": […]}
    ceph node ls osd -f json  {"node-0": [0]}: the host name that each OSD's daemon reported

CRUSH's "hosts" are whatever the map's author made them, so a host's OSDs are those whose daemons run there; if no
daemon ever reported, those of the CRUSH host of that name. https://docs.ceph.com/en/latest/rados/operations/crush-map/

Light modules only: the canary's worker imports this.
"""  # noqa: E501  (verbatim)

from __future__ import annotations

from plumbline.core.foreign import shaped

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    class Monitors(Protocol):
        def mon_command(self, prefix: str, arguments: Mapping[str, Any] | None = None) -> Any: ...


HOST, ALL = "host", "all"
"""Words for several OSDs in a configuration."""


class Osd:
    """One OSD. ``state``: empty if it is up and in, otherwise ``down`` or ``out``."""

    __slots__ = ("crush_host", "device_class", "number", "state")

    def __init__(self, number: int, device_class: str, crush_host: str, state: str) -> None:
        self.number, self.device_class, self.crush_host, self.state = number, device_class, crush_host, state


class ClusterOsds:
    """All OSDs by number, and the numbers by the host their daemons run on."""

    __slots__ = ("by_host", "by_number")

    def __init__(self, by_number: Mapping[int, Osd], by_host: Mapping[str, Sequence[int]]) -> None:
        self.by_number, self.by_host = by_number, by_host

    def of_host(self, host: str) -> tuple[int, ...]:
        """Numbers of a host's OSDs; its name may be long in one place and short in the other."""
        reported = {number for name, numbers in self.by_host.items() if _same_host(name, host) for number in numbers}
        by_map = {osd.number for osd in self.by_number.values() if _same_host(osd.crush_host, host)}
        return tuple(sorted((reported or by_map) & self.by_number.keys()))

    def chosen(self, words: Sequence[str], host: str) -> tuple[int, ...]:
        """Numbers for the words in a configuration: ``host``, ``all``, ``osd.3``; missing OSDs are kept."""
        numbers: set[int] = set()
        for word in words:
            if word == ALL:
                numbers |= self.by_number.keys()
            elif word == HOST:
                numbers.update(self.of_host(host))
            else:
                numbers.add(int(word.removeprefix("osd.")))
        return tuple(sorted(numbers))


def parse_osds(tree: Any, nodes: Any) -> ClusterOsds:
    """Parse the decoded answers of ``osd tree`` and ``node ls osd``; raises :class:`ParseError`."""
    with shaped("ceph osd tree"):
        everything = [*tree["nodes"], *tree.get("stray", ())]
        hosts = {
            child: str(node["name"]) for node in everything if node["type"] == "host" for child in node["children"]
        }
        osds = {}
        for node in everything:
            if node["type"] == "osd":
                number = int(node["id"])
                osds[number] = Osd(number, str(node.get("device_class", "")), hosts.get(number, ""), _state(node))
        by_host = {str(host): tuple(int(number) for number in numbers) for host, numbers in nodes.items()}
    return ClusterOsds(osds, by_host)


def ask_osds(cluster: Monitors) -> ClusterOsds:
    """Two queries to the monitors; raises ``OSError``, :class:`ParseError`."""
    return parse_osds(cluster.mon_command("osd tree"), cluster.mon_command("node ls", {"type": "osd"}))


def to_json(osds: ClusterOsds) -> dict[str, Any]:
    facts = [(osd.number, osd.device_class, osd.crush_host, osd.state) for osd in osds.by_number.values()]
    return {"osds": facts, "hosts": dict(osds.by_host)}


def from_json(facts: Mapping[str, Any]) -> ClusterOsds:
    return ClusterOsds({fields[0]: Osd(*fields) for fields in facts["osds"]}, facts["hosts"])


def _state(node: Any) -> str:
    if node["status"] != "up":
        return "down"
    return "out" if float(node["reweight"]) == 0 else ""


def _same_host(host: str, other: str) -> bool:
    """``node1`` and ``node1.example.org`` are the same; two long names only if equal."""
    if "." in host and "." in other:
        return host == other
    return bool(host) and host.partition(".")[0] == other.partition(".")[0]
