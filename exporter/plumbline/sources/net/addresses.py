"""The IP addresses of each interface, from one ``RTM_GETADDR`` dump.

https://man7.org/linux/man-pages/man7/rtnetlink.7.html (``struct ifaddrmsg``, ``IFA_*``)
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field

from plumbline.errors import ParseError
from plumbline.sources.net import netlink
from plumbline.sources.net.netlink import Message, Netlink

RTM_NEWADDR, RTM_GETADDR = 20, 22
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_IFADDR = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, interface index
_ADDRESS, _LOCAL = 1, 2
_BYTES = {2: 4, 10: 16}  # AF_INET, AF_INET6


@dataclass(frozen=True, slots=True)
class Address:
    """One address and the interface that has it."""

    ifindex: int
    address: IpAddress
    prefix_length: int | None = field(default=None, compare=False)
    """Length of the network prefix, in bits."""


def parse_address(message: Message, *, source: str = "netlink route") -> Address | None:
    """Parse one ``RTM_NEWADDR`` message; ``None`` for families other than IP. :class:`ParseError` when malformed."""
    data, start, end = message.data, message.start, message.end
    if end - start < _IFADDR.size:
        raise ParseError(source, f"an address of {end - start} bytes")
    family, prefix, _flags, _scope, index = _IFADDR.unpack_from(data, start)
    found = {
        kind: data[first:last]
        for kind, first, last in netlink.attributes(data, start + _IFADDR.size, end, source=source)
    }
    # on a point-to-point link, IFA_ADDRESS is the peer's address
    value = found.get(_LOCAL, found.get(_ADDRESS))
    if family not in _BYTES or value is None:
        return None
    if len(value) != _BYTES[family]:
        raise ParseError(source, f"interface {index}: an address of {len(value)} bytes in family {family}")
    return Address(index, ipaddress.ip_address(value), prefix)


def read_addresses(route: Netlink) -> tuple[Address, ...]:
    """All addresses in this network namespace."""
    dump = route.dump(RTM_GETADDR, _IFADDR.pack(0, 0, 0, 0, 0))
    if dump.error:
        netlink.raise_errno(dump.error, "netlink route: RTM_GETADDR")
    parsed = (parse_address(message) for message in dump.messages if message.type == RTM_NEWADDR)
    return tuple(address for address in parsed if address is not None)
