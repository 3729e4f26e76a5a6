"""Query a Prometheus server for the values of series at one moment, or over a range of time.

https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries ::

    GET /api/v1/query?query=up
    {"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"__name__": "up", "job": "x"}, "value": [1763726400.1, "1"]}, …]}, "warnings": […]}
    {"status": "error", "errorType": "bad_data", "error": "invalid parameter \\"query\\": …"}

https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries ::

    GET /api/v1/query_range?query=up&start=1763726400&end=1763726460&step=60
    {"status": "success", "data": {"resultType": "matrix", "result": [
        {"metric": {"job": "x"}, "values": [[1763726400, "1"], [1763726460, "0"]]}, …]}}

https://prometheus.io/docs/prometheus/latest/querying/api/#rules ::

    GET /api/v1/rules
    {"status": "success", "data": {"groups": [{"name": "x", "rules": [
        {"type": "alerting", "name": "X", "health": "ok", "lastError": "",
         "alerts": [{"state": "firing", "annotations": {"runbook_url": "http://…"}, …}], …}, …]}, …]}}

https://prometheus.io/docs/prometheus/latest/querying/api/#runtime-information ::

    GET /api/v1/status/runtimeinfo
    {"status": "success", "data": {"storageRetention": "15d or 10GiB", …}}

Values are strings, including ``NaN`` and ``+Inf`` (0/0, 1/0). They, and those that nobody can calculate with, are
unknown: there is no value. Prometheus rejects more than 11,000 points per series.
"""

import re
import ssl
import urllib.parse
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from plumbline.core.foreign import Limits, decode_json, finite, one_line
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.http import NO_ANSWER, exchange, why
from plumbline.sources.prometheus.access import OPEN, Access

MAX_BYTES = 32 << 20  # some hundred bytes per series: a thousand OSDs take a few MiB
MAX_POINTS = 11_000  # points of one series in one answer; Prometheus rejects requests for more
_LIMITS = Limits(MAX_BYTES, 20, 5_000_000)  # a point has 25 bytes at least, and is three values

T = TypeVar("T")
_Time = Annotated[float, Meta(ge=0, le=250e9)]  # seconds; ends before the year 9999, the last of a date
_Labels = Annotated[
    dict[Annotated[str, Meta(max_length=200)], Annotated[str, Meta(max_length=4096)]], Meta(max_length=100)
]

# units of Prometheus's durations; a year has 365 days
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800, "y": 31_536_000}
_LONGEST_S = 1000 * 31_536_000.0  # whoever keeps samples for ever says a thousand years, or more
_UNKNOWN = re.compile(r"NaN|[+-]?Inf|[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,5})?")


class Series(msgspec.Struct, frozen=True):
    """One series at one moment. ``labels`` without the name; ``value`` is finite."""

    name: str
    labels: Mapping[str, str]
    value: float


class Track(msgspec.Struct, frozen=True):
    """One series over time. ``labels`` include the name, if there is one; ``points`` are (Unix seconds, value)."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    def key(self, names: Iterable[str]) -> tuple[str, ...]:
        """The values of these labels, empty where absent: the key by which series are matched."""
        return tuple(self.labels.get(name, "") for name in names)


class ActiveAlert(msgspec.Struct, frozen=True):
    """A pending or firing alert; its annotations are rendered."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    state: str = ""


class Rule(msgspec.Struct, frozen=True):
    """A loaded rule. ``health``: ``ok``, ``err`` or ``unknown`` (not evaluated yet)."""

    name: str
    kind: str = msgspec.field(name="type")
    health: str = "unknown"
    last_error: str = msgspec.field(name="lastError", default="")
    alerts: tuple[ActiveAlert, ...] = ()


class _Group(msgspec.Struct, frozen=True):
    rules: tuple[Rule, ...] = ()


