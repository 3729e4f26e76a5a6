"""One collection's series, looked up by name: what is not there is merely not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from plumbline.catalogue import HistogramValue
from plumbline.checks.facts import Count
from plumbline.snapshot import Snapshot

Labels: TypeAlias = tuple[str, ...]
Series: TypeAlias = Mapping[Labels, float]


class SeriesView:
    """One collection's numbers by metric name and label values."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._families = {family.spec.name: family for family in snapshot.families}
        self._collectors = {each.name: each for each in snapshot.collectors}
        self.grown: Mapping[tuple[str, Labels], int] = {}
        """How much counters grew in the window looked at; those seen for the first time are absent."""

    def series(self, name: str) -> Series:
        """All series of a metric; empty where it is absent."""
        family = self._families.get(name)
        if family is None:
            return {}
        pairs = zip(family.labels, family.values, strict=True)
        return {labels: value for labels, value in pairs if not isinstance(value, HistogramValue)}

    def rows(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        """The same with labels by name, for metrics whose labels may grow in number."""
        family = self._families.get(name)
        if family is not None:
            for labels, value in self.series(name).items():
                yield dict(zip(family.spec.labels, labels, strict=True)), value

    def unavailable(self, collector: str) -> str | None:
        """Why a collector has nothing to tell: empty when it has, ``None`` when it is switched off or failed."""
        health = self._collectors.get(collector)
        return None if health is None or not health.success else "" if health.available else health.reason

    def count(self, name: str, *labels: str) -> Count | None:
        """A counter with its growth."""
        total = self.series(name).get(labels)
        return None if total is None else Count(int(total), self.grown.get((name, labels)))
