"""A baseline of what canaries measured in a test's first minute."""

from __future__ import annotations

import time
from collections.abc import Set

from .daemon import eventually
from .prometheus import Prometheus

SHORT = "plumbline:canary_latency:seconds"
"""Recorded: a canary's latency over the short window."""
SLACK = 2.0
"""The baseline is so much above the first medians: this machine does other things beside."""
FILLED_S = 40
"""The short window, which the tests' site shortens to 30 s, has filled."""
WITHIN_S = 240.0


def baseline(metrics: Prometheus, operations: Set[tuple[str, str]]) -> str:
    """A site file of what the canaries measured so far, once all ``operations`` (layer, operation) are among it."""

    def medians() -> dict[tuple[str, str, str, str], float]:
        found: dict[tuple[str, str, str, str], float] = {}
        for labels, value in metrics.query(f'{SHORT}{{statistic="p50"}}'):
            key = labels["layer"], labels["operation"], labels["workload"], labels["device_class"]
            found[key] = max(value, found.get(key, 0.0))
        return found if {key[:2] for key in found} == operations else {}

    eventually(medians, within_s=WITHIN_S)
    time.sleep(FILLED_S)
    lines = ["schema_version: 1", "entries:"]
    for (_, operation, workload, device_class), value in sorted(medians().items()):
        latency = f"{{p50: {SLACK * value * 1e6:.0f}us, p99: {10 * SLACK * value * 1e6:.0f}us}}"
        lines.append(
            f"- {{workload: {workload}, operation: {operation}, device_class: {device_class}, latency: {latency}}}"
        )
    return "\n".join(lines) + "\n"
