"""Where traffic to a host goes: its address, this host's own addresses, the route, and the ports below a device.

https://man7.org/linux/man-pages/man7/rtnetlink.7.html (``struct ifaddrmsg``, ``IFA_*``; ``struct rtmsg``, ``RTA_*``)

For a route, the kernel resolves policy routing, VRFs and several addresses of one network on one host. Ours,
because pyroute2's IPRoute takes 3.2 ms for the addresses that this lists in 0.17 ms.
"""

import contextlib
import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from plumbline.core.answers import ask_side_by_side
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.kernel import sysfs
from plumbline.sources.net import netlink
from plumbline.sources.net.knobs import STACKED_KINDS
from plumbline.sources.net.links import SOURCE, Link, read_links
from plumbline.sources.net.netlink import NETLINK_ROUTE, U32, Message, Netlink, NetlinkSocket

RTM_NEWADDR, RTM_GETADDR, RTM_GETROUTE = 20, 22, 26
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_IFADDR = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, interface index
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_ADDRESS_BYTES = {socket.AF_INET: 4, socket.AF_INET6: 16}
_RTMSG = struct.Struct("=BBBBBBBBI")
_RTA_DST, _RTA_SRC, _RTA_OIF = 1, 2, 4
_LOWER = "lower_"
_MAX_NESTING = 8  # the kernel's own limit (MAX_NEST_DEV)


@dataclass(frozen=True, slots=True)
class Address:
    """One address and the interface that has it."""

    ifindex: int
    address: IpAddress
    prefix_length: int | None = field(default=None, compare=False)  # Length of the network prefix, in bits


class Way(Struct, frozen=True):
    """The local device that packets to one address leave through."""

    device: str
    mtu_bytes: int | None
    speed_mbps: int | None  # None: it has no speed, or does not report it


def resolve(host: str, *, version: int | None = None, within_s: float = 5.0) -> IpAddress:
    """The first address of ``host`` (an IP address: itself), of IP ``version`` (4, 6) if given; :class:`Unavailable`
    without one. The C library's resolver can't be interrupted: after ``within_s``, its thread is left to the resolver's
    own timeouts."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return _look_up(host, version, within_s)
    if version not in (None, address.version):
        raise Unavailable(f"{host} is not an IPv{version} address, as the local address is")
    return address


def _look_up(host: str, version: int | None, within_s: float) -> IpAddress:
    family = {None: socket.AF_UNSPEC, 4: socket.AF_INET, 6: socket.AF_INET6}[version]

    def ask() -> IpAddress | str:
        try:
            *_, where = socket.getaddrinfo(host, None, family, socket.SOCK_DGRAM)[0]
            return ipaddress.ip_address(str(where[0]).partition("%")[0])
        except (OSError, UnicodeError) as error:
            return getattr(error, "strerror", None) or str(error)

    answered, _ = ask_side_by_side({host: ask}, within_s, what="resolve")
    answer = answered.get(host, f"no answer within {within_s:g} s")
    if isinstance(answer, str):
        raise Unavailable(f"{host}: the name can't be resolved: {answer}; see /etc/hosts and /etc/resolv.conf")
    return answer


def parse_address(message: Message) -> Address | None:
    """Parse one ``RTM_NEWADDR`` message; ``None`` for families other than IP. :class:`ParseError` when malformed."""
    data, start, end = message.data, message.start, message.end
    if end - start < _IFADDR.size:
        raise ParseError(SOURCE, f"address message of {end - start} bytes is too short")
    family, prefix, _flags, _scope, index = _IFADDR.unpack_from(data, start)
    spans = netlink.parse_attributes(data, start + _IFADDR.size, end, source=SOURCE).spans
    # on a point-to-point link, IFA_ADDRESS is the peer's address
    first, last = spans.get(_IFA_LOCAL, spans.get(_IFA_ADDRESS, (0, 0)))
    if family not in _ADDRESS_BYTES or not last:
        return None
    if last - first != _ADDRESS_BYTES[family]:
        raise ParseError(SOURCE, f"interface {index}: address of {last - first} bytes in family {family}")
    return Address(index, ipaddress.ip_address(data[first:last]), prefix)


def read_addresses(route: Netlink) -> tuple[Address, ...]:
    """All addresses in this network namespace."""
    dump = route.dump(RTM_GETADDR, _IFADDR.pack(0, 0, 0, 0, 0))
    netlink.raise_errno(dump.error, f"{SOURCE}: RTM_GETADDR")
    parsed = (parse_address(message) for message in dump.messages if message.type == RTM_NEWADDR)
    return tuple(address for address in parsed if address is not None)


def route_request(to: IpAddress, source: IpAddress | None) -> bytes:
    """The payload that asks for the route to ``to``, from the address ``source`` if given."""
    bits = to.max_prefixlen
    family = socket.AF_INET if to.version == 4 else socket.AF_INET6
    request = _RTMSG.pack(family, bits, bits if source else 0, 0, 0, 0, 0, 0, 0)
    request += netlink.attribute(_RTA_DST, to.packed)
    return request + netlink.attribute(_RTA_SRC, source.packed) if source else request


def parse_route(message: Message) -> int:
    """The index of the outgoing device; :class:`ParseError` when the reply has none."""
    data, start, end = message.data, message.start, message.end
    if end - start < _RTMSG.size:
        raise ParseError(SOURCE, f"route message of {end - start} bytes is too short")
    for kind, first, last in netlink.attributes(data, start + _RTMSG.size, end, source=SOURCE):
        if kind == _RTA_OIF and last - first == U32.size:
            return int(U32.unpack_from(data, first)[0])
    raise ParseError(SOURCE, "route has no device")


def read_way(to: IpAddress, source: IpAddress | None, roots: Roots) -> Way:
    """How packets to ``to`` leave this host; :class:`PlumblineError` when they can't."""
    with _session() as route:
        reply = route.get(RTM_GETROUTE, route_request(to, source))
        if reply is None:
            raise PlumblineError(f"{SOURCE}: no route to {to}")
        link = read_links(route).get(parse_route(reply))
    if link is None:
        raise PlumblineError(f"{SOURCE}: the device towards {to} is gone")
    return Way(link.name, link.mtu_bytes, read_speed_mbps(link, roots))


