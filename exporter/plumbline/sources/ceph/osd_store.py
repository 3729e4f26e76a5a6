"""An OSD's store and scheduler: free-space fragmentation, onode cache hits, and the capacity that mClock assumes.

Answers on the admin socket::

    bluestore allocator score block                →  {"fragmentation_rating": 0.00088365191593341218}
    perf dump                                      →  {"bluestore": {"onode_hits": 118, "onode_misses": 104, …}, …}
    config get osd_mclock_max_capacity_iops_ssd    →  {"osd_mclock_max_capacity_iops_ssd": "21500.000000"}
    config get osd_op_queue                        →  {"osd_op_queue": "mclock_scheduler"}

The rating is Ceph's own, 0 (one extent) to 1 (only single allocation units). Of the two capacities, the OSD uses that
of its device's type: ``_hdd`` if the kernel calls it rotational.
https://docs.ceph.com/en/latest/rados/configuration/mclock-config-ref/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from plumbline.errors import ParseError
from plumbline.sources.ceph.adminsocket import decode

CAPACITY_OPTIONS = {"hdd": "osd_mclock_max_capacity_iops_hdd", "ssd": "osd_mclock_max_capacity_iops_ssd"}
QUEUE_OPTION = "osd_op_queue"
MCLOCK = "mclock_scheduler"

_Count = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class OnodeCache:
    """Lookups of object metadata since the daemon's start."""

    hits: int
    misses: int


class _Bluestore(msgspec.Struct, frozen=True):
    onode_hits: _Count | None = None
    onode_misses: _Count | None = None
    old_hits: _Count | None = msgspec.field(name="bluestore_onode_hits", default=None)
    old_misses: _Count | None = msgspec.field(name="bluestore_onode_misses", default=None)


class _Counters(msgspec.Struct, frozen=True):
    bluestore: _Bluestore = _Bluestore()


class _Score(msgspec.Struct, frozen=True):
    fragmentation_rating: Annotated[float, Meta(ge=0, le=1)]


def parse_onode_cache(counters: bytes, *, source: str) -> OnodeCache | None:
    """Parse ``perf dump``; ``None`` when the release lacks these counters. Before 17, their names were longer."""
    found = decode(_Counters, counters, source=source).bluestore
    hits = found.old_hits if found.onode_hits is None else found.onode_hits
    misses = found.old_misses if found.onode_misses is None else found.onode_misses
    return None if hits is None or misses is None else OnodeCache(hits, misses)


def parse_fragmentation(data: bytes, *, source: str) -> float:
    """Parse ``bluestore allocator score block``: a ratio."""
    return decode(_Score, data, source=source).fragmentation_rating


def parse_option(data: bytes, option: str, *, source: str) -> str:
    """The value of one option from ``config get``; :class:`ParseError` when it is missing."""
    values = decode(dict[str, str], data, source=source)
    if option not in values:
        raise ParseError(source, f"no {option}")
    return values[option]


def parse_capacity(data: bytes, option: str, *, source: str) -> float:
    """The value of a capacity option, in operations of 4 KiB per second; :class:`ParseError` when not a number."""
    text = parse_option(data, option, source=source)
    try:
        iops = float(text)
    except ValueError:
        raise ParseError(source, f"{option} = {text[:40]!r}: not a number") from None
    if not 0 <= iops < 1e12:  # also rejects nan
        raise ParseError(source, f"{option} = {text[:40]!r}: out of range")
    return iops
