"""Every check of every layer, literally: for references and for tests that hold promises about all of them."""

from __future__ import annotations

from typing import Any

from plumbline.checks import array, disk, network, pcie
from plumbline.checks.model import Check

CHECKS: tuple[Check[Any], ...] = (*pcie.CHECKS, *disk.CHECKS, *array.CHECKS, *network.CHECKS)
"""Bottom-up. ``Any``: each layer's checks ask facts of their own kind."""
