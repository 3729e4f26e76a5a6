"""Network interfaces and their 64-bit counters, from one ``RTM_GETLINK`` dump.

https://docs.kernel.org/networking/statistics.html
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/if_link.h (``IFLA_*``, ``struct rtnl_link_stats64``)

These are the kernel's separate counters: ``/proc/net/dev`` adds ``rx_missed_errors`` to "drop", and length, CRC and
overrun errors to "frame"; each of sysfs' 24 files per interface waits for the RTNL lock, which has stalled hosts.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from plumbline.errors import ParseError, PlumblineError
from plumbline.sources.net import netlink
from plumbline.sources.net.netlink import ATTRIBUTE, NLA_TYPE_MASK, U32, Message, Netlink, Span

RTM_NEWLINK, RTM_GETLINK = 16, 18
SOURCE = "netlink route"
IFF_UP, IFF_LOOPBACK = 0x1, 0x8
_OPER_UNKNOWN, _OPER_UP = 0, 6  # IF_OPER_*, RFC 2863

_IFINFO = struct.Struct("=BxHiII")  # family, ARP type, index, flags, change mask
(_ADDRESS, _IFNAME, _MTU, _MASTER, _OPERSTATE, _LINKINFO, _STATS64) = (1, 3, 4, 10, 16, 18, 23)
(_LINK, _STATS, _LINK_NETNSID) = (5, 7, 37)
(_CARRIER, _CARRIER_CHANGES, _PARENT, _PARENT_BUS) = (33, 35, 56, 57)
_ATTRIBUTES = frozenset((_ADDRESS, _IFNAME, _MTU, _LINK, _MASTER, _OPERSTATE, _LINKINFO, _STATS64))
_ATTRIBUTES |= {_STATS, _CARRIER, _CARRIER_CHANGES, _LINK_NETNSID, _PARENT, _PARENT_BUS}
_INFO_KIND, _INFO_SLAVE_KIND = 1, 4
_BOND = "bond"
# real ports; kernels before 5.14 do not show that by naming the parent device
_HARDWARE_KINDS = frozenset({"ipoib", "dsa"})
# kinds that come in pairs: their IFLA_LINK is the peer, not a link below
_PAIRED_KINDS = frozenset({"veth", "vxcan", "netkit"})


class LinkStats(NamedTuple):
    """``struct rtnl_link_stats64``: packets or bytes since creation of the device (or a driver reset). The last two
    fields came with Linux 4.6 and 5.19 and are ``None`` before."""

    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int
    rx_errors: int
    tx_errors: int
    rx_dropped: int
    tx_dropped: int
    multicast: int
    collisions: int
    rx_length_errors: int
    rx_over_errors: int
    rx_crc_errors: int
    rx_frame_errors: int
    rx_fifo_errors: int
    rx_missed_errors: int
    tx_aborted_errors: int
    tx_carrier_errors: int
    tx_fifo_errors: int
    tx_heartbeat_errors: int
    tx_window_errors: int
    rx_compressed: int
    tx_compressed: int
    rx_nohandler: int | None
    rx_otherhost_dropped: int | None


_ALWAYS = 23  # fields that every kernel with 64-bit counters has
_STATS64_BY_COUNT = {count: struct.Struct(f"={count}Q") for count in range(_ALWAYS, len(LinkStats._fields) + 1)}


class Link(Struct, frozen=True):
    """One interface. ``None`` and ``""``: not reported by the kernel."""

    ifindex: int
    name: str  # Safe as a label: bytes that are not UTF-8 become ``\xff``, so two such names stay distinct
    raw_name: bytes  # The kernel's name for it, as ioctls need it
    kind: str  # veth, bridge, vlan, bond …; empty for a plain device
    flags: int
    mtu_bytes: int | None
    operstate: int
    carrier: bool | None
    carrier_changes: int | None
    master_index: int  # Bond or bridge it belongs to; 0: none
    address: str
    parent: str  # The bus address of the device behind it, e.g. 0000:3b:00.0; empty before Linux 5.14.
    parent_bus: str
    stats: LinkStats | None
    lower_index: int = 0  # IFLA_LINK: the link below a VLAN or tunnel, or the peer of a veth; 0: none in this namespace
    slave_kind: str = ""  # Kind of the master it belongs to, as reported by the master's driver: bond, bridge …
    bond_info: bytes = b""  # IFLA_LINKINFO of bonds and their slaves, for bonding.py; empty for every other link

    @property
    def hardware(self) -> bool:
        """Whether it is a port with a driver behind it, real or paravirtual, and not a software link."""
        if self.flags & IFF_LOOPBACK:
            return False
        return not self.kind or bool(self.parent) or self.kind in _HARDWARE_KINDS

    @property
    def up(self) -> bool:
        """Whether it can carry frames. Some devices (loopback, tun) never set a state; for them the carrier decides."""
        if self.operstate == _OPER_UNKNOWN:
            return bool(self.flags & IFF_UP) and self.carrier is not False
        return self.operstate == _OPER_UP


def parse_link(message: Message) -> tuple[Link, Mapping[int, Span]]:
    """One ``RTM_NEWLINK`` message, and the spans of its attributes by type; :class:`ParseError` when an attribute is
    malformed or there is no name."""
    data, position, end = message.data, message.start, message.end
    if end - position < _IFINFO.size:
        raise ParseError(SOURCE, f"link message of {end - position} bytes is too short")
    _family, _type, index, flags, _change = _IFINFO.unpack_from(data, position)
    position += _IFINFO.size
    spans: dict[int, Span] = {}
    unpack = ATTRIBUTE.unpack_from
    # netlink.attributes() inlined: called 45 times per link, the generator would take half of the total time
    while position + 4 <= end:
        length, kind = unpack(data, position)
        if length < 4 or position + length > end:
            raise ParseError(SOURCE, f"link {index}: attribute {kind} claims {length} bytes, {end - position} are left")
        kind &= NLA_TYPE_MASK
        if kind in _ATTRIBUTES:
            spans[kind] = (position + 4, position + length)
        position += (length + 3) & ~3
    get = spans.get
    raw_name = _text(data, get(_IFNAME))
    if not raw_name:
        raise ParseError(SOURCE, f"link {index} has no name")
    info = get(_LINKINFO)
    nest = netlink.parse_attributes(data, *info, source=SOURCE).spans if info else {}
    kind_name, slave_kind = (label(_text(data, nest.get(kind))) for kind in (_INFO_KIND, _INFO_SLAVE_KIND))
    address = get(_ADDRESS)
    carrier = _number(data, get(_CARRIER))
    link = Link(
        index,
        label(raw_name),
        raw_name,
        kind_name,
        flags,
        _number(data, get(_MTU)),
        _number(data, get(_OPERSTATE)) or 0,
        None if carrier is None else carrier != 0,
        _number(data, get(_CARRIER_CHANGES)),
        _number(data, get(_MASTER)) or 0,
        data[address[0] : address[1]].hex(":") if address else "",
        label(_text(data, get(_PARENT))),
        label(_text(data, get(_PARENT_BUS))),
        _stats(data, get(_STATS64)),
        # with a namespace ID, the index belongs to that namespace: a different link may have it here
        0 if _LINK_NETNSID in spans else _number(data, get(_LINK)) or 0,
        slave_kind,
        data[info[0] : info[1]] if info and _BOND in (kind_name, slave_kind) else b"",
    )
    return link, spans


class _Before(NamedTuple):
    """A link and its last message: three parts and, between them, its counters in 64 and in 32 bits."""

    link: Link
    size: int  # bytes of the message
    head: bytes
    counters: int  # bytes of IFLA_STATS64
    middle: bytes  # the header of IFLA_STATS
    tail: bytes

    def now(self, message: Message) -> Link | None:
        """The link with new counters; ``None`` if anything else of its message has changed."""
        data, start, end = message.data, message.start, message.end
        if end - start != self.size or not data.startswith(self.head, start, end):
            return None
        first = start + len(self.head)
        last = first + self.counters
        if not data.startswith(self.middle, last) or not data.endswith(self.tail, start, end):
            return None
        return replace(self.link, stats=_stats(data, (first, last)))


class LinksReader:
    """Reads the interfaces of a network namespace again and again. Between two scrapes most of them differ in counters
    only: comparing the rest of a message takes a sixth of the time of parsing it."""

    def __init__(self, route: Netlink) -> None:
        self._route = route
        self._before: dict[int, _Before] = {}

    def links(self) -> dict[int, Link]:
        """All interfaces by index, in the kernel's order; an empty list is an error."""
        dump = self._route.dump(RTM_GETLINK, _IFINFO.pack(0, 0, 0, 0, 0))
        netlink.raise_errno(dump.error, f"{SOURCE}: RTM_GETLINK")
        links: dict[int, Link] = {}
        for message in dump.messages:
            if message.type == RTM_NEWLINK:
                link = self._link(message)
                links[link.ifindex] = link
        if not links:
            raise PlumblineError(f"{SOURCE}: the kernel lists no interface, not even a loopback")
        self._before = {index: before for index, before in self._before.items() if index in links}
        return links

    def _link(self, message: Message) -> Link:
        if message.end - message.start >= _IFINFO.size:
            index = _IFINFO.unpack_from(message.data, message.start)[2]
            if (before := self._before.get(index)) is not None and (link := before.now(message)) is not None:
                return link
        link, spans = parse_link(message)
        data, start, end = message.data, message.start, message.end
        (first, last), (narrow, rest) = spans.get(_STATS64, (0, 0)), spans.get(_STATS, (0, 0))
        if first and narrow == last + ATTRIBUTE.size:  # as the kernel writes them
            parts = data[start:first], last - first, data[last:narrow], data[rest:end]
            self._before[link.ifindex] = _Before(link, end - start, *parts)
        return link


