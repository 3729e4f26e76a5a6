"""What Prometheus answers: instant and range vectors, label values; from a server, or from a recorded file."""

from __future__ import annotations

import gzip
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .variables import substitute

TIMEOUT_S = 60.0
_BEFORE_RATE_S = 60.0
"""``$__rate_interval`` for a scrape interval of 15 s, as Grafana has it where nothing is set."""


class PreviewError(Exception):
    """One line for the user."""


@dataclass(frozen=True, slots=True)
class Series:
    """Labels, and (Unix seconds, value) in order; one point where the query was instant."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]


class Source(Protocol):
    """Who answers: the ``data`` of https://prometheus.io/docs/prometheus/latest/querying/api/."""

    def get(self, endpoint: str, parameters: dict[str, str]) -> Any: ...


@dataclass(frozen=True, slots=True)
class Server:
    """A Prometheus at ``url``."""

    url: str

    def get(self, endpoint: str, parameters: dict[str, str]) -> Any:
        """Raise :class:`PreviewError` with Prometheus' own words."""
        address = f"{self.url.rstrip('/')}/api/v1/{endpoint}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise PreviewError(f"{self.url}: HTTP {error.code} to {parameters}: {said[:300]}") from error
        except (OSError, ValueError) as error:
            raise PreviewError(f"{self.url}: {error}; is this a Prometheus server?") from error


@dataclass(frozen=True, slots=True)
class Window:
    """From when to when, Unix seconds, and the seconds between two points."""

    start: float
    end: float
    step: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """Answers by what was asked, whatever the time; what was not recorded has no data.

    ``pages``: uid → the values of its variables, for the pages that were drawn over ``window``.
    """

    window: Window
    pages: dict[str, dict[str, str]]
    answers: dict[str, Any]

    @classmethod
    def load(cls, file: Path) -> Recorded:
        """As :class:`Recorder` wrote them."""
        content = json.loads(gzip.decompress(file.read_bytes()))
        return cls(Window(**content["window"]), content["pages"], content["answers"])

    def get(self, endpoint: str, parameters: dict[str, str]) -> Any:
        """An empty answer where there is none."""
        nothing = [] if endpoint.startswith("label/") else {"resultType": "vector", "result": []}
        return self.answers.get(_key(endpoint, parameters), nothing)


@dataclass(frozen=True, slots=True)
class Recorder:
    """A source that keeps what ``inner`` says, and which pages it was asked for."""

    inner: Source
    window: Window
    pages: dict[str, dict[str, str]] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)

    def get(self, endpoint: str, parameters: dict[str, str]) -> Any:
        """The inner source's answer."""
        found = self.inner.get(endpoint, parameters)
        self.answers[_key(endpoint, parameters)] = found
        return found

    def save(self, file: Path) -> None:
        """For :meth:`Recorded.load`: JSON, compressed without the time, so that the same is the same."""
        content = {"window": asdict(self.window), "pages": self.pages, "answers": self.answers}
        file.write_bytes(gzip.compress(json.dumps(content, sort_keys=True, indent=0).encode(), mtime=0))


def instant(source: Source, expr: str, window: Window) -> list[Series]:
    """At the window's end."""
    return _series(source.get("query", {"query": expr, "time": f"{window.end:.3f}"}))


def answer(source: Source, target: Mapping[str, Any], values: Mapping[str, str], window: Window) -> Any:
    """A panel's query with the page's variables, over the window unless it is an instant one."""
    expr = substitute(target["expr"], {**grafanas(window), **values})
    if target.get("instant") and not target.get("range"):
        return source.get("query", {"query": expr, "time": f"{window.end:.3f}"})
    asked = {"query": expr, "start": f"{window.start:.3f}", "end": f"{window.end:.3f}", "step": f"{window.step:g}"}
    return source.get("query_range", asked)


def grafanas(window: Window) -> dict[str, str]:
    """The variables that Grafana knows itself."""
    return {
        "__rate_interval": f"{max(_BEFORE_RATE_S, 4 * window.step):g}s",
        "__interval": f"{window.step:g}s",
        "__range": f"{window.end - window.start:.0f}s",
        "__range_s": f"{window.end - window.start:.0f}",
    }


def values(source: Source, selector: str, label: str) -> list[str]:
    """A label's values over the series of a selector."""
    found: list[str] = source.get(f"label/{label}/values", {"match[]": selector})
    return found


def _series(data: Any) -> list[Series]:
    return [Series(item["metric"], tuple(_points(item))) for item in data["result"] if isinstance(item, dict)]


def _points(item: dict[str, Any]) -> Iterable[tuple[float, float]]:
    for at, value in item.get("values") or [item["value"]]:
        yield float(at), float(value)


def _key(endpoint: str, parameters: dict[str, str]) -> str:
    return " ".join([endpoint, *(parameters[name] for name in ("query", "match[]") if name in parameters)])
