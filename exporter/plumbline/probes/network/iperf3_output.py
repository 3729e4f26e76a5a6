"""``iperf3 --json`` → bytes per second, retransmits, or why there are none.

https://software.es.net/iperf/invoking.html

::

    {"start": {"version": "iperf 3.12", …}, "intervals": […],
     "end": {"streams": […],
             "sum_sent": {"bytes": 48869184, "bits_per_second": 195465496.7, "retransmits": 5466, …},
             "sum_received": {"bytes": 47890336, "bits_per_second": 191467142.1, …}, …}}

A test that could not start has ``"error": "…"`` and an empty ``end``; one that was aborted has both an error and the
figures up to then, which are not a result. Exit statuses differ between releases (3.12 exits with 0).
"""

import math
from typing import Any

from msgspec import Struct

from plumbline.core.foreign import parse_json
from plumbline.errors import ParseError

SOURCE = "iperf3 --json"


class Transfer(Struct, frozen=True):
    """One direction, all streams together."""

    bytes_per_second: float
    """What arrived at the receiver; part of what the sender passed to its kernel may still be in buffers."""
    retransmits: int | None  # The sender's; None if its kernel does not report it
    streams: int


class Report(Struct, frozen=True):
    """One test's report. ``transfer`` is ``None`` if and only if there is an ``error``."""

    transfer: Transfer | None
    error: str = ""


def parse_report(data: bytes, *, source: str = SOURCE) -> Report:
    """Raises :class:`ParseError` for anything but a report."""
    document = parse_json(data.decode("utf-8", "replace"), source=source)
    if not isinstance(document, dict):
        raise ParseError(source, "not an object")
    error = document.get("error")
    if isinstance(error, str) and error.strip():
        return Report(None, " ".join(error.split())[:300])
    return Report(_transfer(_object(document, "end", source), source))


def _transfer(end: dict[str, Any], source: str) -> Transfer:
    received = _object(end, "sum_received", source)
    sent = end.get("sum_sent")
    sent = sent if isinstance(sent, dict) else {}
    streams = end.get("streams")
    return Transfer(
        bytes_per_second=_number(received, "bits_per_second", source) / 8,
        retransmits=_count(sent.get("retransmits")),
        streams=len(streams) if isinstance(streams, list) else 0,
    )


def _object(within: dict[str, Any], key: str, source: str) -> dict[str, Any]:
    value = within.get(key)
    if not isinstance(value, dict):
        raise ParseError(source, f"no {key}")
    return value


def _number(within: dict[str, Any], key: str, source: str) -> float:
    value = within.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseError(source, f"{key} is no number: {str(value)[:40]!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < 0:
        raise ParseError(source, f"{key} is {number:g}")
    return number


def _count(value: object) -> int | None:
    """A counter; absent or -1 if the sender's kernel does not know it."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        return None
    return value
