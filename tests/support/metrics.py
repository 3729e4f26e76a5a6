"""Every metric name that rules and dashboards may use."""

from __future__ import annotations

from pathlib import Path

import yaml

from plumbline.catalogue import Kind
from plumbline.reference import every_spec

ROOT = Path(__file__).parents[2]
PROCESS = (
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_open_fds",
)


def known_metrics() -> set[str]:
    """Sample names of our catalogue, our recording rules, and the process metrics of prometheus_client."""
    names: set[str] = set(PROCESS)
    for spec in every_spec():
        suffixes = ("_bucket", "_sum", "_count") if spec.kind is Kind.HISTOGRAM else ("",)
        names |= {spec.name + suffix for suffix in suffixes}
    for file in (ROOT / "alerts" / "out").glob("*.yaml"):
        for group in yaml.safe_load(file.read_text("utf-8")).get("groups", []):
            names |= {rule["record"] for rule in group["rules"] if "record" in rule}
    return names
