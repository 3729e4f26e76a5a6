"""Sends one ICMP echo at a time and waits for the result.

We use a socket of our own instead of ping(8): ping's text differs between three implementations and their releases, it
rounds to microseconds, its own scheduling affects the figures, and a program can't reliably tell a rejected packet from
a silent path. We need 8 bytes of ICMP header and 200 lines.

The round trip ends when the kernel received the answer (``SO_TIMESTAMPNS``), however late this process wakes up. No
privilege is needed if ``net.ipv4.ping_group_range`` contains our group, otherwise CAP_NET_RAW.

https://man7.org/linux/man-pages/man7/icmp.7.html (ping sockets; IPv6 has them since Linux 3.11)
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import secrets
import select
import socket
import threading
import time
from typing import Self

from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.network.echo_packet import (
    SO_TIMESTAMPNS,
    Answer,
    Reply,
    TooBig,
    Unreachable,
    echo_request,
    is_answer,
    parse_failure,
    received_at_ns,
)

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_LOOK_S = 0.1  # how soon a stop is noticed while waiting for an answer
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE = 10, 23, 3
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_MAX_PACKET, _MAX_ANCILLARY = 1 << 16, 512
_REFUSED = (errno.EACCES, errno.EPERM)


class EchoSocket:
    """Echoes to one address; a context manager, not thread-safe."""

    def __init__(self, address: IpAddress, bind: IpAddress | None = None, *, stopping: threading.Event) -> None:
        """Raises :class:`ProbeRefused` (``permission``, ``bind``, ``unreachable``)."""
        self._version, self._stopping = address.version, stopping
        self._sequence = secrets.randbelow(1 << 16)
        self._socket, self._identifier = _open(address)
        try:
            self._prepare(address, bind)
        except BaseException:
            self._socket.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def _prepare(self, address: IpAddress, bind: IpAddress | None) -> None:
        four, sock = self._version == 4, self._socket
        level = socket.IPPROTO_IP if four else socket.IPPROTO_IPV6
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setsockopt(level, _IP_RECVERR if four else _IPV6_RECVERR, 1)
        # don't-fragment, and ignore the kernel's cached path MTU: it may be old, and is what we want to measure
        sock.setsockopt(level, _IP_MTU_DISCOVER if four else _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE)
        if bind is not None:
            try:
                sock.bind((str(bind), 0))
            except OSError as error:
                raise ProbeRefused("bind", f"{bind}: is not an address of this host ({error.strerror})") from error
        try:
            sock.connect((str(address), 0))
        except OSError as error:
            raise ProbeRefused("unreachable", f"{address}: no way there: {error.strerror}; see ip route") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def exchange(self, data_bytes: int, timeout_s: float) -> Reply | None:
        """Send one echo with ``data_bytes`` bytes of data, don't-fragment set; ``None``: no answer, or stopped."""
        self._drain()
        self._sequence = (self._sequence + 1) & 0xFFFF
        data = _data(data_bytes)
        packet = echo_request(self._version, self._identifier or 0, self._sequence, data)
        sent_ns, begun = time.time_ns(), time.monotonic()
        try:
            self._socket.send(packet)
        except OSError as error:
            return self._failure() or _at_home(error)
        while (left := begun + timeout_s - time.monotonic()) > 0 and not self._stopping.is_set():
            for _, events in self._poll.poll(1000 * min(left, _LOOK_S)):
                if events & select.POLLERR and (failure := self._failure()):
                    return failure
                arrived_ns = self._arrived(data)
                if arrived_ns is not None:
                    took, bound = (arrived_ns - sent_ns) / 1e9, time.monotonic() - begun
                    # if the clock was set meanwhile, the result is nonsense: then use our own, later moment
                    return Answer(took if 0 < took <= bound else bound)
        return None

    def _arrived(self, data: bytes) -> int | None:
        """When the answer to the last request arrived (0: the kernel does not say); ``None`` if it has not."""
        while True:
            try:
                packet, ancillary, _, _ = self._socket.recvmsg(_MAX_PACKET, _MAX_ANCILLARY)
            except OSError:
                return None
            # a raw socket sees every echo of this host, and answers to abandoned requests arrive late
            if is_answer(packet, self._version, identifier=self._identifier, sequence=self._sequence, data=data):
                return received_at_ns(ancillary) or 0

    def _failure(self) -> TooBig | Unreachable | None:
        """Empty the error queue and return its last failure."""
        last = None
        while True:
            try:
                _, ancillary, _, _ = self._socket.recvmsg(_MAX_PACKET, _MAX_ANCILLARY, socket.MSG_ERRQUEUE)
                last = parse_failure(ancillary) or last
            except (OSError, ParseError):
                return last

    def _drain(self) -> None:
        """Discard what came late: answers, errors, and the pending error that the next call would raise."""
        self._failure()
        with contextlib.suppress(OSError):
            while True:
                self._socket.recv(_MAX_PACKET)
        self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def _open(address: IpAddress) -> tuple[socket.socket, int | None]:
    """A ping socket, or else a raw one with an identifier of our own."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    protocol = socket.IPPROTO_ICMP if address.version == 4 else socket.IPPROTO_ICMPV6
    for kind, identifier in ((socket.SOCK_DGRAM, None), (socket.SOCK_RAW, 1 + secrets.randbelow(0xFFFF))):
        try:
            return socket.socket(family, kind | socket.SOCK_CLOEXEC, protocol), identifier
        except OSError as error:
            if error.errno not in (*_REFUSED, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT):
                raise ProbeRefused("permission", f"no socket for ICMP: {error.strerror}") from error
    raise ProbeRefused(
        "permission",
        f"user {os.geteuid()} may not send ICMP echoes: allow it with"
        " sysctl -w net.ipv4.ping_group_range='0 2147483647' (and in /etc/sysctl.d),"
        " or measure round trips with the workload tcp-rtt",
    )


def _data(count: int) -> bytes:
    """Random, so that no other echo's answer is mistaken for this one's, and nothing on the path compresses it."""
    return secrets.token_bytes(count)


def _at_home(error: OSError) -> TooBig | Unreachable:
    """The error that this host's own stack returned at once."""
    if error.errno == errno.EMSGSIZE:
        return TooBig(0)
    return Unreachable(error.strerror or str(error))
