"""The checks of the network."""

from plumbline.checks.model import Check
from plumbline.checks.network import bonds, link, receive, tcp
from plumbline.checks.network.facts import NetworkFacts

CHECKS: tuple[Check[NetworkFacts], ...] = (*receive.CHECKS, *link.CHECKS, *tcp.CHECKS, *bonds.CHECKS)
"""In the order of unnoba-2020, then bonds and InfiniBand."""
