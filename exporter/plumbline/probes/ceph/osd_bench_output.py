"""The output of an OSD's own ``bench``, by ``ceph tell`` or its admin socket.

    {"bytes_written":1073741824,"blocksize":4194304,"elapsed_sec":1.734130467,"bytes_per_sec":619181684.67309451,
     "iops":147.62441746547091}

``iops`` is newer than the rest (Ceph 13). Ceph before 12 quoted ``bytes_per_sec``, and had no ``elapsed_sec``.
https://github.com/ceph/ceph/blob/main/src/osd/OSD.cc (``bench``)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plumbline.errors import ParseError


@dataclass(frozen=True, slots=True)
class OsdBenchReport:
    """Totals of one bench. ``None``: this release does not report it."""

    bytes_written: int
    block_bytes: int
    bytes_per_second: float
    elapsed_s: float | None
    iops: float | None


def parse_osd_bench(text: str, *, source: str = "ceph tell osd bench") -> OsdBenchReport:
    """Parse the figures; raises :class:`ParseError` for anything invalid."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError(source, "no JSON document") from None
    if not isinstance(found, dict):
        raise ParseError(source, "not a JSON object")
    written, block = _number(found, "bytes_written", source), _number(found, "blocksize", source)
    rate = _number(found, "bytes_per_sec", source)
    if written is None or block is None or rate is None:
        raise ParseError(source, "bytes_written, blocksize or bytes_per_sec is missing")
    return OsdBenchReport(
        int(written), int(block), rate, _number(found, "elapsed_sec", source), _number(found, "iops", source)
    )


def _number(found: Mapping[str, Any], key: str, source: str) -> float | None:
    value = found.get(key)
    if value is None:
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ParseError(source, f"{key} = {value!r:.60}")
    return number
