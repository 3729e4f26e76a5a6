"""Rarely changing facts about network ports: driver, names of statistics, rings, flow control and other settings.

Slow tier: read at start, on link events and every few minutes, never in a scrape. Some drivers query their firmware
for these facts, and the names of 600 statistics take 20 kB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.net import drivers, ethnl
from plumbline.sources.net.driverrules import DriverTable
from plumbline.sources.net.drivers import Evidence, Plan
from plumbline.sources.net.ethtool import DriverInfo, Ethtool, EthtoolSocket, EthtoolTransport, PauseConfig, RingSizes
from plumbline.sources.net.knobs import Knobs, KnobsReader
from plumbline.sources.net.links import Link, read_links
from plumbline.sources.net.netlink import NETLINK_GENERIC, NETLINK_ROUTE, Netlink, NetlinkSocket, Transport, skip_reason
from plumbline.sources.net.pause import parse_pause_config
from plumbline.sources.net.rings import parse_rings
from plumbline.sources.net.settings import SettingsReader, attempt

SkipHook = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Transports:
    """One thread's connections to the kernel."""

    route: Transport
    generic: Transport
    ioctl: EthtoolTransport

    @classmethod
    def to_kernel(cls) -> Transports:
        """The real transports, in the network namespace of the thread that first uses them."""
        return cls(NetlinkSocket(NETLINK_ROUTE), NetlinkSocket(NETLINK_GENERIC), EthtoolSocket())

    def close(self) -> None:
        """Release the file descriptors."""
        self.route.close()
        self.generic.close()
        self.ioctl.close()


@dataclass(frozen=True, slots=True)
class Port:
    """One hardware port: its driver, its ``ethtool -S`` names if they are needed, and how to count its losses."""

    info: DriverInfo
    names: tuple[str, ...]
    plan: Plan
    drop_source: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts by interface index. A part that failed holds its error, which the scrape then raises."""

    family: int | None = None
    """Message type of ethtool netlink; ``None``: this kernel has only the ioctls (before 5.6)."""
    ports: Mapping[int, Port] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    """Hardware ports whose driver could not be queried, and the reason (from :func:`.netlink.skip_reason`)."""
    rings: Mapping[int, RingSizes] | PlumblineError = field(default_factory=dict)
    pause: Mapping[int, PauseConfig] | PlumblineError = field(default_factory=dict)
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
        generic = Netlink(transports.generic, source="netlink ethtool")
        self._ioctl = Ethtool(transports.ioctl)
        self._settings = SettingsReader(generic)
        self._knobs = KnobsReader(generic, self._ioctl)

    def read(self, known: Facts) -> Facts:
        """Read everything again; only names that can't have changed are reused from ``known``.

        Raises when the links can't be listed at all; any other failure is stored in the result.
        """
        links = {index: link for index, link in read_links(self._route).items() if self._keep(link.name)}
        hardware = {index: link for index, link in links.items() if link.hardware}
        family = known.family if known.family is not None else self._resolve()
        ports, refused = self._read_ports(hardware, known)
        read, ioctl = self._settings.read, self._ioctl
        return Facts(
            family=family,
            ports=ports,
            refused=refused,
            rings=attempt(lambda: read(family, ethnl.RINGS_GET, parse_rings, hardware, by_ioctl=ioctl.rings)),
            pause=attempt(lambda: read(family, ethnl.PAUSE_GET, parse_pause_config, hardware, by_ioctl=ioctl.pause)),
            knobs=self._knobs.read(family, links, known.knobs),
        )

    def _resolve(self) -> int | None:
        try:
            return self._resolve_family(ethnl.FAMILY)
        except Unavailable:
            return None

    def _read_ports(self, links: Mapping[int, Link], known: Facts) -> tuple[dict[int, Port], dict[int, str]]:
        ports, refused = {}, {}
        for index, link in links.items():
            try:
                ports[index] = self._read_port(link, known.ports.get(index))
            except PlumblineError as error:
                refused[index] = skip_reason(error)
        return self._decide(ports, links), refused

    def _decide(self, ports: dict[int, Port], links: Mapping[int, Link]) -> dict[int, Port]:
        """Bind again, with their counters, the ports whose rules have undecided conditions.

        Driver counters are read first, the kernel's after them: that order makes a comparison a proof.
        """
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
                ports[index] = Port(port.info, port.names, plan, port.drop_source)
        return ports

    def _read_port(self, link: Link, known: Port | None) -> Port:
        try:
            info = self._ioctl.driver_info(link.raw_name)
        except Unavailable as error:
            if skip_reason(error) != "unsupported":
                raise
            info = DriverInfo("", "", link.parent, 0)  # a driver without ethtool: only rtnl's counters exist
        rules, source = self._table.select(link, info.driver)
        if known and (known.info.driver, known.info.statistics) == (info.driver, info.statistics):
            return Port(info, known.names, known.plan, source)
        names = self._ioctl.strings(link.raw_name) if source == "driver" else ()
        return Port(info, names, drivers.bind(rules, names), source)
