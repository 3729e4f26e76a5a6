"""Parses what ``rbd`` prints: JSON of ``info``, ``status``, ``image-meta list`` and ``diff``, the text of ``bench``.

https://docs.ceph.com/en/latest/man/8/rbd/ · Ceph 12 to 20::

    {"name":"x","size":268435456,"order":22,"object_size":4194304,"snapshot_count":0,"features":["layering"], …}
    {"watchers":[{"address":"127.0.0.1:0/3506735386","client":4176,"cookie":139640594060864}]}
    {"plumbline.owner":"node-1/rbd-latency"}
    [{"offset":0,"length":4194304,"exists":"true"}]

``bench`` has no JSON in any release (``src/tools/rbd/action/Bench.cc`` of Ceph). Since 13::

    bench  type write io_size 4096 io_threads 4 bytes 8388608 pattern random
      SEC       OPS   OPS/SEC   BYTES/SEC
        1      1720   1730.92   6.8 MiB/s
    elapsed: 1   ops: 2048   ops/sec: 1735.59   bytes/sec: 6.8 MiB/s

Earlier, the last figure was plain (``bytes/sec: 7108976.64``) and the columns wider. The figure with a unit is rounded
to two digits, but every operation has the same size, so operations times size is more precise if the size is known.
"""

import math
import re
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from plumbline.core.foreign import decode_json
from plumbline.errors import ParseError

T = TypeVar("T")

_HEADER = re.compile(r"bench(?:-write)?\s.*\bio_size\s+(\d{1,18})\b")
_LAST = re.compile(r"elapsed:\s*(\S+)\s+ops:\s*(\S+)\s+ops/sec:\s*(\S+)\s+bytes/sec:\s*(\S+)(?:\s+(\S+))?$")
_UNITS = {"B/s": 0, "KiB/s": 10, "MiB/s": 20, "GiB/s": 30, "TiB/s": 40, "PiB/s": 50}


class ImageInfo(msgspec.Struct, frozen=True):
    """What decides whether the image can be used. ``parent``: of which image it is a clone."""

    size_bytes: Annotated[int, Meta(ge=0)] = msgspec.field(name="size")
    features: tuple[str, ...] = ()
    snapshot_count: Annotated[int, Meta(ge=0)] = 0
    parent: object = None


class Watcher(msgspec.Struct, frozen=True):
    """A client that has an image open. ``address`` is in Ceph's form: ``10.0.0.7:0/3506735386``."""

    address: str
    client: int | None = None

    @property
    def ip(self) -> str:
        return self.address.rpartition(":")[0].removeprefix("[").removesuffix("]")

    def __str__(self) -> str:
        return self.address if self.client is None else f"client.{self.client} at {self.address}"


class _Status(msgspec.Struct, frozen=True):
    # before Ceph 13 an object whose only key repeats
    watchers: tuple[Watcher, ...] | dict[str, Watcher] = ()


def parse_info(data: bytes) -> ImageInfo:
    return _decode(data, ImageInfo, "rbd info")


def parse_watchers(data: bytes) -> tuple[Watcher, ...]:
    watchers = _decode(data, _Status, "rbd status").watchers
    return tuple(watchers.values()) if isinstance(watchers, dict) else watchers


def parse_metadata(data: bytes) -> dict[str, str]:
    """Parse ``rbd image-meta list --format json``; without metadata some releases print nothing."""
    return _decode(data, dict[str, str], "rbd image-meta list") if data.strip() else {}


def parse_extents(data: bytes) -> int:
    """Parse ``rbd diff --format json``: the number of extents that hold data."""
    return len(_decode(data, list[dict[str, object]], "rbd diff"))


def _decode(data: bytes, kind: type[T], source: str) -> T:
    return decode_json(data, kind, source=source, what="unexpected output")


class RbdBenchReport(msgspec.Struct, frozen=True):
    """Totals of one bench; ``throughput`` in bytes per second. No release reports a latency."""

    operations: int
    iops: float
    throughput: float


def parse_rbd_bench(text: str, *, source: str = "rbd bench") -> RbdBenchReport:
    """Parse the last line's figures; raises :class:`ParseError` if it is missing or malformed."""
    io_size: int | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if match := _HEADER.match(line):
            io_size = int(match[1])
        if not line.startswith("elapsed:"):
            continue
        last_line = _LAST.match(line)
        if last_line is None:
            raise ParseError(source, f"expected elapsed, ops, ops/sec and bytes/sec, found {line[:100]!r}", line=number)
        _, operations, iops, amount, unit = last_line.groups()
        if not (operations.isascii() and operations.isdigit() and len(operations) <= 18):
            raise ParseError(source, f"not a number of operations: {operations[:40]!r}", line=number)
        if unit is not None and unit not in _UNITS:
            raise ParseError(source, f"unknown unit {unit[:40]!r}", line=number)
        iops_value = _number(iops, source, number)
        printed = _number(amount, source, number) * 2.0 ** _UNITS[unit or "B/s"]
        throughput = iops_value * io_size if io_size is not None else printed
        if not math.isfinite(throughput):
            raise ParseError(source, f"not a throughput: {line[:100]!r}", line=number)
        return RbdBenchReport(int(operations), iops_value, throughput)
    raise ParseError(source, "ended without its last line (elapsed: … ops: …)")


def _number(word: str, source: str, line: int) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise ParseError(source, f"not a number: {word[:40]!r}", line=line)
    return value
