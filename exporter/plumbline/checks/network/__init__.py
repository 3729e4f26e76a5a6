"""Every check of the network layer."""

from __future__ import annotations

from plumbline.checks.model import Check, Finding, worst_first
from plumbline.checks.network import bond, flow, infiniband, interrupts, link, rings, softnet, tcp
from plumbline.checks.network.facts import NetworkFacts

CHECKS: tuple[Check[NetworkFacts], ...] = (
    *interrupts.CHECKS,
    *softnet.CHECKS,
    *flow.CHECKS,
    *rings.CHECKS,
    *link.CHECKS,
    *tcp.CHECKS,
    *bond.CHECKS,
    *infiniband.CHECKS,
)
"""In the documents' order: interrupts, receive turns, flow control, rings, link, TCP; then bonds and InfiniBand."""


def judge(facts: NetworkFacts) -> tuple[Finding, ...]:
    """All findings about one host, the worst first."""
    return worst_first(finding for check in CHECKS for finding in check.findings(facts))
