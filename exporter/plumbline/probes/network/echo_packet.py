"""ICMP echo packets, and the kernel's reports about undelivered ones. Bytes in, values out.

RFC 792 and RFC 4443 (type, code, checksum, identifier, sequence number: 8 bytes, then data)
https://man7.org/linux/man-pages/man7/ip.7.html (``IP_RECVERR``, ``struct sock_extended_err``)
"""

from __future__ import annotations

import errno
import ipaddress
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from plumbline.errors import ParseError

ECHO_BYTES = 8
"""Size of an echo packet's header in either version."""
IP_BYTES = {4: 20, 6: 40}
"""Size of the IP header in front of it, without options."""
_ECHO = struct.Struct("!BBHHH")
_REQUEST, _REPLY = {4: 8, 6: 128}, {4: 0, 6: 129}
_TIMESPEC = struct.Struct("@ll")
_EXTENDED = struct.Struct("=IBBBBII")  # errno, origin, type, code, pad, info, data
_LOCAL = 1  # SO_EE_ORIGIN_LOCAL
SO_TIMESTAMPNS = 35
_SOL_SOCKET, _SOL_IP, _SOL_IPV6 = 1, 0, 41
_RECVERR = {(_SOL_IP, 11), (_SOL_IPV6, 25)}
_TIMESTAMP = (_SOL_SOCKET, SO_TIMESTAMPNS)


@dataclass(frozen=True, slots=True)
class Answer:
    """The echo came back after ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class TooBig:
    """The packet must not be fragmented, and ``hop`` (empty: this host) carries at most ``mtu_bytes`` (0: unknown)."""

    mtu_bytes: int
    hop: str = ""


@dataclass(frozen=True, slots=True)
class Unreachable:
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
        if (level, kind) == _TIMESTAMP and len(data) >= _TIMESPEC.size:
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
