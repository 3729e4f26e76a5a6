"""Sends one ICMP echo at a time and waits for the result; its packets, and the kernel's reports about undelivered ones.

Not by ping(8): its text differs between three implementations and their releases, it rounds to microseconds, its own
scheduling affects the figures, and it doesn't reliably tell a rejected packet from a silent path.

The round trip ends when the kernel received the answer (``SO_TIMESTAMPNS``), however late this process wakes up. No
privilege is needed if ``net.ipv4.ping_group_range`` contains our group, otherwise CAP_NET_RAW.

RFC 792 and RFC 4443 (type, code, checksum, identifier, sequence number: 8 bytes, then data)
https://man7.org/linux/man-pages/man7/icmp.7.html (ping sockets; IPv6 has them since Linux 3.11)
https://man7.org/linux/man-pages/man7/ip.7.html (``IP_RECVERR``, ``struct sock_extended_err``)
"""

import contextlib
import errno
import ipaddress
import os
import secrets
import select
import socket
import struct
import threading
import time
from collections.abc import Iterable
from typing import Self

from msgspec import Struct

from plumbline.errors import ParseError, ProbeRefused
from plumbline.sources.net.routes import IpAddress

ECHO_BYTES = 8  # an echo packet's header in either version
IP_BYTES = {4: 20, 6: 40}  # the IP header in front of it, without options
_ECHO = struct.Struct("!BBHHH")
_REQUEST, _REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}
_TIMESPEC = struct.Struct("@ll")
_EXTENDED = struct.Struct("=IBBBBII")  # errno, origin, type, code, pad, info, data
_LOCAL = 1  # SO_EE_ORIGIN_LOCAL
SO_TIMESTAMPNS = 35
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_RECVERR = {(socket.SOL_IP, _IP_RECVERR), (socket.IPPROTO_IPV6, _IPV6_RECVERR)}
_LOOK_S = 0.1  # how soon a stop is noticed while waiting for an answer
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE = 10, 23, 3
_MAX_PACKET, _MAX_ANCILLARY = 1 << 16, 512


class Answer(Struct, frozen=True):
    """The echo came back after ``seconds``."""

    seconds: float


class TooBig(Struct, frozen=True):
    """The packet must not be fragmented, and ``hop`` (empty: this host) carries at most ``mtu_bytes`` (0: unknown)."""

    mtu_bytes: int
    hop: str = ""


class Unreachable(Struct, frozen=True):
    """``hop`` (empty: this host) reports why the packet goes no further."""

    reason: str
    hop: str = ""


Reply = Answer | TooBig | Unreachable
Ancillary = Iterable[tuple[int, int, bytes]]


def echo_request(version: int, identifier: int, sequence: int, data: bytes) -> bytes:
    """A whole packet. The kernel fills in the checksum of ICMPv6, which covers the IP header."""
    header = _ECHO.pack(_REQUEST[version], 0, 0, identifier, sequence)
    check = checksum(header + data) if version == 4 else 0
    return _ECHO.pack(_REQUEST[version], 0, check, identifier, sequence) + data


def checksum(data: bytes) -> int:
    """The Internet checksum, RFC 1071."""
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def is_answer(packet: bytes, version: int, *, identifier: int | None, sequence: int, data: bytes) -> bool:
    """Whether ``packet`` answers that request. ``identifier`` ``None``: the kernel has already filtered by it."""
    if identifier is not None and version == 4:  # a raw IPv4 socket includes the IP header
        packet = packet[(packet[0] & 0xF) * 4 :] if packet else b""
    if len(packet) < ECHO_BYTES:
        return False
    kind, code, _check, theirs, number = _ECHO.unpack_from(packet)
    return (
        (kind, code, number) == (_REPLY[version], 0, sequence)
        and identifier in (None, theirs)
        and packet[ECHO_BYTES:] == data
    )


def received_at_ns(ancillary: Ancillary) -> int | None:
    """The kernel's own time of arrival in Unix nanoseconds."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS) and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            return int(seconds * 10**9 + nanoseconds)
    return None


def parse_failure(ancillary: Ancillary, *, source: str = "socket error queue") -> TooBig | Unreachable | None:
    """Parse one message of the error queue; ``None`` for other messages, :class:`ParseError` for a short one."""
    for level, kind, data in ancillary:
        if (level, kind) not in _RECVERR:
            continue
        if len(data) < _EXTENDED.size:
            raise ParseError(source, f"an error of {len(data)} bytes")
        code, origin, _type, _code, _pad, info, _data = _EXTENDED.unpack_from(data)
        hop = "" if origin == _LOCAL else _offender(data[_EXTENDED.size :])
        if code == errno.EMSGSIZE:
            return TooBig(info, hop)
        return Unreachable(os.strerror(code) if code in errno.errorcode else f"error {code}", hop)
    return None


def _offender(address: bytes) -> str:
    family = int.from_bytes(address[:2], "little" if struct.pack("=H", 1)[0] else "big")
    if family == 2 and len(address) >= 8:
        return str(ipaddress.IPv4Address(address[4:8]))
    if family == 10 and len(address) >= 24:
        return str(ipaddress.IPv6Address(address[8:24]))
    return ""


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
            raise ProbeRefused("unreachable", f"{address}: no route: {error.strerror}; see ip route") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def exchange(self, data_bytes: int, timeout_s: float) -> Reply | None:
        """Send one echo with ``data_bytes`` bytes of data, don't-fragment set; ``None``: no answer, or stopped."""
        self._drain()
        self._sequence = (self._sequence + 1) & 0xFFFF
        # random: no other echo's answer is mistaken for this one's, and nothing on the path compresses it
        data = secrets.token_bytes(data_bytes)
        packet = echo_request(self._version, self._identifier or 0, self._sequence, data)
        sent_ns, begun = time.time_ns(), time.monotonic()
        try:
            self._socket.send(packet)
        except OSError as error:
            return self._failure() or _own_error(error)
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
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT):
                raise ProbeRefused("permission", f"no socket for ICMP: {error.strerror}") from error
    raise ProbeRefused(
        "permission",
        f"user {os.geteuid()} may not send ICMP echoes: allow it with"
        " sysctl -w net.ipv4.ping_group_range='0 2147483647' (and in sysctl.d(5), to keep it),"
        " or measure round trips with the workload tcp-rtt",
    )


def _own_error(error: OSError) -> TooBig | Unreachable:
    """The error that this host's own stack returned at once."""
    if error.errno == errno.EMSGSIZE:
        return TooBig(0)
    return Unreachable(error.strerror or str(error))
