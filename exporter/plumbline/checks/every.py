"""Every check of every layer, literally: for references and for tests that hold promises about all of them."""

from __future__ import annotations

from typing import Any

from plumbline.checks import array, disk, health, network, pcie
from plumbline.checks.model import Check

CHECKS: tuple[Check[Any], ...] = (*pcie.CHECKS, *disk.CHECKS, *health.CHECKS, *array.CHECKS, *network.CHECKS)
"""From the bus upwards. ``Any``: each layer's checks ask facts of their own kind."""
