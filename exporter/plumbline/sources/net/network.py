"""The node's network ports, as read by a scrape.

It takes one ``RTM_GETLINK`` dump for all links, one ``PAUSE_GET`` dump if a port has flow control, and one ``GSTATS``
ioctl per port whose driver rules need it; software links need nothing more. :meth:`NetworkReader.refresh` reads what
rarely changes, through :mod:`.portfacts` and :mod:`.knobs`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TypeVar

from msgspec import Struct, field

from plumbline.errors import PlumblineError, Unavailable
from plumbline.sources.net import drivers, ethnl
from plumbline.sources.net.bonding import Bond, read_bonds
from plumbline.sources.net.drivers import DriverRules, DriverTable, NicLoss, Plan
from plumbline.sources.net.ethtool import DriverInfo, Ethtool
from plumbline.sources.net.features import Offload
from plumbline.sources.net.knobs import Knobs, value
from plumbline.sources.net.linkmodes import LinkModes
from plumbline.sources.net.links import Link, LinksReader, Relation, relations
from plumbline.sources.net.netlink import Netlink, skip_reason
from plumbline.sources.net.port_settings import (
    Channels,
    Coalescing,
    PauseState,
    RingSizes,
    parse_pause,
    transceiver_present,
)
from plumbline.sources.net.portfacts import Facts, FactsReader, Port, SkipHook, Transports

T = TypeVar("T")

_SHARED_S = 1.0


class LinksReading(Struct, frozen=True):
    """All links, and the known speeds in Mb/s by interface index."""

    links: tuple[Link, ...] = ()
    speeds_mbps: Mapping[int, int] = field(default_factory=dict)


class PortLosses(Struct, frozen=True):
    """One link's identity and losses. For software links, ``driver`` is their kind."""

    device: str
    driver: str
    firmware: str
    bus: str
    master: str
    drop_source: str  # ``driver``, ``rtnl`` or ``members``; see :meth:`DriverTable.select`
    loss: NicLoss


class LossesReading(tuple[PortLosses, ...]):
    """Of all links."""


class PortModes(Struct, frozen=True):
    """The link modes of one hardware port; ``fec`` and ``transceiver`` are ``None`` where unknown."""

    device: str
    modes: LinkModes
    fec: str | None
    transceiver: bool | None


class LinkModesReading(tuple[PortModes, ...]):
    """Of all hardware ports."""


class RingsReading(tuple[tuple[str, RingSizes], ...]):
    """Devices and their ring sizes."""


class PauseReading(tuple[tuple[str, PauseState], ...]):
    """Devices and their flow control."""


class ChannelsReading(tuple[tuple[str, Channels], ...]):
    """Devices and their channels."""


class CoalescingReading(tuple[tuple[str, Coalescing], ...]):
    """Devices and their interrupt coalescing."""


class OffloadsReading(tuple[tuple[str, tuple[Offload, ...]], ...]):
    """Devices and their offloads."""


class PortReading(Struct, frozen=True):
    """Everything that one link's losses are computed from, to explain the numbers."""

    link: Link
    master: str
    info: DriverInfo | None  # None: a software link
    drop_source: str
    rules: DriverRules
    plan: Plan
    names: tuple[str, ...]
    values: tuple[int, ...]  # In the order of names; both empty where the rules need no driver counters
    pause: PauseState | None  # None: no 802.3x flow control
    pause_source: str  # What counts pause frames: netlink, driver, or nothing (empty)
    rings: RingSizes | None


@dataclass(slots=True)
class _Snapshot:
    """The state at one moment, shared by the collectors of one scrape."""

    links: dict[int, Link]
    reported: dict[int, Link]
    facts: Facts
    taken_s: float
    used_by: set[str] = dataclass_field(default_factory=set)
    driver_stats: dict[int, tuple[int, ...] | None] = dataclass_field(default_factory=dict)