class _Groups(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


class _RulesAnswer(msgspec.Struct, frozen=True):
    status: str
    data: _Groups | None = None
    error: str = ""


class _Runtime(msgspec.Struct, frozen=True):
    retention: str = msgspec.field(name="storageRetention", default="")


class _RuntimeAnswer(msgspec.Struct, frozen=True):
    status: str
    data: _Runtime = _Runtime()


class _Managers(msgspec.Struct, frozen=True):
    active: tuple[dict[str, str], ...] = msgspec.field(name="activeAlertmanagers", default=())


class _ManagersAnswer(msgspec.Struct, frozen=True):
    status: str
    data: _Managers | None = None
    error: str = ""


class _Result(msgspec.Struct, frozen=True):
    metric: _Labels
    value: tuple[_Time, str]


class _Values(msgspec.Struct, frozen=True):
    metric: _Labels
    values: Annotated[tuple[tuple[_Time, str], ...], Meta(max_length=MAX_POINTS)]


class _Data(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType")
    result: tuple[msgspec.Raw, ...]


class _Answer(msgspec.Struct, frozen=True):
    status: str
    data: _Data | None = None
    error: str = ""


def parse_vector(data: bytes, *, source: str) -> tuple[Series, ...]:
    """Parse an instant query's answer; series whose value is unknown are omitted. :class:`ParseError` on an error."""
    series = []
    for result in _results(data, "vector", source):
        vector = _decode(bytes(result), _Result, source)
        name = vector.metric.pop("__name__", "")
        if (value := _value(vector.value[1], source)) is not None:
            series.append(Series(name, vector.metric, value))
    return tuple(series)


def parse_matrix(data: bytes, *, source: str) -> tuple[Track, ...]:
    """Parse a range query's answer; unknown points, and series without others, are omitted. Otherwise as above."""
    tracks = []
    for result in _results(data, "matrix", source):
        matrix = _decode(bytes(result), _Values, source)
        if any(at >= then for (at, _), (then, _) in pairwise(matrix.values)):
            raise ParseError(source, "not an answer of Prometheus: a series whose times do not increase")
        points = ((at, _value(text, source)) for at, text in matrix.values)
        tracks.append(Track(matrix.metric, tuple((at, value) for at, value in points if value is not None)))
    return tuple(track for track in tracks if track.points)


def _value(text: str, source: str) -> float | None:
    """``None``: unknown."""
    value = finite(text)
    if value is None and not _UNKNOWN.fullmatch(text):
        raise ParseError(source, f"not an answer of Prometheus: a value is {one_line(text)!r}")
    return value


def _results(data: bytes, kind: str, source: str) -> tuple[msgspec.Raw, ...]:
    answer = _decode(data, _Answer, source)
    if answer.status != "success":
        raise ParseError(source, f"Prometheus refused the query: {one_line(answer.error)}")
    if answer.data is None or answer.data.result_type != kind:
        raise ParseError(source, f"not the answer to {'an instant' if kind == 'vector' else 'a range'} query")
    return answer.data.result


def _decode(data: bytes, kind: type[T], source: str) -> T:
    return decode_json(data, kind, source=source, limits=_LIMITS, what="not an answer of Prometheus")


def read_vector(
    url: str, query: str, *, timeout_s: float, at_s: float | None = None, access: Access = OPEN
) -> tuple[Series, ...]:
    """Query the server at ``url`` (``http://prometheus:9090``, with its path prefix), for now or the time ``at_s``."""
    form = {"query": query} if at_s is None else {"query": query, "time": f"{at_s:.3f}"}
    return parse_vector(_ask(url, "query", form, timeout_s, access), source=url)


def read_matrix(
    url: str, query: str, *, start_s: float, end_s: float, step_s: float, timeout_s: float, access: Access = OPEN
) -> tuple[Track, ...]:
    """Query over a range of time, both ends included; at most :data:`MAX_POINTS` per series."""
    form = {"query": query, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:.3f}"}
    return parse_matrix(_ask(url, "query_range", form, timeout_s, access), source=url)


def read_rules(url: str, *, timeout_s: float, access: Access = OPEN) -> tuple[Rule, ...]:
    """All rules that the server at ``url`` has loaded, with their active alerts."""
    return parse_rules(_ask(url, "rules", None, timeout_s, access), source=url)


def parse_rules(data: bytes, *, source: str) -> tuple[Rule, ...]:
    answer = _decode(data, _RulesAnswer, source)
    if answer.data is None:
        raise ParseError(source, f"Prometheus did not tell its rules: {one_line(answer.error)}")
    return tuple(rule for group in answer.data.groups for rule in group.rules)


def read_alertmanagers(url: str, *, timeout_s: float, access: Access = OPEN) -> tuple[str, ...]:
    """The URLs of the Alertmanagers that the server at ``url`` sends its alerts to."""
    return parse_alertmanagers(_ask(url, "alertmanagers", None, timeout_s, access), source=url)


def parse_alertmanagers(data: bytes, *, source: str) -> tuple[str, ...]:
    answer = _decode(data, _ManagersAnswer, source)
    if answer.data is None:
        raise ParseError(source, f"Prometheus did not tell its Alertmanagers: {one_line(answer.error)}")
    return tuple(manager.get("url", "") for manager in answer.data.active)


def read_retention(url: str, *, timeout_s: float, access: Access = OPEN) -> float | None:
    """For how many seconds the server at ``url`` keeps samples; ``None`` where it does not say, as Thanos and Mimir."""
    try:
        return parse_retention(_ask(url, "status/runtimeinfo", None, timeout_s, access), source=url)
    except (ParseError, Unavailable):
        return None


def parse_retention(data: bytes, *, source: str) -> float | None:
    """Seconds; ``None`` where only a size bounds it. :class:`ParseError` when it is another answer."""
    text = _decode(data, _RuntimeAnswer, source).data.retention.split(" or ")[0]
    parts = re.findall(r"([0-9]{1,9})(ms|[ywdhms])", text)
    if not parts or "".join(map("".join, parts)) != text:
        return None
    return min(sum(int(number) * _SECONDS[unit] for number, unit in parts), _LONGEST_S) or None


def _ask(url: str, what: str, form: Mapping[str, str] | None, timeout_s: float, access: Access) -> bytes:
    """The answer, which may be an error in Prometheus's own JSON. Without ``form`` it is a GET. ``Unavailable`` when
    there is none."""
    address = f"{url.rstrip('/')}/api/v1/{what}"
    try:
        parts = urllib.parse.urlsplit(address)
    except ValueError as error:
        raise Unavailable(f"{url}: not the address of a Prometheus server: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise Unavailable(f"{url}: not the address of a Prometheus server; http://host:9090 is one")
    if "@" in parts.netloc:
        raise Unavailable(
            "the address contains a password, which every user of this host can read; see --http.config.file"
        )
    body = None if form is None else urllib.parse.urlencode(form).encode()
    try:
        page = exchange(address, body, timeout_s=timeout_s, access=access, max_bytes=MAX_BYTES + 1)
    except NO_ANSWER as error:
        # with TLS 1.3, a server that requires our certificate just closes the connection
        is_tls = isinstance(error, ssl.SSLError) or isinstance(getattr(error, "reason", None), ssl.SSLError)
        hint = "; check the CA and the client certificate in --http.config.file" if is_tls else ""
        raise Unavailable(f"{url}: {why(error)}{hint}") from error
    if page.status >= 300 and not page.body.startswith(b"{"):
        hint = "is this a Prometheus server?"
        if page.status in (401, 403):
            asked = access.authorization is None
            hint = "it requires credentials: --http.config.file" if asked else "it rejected these credentials"
        raise Unavailable(f"{url}: HTTP {page.status} {one_line(page.reason)}; {hint}")
    if len(page.body) > MAX_BYTES:
        raise ParseError(url, f"more than {MAX_BYTES} bytes")
    return page.body
