"""TCP statistics of this network namespace, from ``/proc/net/snmp`` and ``/proc/net/netstat``.

https://github.com/torvalds/linux/blob/v6.12/net/ipv4/proc.c (``snmp_seq_show_tcp_udp``, ``netstat_seq_show``),
meanings: Documentation/networking/snmp_counter.rst

Each group is a pair of lines, names and then values; which names exist differs between kernels::

    Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens … InSegs OutSegs RetransSegs InErrs OutRsts …
    Tcp: 1 200 120000 -1 5132 4888 42 49 0 162656 106847 15 0 194 0

All are 64-bit counters since boot on 64-bit kernels.
"""

import re

from msgspec import Struct

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.kernel import sysfs

_COUNTER = re.compile(rb"[0-9]{1,20}")


class TcpReading(Struct, frozen=True):
    """Counters since boot; ``None``: not counted by this kernel. Each has the kernel's own name beside it."""

    segments_received: int | None  # InSegs: segments passed to the protocol; those that GRO merged count once
    segments_sent: int | None  # OutSegs: on the wire, counting each segment of a TSO packet, without retransmissions
    segments_retransmitted: int | None  # RetransSegs, also counted on the wire
    checksum_errors: int | None  # InCsumErrors
    established: int | None  # CurrEstab, a gauge: connections in ESTABLISHED or CLOSE-WAIT now
    retransmission_timeouts: int | None  # TCPTimeouts: waits of 200 ms and more, noticeable to clients
    syn_retransmissions: int | None  # TCPSynRetrans
    sack_recoveries: int | None  # TCPSackRecovery: times a loss was repaired by selective acknowledgement
    out_of_order_queued: int | None  # TCPOFOQueue: segments that arrived before an earlier one
    listen_overflows: int | None  # ListenOverflows: accept queue full (net.core.somaxconn or the program's own limit)
    listen_drops: int | None  # ListenDrops: connection requests dropped, overflows included
    receive_queue_collapsed: int | None  # TCPRcvCollapsed: segments merged by copying, as the receive buffer was full
    receive_queue_pruned: int | None  # PruneCalled: times a receive buffer exceeded its limit and had to be pruned
    receive_queue_drops: int | None  # RcvPruned: segments dropped because pruning did not help
    out_of_order_drops: int | None  # OfoPruned: times the out-of-order queue was discarded to free memory
    backlog_drops: int | None  # TCPBacklogDrop: segments dropped while the program held the socket, its backlog full
    memory_pressures: int | None  # TCPMemoryPressures: times TCP exceeded the middle value of net.ipv4.tcp_mem


# in the order of TcpReading's fields
_TCP = (b"InSegs", b"OutSegs", b"RetransSegs", b"InCsumErrors", b"CurrEstab")
_TCP_EXT = (
    b"TCPTimeouts", b"TCPSynRetrans", b"TCPSackRecovery", b"TCPOFOQueue", b"ListenOverflows", b"ListenDrops",
    b"TCPRcvCollapsed", b"PruneCalled", b"RcvPruned", b"OfoPruned", b"TCPBacklogDrop", b"TCPMemoryPressures",
)  # fmt: skip


def parse_tcp(snmp: bytes, netstat: bytes, *, source: str) -> TcpReading:
    """Both files of the directory ``source``; :class:`ParseError` when the ``Tcp`` or ``TcpExt`` pair is malformed."""
    tcp = _group(snmp, b"Tcp:", source=f"{source}/snmp")
    extended = _group(netstat, b"TcpExt:", source=f"{source}/netstat")
    return TcpReading(
        *(_count(tcp.get(name), name, f"{source}/snmp") for name in _TCP),
        *(_count(extended.get(name), name, f"{source}/netstat") for name in _TCP_EXT),
    )


def read_tcp(roots: Roots) -> TcpReading:
    """Read the current network namespace's counters. ``Unavailable`` when the kernel lacks a file."""
    directory = roots.proc / "net"
    snmp, netstat = (sysfs.require(directory / name) for name in ("snmp", "netstat"))
    return parse_tcp(snmp, netstat, source=str(directory))


def _group(data: bytes, prefix: bytes, *, source: str) -> dict[bytes, bytes]:
    lines = [line for line in data.split(b"\n") if line.startswith(prefix)]
    if len(lines) != 2:
        raise ParseError(source, f"{len(lines)} lines {prefix.decode()}, expected two: names and values")
    names, values = lines[0].split(), lines[1].split()
    if len(names) != len(values):
        raise ParseError(source, f"{prefix.decode()} {len(names) - 1} names for {len(values) - 1} values")
    return dict(zip(names, values, strict=True))


def _count(value: bytes | None, name: bytes, source: str) -> int | None:
    if value is None:
        return None
    if not _COUNTER.fullmatch(value):
        raise ParseError(source, f"{name.decode()} is {value[:20]!r}, not a counter")
    return int(value)
