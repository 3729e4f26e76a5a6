"""The places of the cluster's OSDs in CRUSH, and their usage, from monitors and manager.

    ceph osd tree -f json  {"nodes": [{"id": -13, "name": "store-1", "type": "host", "children": [0]},
                            {"id": 0, "device_class": "hdd", "name": "osd.0", "type": "osd",
                             "crush_weight": 0.0038909912109375, "status": "up", "reweight": 1, …}], "stray": […]}
    ceph osd df -f json    {"nodes": [{"id": 0, "name": "osd.0", "kb": 4194304, "kb_used": 529308, …}], "stray": […]}

An OSD that is out keeps its place, but ``osd df`` reports its sizes as 0. An OSD that is not in CRUSH is "stray".
https://docs.ceph.com/en/latest/rados/operations/crush-map/
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plumbline.errors import ParseError

_WRONG = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True)
class Place:
    """An OSD's place in CRUSH; a field is empty when no bucket of that type is above it."""

    device_class: str
    root: str
    rack: str
    host: str
    """The CRUSH bucket, whose name the map's author chose freely."""
    weight: float
    """CRUSH weight, usually TiB; 0: no data is placed on it."""


@dataclass(frozen=True, slots=True)
class OsdInMap:
    """One OSD of the map."""

    daemon: str
    """``osd.3``."""
    reweight_ratio: float
    """0: out, 1: gets the full share of its CRUSH weight."""
    place: Place | None
    """``None``: it is not in CRUSH."""
    up: bool


@dataclass(frozen=True, slots=True)
class OsdUse:
    """An OSD's usage, as reported to the manager."""

    size_kib: int
    used_kib: int
    """Including metadata."""


def parse_osd_tree(answer: Any) -> tuple[OsdInMap, ...]:
    """Parse the decoded ``osd tree``, in order of OSD numbers; :class:`ParseError` when malformed.

    For an OSD in several places, the first place counts.
    """
    try:
        nodes: dict[int, Any] = {}
        above: dict[int, int] = {}
        for node in answer["nodes"]:
            nodes.setdefault(int(node["id"]), node)
            for child in node.get("children", ()):
                above.setdefault(int(child), int(node["id"]))
        found = {
            number: _osd(node, _place(node, _ancestors(number, above, nodes)))
            for number, node in nodes.items()
            if node["type"] == "osd"
        }
        for node in answer.get("stray", ()):
            found.setdefault(int(node["id"]), _osd(node, None))
    except _WRONG as error:
        raise ParseError("ceph osd tree", f"not as Ceph 16 to 20 say it: {type(error).__name__}: {error}") from None
    return tuple(found[number] for number in sorted(found))


def parse_osd_df(answer: Any) -> Mapping[str, OsdUse]:
    """Parse the decoded ``osd df``: OSD → its usage, if it has reported any; :class:`ParseError` when malformed."""
    try:
        everything = [*answer["nodes"], *answer.get("stray", ())]
        found = {str(node["name"]): OsdUse(int(node["kb"]), int(node["kb_used"])) for node in everything}
    except _WRONG as error:
        raise ParseError("ceph osd df", f"not as Ceph 16 to 20 say it: {type(error).__name__}: {error}") from None
    return {daemon: use for daemon, use in found.items() if use.size_kib > 0}


def _osd(node: Mapping[str, Any], place: Place | None) -> OsdInMap:
    return OsdInMap(str(node["name"]), _finite(node["reweight"]), place, node["status"] == "up")


def _place(node: Mapping[str, Any], ancestors: Mapping[str, str]) -> Place:
    return Place(
        device_class=str(node.get("device_class", "")),
        root=ancestors.get("root", ""),
        rack=ancestors.get("rack", ""),
        host=ancestors.get("host", ""),
        weight=_finite(node["crush_weight"]),
    )


def _ancestors(number: int, above: Mapping[int, int], nodes: Mapping[int, Any]) -> Mapping[str, str]:
    """Bucket type → name of the nearest bucket of that type."""
    found: dict[str, str] = {}
    for bucket in _way_up(number, above):
        found.setdefault(str(nodes[bucket]["type"]), str(nodes[bucket]["name"]))
    return found


def _way_up(number: int, above: Mapping[int, int]) -> Iterator[int]:
    seen = {number}
    while (parent := above.get(number)) is not None and parent not in seen:  # a malformed tree may contain a cycle
        yield parent
        seen.add(parent)
        number = parent


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no weight")
    return number
