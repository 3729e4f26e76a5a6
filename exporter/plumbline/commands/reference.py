"""Every metric, for references and for tests that check rules and dashboards against the code."""

from __future__ import annotations

from plumbline.collectors.registry import COLLECTORS
from plumbline.metrics import self_metrics
from plumbline.metrics.spec import MetricSpec


def every_spec() -> tuple[MetricSpec, ...]:
    """All specs of all collectors and of the exporter itself, each once, sorted by name."""
    found = {*self_metrics.SPECS, *(spec for each in COLLECTORS for spec in each.specs)}
    return tuple(sorted(found, key=lambda spec: spec.name))
