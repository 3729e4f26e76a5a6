"""Every check of the disk layer."""

from __future__ import annotations

from plumbline.checks.disk import cache, completion, medium, queueing
from plumbline.checks.disk.facts import Disks
from plumbline.checks.model import Check, Finding, worst_first

CHECKS: tuple[Check[Disks], ...] = (
    *medium.CHECKS,
    *queueing.CHECKS,
    *completion.CHECKS,
    *cache.CHECKS,
)
"""In order: what the kernel takes the disk for, how requests wait, how they complete, when a write is done."""


def judge(disks: Disks) -> tuple[Finding, ...]:
    """All findings about one host's disks, the worst first."""
    return worst_first(finding for check in CHECKS for finding in check.findings(disks))
