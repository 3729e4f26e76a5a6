"""The output of ``rados bench --format json``, of Ceph 16 to 20: nearly JSON.

    hints = 1
    {"concurrent_ios":"4","object_size":"65536", …,"datas":[{"sec":"0", …},{"sec":"3", …}Cleaning up (deleting benchmark objects)
    Removed 1185 objects
    Clean up completed and total clean up time :2.1507
    ],"total_time_run":"3.005183","total_writes_made":"1185","write_size":"65536","bandwidth":"24.644923",
    "average_iops":"394","stddev_iops":"1137091504","average_latency":"0.010132","max_latency":"0.056924", …}

There is text before, inside and after the document; numbers are strings, but may also be plain numbers; the key is
``max_latency``, or ``max_latency:`` in older releases; ``stddev_iops`` can be an uninitialised word. The output of a
failed run is incomplete. So nothing is decoded: the few keys needed are searched for in the totals, after ``datas``,
and each must be a valid number. https://github.com/ceph/ceph/blob/main/src/common/obj_bencher.cc

``bandwidth`` is in MiB/s; latencies are in seconds. There are no percentiles, and none are derived.
"""  # noqa: E501  (verbatim)

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from plumbline.errors import ParseError

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|-?nan|-?inf"
_PREFIX = re.compile(r'"object_prefix"\s*:\s*"([^"]{1,300})"')
MIB = 2**20


@dataclass(frozen=True, slots=True)
class RadosBenchReport:
    """The totals of a run."""

    operations: int
    object_bytes: int
    duration_s: float
    iops: float
    bytes_per_second: float
    mean_s: float
    max_s: float | None


def parse_rados_bench(text: str, *, source: str = "rados bench") -> RadosBenchReport:
    """Parse the totals; :class:`ParseError` for a run that is incomplete, did nothing, or has invalid figures."""
    _, found, totals = text.rpartition('"datas"')
    if not found:
        raise ParseError(source, "no JSON document")
    duration = _positive(totals, "total_time_run", source)
    made = _find(totals, "total_writes_made")
    operations = made if made is not None else _find(totals, "total_reads_made")
    if operations is None:
        raise ParseError(source, "neither total_writes_made nor total_reads_made: it broke off")
    if operations < 1 or operations != int(operations):
        raise ParseError(source, f"{operations:g} operations")
    bandwidth = _positive(totals, "bandwidth", source)
    size = _find(totals, "object_size")
    longest = _find(totals, "max_latency")
    mean = _positive(totals, "average_latency", source)
    return RadosBenchReport(
        operations=int(operations),
        object_bytes=int(size) if size is not None and size >= 0 else 0,
        duration_s=duration,
        iops=operations / duration,  # average_iops is the same, truncated to a whole number
        bytes_per_second=bandwidth * MIB,
        mean_s=mean,
        max_s=longest if longest is not None and longest >= mean else None,
    )


def object_prefix(text: str) -> str:
    """``benchmark_data_<host>_<pid>``; empty if it is not in the output."""
    found = _PREFIX.search(text)
    return found[1] if found else ""


def _positive(text: str, key: str, source: str) -> float:
    value = _find(text, key)
    if value is None or value <= 0:
        raise ParseError(source, f"no {key}" if value is None else f"{key} = {value:g}")
    return value


def _find(text: str, key: str) -> float | None:
    """The last number of this name, in quotes or not; ``None`` if it is missing or not finite."""
    found = re.findall(rf'"{key}:?"\s*:\s*"?({_NUMBER})"?', text)
    value = float(found[-1]) if found else math.nan
    return value if math.isfinite(value) else None
