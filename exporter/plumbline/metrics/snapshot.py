"""The result of one collection: the samples by family, and how each collector fared. Plain data, rendered elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec import Struct, field

from plumbline.core.histogram import HistogramValue
from plumbline.metrics.spec import MetricSpec

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

R = TypeVar("R")


class Family(Struct, frozen=True):
    """All series of one metric: ``values[i]`` belongs to ``labels[i]``, checked to fit ``spec.labels``, to be valid
    Unicode and not repeated. ``labels`` is the same object while the series stay the same, for renderers' caches."""

    spec: MetricSpec
    labels: tuple[tuple[str, ...], ...]
    values: Sequence[float | HistogramValue]


class CollectorHealth(Struct, frozen=True):
    """How one collector fared. ``reason`` says in one line why it is unavailable or failed; otherwise it is empty."""

    name: str
    success: bool
    available: bool
    duration_s: float
    reason: str
    skipped: Mapping[str, int]  # number of items (ports, disks) skipped since the daemon started, by reason


class Readings(Struct, frozen=True):
    """What the collectors read for one collection, by type; without those that are off, failed or had nothing."""

    by_type: Mapping[type, object] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)  # by collector: why it is unavailable

    @classmethod
    def of(cls, *readings: object, reasons: Mapping[str, str] | None = None) -> Readings:
        return cls({type(reading): reading for reading in readings}, reasons or {})

    def get(self, kind: type[R]) -> R | None:
        return cast("R | None", self.by_type.get(kind))

    def or_empty(self, kind: type[R]) -> R:
        """The reading, otherwise an empty one."""
        reading = self.get(kind)
        return kind() if reading is None else reading


class Snapshot(Struct, frozen=True):
    """One collection. ``families`` are sorted by name; empty ones are left out."""

    families: tuple[Family, ...]
    collectors: tuple[CollectorHealth, ...]
    foreign: tuple[Metric, ...] = ()  # families that ``prometheus_client`` itself collects: ``process_*``
    readings: Readings = Readings()  # behind the families
