"""Which of this host's addresses Ceph daemons use, from their open sockets.

https://docs.ceph.com/en/latest/rados/configuration/network-config-ref/ (ports: 6800–7568 for OSD, MGR and MDS daemons,
3300 and 6789 for monitors)
https://www.kernel.org/doc/Documentation/networking/proc_net_tcp.txt

::

      sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
       0: 0100007F:1A90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  167   0       18417 …

This needs no privilege and no access to other users' processes. Reading a busy node's table takes some 100 ms, so it is
done only where ``ceph.conf`` has no networks, and never in a scrape. An OSD listens on one address for its public side
and on another for its cluster side; the address that connects to the monitors is the public one.
"""

import ipaddress
import sys

from msgspec import Struct

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


class CephSockets(Struct, frozen=True):
    """Local addresses, without wildcard and loopback addresses."""

    daemons: frozenset[IpAddress] = frozenset()  # addresses with a listener on an OSD port
    monitors: frozenset[IpAddress] = frozenset()  # addresses that connect to monitors, or that a monitor listens on

    @property
    def public(self) -> frozenset[IpAddress]:
        """Addresses of the public side; empty when unknown."""
        if len(self.daemons) == 1:
            return self.daemons
        return self.daemons & self.monitors

    @property
    def cluster(self) -> frozenset[IpAddress]:
        """Addresses of the cluster side; the public ones when daemons have no others."""
        return (self.daemons - self.public or self.public) if self.public else frozenset()


def parse_sockets(text: str, *, source: str) -> CephSockets:
    """Parse ``/proc/net/tcp`` or ``tcp6``; :class:`ParseError` for a malformed row."""
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
    """Read both tables; empty when they can't be read."""
    sockets = CephSockets()
    for name in ("tcp", "tcp6"):
        path = roots.proc / "net" / name
        data = sysfs.read_bytes(path, TABLE)
        if data is not None:
            table = parse_sockets(data.decode("ascii", "replace"), source=str(path))
            sockets = CephSockets(sockets.daemons | table.daemons, sockets.monitors | table.monitors)
    return sockets


def _split(text: str, source: str, line: int) -> tuple[str, int]:
    address, colon, port = text.partition(":")
    try:
        if colon and len(port) == 4:
            return address, int(port, 16)
    except ValueError:
        pass
    raise ParseError(source, f"not an address: {text[:40]!r}", line=line)


def _address(text: str, source: str, line: int) -> IpAddress:
    """Decode words of four bytes, each printed as a number in this host's byte order."""
    try:
        data = bytes.fromhex(text)
        if sys.byteorder == "little":
            data = b"".join(data[at : at + _WORD][::-1] for at in range(0, len(data), _WORD))
        address = ipaddress.ip_address(data)
    except ValueError:
        raise ParseError(source, f"not an address: {text[:40]!r}", line=line) from None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
