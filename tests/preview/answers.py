"""What Prometheus answers: instant and range vectors, label values; from a server, or from a recorded file."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

TIMEOUT_S = 60.0


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
class Recorded:
    """Answers by what was asked, whatever the time; what was not recorded has no data."""

    answers: dict[str, Any]

    @classmethod
    def load(cls, file: Path) -> Recorded:
        """As :class:`Recorder` wrote them."""
        return cls(json.loads(file.read_text("utf-8")))

    def get(self, endpoint: str, parameters: dict[str, str]) -> Any:
        """An empty answer where there is none."""
        return self.answers.get(_key(endpoint, parameters), [] if endpoint.startswith("label/") else {"result": []})


@dataclass(frozen=True, slots=True)
class Recorder:
    """A source that keeps what ``inner`` says."""

    inner: Source
    answers: dict[str, Any] = field(default_factory=dict)

    def get(self, endpoint: str, parameters: dict[str, str]) -> Any:
        """The inner source's answer."""
        found = self.inner.get(endpoint, parameters)
        self.answers[_key(endpoint, parameters)] = found
        return found

    def save(self, file: Path) -> None:
        """For :meth:`Recorded.load`."""
        lines = [f"{json.dumps(key)}: {json.dumps(self.answers[key])}" for key in sorted(self.answers)]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


@dataclass(frozen=True, slots=True)
class Window:
    """From when to when, Unix seconds, and the seconds between two points."""

    start: float
    end: float
    step: float


def instant(source: Source, expr: str, window: Window) -> list[Series]:
    """At the window's end."""
    return _series(source.get("query", {"query": expr, "time": f"{window.end:.3f}"}))


def ranged(source: Source, expr: str, window: Window) -> list[Series]:
    """Over the window."""
    asked = {"query": expr, "start": f"{window.start:.3f}", "end": f"{window.end:.3f}", "step": f"{window.step:g}"}
    return _series(source.get("query_range", asked))


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
