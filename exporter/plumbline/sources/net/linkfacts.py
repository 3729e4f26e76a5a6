"""Rarely changing facts about links, not ports: churn of bond slaves, and which links carry Ceph's traffic.

Slow tier, like :mod:`.portfacts`: read at start, on link events and every few minutes, never in a scrape.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.sources.net.bonding_proc import Churns, read_churns
from plumbline.sources.net.netlink import Netlink, Transport
from plumbline.sources.net.roles import Configured, Role, read_roles

log = logging.getLogger(__name__)


class LinkFacts:
    """The latest churn and roles; one thread refreshes, any thread may read."""

    def __init__(self, *, roots: Roots, transport: Transport, configured: Callable[[], Configured]) -> None:
        """``configured`` returns the devices that the configuration assigns to Ceph, at each refresh."""
        self._roots, self._configured = roots, configured
        self._route = Netlink(transport, source="netlink route")
        self._failure = ""
        self.churns: Churns = {}
        self.roles: tuple[Role, ...] = ()

    def refresh(self, _cancel: threading.Event | None = None) -> None:
        """Read both again. A failure is logged once and leaves the last known value."""
        self.churns = read_churns(
            self._roots, on_skip=lambda item, reason: log.debug("bond %s left out: %s", item, reason)
        )
        failure = ""
        try:
            self.roles = read_roles(self._roots, self._route, configured=self._configured())
        except PlumblineError as error:
            failure = str(error)
        if failure != self._failure:
            log.warning("which links carry Ceph's traffic: %s", failure or "known again")
        self._failure = failure
