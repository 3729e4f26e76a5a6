"""The types of all metrics. Each collector module owns its specs; the reference is generated from them.

A *sample* is a plain tuple ``(spec, label values, value)``, a tenth of an object's cost for ten thousand per scrape, in
base units that the collector converts to, once. Missing is no series, never ``None``; zero is measured zero.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import TypeAlias

from plumbline.core.histogram import HistogramValue

_NAME = re.compile(r"plumbline_[a-z0-9]+(?:_[a-z0-9]+)*")
_LABEL = re.compile(r"[a-z][a-z0-9_]*")


class Kind(StrEnum):
    """Metric type, named as in the exposition formats."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, eq=False)
class MetricSpec:
    """One metric family, compared by identity. ``name`` is the full sample name (counters with ``_total``; histograms
    without a suffix), ``labels`` are in the order of samples' values. A wrong spec raises ``ValueError`` at import."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"metric name {self.name!r} must be plumbline_ and words in lower case")
        if (self.kind is Kind.COUNTER) != self.name.endswith("_total"):
            raise ValueError(f"{self.name}: counters, and only counters, end in _total")
        if not self.help.strip() or "\n" in self.help:
            raise ValueError(f"{self.name}: help must be one non-empty line")
        bad = [label for label in self.labels if not _LABEL.fullmatch(label) or label == "le"]
        if bad or len(set(self.labels)) != len(self.labels):
            raise ValueError(f"{self.name}: bad or repeated label names {self.labels}")


def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> MetricSpec:
    """A counter's spec; ``name`` ends in ``_total``."""
    return MetricSpec(name, Kind.COUNTER, text, labels)


def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> MetricSpec:
    """A gauge's spec."""
    return MetricSpec(name, Kind.GAUGE, text, labels)


def histogram(name: str, text: str, labels: tuple[str, ...] = ()) -> MetricSpec:
    """A classic histogram's spec; ``name`` has no suffix."""
    return MetricSpec(name, Kind.HISTOGRAM, text, labels)


def declared(namespace: Mapping[str, object]) -> tuple[MetricSpec, ...]:
    """The specs in a collector module's namespace. Call ``declared(globals())`` after the last spec."""
    return tuple(member for member in namespace.values() if isinstance(member, MetricSpec))


def le_text(edge: float) -> str:
    """A bucket edge as the ``le`` label of every format: the canonical float of OpenMetrics (Go's ``%g`` with a decimal
    point): ``0.005``, ``1.0``, ``1e-05``, ``2.5e+06``, ``+Inf``. ``le`` is matched as a string, so the renderer and any
    label that names an edge must write the same."""
    if edge == inf:
        return "+Inf"
    text = repr(float(edge))
    dot = text.find(".")
    if edge > 0 and dot > 6:  # Go uses exponents from 1e6 on, Python from 1e16
        mantissa = f"{text[0]}.{text[1:dot]}{text[dot + 1 :]}".rstrip("0").rstrip(".")
        return f"{mantissa}e+{dot - 1:02d}"
    return text


Sample: TypeAlias = tuple[MetricSpec, tuple[str, ...], float | HistogramValue]
Samples: TypeAlias = Iterable[Sample]


def known(labels: tuple[str, ...], *values: tuple[MetricSpec, float | None]) -> Iterator[Sample]:
    """A sample for each value that is not ``None``, all with the same labels."""
    for spec, value in values:
        if value is not None:
            yield spec, labels, value
