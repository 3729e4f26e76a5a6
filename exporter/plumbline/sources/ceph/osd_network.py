"""Heartbeats between OSDs, as seen by one of them: ``dump_osd_network 0`` on its admin socket.

https://docs.ceph.com/en/latest/rados/operations/monitoring/#network-performance-checks ::

    {"threshold": 0, "entries": [
        {"last update": "Sat Nov 21 12:39:52 2026", "stale": false, "from osd": 0, "to osd": 1, "interface": "back",
         "average": {"1min": 1.009, "5min": 5.576, "15min": 2.231}, "min": {…}, "max": {…}, "last": 0.334}, …]}

Times are milliseconds; every pair of OSDs pings every few seconds on both networks (``osd_heartbeat_interval``).
The list is empty in the first minute after a start. On 16.2 ``min`` equals ``max``, so neither is used. The peer's own
heartbeat thread answers pings, so delays come from the network or from a busy host, never from a disk.
"""

from collections import defaultdict
from statistics import median
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from plumbline.sources.ceph.adminsocket import decode

_Ms = Annotated[float, Meta(ge=0)]


class Heartbeats(msgspec.Struct, frozen=True):
    """One OSD's pings over one network, as averages of the last minute in seconds."""

    interface: str  # ``front`` (public network) or ``back`` (cluster network)
    median_s: float  # median over all its peers
    worst_s: float
    worst_peer: int
    peers: int


class _Averages(msgspec.Struct, frozen=True):
    one_minute: _Ms = msgspec.field(name="1min")


class _Entry(msgspec.Struct, frozen=True):
    to_osd: Annotated[int, Meta(ge=0)] = msgspec.field(name="to osd")
    interface: Literal["front", "back"]
    average: _Averages
    stale: bool = False


class _Dump(msgspec.Struct, frozen=True):
    entries: tuple[_Entry, ...]


def parse_heartbeats(data: bytes, *, source: str) -> tuple[Heartbeats, ...]:
    """A summary of each network that has peers, without entries that Ceph calls stale; ``ParseError`` if malformed."""
    peers: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for entry in decode(_Dump, data, source=source).entries:
        if not entry.stale:
            peers[entry.interface].append((entry.average.one_minute / 1e3, entry.to_osd))
    return tuple(_summary(interface, pings) for interface, pings in sorted(peers.items()))


def _summary(interface: str, pings: list[tuple[float, int]]) -> Heartbeats:
    worst_s, worst_peer = max(pings)
    return Heartbeats(
        interface=interface,
        median_s=median(seconds for seconds, _ in pings),
        worst_s=worst_s,
        worst_peer=worst_peer,
        peers=len(pings),
    )
