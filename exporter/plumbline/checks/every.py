"""Every check of every layer, literally: for references and for tests that hold promises about all of them."""

from __future__ import annotations

from typing import Any

from plumbline.checks import network
from plumbline.checks.disk import latency
from plumbline.checks.model import Check

CHECKS: tuple[Check[Any], ...] = (*network.CHECKS, *latency.CHECKS)
"""Bottom-up. ``Any``: each layer's checks ask facts of their own kind."""
