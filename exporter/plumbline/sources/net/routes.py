"""Which network device leads to an address, by the kernel's routing: one ``RTM_GETROUTE`` request.

https://man7.org/linux/man-pages/man7/rtnetlink.7.html (``struct rtmsg``, ``RTA_*``)

The kernel resolves policy routing, VRFs and several addresses of one network on one host: packets will take the route
that it answers.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.kernel import sysfs
from plumbline.sources.net import netlink
from plumbline.sources.net.addresses import read_addresses
from plumbline.sources.net.knobs import STACKED_KINDS
from plumbline.sources.net.links import Link, read_links
from plumbline.sources.net.netlink import NETLINK_ROUTE, U32, Message, Netlink, NetlinkSocket

RTM_GETROUTE = 26
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_RTMSG = struct.Struct("=BBBBBBBBI")
_DST, _SRC, _OIF = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Way:
    """The local device that packets to one address leave through."""

    device: str
    mtu_bytes: int | None
    speed_mbps: int | None
    """``None``: it has no speed, or does not report it."""


def route_request(to: IpAddress, source: IpAddress | None) -> bytes:
    """The payload that asks for the route to ``to``, from the address ``source`` if given."""
    bits = to.max_prefixlen
    family = socket.AF_INET if to.version == 4 else socket.AF_INET6
    request = _RTMSG.pack(family, bits, bits if source else 0, 0, 0, 0, 0, 0, 0) + netlink.attribute(_DST, to.packed)
    return request + netlink.attribute(_SRC, source.packed) if source else request


def parse_route(message: Message, *, source: str = "netlink route") -> int:
    """The index of the outgoing device; :class:`ParseError` when the reply has none."""
    data, start, end = message.data, message.start, message.end
    if end - start < _RTMSG.size:
        raise ParseError(source, f"a route of {end - start} bytes")
    for kind, first, last in netlink.attributes(data, start + _RTMSG.size, end, source=source):
        if kind == _OIF and last - first == U32.size:
            return int(U32.unpack_from(data, first)[0])
    raise ParseError(source, "a route without a device")


def read_way(to: IpAddress, source: IpAddress | None, roots: Roots) -> Way:
    """How packets to ``to`` leave this host; :class:`PlumblineError` when they can't."""
    with NetlinkSession() as route:
        reply = route.get(RTM_GETROUTE, route_request(to, source))
        if reply is None:
            raise PlumblineError(f"netlink route: no route to {to}")
        link = read_links(route).get(parse_route(reply))
    if link is None:
        raise PlumblineError(f"netlink route: the device towards {to} is gone")
    return Way(link.name, link.mtu_bytes, read_speed_mbps(link, roots))


def read_speed_mbps(link: Link, roots: Roots) -> int | None:
    """The content of ``/sys/class/net/DEVICE/speed``; ``None`` where it is meaningless (-1, EINVAL, invented)."""
    if not (link.hardware or link.kind in STACKED_KINDS):
        return None
    text = sysfs.read_text(roots.sys / "class" / "net" / Path(link.name).name / "speed")
    return int(text) if text and text.isascii() and text.isdecimal() and 0 < int(text) < 2**31 else None


def read_device(name: str) -> Link:
    """One device in its current state; :class:`Unavailable` when it is gone."""
    with NetlinkSession() as route:
        for link in read_links(route).values():
            if link.name == name:
                return link
    raise Unavailable(f"{name}: no longer a network device of this host")


def read_device_speed_mbps(name: str, roots: Roots) -> int | None:
    """As :func:`read_speed_mbps`, by name."""
    return read_speed_mbps(read_device(name), roots)


def networks_of(address: str) -> tuple[IpNetwork, ...]:
    """The networks of one of this host's addresses, by its prefix length; empty when no device has it."""
    wanted = ipaddress.ip_address(address)
    with NetlinkSession() as route:
        lengths = {each.prefix_length for each in read_addresses(route) if each.address == wanted}
    return tuple(
        ipaddress.ip_network((wanted, length), strict=False) for length in sorted(filter(None, lengths), reverse=True)
    )


def speed_word(mbps: int) -> str:
    """The default device class of a network port, if the site defines none: ``10g``, ``2.5g``, ``100m``."""
    return f"{mbps / 1000:g}g" if mbps >= 1000 else f"{mbps}m"


class NetlinkSession:
    """A private netlink socket for a few requests."""

    def __init__(self) -> None:
        self._socket = NetlinkSocket(NETLINK_ROUTE)

    def __enter__(self) -> Netlink:
        return Netlink(self._socket, source="netlink route")

    def __exit__(self, *_: object) -> None:
        self._socket.close()
