"""Which of this host's addresses Ceph daemons use, from the sockets they have open.

https://docs.ceph.com/en/latest/rados/configuration/network-config-ref/ (ports: 6800–7568 for OSD, MGR and MDS daemons,
3300 and 6789 for monitors)
https://www.kernel.org/doc/Documentation/networking/proc_net_tcp.txt

::

      sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
       0: 0100007F:1A90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  167   0       18417 …

Needs no privilege and no look into other users' processes. Reading a busy node's table takes some 100 ms, so this is
asked only where ``ceph.conf`` has no networks, and never in a scrape. An OSD listens with its public side on one
address and with its cluster side on the other; the one from which the monitors are talked to is the public one.
"""

from __future__ import annotations

import ipaddress
import sys
from dataclasses import dataclass

from plumbline.core.kernel import TABLE
from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_DAEMON_PORTS = range(6800, 7569)
_MONITOR_PORTS = frozenset({3300, 6789})
_ESTABLISHED, _LISTEN = "01", "0A"
_COLUMNS = 4
_WORD = 4


@dataclass(frozen=True, slots=True)
class CephSockets:
    """Local addresses, without wildcards and loopback ones."""

    daemons: frozenset[IpAddress] = frozenset()
    """On which something listens at a port of OSDs."""
    monitors: frozenset[IpAddress] = frozenset()
    """From which monitors are talked to, or on which one listens."""

    @property
    def public(self) -> frozenset[IpAddress]:
        """Addresses of the public side; empty when that can't be told."""
        if len(self.daemons) == 1:
            return self.daemons
        return self.daemons & self.monitors

    @property
    def cluster(self) -> frozenset[IpAddress]:
        """Addresses of the cluster side: the public ones, where daemons have no others."""
        return (self.daemons - self.public or self.public) if self.public else frozenset()


def parse_sockets(text: str, *, source: str) -> CephSockets:
    """``/proc/net/tcp`` or ``tcp6``; :class:`ParseError` for a row that is none."""
    daemons: set[IpAddress] = set()
    monitors: set[IpAddress] = set()
    for number, row in enumerate(text.split("\n")[1:], start=2):
        columns = row.split(None, _COLUMNS)
        if not columns:
            continue
        if len(columns) < _COLUMNS:
            raise ParseError(source, f"{len(columns)} columns", line=number)
        state = columns[3]
        if state not in (_LISTEN, _ESTABLISHED):
            continue
        local, local_port = _split(columns[1], source, number)
        remote_port = _split(columns[2], source, number)[1] if state == _ESTABLISHED else 0
        monitor = remote_port in _MONITOR_PORTS or (state == _LISTEN and local_port in _MONITOR_PORTS)
        daemon = state == _LISTEN and local_port in _DAEMON_PORTS
        if monitor or daemon:
            address = _address(local, source, number)
            if not address.is_unspecified and not address.is_loopback:
                (daemons if daemon else monitors).add(address)
    return CephSockets(frozenset(daemons), frozenset(monitors))


def read_sockets(roots: Roots) -> CephSockets:
    """Both tables; empty where they can't be read."""
    found = CephSockets()
    for name in ("tcp", "tcp6"):
        path = roots.proc / "net" / name
        data = sysfs.read_bytes(path, TABLE)
        if data is not None:
            each = parse_sockets(data.decode("ascii", "replace"), source=str(path))
            found = CephSockets(found.daemons | each.daemons, found.monitors | each.monitors)
    return found


def _split(text: str, source: str, line: int) -> tuple[str, int]:
    address, colon, port = text.partition(":")
    try:
        if colon and len(port) == 4:
            return address, int(port, 16)
    except ValueError:
        pass
    raise ParseError(source, f"not an address: {text[:40]!r}", line=line)


def _address(text: str, source: str, line: int) -> IpAddress:
    """Words of four bytes, each printed as a number of this host's byte order."""
    try:
        data = bytes.fromhex(text)
        if sys.byteorder == "little":
            data = b"".join(data[at : at + _WORD][::-1] for at in range(0, len(data), _WORD))
        address = ipaddress.ip_address(data)
    except ValueError:
        raise ParseError(source, f"not an address: {text[:40]!r}", line=line) from None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
