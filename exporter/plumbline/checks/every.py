"""Every check of every layer: for references, and for tests that cover all of them."""

from __future__ import annotations

from typing import Any

from plumbline.checks import array, disk, health, network, pcie
from plumbline.checks.disk import latency
from plumbline.checks.model import Check

CHECKS: tuple[Check[Any], ...] = (
    *pcie.CHECKS,
    *disk.CHECKS,
    *latency.CHECKS,
    *health.CHECKS,
    *array.CHECKS,
    *network.CHECKS,
)
"""From the bus upwards. ``Any``: each layer's checks take their own type of facts."""
