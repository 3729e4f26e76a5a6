"""The duration of one TCP handshake, as the kernel measured it.

https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/tcp.h (``struct tcp_info``, ``tcpi_rtt``)
"""

from __future__ import annotations

import errno
import ipaddress
import os
import select
import socket
import struct
import threading
import time

from plumbline.probes.network.echo_packet import Answer, Unreachable

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_LOOK_S = 0.1
_RTT_AT = 68  # of tcpi_rtt, microseconds; since Linux 2.6
_U32 = struct.Struct("=I")
_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT)


def handshake(
    address: IpAddress, port: int, bind: IpAddress | None, *, timeout_s: float, stopping: threading.Event
) -> Answer | Unreachable | None:
    """Connect and close. ``None``: no answer in time, or stopped.

    The time is the kernel's first RTT estimate, from the SYN to its acknowledgement; our own measurement would include
    how late this process was woken. A refused connection is not an answer: it may come from a firewall on the way, and
    an operator who configured the port wants to know that nothing listens there any more.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as sock:
        sock.setblocking(False)
        if bind is not None:
            try:
                sock.bind((str(bind), 0))
            except OSError as error:
                return Unreachable(f"{bind} can't be used: {error.strerror}")
        begun = time.monotonic()
        code = sock.connect_ex((str(address), port))
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        while code == errno.EINPROGRESS:
            left = begun + timeout_s - time.monotonic()
            if left <= 0 or stopping.is_set():
                return None
            if poll.poll(1000 * min(left, _LOOK_S)):
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        took = time.monotonic() - begun
        if code == 0:
            return Answer(min(_kernel_rtt_s(sock) or took, took))
    return None if code in _UNREACHABLE else Unreachable(os.strerror(code))


def _kernel_rtt_s(sock: socket.socket) -> float | None:
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    if len(info) < _RTT_AT + _U32.size:
        return None
    microseconds = _U32.unpack_from(info, _RTT_AT)[0]
    return microseconds / 1e6 if microseconds else None
