"""Parses fio's output with ``--output-format=json+``.

Format: https://fio.readthedocs.io/en/latest/fio_doc.html#json-output and ``stat.c`` of fio. With ``--output=FILE`` fio
also writes its messages to that file, so lines of text may precede the document:

    fio: io_u error on file fio.0: No space left on device: write offset=0, buflen=4096
    {
      "fio version" : "fio-3.33",
      "jobs" : [ { "jobname" : "plumbline", "error" : 28, "read" : {…}, "write" : {…}, "sync" : {…} } ],
      …
    }

With ``--status-interval`` it writes such a document again and again; the last is the report, and those before it say
how many operations the job had done by then, and in how many milliseconds.

Times are nanoseconds. ``lat_ns`` is submission to completion as the program saw it; it has percentiles and bins only
with ``lat_percentiles=1``. Bins are keyed by the middle of a bucket (1/128 wide: within 0.8 %), so a percentile derived
from them may exceed the true maximum; it is clamped to the maximum here.
"""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta

from plumbline.core.foreign import decode_json
from plumbline.errors import ParseError

REPORT_MAX_BYTES = 8 << 20  # Anything larger is not a report: one with all bins is about 100 KiB

_SHORTEST_MS = 500  # A part of a run that is shorter gives no rate: the last status comes shortly before the report
_STATISTIC = {"50.000000": "p50", "95.000000": "p95", "99.000000": "p99", "99.900000": "p999"}
_Count = Annotated[int, Meta(ge=0)]
_Measure = Annotated[float, Meta(ge=0)] | None  # None: fio had nothing to calculate it from
_NO_NUMBER = re.compile(rb"([:\[,]\s*)-?(?:nan|inf)(?=\s*[,}\]])", re.IGNORECASE)


class _Times(msgspec.Struct, frozen=True):
    n: _Count = msgspec.field(name="N", default=0)
    mean: _Measure = 0.0
    max: _Measure = 0.0
    percentile: dict[str, _Measure] = {}
    bins: dict[str, _Count] = {}


class _Direction(msgspec.Struct, frozen=True):
    """``read`` or ``write`` of a job."""

    total_ios: _Count
    iops: _Measure
    bw_bytes: _Measure
    runtime: _Count = 0
    lat_ns: _Times = _Times()
    clat_ns: _Times = _Times()


class _Job(msgspec.Struct, frozen=True):
    jobname: str
    error: int
    read: _Direction
    write: _Direction
    latency_depth: _Count = 0


class _Document(msgspec.Struct, frozen=True):
    version: str = msgspec.field(name="fio version")
    jobs: list[_Job]


class Latency(msgspec.Struct, frozen=True):
    """Seconds. ``statistics`` by name: mean, max, and the requested ones of p50, p95, p99, p999."""

    count: int
    statistics: dict[str, float]
    bins: tuple[tuple[float, int], ...]
    """Bucket middles with their counts, ascending; empty if no percentiles were requested."""


class Figures(msgspec.Struct, frozen=True):
    """One direction of a job. ``throughput`` in bytes per second."""

    operations: int
    iops: float
    throughput: float
    latency: Latency | None
    rates: tuple[float, ...] = ()  # Operations per second from one status to the next; empty without any


class FioReport(msgspec.Struct, frozen=True):
    """One job (all its processes together, as with ``group_reporting``). ``error`` is an errno, 0 for none; ``read``
    and ``write`` are ``None`` if no such operation finished. Flushes are left out: they belong to no data operation."""

    error: int
    read: Figures | None
    write: Figures | None
    notes: tuple[str, ...]  # Lines before the document: fio's messages
    latency_depth: int | None = None
    """Operations in flight at the end of a search for a latency (``latency_target``); ``None`` without a search."""


def parse_report(data: bytes, *, job: str, source: str = "fio output") -> FioReport:
    """The report on the job named ``job``; raises :class:`ParseError` for anything but a complete fio document."""
    notes, documents = _split(data)
    if not documents:
        raise ParseError(source, "holds no JSON document" + (f", only: {notes[0][:200]}" if notes else ""))
    entries = [_entry(line, document, job, source) for line, document in documents]
    entry = entries[-1]
    return FioReport(
        error=entry.error,
        read=_figures([status.read for status in entries], source),
        write=_figures([status.write for status in entries], source),
        notes=notes,
        latency_depth=entry.latency_depth or None,
    )


def _entry(line: int, document: bytes, job: str, source: str) -> _Job:
    decoded = decode_json(document, _Document, source=source, what="not what fio writes", line=line)
    entries = [entry for entry in decoded.jobs if entry.jobname == job]
    if len(entries) != 1:
        raise ParseError(source, f"expected one job named {job!r}, found {len(entries)} of {len(decoded.jobs)}")
    return entries[0]


def split_notes(data: bytes) -> tuple[str, ...]:
    """Only the lines before the document, for when the document itself is missing or broken."""
    return _split(data)[0]


def _split(data: bytes) -> tuple[tuple[str, ...], list[tuple[int, bytes]]]:
    """Lines of text before the documents and between them, and each document with its first line's number: from a line
    that begins with ``{`` to the last before the next such line that ends with ``}``. What fio could not calculate
    (``nan``, ``-nan``, ``inf``) is ``null``: no error where nobody uses it."""
    lines = data.split(b"\n")
    begins = [at for at, line in enumerate(lines) if line.startswith(b"{")]
    text, documents = lines[: begins[0]] if begins else lines, []
    for begin, until in pairwise([*begins, len(lines)]):
        end = next((at for at in range(until - 1, begin - 1, -1) if lines[at].rstrip().endswith(b"}")), until - 1)
        documents.append((begin + 1, _NO_NUMBER.sub(rb"\1null", b"\n".join(lines[begin : end + 1]))))
        text += lines[end + 1 : until] if until < len(lines) else []
    return tuple(note for line in text if (note := line.decode("utf-8", "replace").strip())), documents


def _figures(course: Sequence[_Direction], source: str) -> Figures | None:
    direction = course[-1]
    if direction.total_ios == 0:
        return None
    if direction.iops is None or direction.bw_bytes is None:
        raise ParseError(source, "no rate of the operations that finished")
    latency = _latency(direction.lat_ns, source) or _latency(direction.clat_ns, source)
    return Figures(direction.total_ios, direction.iops, direction.bw_bytes, latency, _rates(course))


def _rates(course: Sequence[_Direction]) -> tuple[float, ...]:
    if len(course) == 1:
        return ()
    points = [(0, 0), *((status.runtime, status.total_ios) for status in course)]
    return tuple(
        (done - before) * 1000 / (ms - since)
        for (since, before), (ms, done) in pairwise(points)
        if ms - since >= _SHORTEST_MS and done >= before
    )


def _latency(times: _Times, source: str) -> Latency | None:
    if times.n == 0:
        return None
    if times.mean is None or times.max is None:
        raise ParseError(source, "no latency of the operations that finished")
    statistics = {"mean": times.mean / 1e9}
    for key, name in _STATISTIC.items():
        if (percentile := times.percentile.get(key)) is not None:
            statistics[name] = min(percentile, times.max) / 1e9
    statistics["max"] = times.max / 1e9
    try:
        bins = sorted((int(middle) / 1e9, count) for middle, count in times.bins.items())
    except (ValueError, OverflowError) as error:
        raise ParseError(source, f"a latency bin is not a number of nanoseconds: {error}") from error
    if not all(math.isfinite(value) for value in statistics.values()) or (bins and bins[0][0] < 0):
        raise ParseError(source, "a latency is negative or not finite")
    return Latency(times.n, statistics, tuple(bins))
