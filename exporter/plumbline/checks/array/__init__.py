"""Every check of arrays and paths."""

from __future__ import annotations

from plumbline.checks.array import md, multipath, zfs
from plumbline.checks.array.facts import ArrayFacts
from plumbline.checks.model import Check, Finding, worst_first

CHECKS: tuple[Check[ArrayFacts], ...] = (*md.CHECKS, *zfs.CHECKS, *multipath.CHECKS)


def judge(facts: ArrayFacts) -> tuple[Finding, ...]:
    """All findings about one host, the worst first."""
    return worst_first(finding for check in CHECKS for finding in check.findings(facts))
