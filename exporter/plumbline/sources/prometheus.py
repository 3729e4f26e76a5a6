"""Asks a Prometheus server for the present value of series.

https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries ::

    GET /api/v1/query?query=up
    {"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"__name__": "up", "job": "x"}, "value": [1763726400.1, "1"]}, …]}, "warnings": […]}
    {"status": "error", "errorType": "bad_data", "error": "invalid parameter \\"query\\": …"}

Values are text, ``NaN`` and ``+Inf`` among them.
"""

from __future__ import annotations

import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException

import msgspec

from plumbline.errors import ParseError, Unavailable

MAX_BYTES = 32 << 20
"""Some hundred bytes a series: a thousand OSDs are a few MiB."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series now. ``labels`` without the name."""

    name: str
    labels: Mapping[str, str]
    value: float


class _Result(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType")
    result: tuple[msgspec.Raw, ...]


class _Answer(msgspec.Struct, frozen=True):
    status: str
    data: _Data | None = None
    error: str = ""


def parse_vector(data: bytes, *, source: str) -> tuple[Series, ...]:
    """The series of an instant query's answer; those whose value is not a number (0/0) are left out."""
    try:
        answer = msgspec.json.decode(data, type=_Answer)
        if answer.status != "success":
            raise ParseError(source, f"Prometheus refused the query: {answer.error[:160]}")
        if answer.data is None or answer.data.result_type != "vector":
            raise ParseError(source, "not the answer of an instant query")
        found = [msgspec.json.decode(bytes(each), type=_Result) for each in answer.data.result]
        values = [float(each.value[1]) for each in found]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ParseError(source, f"not what Prometheus answers: {str(error)[:120]}") from error
    return tuple(
        Series(each.metric.get("__name__", ""), {k: v for k, v in each.metric.items() if k != "__name__"}, value)
        for each, value in zip(found, values, strict=True)
        if not math.isnan(value)
    )


def read_vector(url: str, query: str, *, timeout_s: float) -> tuple[Series, ...]:
    """Ask the server at ``url`` (``http://prometheus:9090``, with the path it is served under)."""
    address = f"{url.rstrip('/')}/api/v1/query"
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise Unavailable(f"{url}: not the address of a Prometheus server; http://host:9090 is one")
    body = urllib.parse.urlencode({"query": query}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data=body), timeout=timeout_s) as response:  # noqa: S310
            data = response.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(MAX_BYTES)
        if said.startswith(b"{"):
            return parse_vector(said, source=url)
        raise Unavailable(f"{url}: HTTP {error.code} {error.reason}; is this a Prometheus server?") from error
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise Unavailable(f"{url}: {str(reason) or type(reason).__name__}") from error
    if len(data) > MAX_BYTES:
        raise ParseError(url, f"more than {MAX_BYTES} bytes")
    return parse_vector(data, source=url)