def read_links(route: Netlink) -> dict[int, Link]:
    """All interfaces of this network namespace, once, as :class:`LinksReader` reads them."""
    return LinksReader(route).links()


class Relation(NamedTuple):
    """``device`` is stacked on ``lower``; ``kind`` joins them: ``vlan``, ``bond``, ``bridge``, ``macvlan`` … A frame
    lost below is often counted again above, so rules use the losses of the lowest link."""

    device: str
    lower: str
    kind: str


def relations(links: Mapping[int, Link]) -> tuple[Relation, ...]:
    """All relations inside one network namespace; an end in another namespace is omitted."""
    pairs = []
    for index, link in links.items():
        lower = links.get(link.lower_index)
        if lower is not None and link.lower_index != index and link.kind not in _PAIRED_KINDS:
            pairs.append(Relation(link.name, lower.name, link.kind))
        master = links.get(link.master_index)
        if master is not None:
            pairs.append(Relation(master.name, link.name, link.slave_kind or master.kind))
    return tuple(pairs)


def label(name: bytes) -> str:
    """Decode a kernel string for use as a label. Interface names are bytes, with no ``/``, ``:`` or blank in them."""
    return name.decode("utf-8", "backslashreplace")


def _text(data: bytes, span: Span | None) -> bytes:
    return data[span[0] : span[1]].partition(b"\0")[0] if span else b""


def _number(data: bytes, span: Span | None) -> int | None:
    if span is None:
        return None
    start, end = span
    if end - start == 4:
        return int(U32.unpack_from(data, start)[0])
    return netlink.unsigned(data, start, end, source=SOURCE)


def _stats(data: bytes, span: Span | None) -> LinkStats | None:
    if span is None:
        return None
    start, end = span
    count = min((end - start) // 8, len(LinkStats._fields))
    if count < _ALWAYS:
        raise ParseError(SOURCE, f"link statistics of {end - start} bytes, at least {8 * _ALWAYS} expected")
    values = _STATS64_BY_COUNT[count].unpack_from(data, start)
    return LinkStats._make(values + (None,) * (len(LinkStats._fields) - count))
