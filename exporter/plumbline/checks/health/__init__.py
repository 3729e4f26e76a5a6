"""Every check of disks' health."""

from __future__ import annotations

from plumbline.checks.health import failing, reading, wearing
from plumbline.checks.health.facts import Disks
from plumbline.checks.model import Check, Finding, worst_first

CHECKS: tuple[Check[Disks], ...] = (*failing.CHECKS, *wearing.CHECKS, *reading.CHECKS)
"""In order: the disk fails, it wears out or runs hot, its health can't be read."""


def judge(disks: Disks) -> tuple[Finding, ...]:
    """All findings about one host, the worst first."""
    return worst_first(finding for check in CHECKS for finding in check.findings(disks))
