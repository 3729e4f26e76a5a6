"""Bonds and their slaves, from the existing link dump; LACP state (IEEE 802.1AX) as each slave sees it.

https://docs.kernel.org/networking/bonding.html
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/if_link.h (``IFLA_BOND_*``, ``IFLA_BOND_SLAVE_*``)
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/if_bonding.h (modes, link and LACP state)
https://github.com/torvalds/linux/blob/v6.12/drivers/net/bonding/bond_netlink.c (which attributes are filled, and when)

A bond's ``IFLA_LINKINFO`` holds ``IFLA_INFO_DATA``; a slave's holds ``IFLA_INFO_SLAVE_DATA``. LACP attributes exist
only in mode 802.3ad, and a slave's only while it is attached to an aggregator. All can be read without privilege,
unlike those in ``/proc/net/bonding``. Netlink reports the churn state since 2026 (also in stable kernels); for older
kernels, the slow tier reads it from ``/proc/net/bonding/<bond>``
(https://github.com/torvalds/linux/blob/v6.12/drivers/net/bonding/bond_procfs.c, ``bond_info_show_slave``), which has
one block per slave, in mode 802.3ad with these lines (and more, not needed, for readers with CAP_NET_ADMIN)::

    Slave Interface: enp145s0f0
    Actor Churn State: churned
    Partner Churn State: churned
    Actor Churned Count: 1
    Partner Churned Count: 2

The file is formatted for people, so a scrape does not read it; the state changes at most once a minute.
"""

import re
from collections.abc import Callable, Mapping
from enum import IntFlag, StrEnum
from typing import NamedTuple

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs
from plumbline.sources.net.links import Link, label
from plumbline.sources.net.netlink import Attributes, parse_attributes

KIND = "bond"
_INFO_DATA, _INFO_SLAVE_DATA = 2, 5
(_MODE, _MIIMON, _ARP_INTERVAL, _XMIT_HASH_POLICY) = (1, 3, 7, 14)
(_MIN_LINKS, _LACP_RATE, _AD_SELECT, _AD_INFO) = (18, 21, 22, 23)
(_AD_AGGREGATOR, _AD_NUM_PORTS, _AD_PARTNER_MAC) = (1, 2, 5)
(_SLAVE_STATE, _SLAVE_MII_STATUS, _SLAVE_LINK_FAILURES, _SLAVE_AGGREGATOR) = (1, 2, 3, 6)
(_SLAVE_ACTOR, _SLAVE_PARTNER, _SLAVE_CHURN_ACTOR, _SLAVE_CHURN_PARTNER) = (7, 8, 11, 12)
_MAC_BYTES = 6
_BOND_LINK_UP = 0

_MODES = ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
_HASH_POLICIES = ("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac")
_LACP_RATES = ("slow", "fast")
_AD_SELECTS = ("stable", "bandwidth", "count", "actor_port_prio")

SkipHook = Callable[[str, str], None]


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


_CHURN = tuple(Churn)  # in the order of churn_state_t in bond_3ad.h
_STATES = {churn.value: churn for churn in Churn}
_FIELDS = {
    f"{side} {field}": re.compile(pattern)
    for side in ("Actor", "Partner")
    for field, pattern in (("Churn State", "|".join((*_STATES, "unknown"))), ("Churned Count", "[0-9]{1,10}"))
}


class Aggregator(Struct, frozen=True):
    """The active aggregator: the group of slaves that carries the traffic."""

    aggregator_id: int
    ports: int | None
    partner_mac: str  # The switch's MAC; 00:00:00:00:00:00 when nothing answers LACP


class Slave(Struct, frozen=True):
    """One port of a bond. ``None``: not LACP, not attached, or not reported by this kernel."""

    device: str
    active: bool | None
    up: bool | None  # Whether link monitoring considers the link up (MII status)
    link_failures: int | None
    aggregator_id: int | None = None
    actor: LacpState | None = None
    partner: LacpState | None = None
    actor_churn: Churn | None = None
    partner_churn: Churn | None = None


class Bond(Struct, frozen=True):
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
        """Whether a partner answers this slave's LACP; ``None`` outside LACP. A port that receives no LACPDU has
        default values, a MAC of zeros, and DEFAULTED in its own state (``__record_default`` in bond_3ad.c)."""
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
    attributes = parse_attributes(info, 0, len(info), source=source).nested(_INFO_DATA)
    number = attributes.number(_MODE)
    if number is None:
        raise ParseError(source, "no mode")
    mode = _name(_MODES, number)
    lacp = mode == "802.3ad"
    hashed = mode in ("balance-xor", "802.3ad", "balance-tlb", "balance-alb")
    return Bond(
        device,
        mode,
        _name(_HASH_POLICIES, attributes.number(_XMIT_HASH_POLICY)) if hashed else "",
        _name(_LACP_RATES, attributes.number(_LACP_RATE)) if lacp else "",
        _name(_AD_SELECTS, attributes.number(_AD_SELECT)) if lacp else "",
        attributes.number(_MIIMON),
        attributes.number(_ARP_INTERVAL),
        attributes.number(_MIN_LINKS),
        _aggregator(attributes.nested(_AD_INFO)),
        slaves,
    )