class NetworkReader:
    """Reads the ports. One thread scrapes, the same or another refreshes, each with its own transports. Call
    :meth:`refresh` before the first scrape, on link events, every few minutes, and on :attr:`wants_refresh`."""

    def __init__(
        self,
        *,
        table: DriverTable,
        resolve_family: Callable[[str], int],
        scrape: Transports,
        slow: Transports,
        clock: Callable[[], float],
        keep: Callable[[str], bool] = lambda _device: True,
    ) -> None:
        """``keep`` decides by name which devices are reported; ``clock`` gives monotonic seconds."""
        self._facts_reader = FactsReader(table=table, resolve_family=resolve_family, transports=slow, keep=keep)
        self._links = LinksReader(Netlink(scrape.route, source="netlink route"))
        self._generic = Netlink(scrape.generic, source="netlink ethtool")
        self._ioctl = Ethtool(scrape.ioctl)
        self._clock, self._keep, self._table = clock, keep, table
        self._facts = Facts()
        self._snapshot: _Snapshot | None = None
        self._software = drivers.bind(table.software, ())
        self._kinds = {kind: drivers.bind(rules, ()) for kind, rules in table.kinds.items()}
        self._before: dict[int, tuple[int, NicLoss]] = {}
        self.wants_refresh = True  # A port is unknown to the last refresh, or its statistics have changed

    def refresh(self) -> None:
        """Read what rarely changes. Raises only when the links can't be listed at all."""
        self.wants_refresh = False
        self._facts = self._facts_reader.read(self._facts)

    def read_links(self) -> LinksReading:
        snapshot = self._snapshot_for("links")
        return LinksReading(tuple(snapshot.reported.values()), snapshot.facts.speeds_mbps)

    def read_losses(self, on_skip: SkipHook) -> LossesReading:
        """Drops and errors by cause. A port is skipped when it vanishes or appeared after the last refresh."""
        snapshot = self._snapshot_for("losses")
        losses = []
        for link in snapshot.reported.values():
            port = self._hardware(snapshot, link, on_skip) if link.hardware else self._software_link(snapshot, link)
            if port is not None:
                losses.append(port)
        self._before = {index: last for index, last in self._before.items() if index in snapshot.links}
        return LossesReading(losses)

    def read_ports(self, on_skip: SkipHook) -> tuple[PortReading, ...]:
        """Every link with its counters and rules; ports whose driver can't be queried are skipped with the reason."""
        snapshot = self._snapshot_for("ports")
        rings = snapshot.facts.knobs.rings if not isinstance(snapshot.facts.knobs.rings, PlumblineError) else {}
        states = self._pause_states(snapshot, on_skip)
        ports = []
        for index, link in snapshot.reported.items():
            port = self._port(snapshot, link, on_skip) if link.hardware else None
            if link.hardware and port is None:
                continue
            info = port.info if port else None
            rules, source = self._table.select(link, info.driver if info else "")
            plan = port.plan if port else drivers.bind(rules, ())
            values = self._driver_stats(snapshot, link, port, on_skip) if port else ()
            if values is None:
                continue
            state = netlink = states.get(index)
            if netlink is not None:
                state = self._with_driver_counters(snapshot, link, netlink, on_skip)
            counted_by = "" if state is None or not _counts(state) else "netlink" if state == netlink else "driver"
            names, master, ring = port.names if port and values else (), _master(snapshot, link), rings.get(index)
            ports.append(PortReading(link, master, info, source, rules, plan, names, values, state, counted_by, ring))
        return tuple(ports)

    def read_pause(self, on_skip: SkipHook) -> PauseReading:
        """Devices and their flow control, counters included; ``Unavailable`` when no port has it."""
        snapshot = self._snapshot_for("pause")
        states = self._pause_states(snapshot, on_skip)
        ports = PauseReading(
            (link.name, self._with_driver_counters(snapshot, link, states[index], on_skip))
            for index, link in snapshot.reported.items()
            if index in states
        )
        if not ports:
            raise Unavailable("no network port has 802.3x flow control")
        return ports

    def read_rings(self) -> RingsReading:
        """Devices and their ring sizes as of the last refresh; ``Unavailable`` when no port has rings."""
        return RingsReading(self._settings("rings", lambda knobs: knobs.rings, "the size of its rings"))

    def read_channels(self) -> ChannelsReading:
        """Devices and their channels as of the last refresh; ``Unavailable`` when no port reports any."""
        return ChannelsReading(self._settings("channels", lambda knobs: knobs.channels, "its channels"))

    def read_coalescing(self) -> CoalescingReading:
        """Devices and their interrupt coalescing as of the last refresh; ``Unavailable`` when no port reports it."""
        part = self._settings("coalescing", lambda knobs: knobs.coalescing, "its interrupt coalescing")
        return CoalescingReading(part)

    def read_offloads(self) -> OffloadsReading:
        """Devices and their offloads as of the last refresh; ``Unavailable`` when no port reports any."""
        return OffloadsReading(self._settings("offloads", lambda knobs: knobs.offloads, "its offloads"))

    def read_link_modes(self, on_skip: SkipHook) -> LinkModesReading:
        """Link modes of hardware ports as of the last refresh; ``Unavailable`` when there are none. FEC and
        transceivers that could not be read are skipped."""
        snapshot = self._snapshot_for("link modes")
        knobs = snapshot.facts.knobs
        modes = value(knobs.linkmodes)
        fec = _or_skip("fec", knobs.fec, on_skip)
        connectors = _or_skip("connector", knobs.connectors, on_skip)
        ports = []
        for index, link in snapshot.reported.items():
            if link.hardware and index in modes:
                port = snapshot.facts.ports.get(index)
                transceiver = transceiver_present(
                    port=connectors.get(index),
                    fibre=modes[index].fibre,
                    carrier=link.carrier,
                    driver=port.info.driver if port else "",
                )
                ports.append(PortModes(link.name, modes[index], fec.get(index), transceiver))
        if not ports:
            raise Unavailable("no network port reports its link modes")
        return LinkModesReading(ports)

    def read_bonds(self, on_skip: SkipHook) -> tuple[Bond, ...]:
        """Bonds with their slaves; ``Unavailable`` when there is none."""
        snapshot = self._snapshot_for("bonds")
        bonds = tuple(bond for bond in read_bonds(snapshot.links, on_skip=on_skip) if self._keep(bond.device))
        if not bonds:
            raise Unavailable("no network links are bonded")
        return bonds

    def read_relations(self) -> tuple[Relation, ...]:
        """Which link is stacked on which, among reported links: a relation with an excluded link is omitted."""
        return relations(self._snapshot_for("relations").reported)

    def _snapshot_for(self, consumer: str) -> _Snapshot:
        """The current links. Collectors of one scrape share a dump; a repeated request starts the next scrape."""
        now = self._clock()
        snapshot = self._snapshot
        if snapshot is None or consumer in snapshot.used_by or now - snapshot.taken_s > _SHARED_S:
            self._snapshot = None
            links = self._links.links()
            reported = {index: link for index, link in links.items() if self._keep(link.name)}
            self._snapshot = snapshot = _Snapshot(links, reported, self._facts, now)
        snapshot.used_by.add(consumer)
        return snapshot

    def _settings(
        self, consumer: str, part: Callable[[Knobs], Mapping[int, T] | PlumblineError], what: str
    ) -> tuple[tuple[str, T], ...]:
        snapshot = self._snapshot_for(consumer)
        settings, links = value(part(snapshot.facts.knobs)), snapshot.reported
        named = tuple((links[index].name, setting) for index, setting in settings.items() if index in links)
        if not named:
            raise Unavailable(f"no network port reports {what}")
        return named

    def _pause_states(self, snapshot: _Snapshot, on_skip: SkipHook) -> Mapping[int, PauseState]:
        """Flow control of the ports that support it, with the kernel's own counters."""
        configured = value(snapshot.facts.knobs.pause)
        expected = {index: config for index, config in configured.items() if index in snapshot.links}
        if not expected or snapshot.facts.family is None:
            return {index: PauseState(config) for index, config in expected.items()}
        return ethnl.read_all(
            self._generic,
            snapshot.facts.family,
            ethnl.PAUSE_GET,
            parse_pause,
            flags=ethnl.FLAG_STATS,
            expected=expected,
            on_skip=on_skip,
        )

    def _software_link(self, snapshot: _Snapshot, link: Link) -> PortLosses:
        plan = self._kinds.get(link.kind)
        source = "members" if plan else "rtnl"
        loss = drivers.losses(plan or self._software, (), link.stats)
        return PortLosses(link.name, link.kind or "loopback", "", "", _master(snapshot, link), source, loss)

    def _hardware(self, snapshot: _Snapshot, link: Link, on_skip: SkipHook) -> PortLosses | None:
        port = self._port(snapshot, link, on_skip)
        values = self._driver_stats(snapshot, link, port, on_skip) if port else None
        if port is None or values is None:
            return None
        loss = self._steady(link, port, drivers.losses(port.plan, values, link.stats))
        info, master = port.info, _master(snapshot, link)
        return PortLosses(link.name, info.driver, info.firmware, info.bus, master, port.drop_source, loss)

    def _port(self, snapshot: _Snapshot, link: Link, on_skip: SkipHook) -> Port | None:
        """The port as of the last refresh; ``None`` (and a skip) when it was not there or its driver did not answer."""
        port = snapshot.facts.ports.get(link.ifindex)
        if port is None:
            reason = snapshot.facts.refused.get(link.ifindex)
            self.wants_refresh |= reason is None
            on_skip(link.name, reason or "unknown")
        return port

    def _driver_stats(self, snapshot: _Snapshot, link: Link, port: Port, on_skip: SkipHook) -> tuple[int, ...] | None:
        """The port's ``ethtool -S`` values, read once per scrape; ``None`` (and a skip) when they can't be read."""
        if not port.plan.needs_ethtool:
            return ()
        if link.ifindex not in snapshot.driver_stats:
            values = None
            try:
                values = self._ioctl.stats(link.raw_name, len(port.names))
            except PlumblineError as error:
                on_skip(link.name, skip_reason(error))
            else:
                if values is None:
                    self.wants_refresh = True
                    on_skip(link.name, "changed")
            snapshot.driver_stats[link.ifindex] = values
        return snapshot.driver_stats[link.ifindex]

    def _steady(self, link: Link, port: Port, now: NicLoss) -> NicLoss:
        packets = link.stats.rx_packets + link.stats.tx_packets if link.stats else 0
        last_packets, last = self._before.get(link.ifindex, (packets, now))
        if packets >= last_packets:  # fewer packets than before: the driver has reset its counters
            now = drivers.hold(port.plan, last, now)
        self._before[link.ifindex] = (packets, now)
        return now

    def _with_driver_counters(
        self, snapshot: _Snapshot, link: Link, state: PauseState, on_skip: SkipHook
    ) -> PauseState:
        """Add pause frames from ``ethtool -S`` where the driver does not report them through netlink."""
        port = snapshot.facts.ports.get(link.ifindex)
        if _counts(state) or not port or not port.plan.pause:
            return state
        values = self._driver_stats(snapshot, link, port, on_skip)
        if values is None:
            return state
        frames = {count.direction: count.frames for count in drivers.losses(port.plan, values, link.stats).pause}
        return PauseState(state.config, frames.get("receive"), frames.get("transmit"))


def _or_skip(item: str, part: Mapping[int, T] | PlumblineError, on_skip: SkipHook) -> Mapping[int, T]:
    if isinstance(part, PlumblineError):
        on_skip(item, skip_reason(part))
        return {}
    return part


def _counts(state: PauseState) -> bool:
    return state.receive_frames is not None or state.transmit_frames is not None


def _master(snapshot: _Snapshot, link: Link) -> str:
    master = snapshot.links.get(link.master_index)
    return master.name if master else ""
