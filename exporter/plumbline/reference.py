"""Every metric there is, for references and for tests that hold rules and dashboards against the code."""

from __future__ import annotations

import importlib
import pkgutil

from plumbline import collectors, self_metrics
from plumbline.catalogue import MetricSpec


def every_spec() -> tuple[MetricSpec, ...]:
    """All specs of all collector modules and of the exporter itself, each once, by name."""
    found = set(self_metrics.SPECS)
    for module in pkgutil.iter_modules(collectors.__path__):
        members = vars(importlib.import_module(f"{collectors.__name__}.{module.name}")).values()
        found |= {each for each in members if isinstance(each, MetricSpec)}
    return tuple(sorted(found, key=lambda spec: spec.name))
