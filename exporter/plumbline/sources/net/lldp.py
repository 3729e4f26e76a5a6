"""What a network port is connected to, as lldpd heard it (LLDP, and CDP or EDP where it is told to):
``lldpcli -f json0 show neighbors`` of lldpd 1.0 (https://lldpd.github.io/usage.html; ``src/client/json_writer.c``)::

    {"lldp": [{"interface": [{"name": "ens1f0", "via": "LLDP", "age": "0 day, 00:00:12",
      "chassis": [{"id": [{"type": "mac", "value": "00:1c:73:aa:bb:01"}], "name": [{"value": "tor-a"}], …}],
      "port": [{"id": [{"type": "ifname", "value": "Ethernet1/7"}], "descr": [{"value": "stor01 ens1f0"}],
                "mfs": [{"value": "9236"}], …}], …}]}]}

In this format everything that may be repeated is a list, even if it is there once. A switch without a name has the id
of its chassis. ``mfs`` is the largest frame that the other side says it takes (IEEE 802.3's TLV 4), with its headers.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from plumbline.core.foreign import parse_json, shaped
from plumbline.core.process import Runner
from plumbline.core.roots import Roots
from plumbline.sources.command import printed

COMMAND = ("lldpcli", "-f", "json0", "show", "neighbors")
_WHAT = "lldpcli show neighbors"
_WITHIN_S = 10.0
_LONGEST = 200  # a description is free text; LLDP allows 255 bytes


class Neighbour(Struct, frozen=True, order=True):
    """The other end of a port's cable. A port behind a hub has several."""

    device: str
    system: str  # the switch's name, or its chassis id
    port: str  # its port, as the switch calls it
    description: str = ""  # what its administrator wrote there
    max_frame_bytes: int | None = None


class NeighbourReading(tuple[Neighbour, ...]):
    """All that lldpd knows; empty where none runs."""


def parse_neighbours(data: bytes) -> NeighbourReading:
    """Parse the command's output; :class:`ParseError` for another form. A neighbour that names neither itself nor its
    port is left out."""
    answer = parse_json(data, source=_WHAT)
    with shaped(_WHAT, "not the json0 of lldpd 1.0"):
        neighbours = [
            _neighbour(entry) for whole in answer["lldp"] for entry in whole.get("interface", ()) if entry.get("port")
        ]
    return NeighbourReading(sorted({entry for entry in neighbours if entry.system or entry.port}))


def _neighbour(interface: Mapping[str, Any]) -> Neighbour:
    chassis: Mapping[str, Any] = (interface.get("chassis") or ({},))[0]
    port = interface["port"][0]
    frame = _text(port, "mfs")
    return Neighbour(
        str(interface["name"]),
        _text(chassis, "name") or _text(chassis, "id"),
        _text(port, "id"),
        _text(port, "descr"),
        int(frame) if frame.isdigit() and 0 < int(frame) < 1 << 16 else None,
    )


def _text(part: Mapping[str, Any], key: str) -> str:
    """The first value; empty if there is none."""
    first: Mapping[str, Any] = (part.get(key) or ({},))[0]
    return str(first.get("value", ""))[:_LONGEST]


def read_neighbours(roots: Roots, runner: Runner) -> NeighbourReading:
    """Ask lldpd, if it runs. :class:`Unavailable` where its command is missing or not permitted; :class:`ParseError`
    for an answer of another form."""
    if not (roots.udev.parent / "lldpd.socket").exists():
        return NeighbourReading()
    done = runner.run(COMMAND, timeout_s=_WITHIN_S)
    return parse_neighbours(printed(done, _WHAT, _WITHIN_S, needs="the group of /run/lldpd.socket"))
