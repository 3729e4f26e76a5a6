"""Rarely changing facts: a port's driver, names of statistics and settings; bond slaves' churn; links' Ceph roles.

Slow tier: read at start, on link events and every few minutes, never in a scrape. Some drivers query their firmware
for these facts, and the names of 600 statistics take 20 kB.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.net import drivers, ethnl
from plumbline.sources.net.bonding import Churns, read_churns
from plumbline.sources.net.drivers import DriverTable, Evidence, Plan
from plumbline.sources.net.ethtool import DriverInfo, Ethtool, EthtoolSocket, EthtoolTransport
from plumbline.sources.net.knobs import Knobs, KnobsReader, attempt
from plumbline.sources.net.links import Link, read_links
from plumbline.sources.net.netlink import NETLINK_GENERIC, NETLINK_ROUTE, Netlink, NetlinkSocket, Transport, skip_reason
from plumbline.sources.net.roles import Configured, Role, read_roles

SkipHook = Callable[[str, str], None]
log = logging.getLogger(__name__)


class Transports(Struct, frozen=True):
    """One thread's connections to the kernel."""

    route: Transport
    generic: Transport
    ioctl: EthtoolTransport

    @classmethod
    def to_kernel(cls) -> Transports:
        """The real transports, in the network namespace of the thread that first uses them."""
        return cls(NetlinkSocket(NETLINK_ROUTE), NetlinkSocket(NETLINK_GENERIC), EthtoolSocket())

    def close(self) -> None:
        for transport in (self.route, self.generic, self.ioctl):
            transport.close()


class Port(Struct, frozen=True):
    """One hardware port: its driver, its ``ethtool -S`` names if they are needed, and how to count its losses."""

    info: DriverInfo
    names: tuple[str, ...]
    plan: Plan
    drop_source: str


class Facts(Struct, frozen=True):
    """Facts by interface index. A part that failed holds its error, which the scrape then raises."""

    family: int | None = None  # Message type of ethtool netlink; None: this kernel has only the ioctls (before 5.6)
    ports: Mapping[int, Port] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)  # Ports whose driver can't be queried, and why
    knobs: Knobs = field(default_factory=Knobs)

    @property
    def speeds_mbps(self) -> dict[int, int]:
        """Speeds in Mb/s of the links that have one; empty when link modes could not be read."""
        modes = self.knobs.linkmodes
        if isinstance(modes, PlumblineError):
            return {}
        return {index: link.speed_mbps for index, link in modes.items() if link.speed_mbps is not None}


class FactsReader:
    """Reads ports. ``keep`` decides by name which are of interest."""

    def __init__(
        self,
        *,
        table: DriverTable,
        resolve_family: Callable[[str], int],
        transports: Transports,
        keep: Callable[[str], bool],
    ) -> None:
        """Opens nothing. ``resolve_family`` is called by :meth:`read` until the family is known."""
        self._table, self._resolve_family, self._keep = table, resolve_family, keep
        self._route = Netlink(transports.route, source="netlink route")
        self._ioctl = Ethtool(transports.ioctl)
        self._knobs = KnobsReader(Netlink(transports.generic, source="netlink ethtool"), self._ioctl)

    def read(self, previous: Facts) -> Facts:
        """Read everything again but names that can't have changed. Raises when the links can't be listed at all; any
        other failure is stored in the result."""
        links = {index: link for index, link in read_links(self._route).items() if self._keep(link.name)}
        hardware = {index: link for index, link in links.items() if link.hardware}
        family = attempt(lambda: self._resolve_family(ethnl.FAMILY)) if previous.family is None else previous.family
        number = None if isinstance(family, PlumblineError) else family
        ports, refused = {}, {}
        for index, link in hardware.items():
            try:
                ports[index] = self._read_port(link, previous.ports.get(index))
            except PlumblineError as error:
                refused[index] = skip_reason(error)
        return Facts(number, self._decide(ports, links), refused, self._knobs.read(number, links, previous.knobs))

    def _decide(self, ports: dict[int, Port], links: Mapping[int, Link]) -> dict[int, Port]:
        """Bind again, with their counters, the ports whose rules have undecided conditions. Driver counters are read
        first: that order makes a comparison a proof (:class:`.drivers.Evidence`)."""
        values = {}
        for index, port in ports.items():
            if port.plan.undecided:
                counted = attempt(partial(self._ioctl.stats, links[index].raw_name, len(port.names)))
                if isinstance(counted, tuple):
                    values[index] = counted
        if not values:
            return ports
        after = attempt(lambda: read_links(self._route))
        if isinstance(after, PlumblineError):
            return ports
        for index, counted in values.items():
            port, rtnl = ports[index], after[index].stats if index in after else None
            if rtnl is not None:
                rules, _ = self._table.select(links[index], port.info.driver)
                plan = drivers.bind(rules, port.names, Evidence(port.names, counted, rtnl))
                ports[index] = replace(port, plan=plan)
        return ports

    def _read_port(self, link: Link, previous: Port | None) -> Port:
        try:
            info = self._ioctl.driver_info(link.raw_name)
        except Unavailable as error:
            if skip_reason(error) != "unsupported":
                raise
            info = DriverInfo("", "", link.parent, 0)  # a driver without ethtool: only rtnl's counters exist
        rules, source = self._table.select(link, info.driver)
        if previous and (previous.info.driver, previous.info.statistics) == (info.driver, info.statistics):
            return Port(info, previous.names, previous.plan, source)
        names = self._ioctl.strings(link.raw_name) if source == "driver" else ()
        return Port(info, names, drivers.bind(rules, names), source)


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
            log.warning("Ceph roles of network links: %s", failure or "determined again")
        self._failure = failure
