"""TCP connections as the kernel sees them: ``sock_diag`` of netlink, which ``ss -ti`` asks too. No rights are needed.

https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/inet_diag.h (``inet_diag_req_v2``, ``inet_diag_msg``)
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/tcp.h (``struct tcp_info``)
https://man7.org/linux/man-pages/man7/sock_diag.7.html

Only this network namespace's. Since Linux 5.8 the kernel adds the version 2 control group in which the socket was made
(``INET_DIAG_CGROUP_ID``, the inode number of the group's directory): it says whose the socket is without a look into
``/proc/PID/fd``, which takes CAP_SYS_PTRACE.
"""

import ipaddress
import socket
import struct
from collections.abc import Iterator

from msgspec import Struct

from plumbline.errors import ParseError
from plumbline.sources.net.netlink import Message, Netlink, NetlinkSocket, attribute, parse_attributes
from plumbline.sources.net.routes import IpAddress

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
_SOURCE = "netlink sock_diag"

_REQUEST = struct.Struct("=BBBBI48x")  # family, protocol, extensions, padding, states, any address
_MESSAGE = struct.Struct("=4x2s2s16s16s4xQ20x")  # ports, addresses, cookie; state, timers, queues, uid and inode go by
_ADDRESS_BYTES: dict[int, int] = {socket.AF_INET: 4, socket.AF_INET6: 16}
_ESTABLISHED = 1
_INFO, _CGROUP_ID = 2, 21  # attributes of an answer
_BYTECODE = 1  # attribute of a request: a filter that the kernel runs
# of struct tcp_info; all of them are as old as Linux 2.6
_TCP_INFO = struct.Struct("=44xI20xII24xI")  # tcpi_last_data_sent (ms), tcpi_rtt, tcpi_rttvar (us), tcpi_total_retrans
_OPERATION = struct.Struct("=BBH")  # ``inet_diag_bc_op``: code, offset of the next one if true, and if false
_PORT_AT_LEAST, _PORT_AT_MOST = 4, 5  # the peer's port, which stands in the third field of a second operation


class TcpConnection(Struct, frozen=True):
    """One established connection, as the sender of its data sees it."""

    cookie: int  # the kernel's number of the socket, never used again
    address: IpAddress  # the peer's
    port: int
    rtt_us: int  # smoothed
    deviation_us: int  # ``rttvar``: the smoothed mean deviation of the round-trip time
    retransmits: int  # segments since the connection was made
    idle_ms: int  # since data was last sent
    cgroup: int | None  # ``None``: the kernel does not say


def parse_connection(message: Message, *, source: str) -> TcpConnection | None:
    """``None`` for a socket without ``tcp_info`` or of another family; :class:`ParseError` when truncated."""
    data, start, end = message.data, message.start, message.end
    if end - start < _MESSAGE.size:
        raise ParseError(source, f"a socket of {end - start} bytes, expected {_MESSAGE.size}")
    _, port, _, remote, cookie = _MESSAGE.unpack_from(data, start)
    attributes = parse_attributes(data, start + _MESSAGE.size, end, source=source)
    size, span = _ADDRESS_BYTES.get(data[start]), attributes.spans.get(_INFO)
    if size is None or span is None:
        return None
    if span[1] - span[0] < _TCP_INFO.size:
        raise ParseError(source, f"tcp_info of {span[1] - span[0]} bytes, expected {_TCP_INFO.size}")
    idle_ms, rtt_us, deviation_us, retransmits = _TCP_INFO.unpack_from(data, span[0])
    address = ipaddress.ip_address(remote[:size])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return TcpConnection(
        cookie=cookie,
        address=mapped or address,
        port=int.from_bytes(port, "big"),
        rtt_us=rtt_us,
        deviation_us=deviation_us,
        retransmits=retransmits,
        idle_ms=idle_ms,
        cgroup=attributes.number(_CGROUP_ID),
    )


def request(family: int, ports: range) -> bytes:
    """The payload that asks for established TCP connections of one family whose peer has one of the ``ports``."""
    operation_bytes = 2 * _OPERATION.size
    steps = ((_PORT_AT_LEAST, ports.start), (_PORT_AT_MOST, ports.stop - 1))
    program = b"".join(
        # false: four bytes beyond the end, which is how a program says no
        _OPERATION.pack(code, operation_bytes, (len(steps) - at) * operation_bytes + 4) + _OPERATION.pack(0, 0, port)
        for at, (code, port) in enumerate(steps)
    )
    asked = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, 1 << _ESTABLISHED)
    return asked + attribute(_BYTECODE, program)


def read_connections(ports: range) -> Iterator[TcpConnection]:
    """Those of this network namespace to one of the ``ports``; :class:`PlumblineError` where the kernel has none."""
    transport = NetlinkSocket(NETLINK_SOCK_DIAG)
    try:
        netlink = Netlink(transport, source=_SOURCE)
        for family in _ADDRESS_BYTES:
            for message in netlink.dump(SOCK_DIAG_BY_FAMILY, request(family, ports)).messages:
                connection = parse_connection(message, source=_SOURCE)
                if connection is not None:
                    yield connection
    finally:
        transport.close()
