"""Resolve a host name to an address, without waiting for a dead name server beyond a time limit."""

from __future__ import annotations

import ipaddress
import socket

from plumbline.core.parallel import ask_side_by_side
from plumbline.errors import Unavailable

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def resolve(host: str, *, version: int | None = None, within_s: float = 5.0) -> IpAddress:
    """The first address of ``host``, of IP ``version`` (4, 6) if given; :class:`Unavailable` when there is none.

    An IP address resolves to itself. The C library's resolver can't be interrupted: after ``within_s``, the thread
    that waits for it is left to the resolver's own timeouts.
    """
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

    late = f"no answer within {within_s:g} s"
    answered, _ = ask_side_by_side({host: ask}, within_s, what="resolve")
    found = answered.get(host, late)
    if isinstance(found, str):
        raise Unavailable(f"{host}: the name can't be resolved: {found}; see /etc/hosts and /etc/resolv.conf")
    return found