def read_speed_mbps(link: Link, roots: Roots) -> int | None:
    """The content of ``/sys/class/net/DEVICE/speed``; ``None`` where it is meaningless (-1, EINVAL, invented)."""
    if not (link.hardware or link.kind in STACKED_KINDS):
        return None
    text = sysfs.read_text(roots.sys / "class" / "net" / Path(link.name).name / "speed")
    return int(text) if text and text.isascii() and text.isdecimal() and 0 < int(text) < 2**31 else None


def read_device(name: str) -> Link:
    """One device in its current state; :class:`Unavailable` when it is gone."""
    with _session() as route:
        for link in read_links(route).values():
            if link.name == name:
                return link
    raise Unavailable(f"{name}: no longer a network device of this host")


def read_device_speed_mbps(name: str, roots: Roots) -> int | None:
    """As :func:`read_speed_mbps`, by name."""
    return read_speed_mbps(read_device(name), roots)


def speed_word(mbps: int) -> str:
    """The default device class of a network port, if the site defines none: ``10g``, ``2.5g``, ``100m``."""
    return f"{mbps / 1000:g}g" if mbps >= 1000 else f"{mbps}m"


def read_lower_ports(device: str, roots: Roots) -> int:
    """How many ports ``device`` sends over, at the bottom of VLANs, bonds, teams and bridges; 1 if it does not exist.
    By ``/sys/class/net/bond0/lower_ens1f0`` … (``netdev_adjacent_sysfs_add``, net/core/dev.c)."""
    return len(_bottom(device, roots, _MAX_NESTING))


def _bottom(device: str, roots: Roots, depth: int) -> set[str]:
    names = sysfs.entries(roots.sys / "class" / "net" / device)
    lower = [name.removeprefix(_LOWER) for name in names if name.startswith(_LOWER)]
    if not lower or not depth:
        return {device}
    return {port for name in lower for port in _bottom(name, roots, depth - 1)}


@contextlib.contextmanager
def _session() -> Iterator[Netlink]:
    """A private netlink socket for a few requests."""
    with contextlib.closing(NetlinkSocket(NETLINK_ROUTE)) as transport:
        yield Netlink(transport, source=SOURCE)
