"""Bonds and their slaves, from the existing link dump; LACP state (IEEE 802.1AX) as each slave sees it.

https://docs.kernel.org/networking/bonding.html
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/if_link.h (``IFLA_BOND_*``, ``IFLA_BOND_SLAVE_*``)
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/if_bonding.h (modes, link and LACP state)
https://github.com/torvalds/linux/blob/v6.12/drivers/net/bonding/bond_netlink.c (which attributes are filled, and when)

A bond's ``IFLA_LINKINFO`` holds ``IFLA_INFO_DATA``; a slave's holds ``IFLA_INFO_SLAVE_DATA``. LACP attributes exist
only in mode 802.3ad, and a slave's only while it is attached to an aggregator. All can be read without privilege,
unlike those in ``/proc/net/bonding``. Netlink reports the churn state since 2026 (also in stable kernels); for older
kernels, :mod:`.bonding_proc` reads it.

Attribute numbers and widths come from the header. The development machine could not create a bond, so the tests build
their messages from the same header and check them with pyroute2's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum

from plumbline.errors import ParseError
from plumbline.sources.net import netlink
from plumbline.sources.net.links import Link

KIND = "bond"
_INFO_DATA, _INFO_SLAVE_DATA = 2, 5
(_MODE, _ACTIVE_SLAVE, _MIIMON, _ARP_INTERVAL, _XMIT_HASH_POLICY) = (1, 2, 3, 7, 14)
(_MIN_LINKS, _LACP_RATE, _AD_SELECT, _AD_INFO) = (18, 21, 22, 23)
(_AD_AGGREGATOR, _AD_NUM_PORTS, _AD_PARTNER_MAC) = (1, 2, 5)
(_SLAVE_STATE, _SLAVE_MII_STATUS, _SLAVE_LINK_FAILURES, _SLAVE_AGGREGATOR) = (1, 2, 3, 6)
(_SLAVE_ACTOR, _SLAVE_PARTNER, _SLAVE_CHURN_ACTOR, _SLAVE_CHURN_PARTNER) = (7, 8, 11, 12)
_MAC_BYTES = 6

_MODES = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
_HASH_POLICIES = ("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac")
_LACP_RATES = ("slow", "fast")
_AD_SELECTS = ("stable", "bandwidth", "count", "actor_port_prio")

Attributes = Mapping[int, tuple[int, int]]
SkipHook = Callable[[str, str], None]


class MiiStatus(IntEnum):
    """``BOND_LINK_*``: link monitoring's state of a slave."""

    UP = 0
    FAIL = 1
    DOWN = 2
    BACK = 3


class LacpState(IntFlag):
    """``LACP_STATE_*``: a port's state as sent in every LACPDU."""

    ACTIVITY = 0x01
    TIMEOUT = 0x02
    AGGREGATION = 0x04
    SYNCHRONIZATION = 0x08
    COLLECTING = 0x10
    DISTRIBUTING = 0x20
    DEFAULTED = 0x40
    EXPIRED = 0x80


class Churn(StrEnum):
    """802.1AX churn detection: ``churned`` when a side has not synchronised within 60 s."""

    MONITORING = "monitoring"
    CHURNED = "churned"
    NONE = "none"


_CHURN = (Churn.MONITORING, Churn.CHURNED, Churn.NONE)  # churn_state_t of bond_3ad.h


@dataclass(frozen=True, slots=True)
class Aggregator:
    """The active aggregator: the group of slaves that carries the traffic."""

    aggregator_id: int
    ports: int | None
    partner_mac: str
    """The switch's MAC; ``00:00:00:00:00:00`` when nothing answers LACP."""


@dataclass(frozen=True, slots=True)
class Slave:
    """One port of a bond. ``None``: not LACP, not attached, or not reported by this kernel."""

    device: str
    active: bool | None
    mii_status: int | None
    link_failures: int | None
    aggregator_id: int | None = None
    actor: LacpState | None = None
    partner: LacpState | None = None
    actor_churn: Churn | None = None
    partner_churn: Churn | None = None

    @property
    def up(self) -> bool | None:
        """Whether link monitoring considers the link up."""
        return None if self.mii_status is None else self.mii_status == MiiStatus.UP


@dataclass(frozen=True, slots=True)
class Bond:
    """One bond. Strings are ``""`` where they do not apply to this mode."""

    device: str
    mode: str
    xmit_hash_policy: str
    lacp_rate: str
    ad_select: str
    miimon_ms: int | None
    arp_interval_ms: int | None
    min_links: int | None
    aggregator: Aggregator | None
    slaves: tuple[Slave, ...] = ()

    @property
    def monitored(self) -> bool | None:
        """Whether link monitoring is on; when False, the bond keeps using a dead link."""
        if self.miimon_ms is None and self.arp_interval_ms is None:
            return None
        return bool(self.miimon_ms or self.arp_interval_ms)

    def partner_valid(self, slave: Slave) -> bool | None:
        """Whether a partner answers this slave's LACP; ``None`` outside LACP.

        A port that receives no LACPDU uses default partner values, with a MAC of zeros, and sets DEFAULTED in its own
        state (``__record_default`` in bond_3ad.c).
        """
        if slave.actor is None:
            return None
        if LacpState.DEFAULTED in slave.actor:
            return False
        active = self.aggregator
        return not (active and active.aggregator_id == slave.aggregator_id and no_mac(active.partner_mac))


