"""Judges a host repeatedly: growth between looks, and the findings of the last look."""

from collections.abc import Callable, Iterable
from typing import Any

from plumbline.checks import array, disk, disk_flush, disk_latency, health, host, network, osd, osd_host, pcie, pool
from plumbline.checks.array import array_facts
from plumbline.checks.disk import disk_facts
from plumbline.checks.disk_flush import DurableWrites, disk_flush_facts
from plumbline.checks.disk_latency import disk_latency_facts
from plumbline.checks.growth import Growth
from plumbline.checks.health import health_facts
from plumbline.checks.host import host_facts
from plumbline.checks.model import Check, Finding, System, judge, worst_first
from plumbline.checks.network.facts import network_facts
from plumbline.checks.osd import osd_facts
from plumbline.checks.osd_host import osd_host_facts
from plumbline.checks.pcie import pcie_facts
from plumbline.checks.pool import pool_facts
from plumbline.metrics.snapshot import Readings

CHECKS: tuple[Check[Any], ...] = (
    *pcie.CHECKS,
    *disk.CHECKS,
    *disk_flush.CHECKS,
    *disk_latency.CHECKS,
    *health.CHECKS,
    *array.CHECKS,
    *network.CHECKS,
    *osd.CHECKS,
    *osd_host.CHECKS,
    *pool.CHECKS,
    *host.CHECKS,
)
"""Every check, from the bus upwards. ``Any``: each layer's checks take their own type of facts."""


class Judge:
    """Judges the readings of successive pages. For one thread; any thread may read :attr:`findings`."""

    def __init__(
        self, system: Callable[[], System] = System, writes: Callable[[], Iterable[DurableWrites]] = lambda: ()
    ) -> None:
        """``writes``: what probes of durable writes measured on this host's disks."""
        self._growth, self._system, self._writes = Growth(), system, writes
        self.findings: tuple[Finding, ...] | None = None
        """Of the last look; ``None`` before the first."""

    def look(self, readings: Readings, now_s: float) -> tuple[Finding, ...]:
        """Judge these readings. ``now_s`` is a monotonic time."""
        growth, system = self._growth, self._system()
        growth.look(now_s)
        self.findings = worst_first(
            (
                *judge(network.CHECKS, network_facts(readings, growth), system),
                *judge(disk.CHECKS, disk_facts(readings), system),
                *judge(array.CHECKS, array_facts(readings), system),
                *judge(pcie.CHECKS, pcie_facts(readings, growth), system),
                *judge(health.CHECKS, health_facts(readings, growth), system),
                *judge(disk_flush.CHECKS, disk_flush_facts(readings, self._writes()), system),
                *judge(disk_latency.CHECKS, disk_latency_facts(readings), system),
                *judge(osd.CHECKS, osd_facts(readings), system),
                *judge(osd_host.CHECKS, osd_host_facts(readings), system),
                *judge(pool.CHECKS, pool_facts(readings), system),
                *judge(host.CHECKS, host_facts(readings, growth), system),
            )
        )
        return self.findings
