"""Judges a host repeatedly: growth between looks, and the findings of the last look."""

from __future__ import annotations

from plumbline.checks import array, disk, health, network, pcie
from plumbline.checks.array.facts import array_facts
from plumbline.checks.disk import latency
from plumbline.checks.disk.facts import disk_facts
from plumbline.checks.growth import Growth
from plumbline.checks.health.facts import health_facts
from plumbline.checks.model import Finding, worst_first
from plumbline.checks.network.facts import network_facts
from plumbline.checks.pcie.facts import pcie_facts
from plumbline.checks.readings import Readings


class Judge:
    """Judges the readings of successive pages. For one thread; any thread may read :attr:`findings`."""

    def __init__(self) -> None:
        self._growth = Growth()
        self.findings: tuple[Finding, ...] | None = None
        """Of the last look; ``None`` before the first."""

    def look(self, readings: Readings, now_s: float) -> tuple[Finding, ...]:
        """Judge these readings. ``now_s`` is a monotonic time."""
        growth = self._growth
        growth.look(now_s)
        found = (
            *network.judge(network_facts(readings, growth)),
            *disk.judge(disk_facts(readings)),
            *array.judge(array_facts(readings)),
            *pcie.judge(pcie_facts(readings, growth)),
            *health.judge(health_facts(readings, growth)),
            *latency.judge(readings.latency),
        )
        self.findings = worst_first(iter(found))
        return self.findings