def no_mac(address: str) -> bool:
    """Whether a MAC address is all zeros."""
    return not address.strip("0:")


def read_bonds(links: Mapping[int, Link], *, on_skip: SkipHook) -> tuple[Bond, ...]:
    """The bonds among ``links`` with their slaves, in dump order; malformed ones are skipped."""
    slaves: dict[int, list[Slave]] = {}
    for link in links.values():
        if link.slave_kind == KIND:
            try:
                slaves.setdefault(link.master_index, []).append(parse_slave(link.bond_info, link.name))
            except ParseError:
                on_skip(link.name, "malformed")
    bonds = []
    for index, link in links.items():
        if link.kind == KIND:
            try:
                bonds.append(parse_bond(link.bond_info, link.name, tuple(slaves.get(index, ()))))
            except ParseError:
                on_skip(link.name, "malformed")
    return tuple(bonds)


def parse_bond(info: bytes, device: str, slaves: tuple[Slave, ...] = ()) -> Bond:
    """Parse a bond's ``IFLA_LINKINFO``; :class:`ParseError` when an attribute is malformed or there is no mode."""
    source = f"netlink route: bond {device}"
    found = _nested(info, 0, len(info), _INFO_DATA, source)
    mode = _number(info, found, _MODE, source)
    if mode is None:
        raise ParseError(source, "no mode")
    lacp = _name(_MODES, mode) == "802.3ad"
    hashed = _name(_MODES, mode) in ("balance-xor", "802.3ad", "balance-tlb", "balance-alb")
    return Bond(
        device,
        _name(_MODES, mode),
        _name(_HASH_POLICIES, _number(info, found, _XMIT_HASH_POLICY, source)) if hashed else "",
        _name(_LACP_RATES, _number(info, found, _LACP_RATE, source)) if lacp else "",
        _name(_AD_SELECTS, _number(info, found, _AD_SELECT, source)) if lacp else "",
        _number(info, found, _MIIMON, source),
        _number(info, found, _ARP_INTERVAL, source),
        _number(info, found, _MIN_LINKS, source),
        _aggregator(info, found.get(_AD_INFO), source),
        slaves,
    )


def parse_slave(info: bytes, device: str) -> Slave:
    """Parse a slave's ``IFLA_LINKINFO``; :class:`ParseError` when an attribute is malformed."""
    source = f"netlink route: bond slave {device}"
    found = _nested(info, 0, len(info), _INFO_SLAVE_DATA, source)
    state = _number(info, found, _SLAVE_STATE, source)
    actor, partner = (_number(info, found, kind, source) for kind in (_SLAVE_ACTOR, _SLAVE_PARTNER))
    return Slave(
        device,
        None if state is None else state == 0,
        _number(info, found, _SLAVE_MII_STATUS, source),
        _number(info, found, _SLAVE_LINK_FAILURES, source),
        _number(info, found, _SLAVE_AGGREGATOR, source),
        # the standard has eight bits; the partner's arrive in sixteen
        None if actor is None else LacpState(actor & 0xFF),
        None if partner is None else LacpState(partner & 0xFF),
        _churn(_number(info, found, _SLAVE_CHURN_ACTOR, source)),
        _churn(_number(info, found, _SLAVE_CHURN_PARTNER, source)),
    )


def _aggregator(info: bytes, span: tuple[int, int] | None, source: str) -> Aggregator | None:
    if span is None:
        return None
    found = {kind: (start, end) for kind, start, end in netlink.attributes(info, *span, source=source)}
    number = _number(info, found, _AD_AGGREGATOR, source)
    if number is None:
        return None  # no active aggregator: the kernel leaves the nest empty
    start, end = found.get(_AD_PARTNER_MAC, (0, 0))
    if end - start not in (0, _MAC_BYTES):
        raise ParseError(source, f"a partner MAC of {end - start} bytes")
    return Aggregator(number, _number(info, found, _AD_NUM_PORTS, source), info[start:end].hex(":"))


def _nested(info: bytes, start: int, end: int, wanted: int, source: str) -> Attributes:
    for kind, *span in netlink.attributes(info, start, end, source=source):
        if kind == wanted:
            return {inner: (first, last) for inner, first, last in netlink.attributes(info, *span, source=source)}
    return {}


def _number(info: bytes, found: Attributes, kind: int, source: str) -> int | None:
    span = found.get(kind)
    return None if span is None else netlink.unsigned(info, *span, source=source)


def _name(names: tuple[str, ...], number: int | None) -> str:
    """Values added by newer kernels are shown as numbers."""
    if number is None:
        return ""
    return names[number] if number < len(names) else str(number)


def _churn(number: int | None) -> Churn | None:
    return _CHURN[number] if number is not None and number < len(_CHURN) else None
