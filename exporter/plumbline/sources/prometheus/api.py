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

Values are strings, including ``NaN`` and ``+Inf``. Prometheus rejects more than 11,000 points per series.
"""

import math
import re
import ssl
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from plumbline.errors import ParseError, Unavailable
from plumbline.sources.http import NO_ANSWER, exchange, why
from plumbline.sources.prometheus.access import OPEN, Access

MAX_BYTES = 32 << 20  # some hundred bytes per series: a thousand OSDs take a few MiB
MAX_POINTS = 11_000  # points of one series in one answer; Prometheus rejects requests for more


# units of Prometheus's durations; a year has 365 days
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800, "y": 31_536_000}


class Series(msgspec.Struct, frozen=True):
    """One series at one moment. ``labels`` without the name."""

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
    metric: dict[str, str]
    value: tuple[float, str]


class _Values(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    values: tuple[tuple[float, str], ...]


class _Data(msgspec.Struct, frozen=True):
    result_type: str = msgspec.field(name="resultType")
    result: tuple[msgspec.Raw, ...]


class _Answer(msgspec.Struct, frozen=True):
    status: str
    data: _Data | None = None
    error: str = ""


def parse_vector(data: bytes, *, source: str) -> tuple[Series, ...]:
    """Parse an instant query's answer; series whose value is NaN (0/0) are omitted. :class:`ParseError` on an error."""
    found = []
    with _parsing(source):
        for result in _results(data, "vector", source):
            series = msgspec.json.decode(bytes(result), type=_Result)
            name = series.metric.pop("__name__", "")
            found.append(Series(name, series.metric, float(series.value[1])))
    return tuple(series for series in found if not math.isnan(series.value))


def parse_matrix(data: bytes, *, source: str) -> tuple[Track, ...]:
    """Parse a range query's answer; NaN points, and series with no other points, are omitted. Otherwise as above."""
    tracks = []
    with _parsing(source):
        for result in _results(data, "matrix", source):
            series = msgspec.json.decode(bytes(result), type=_Values)
            points = ((at, float(value)) for at, value in series.values)
            tracks.append(Track(series.metric, tuple(point for point in points if not math.isnan(point[1]))))
    return tuple(track for track in tracks if track.points)


def _results(data: bytes, kind: str, source: str) -> tuple[msgspec.Raw, ...]:
    answer = msgspec.json.decode(data, type=_Answer)
    if answer.status != "success":
        raise ParseError(source, f"Prometheus refused the query: {answer.error[:160]}")
    if answer.data is None or answer.data.result_type != kind:
        raise ParseError(source, f"not the answer to {'an instant' if kind == 'vector' else 'a range'} query")
    return answer.data.result


@contextmanager
def _parsing(source: str) -> Iterator[None]:
    try:
        yield
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ParseError(source, f"not an answer of Prometheus: {str(error)[:120]}") from error


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
    with _parsing(source):
        answer = msgspec.json.decode(data, type=_RulesAnswer)
        if answer.data is None:
            raise ParseError(source, f"Prometheus did not tell its rules: {answer.error[:160]}")
        return tuple(rule for group in answer.data.groups for rule in group.rules)


def read_alertmanagers(url: str, *, timeout_s: float, access: Access = OPEN) -> tuple[str, ...]:
    """The URLs of the Alertmanagers that the server at ``url`` sends its alerts to."""
    return parse_alertmanagers(_ask(url, "alertmanagers", None, timeout_s, access), source=url)


def parse_alertmanagers(data: bytes, *, source: str) -> tuple[str, ...]:
    with _parsing(source):
        answer = msgspec.json.decode(data, type=_ManagersAnswer)
        if answer.data is None:
            raise ParseError(source, f"Prometheus did not tell its Alertmanagers: {answer.error[:160]}")
        return tuple(each.get("url", "") for each in answer.data.active)


def read_retention(url: str, *, timeout_s: float, access: Access = OPEN) -> float | None:
    """For how many seconds the server at ``url`` keeps samples; ``None`` where it does not say, as Thanos and Mimir."""
    try:
        return parse_retention(_ask(url, "status/runtimeinfo", None, timeout_s, access), source=url)
    except (ParseError, Unavailable):
        return None


def parse_retention(data: bytes, *, source: str) -> float | None:
    """Seconds; ``None`` where only a size bounds it. :class:`ParseError` when it is another answer."""
    with _parsing(source):
        text = msgspec.json.decode(data, type=_RuntimeAnswer).data.retention.split(" or ")[0]
    parts = re.findall(r"(\d+)(ms|[ywdhms])", text)
    if not parts or "".join(map("".join, parts)) != text:
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in parts) or None


def _ask(url: str, what: str, form: Mapping[str, str] | None, timeout_s: float, access: Access) -> bytes:
    """The answer, which may be an error in Prometheus's own JSON. Without ``form`` it is a GET. ``Unavailable`` when
    there is none."""
    address = f"{url.rstrip('/')}/api/v1/{what}"
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise Unavailable(f"{url}: not the address of a Prometheus server; http://host:9090 is one")
    if "@" in urllib.parse.urlsplit(address).netloc:
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
        raise Unavailable(f"{url}: HTTP {page.status} {page.reason}; {hint}")
    if len(page.body) > MAX_BYTES:
        raise ParseError(url, f"more than {MAX_BYTES} bytes")
    return page.body
