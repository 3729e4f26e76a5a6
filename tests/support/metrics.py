"""Every metric name that rules and dashboards may use."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import yaml

from plumbline import app, collectors, self_metrics
from plumbline.catalogue import Kind, MetricSpec

ROOT = Path(__file__).parents[2]
PROCESS = (
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_open_fds",
)


def specs() -> list[MetricSpec]:
    """All specs of all collectors, and the daemon's own."""
    found = [*self_metrics.SPECS, *app.DAEMON_SPECS]
    for module in pkgutil.iter_modules(collectors.__path__):
        members = vars(importlib.import_module(f"{collectors.__name__}.{module.name}")).values()
        found += [each for each in members if isinstance(each, MetricSpec)]
    return found


def known_metrics() -> set[str]:
    """Sample names of our catalogue, our recording rules, and the process metrics of prometheus_client."""
    names: set[str] = set(PROCESS)
    for spec in specs():
        suffixes = ("_bucket", "_sum", "_count") if spec.kind is Kind.HISTOGRAM else ("",)
        names |= {spec.name + suffix for suffix in suffixes}
    for file in (ROOT / "alerts" / "out").glob("*.yaml"):
        for group in yaml.safe_load(file.read_text("utf-8")).get("groups", []):
            names |= {rule["record"] for rule in group["rules"] if "record" in rule}
    return names
