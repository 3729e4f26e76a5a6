"""Every check of every layer, literally: for references and for tests that hold promises about all of them."""

from __future__ import annotations

from typing import Any

from plumbline.checks import disk, network
from plumbline.checks.model import Check

CHECKS: tuple[Check[Any], ...] = (*disk.CHECKS, *network.CHECKS)
from plumbline.checks import array, network
from plumbline.checks.model import Check

CHECKS: tuple[Check[Any], ...] = (*network.CHECKS, *array.CHECKS)
from plumbline.checks import network, pcie
from plumbline.checks.model import Check

CHECKS: tuple[Check[Any], ...] = (*network.CHECKS, *pcie.CHECKS)
"""Bottom-up. ``Any``: each layer's checks ask facts of their own kind."""
