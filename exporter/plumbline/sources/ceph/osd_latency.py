"""Latencies of an OSD's client operations: its two-dimensional histograms, reduced to the latency axis.

``perf histogram dump`` on the admin socket; ``src/osd/osd_perf_counters.cc`` (what is counted) and
``src/common/perf_histogram.h`` (the form) of Ceph::

    {"osd": {"op_w_latency_in_bytes_histogram": {
        "axes": [{"name": "Latency (usec)", "scale_type": "log2", "quant_size": 100000, "buckets": 32,
                  "ranges": [{"max": -1}, {"min": 0, "max": 99999}, {"min": 100000, "max": 199999}, …, {"min": …}]},
                 {"name": "Request size (bytes)", …}],
        "values": [[0, 0, …], …]}}}

The latency axis is named "usec" but counts nanoseconds (measured on 16.2: operations of 1 to 13 ms fill the buckets
from 0.8 to 12.8 ms). A row of ``values`` is one latency range, a column one size range. Latency is from the message's
arrival to the reply, including the queue, as in ``op_w_latency``, which has the sum over the same operations
(``perf dump``). Read-modify-write operations have two histograms, by bytes in and by bytes out; one of them is used.

``perf dump`` also has ``subop_w_latency``, a replica's part of other OSDs' writes, from the message's arrival to this
OSD's own commit. Its priority is 0, so neither of Ceph's exporters shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from plumbline.core.histogram import HistogramValue
from plumbline.errors import ParseError
from plumbline.sources.ceph.adminsocket import decode

OPERATIONS: Mapping[str, tuple[str, str]] = {
    "read": ("op_r_latency_out_bytes_histogram", "op_r_latency"),
    "write": ("op_w_latency_in_bytes_histogram", "op_w_latency"),
    "read-modify-write": ("op_rw_latency_in_bytes_histogram", "op_rw_latency"),
}
"""Operation → its histogram, and the counter with its sum."""

EDGES_NS = tuple(100_000 << power for power in range(20))
"""0.1 ms to 52 s, doubling: Ceph's own, without the last ten, which exceed every timeout and count as +Inf."""
EDGES = tuple(edge / 1e9 for edge in EDGES_NS)

_Count = Annotated[int, Meta(ge=0)]


class _Range(msgspec.Struct, frozen=True):
    min: int | None = None
    max: int | None = None


class _Axis(msgspec.Struct, frozen=True):
    ranges: tuple[_Range, ...]


class _Histogram(msgspec.Struct, frozen=True):
    axes: tuple[_Axis, ...]
    values: tuple[tuple[_Count, ...], ...]


class _Histograms(msgspec.Struct, frozen=True):
    osd: dict[str, msgspec.Raw] = {}


class LongRunAverage(msgspec.Struct, frozen=True):
    """A ``*_latency`` counter: the number of operations and their total seconds."""

    avgcount: _Count = 0
    sum: Annotated[float, Meta(ge=0)] = 0.0


class _Counters(msgspec.Struct, frozen=True):
    osd: dict[str, msgspec.Raw] = {}


def parse_latencies(histograms: bytes, counters: bytes, *, source: str) -> dict[str, HistogramValue]:
    """Parse operation → histogram in seconds, from ``perf histogram dump`` and ``perf dump`` of one daemon.

    Operations that the release does not count are omitted. The two dumps are moments apart, so the sum may include
    a few operations more than the buckets. :class:`ParseError` when the format differs.
    """
    found = decode(_Histograms, histograms, source=source).osd
    sums = decode(_Counters, counters, source=source).osd
    return {
        operation: _collapse(found[name], _sum(sums.get(average), f"{source}: {average}"), f"{source}: {name}")
        for operation, (name, average) in OPERATIONS.items()
        if name in found
    }


def _collapse(raw: msgspec.Raw, total_s: float, source: str) -> HistogramValue:
    histogram = decode(_Histogram, bytes(raw), source=source)
    if not histogram.axes or len(histogram.axes[0].ranges) != len(histogram.values):
        raise ParseError(source, "as many rows of values as ranges of latency were expected")
    below = [0] * len(EDGES_NS)
    count = 0
    for span, row in zip(histogram.axes[0].ranges, histogram.values, strict=True):
        operations = sum(row)
        count += operations
        if not operations or span.max is None:
            continue
        # a range ends one nanosecond before the next one begins
        first = next((index for index, edge in enumerate(EDGES_NS) if edge > span.max), None)
        if first is not None:
            below[first] += operations
    cumulative, running = [], 0
    for operations in below:
        running += operations
        cumulative.append(running)
    return HistogramValue(edges=EDGES, cumulative=cumulative, count=count, sum=total_s)


def _sum(raw: msgspec.Raw | None, source: str) -> float:
    return decode(LongRunAverage, bytes(raw), source=source).sum if raw is not None else 0.0
