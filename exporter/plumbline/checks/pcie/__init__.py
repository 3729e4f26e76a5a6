"""Every check of PCI Express."""

from __future__ import annotations

from plumbline.checks.model import Check, Finding, worst_first
from plumbline.checks.pcie import errors, latency, link
from plumbline.checks.pcie.facts import PcieFacts

CHECKS: tuple[Check[PcieFacts], ...] = (*link.CHECKS, *latency.CHECKS, *errors.CHECKS)
"""In the order in which to look at a link: how wide and fast, what delays it, what breaks on it."""


def judge(facts: PcieFacts) -> tuple[Finding, ...]:
    """All findings about one host, the worst first."""
    return worst_first(finding for check in CHECKS for finding in check.findings(facts))