def parse_slave(info: bytes, device: str) -> Slave:
    """Parse a slave's ``IFLA_LINKINFO``; :class:`ParseError` when an attribute is malformed."""
    source = f"netlink route: bond slave {device}"
    attributes = parse_attributes(info, 0, len(info), source=source).nested(_INFO_SLAVE_DATA)
    kinds = (_SLAVE_STATE, _SLAVE_MII_STATUS, _SLAVE_ACTOR, _SLAVE_PARTNER)
    state, link, actor, partner = (attributes.number(kind) for kind in kinds)
    return Slave(
        device,
        None if state is None else state == 0,
        None if link is None else link == _BOND_LINK_UP,
        attributes.number(_SLAVE_LINK_FAILURES),
        attributes.number(_SLAVE_AGGREGATOR),
        # the standard has eight bits; the partner's arrive in sixteen
        None if actor is None else LacpState(actor & 0xFF),
        None if partner is None else LacpState(partner & 0xFF),
        _churn(attributes.number(_SLAVE_CHURN_ACTOR)),
        _churn(attributes.number(_SLAVE_CHURN_PARTNER)),
    )


def _aggregator(attributes: Attributes) -> Aggregator | None:
    number = attributes.number(_AD_AGGREGATOR)
    if number is None:
        return None  # not LACP, or no active aggregator: the kernel leaves the nest empty
    start, end = attributes.spans.get(_AD_PARTNER_MAC, (0, 0))
    if end - start not in (0, _MAC_BYTES):
        raise ParseError(attributes.source, f"partner MAC of {end - start} bytes, expected {_MAC_BYTES}")
    return Aggregator(number, attributes.number(_AD_NUM_PORTS), attributes.data[start:end].hex(":"))


def _name(names: tuple[str, ...], number: int | None) -> str:
    """Values added by newer kernels are shown as numbers."""
    if number is None:
        return ""
    return names[number] if number < len(names) else str(number)


def _churn(number: int | None) -> Churn | None:
    return _CHURN[number] if number is not None and number < len(_CHURN) else None


class SlaveChurn(Struct, frozen=True):
    """One slave's churn state. ``None``: not LACP, not attached, or older than Linux 4.2."""

    actor: Churn | None = None
    partner: Churn | None = None
    actor_times: int | None = None  # Number of churns since the bond was created
    partner_times: int | None = None


Churns = Mapping[tuple[str, str], SlaveChurn]  # Churn by (bond, slave)


class BondsReading(NamedTuple):
    """All bonds; ``churns`` holds what netlink of older kernels does not report."""

    bonds: tuple[Bond, ...] = ()
    churns: Mapping[tuple[str, str], SlaveChurn] = {}


def parse_bonding(text: str, *, source: str) -> dict[str, SlaveChurn]:
    """Parse churn by slave. Other lines (patched kernels have more) are skipped; a malformed churn line raises."""
    sections: dict[str, dict[str, str]] = {}
    block: dict[str, str] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        key, _, value = line.partition(": ")
        if key == "Slave Interface":
            if not value or value in sections:
                raise ParseError(source, f"slave {value!r} has no name or is listed twice", line=number)
            block = sections[value] = {}
        elif block is not None and key in _FIELDS:
            if not _FIELDS[key].fullmatch(value):
                raise ParseError(source, f"{key}: {value[:40]!r}", line=number)
            block[key] = value
    return {slave: _slave(fields) for slave, fields in sections.items()}


def read_churns(roots: Roots, *, on_skip: SkipHook) -> Churns:
    """Churn of the slaves of all bonds; empty without bonds. A bond that can't be read is skipped."""
    directory = roots.proc / "net" / "bonding"
    churns: dict[tuple[str, str], SlaveChurn] = {}
    for name in sysfs.entries(directory):
        path = directory / name
        data = sysfs.read_bytes(path)
        bond = label(name.encode("utf-8", "surrogateescape"))
        if data is None:
            on_skip(bond, "vanished")
            continue
        try:
            slaves = parse_bonding(label(data), source=str(path))
        except ParseError:
            on_skip(bond, "malformed")
            continue
        churns.update({(bond, slave): churn for slave, churn in slaves.items()})
    return churns


def _slave(fields: Mapping[str, str]) -> SlaveChurn:
    actor_times, partner_times = (fields.get(f"{side} Churned Count") for side in ("Actor", "Partner"))
    return SlaveChurn(
        _STATES.get(fields.get("Actor Churn State", "")),
        _STATES.get(fields.get("Partner Churn State", "")),
        None if actor_times is None else int(actor_times),
        None if partner_times is None else int(partner_times),
    )
