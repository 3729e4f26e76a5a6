"""Strict reading of baseline YAML: every error is a :class:`BaselineError` with file, key, value and reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from plumbline.baseline.units import Latency
from plumbline.config.types import Strict
from plumbline.config.workloads import STATISTICS, Workload, load_catalogue
from plumbline.config.yaml import convert, read_yaml
from plumbline.errors import BaselineError, ConfigError

T = TypeVar("T")
SCHEMA_VERSION = 1


class Printed(Strict, frozen=True):
    """Something that a document shows or says: the name of the place, and the line of its text."""

    where: str
    line: int


class Latencies(Strict, frozen=True, omit_defaults=True):
    """Latency by statistic. A struct instead of a mapping, so that errors name the key."""

    mean: Latency | None = None
    p50: Latency | None = None
    p95: Latency | None = None
    p99: Latency | None = None
    p999: Latency | None = None
    max: Latency | None = None

    def items(self) -> Iterator[tuple[str, Latency]]:
        for statistic in STATISTICS:
            figure = getattr(self, statistic)
            if figure is not None:
                yield statistic, figure

    def seconds(self) -> dict[str, float]:
        """Seconds by statistic, as in :attr:`BaselineEntry.latency`."""
        return {statistic: figure.value for statistic, figure in self.items()}


def convert_text(kind: type[T], text: str, *, where: str) -> T:
    """Convert YAML text to ``kind``. The schema version is checked first, because newer files may have unknown keys.
    Raises :class:`BaselineError`."""
    try:
        data = read_yaml(text, where=where)
        _check_version(data, where)
        return convert(kind, data, where=where)
    except ConfigError as error:
        # a key may contain anything, even line breaks; the error stays on one line
        reason, key = (" ".join(part.split()) for part in (error.reason, error.key))
        raise BaselineError(error.where, reason, key=key, value=error.value) from error


class Place(msgspec.Struct, frozen=True):
    """A file and a key in it, such as ``entries[0]``; makes the errors for the keys below it."""

    where: str
    key: str = ""

    def at(self, key: str) -> Place:
        return Place(self.where, f"{self.key}.{key}".strip("."))

    def error(self, key: str, reason: str, value: object = None) -> BaselineError:
        """The error to raise for ``key``; for the place itself if that is empty."""
        return BaselineError(self.where, reason, key=self.at(key).key, value=value)

    def workload(self, name: str, key: str = "workload") -> Workload:
        """The named workload. Raises :class:`BaselineError` with the nearest known ids."""
        try:
            return load_catalogue().get(name, where=self.where, key=self.at(key).key)
        except ConfigError as error:
            raise BaselineError(error.where, error.reason, key=error.key, value=error.value) from error

    def operation(self, name: str, workload: Workload) -> str:
        """The named operation, which may be left out if the workload has only one. Raises :class:`BaselineError`."""
        if not name and len(workload.operations) == 1:
            return workload.operations[0]
        if name not in workload.operations:
            raise self.error("operation", f"the workload has: {', '.join(workload.operations)}", name)
        return name


def _check_version(data: Any, where: str) -> None:
    if not isinstance(data, dict):
        raise BaselineError(where, "expected a mapping that begins with schema_version: 1")
    version = data.get("schema_version")
    if version is None:
        raise BaselineError(where, f"is missing; write schema_version: {SCHEMA_VERSION}", key="schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        reason = f"this Plumbline reads version {SCHEMA_VERSION}"
        raise BaselineError(where, reason, key="schema_version", value=version)
