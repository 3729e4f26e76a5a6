"""A scrape as Prometheus would understand it: parsed by prometheus_client's parsers, looked up by name and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample


@dataclass(frozen=True, slots=True)
class Scrape:
    """All samples of one exposition, in its order."""

    samples: tuple[Sample, ...]

    @classmethod
    def of_text(cls, text: str) -> Scrape:
        """The text format; ``ValueError`` where it is none, or a series stands twice."""
        return cls._of(parse_text(text))

    @classmethod
    def of_openmetrics(cls, text: str) -> Scrape:
        """OpenMetrics; ``ValueError`` as above, and wherever its specification is not kept."""
        return cls._of(parse_openmetrics(text))  # type: ignore[no-untyped-call]

    @classmethod
    def _of(cls, families: Iterable[Metric]) -> Scrape:
        samples = tuple(sample for family in families for sample in family.samples)
        counted = Counter((sample.name, *sorted(sample.labels.items())) for sample in samples)
        twice = [series for series, count in counted.items() if count > 1]
        if twice:
            raise ValueError(f"series that stand twice: {twice[:3]}")
        return cls(samples)

    def names(self) -> set[str]:
        """Of all samples."""
        return {sample.name for sample in self.samples}

    def series(self, name: str, **labels: str) -> list[Sample]:
        """All samples of this name that have these labels, whatever else they have."""
        return [each for each in self.samples if each.name == name and labels.items() <= each.labels.items()]

    def labels(self, name: str, label: str, **labels: str) -> set[str]:
        """The values of one label among :meth:`series`."""
        return {sample.labels[label] for sample in self.series(name, **labels)}

    def get(self, name: str, **labels: str) -> float | None:
        """The value of the one sample that matches; ``None`` without one, ``ValueError`` for several."""
        found = self.series(name, **labels)
        if len(found) > 1:
            raise ValueError(f"{len(found)} series match {name} {labels}")
        return found[0].value if found else None

    def total(self, name: str, **labels: str) -> float:
        """The sum of :meth:`series`."""
        return sum(sample.value for sample in self.series(name, **labels))
