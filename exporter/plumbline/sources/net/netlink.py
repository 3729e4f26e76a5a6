"""The part of netlink that a scrape needs: send one request, receive the kernel's replies, walk their attributes.

https://docs.kernel.org/userspace-api/netlink/intro.html
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/netlink.h

A dump of 200 interfaces takes two system calls and some 200 kB of structs; walking the attributes with :mod:`struct`
takes a tenth of a general library's nested dictionaries. Everything is in native byte order.

A message is ``nlmsghdr`` (length, type, flags, sequence, port: 16 bytes) and a payload. The payload is a fixed header
of its family, then attributes ``nlattr`` (length, type: 4 bytes, then the value, padded to 4).
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from msgspec import Struct

from plumbline.errors import ParseError, PlumblineError, Unavailable

NETLINK_ROUTE, NETLINK_GENERIC = 0, 16
NLMSG_ERROR, NLMSG_DONE, NLMSG_OVERRUN = 0x2, 0x3, 0x4
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLM_F_DUMP_INTR = 0x10  # Set on replies of a dump whose objects changed meanwhile: some may be missing or duplicated
NLA_TYPE_MASK = 0x3FFF  # The upper two bits of an attribute's type are the flags "nested" and "network byte order"

HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
U32 = struct.Struct("=I")
Span = tuple[int, int]  # Start and end of an attribute's value
_ERRNO = struct.Struct("=i")
_DUMP_ATTEMPTS = 3
_RECEIVE_BYTES = 1 << 17
_NORMAL = frozenset({errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENODEV, errno.ENOENT, errno.EPROTONOSUPPORT})
_REASONS = {
    errno.ENODEV: "vanished",
    errno.EOPNOTSUPP: "unsupported",
    errno.EPERM: "permission",
    errno.EACCES: "permission",
    errno.EBUSY: "busy",
}


class Transport(Protocol):
    """Carries whole netlink datagrams; tests replay recorded ones."""

    def send(self, message: bytes) -> None:
        """Send one message."""

    def receive(self) -> bytes:
        """Receive one datagram of messages; :class:`PlumblineError` when none arrives in time."""

    def reset(self) -> None:
        """Drop all pending requests, so that a late reply is not taken for the answer to a later request."""

    def close(self) -> None:
        """Release open resources; the next request reopens them."""


class Message(NamedTuple):
    """One message inside ``data``; its payload is ``data[start:end]``."""

    type: int
    flags: int
    sequence: int
    data: bytes
    start: int
    end: int


class Dump(Struct, frozen=True):
    """The result of a dump. ``error`` is an errno, set when the dump broke off (one faulty device can do that)."""

    messages: tuple[Message, ...]
    error: int = 0


def parse_messages(data: bytes, *, source: str) -> Iterator[Message]:
    """The messages of one datagram; :class:`ParseError` when a length is impossible."""
    position, size = 0, len(data)
    while position < size:
        if size - position < HEADER.size:
            raise ParseError(source, f"{size - position} bytes at byte {position}: truncated message")
        length, kind, flags, sequence, _port = HEADER.unpack_from(data, position)
        if length < HEADER.size or position + length > size:
            raise ParseError(source, f"message at byte {position} claims {length} bytes, {size - position} are left")
        yield Message(kind, flags, sequence, data, position + HEADER.size, position + length)
        position += (length + 3) & ~3


def attributes(data: bytes, start: int, end: int, *, source: str) -> Iterator[tuple[int, int, int]]:
    """``(type, value start, value end)`` of each attribute in ``data[start:end]``; types have no flag bits."""
    position = start
    while position + 4 <= end:
        length, kind = ATTRIBUTE.unpack_from(data, position)
        if length < 4 or position + length > end:
            where = f"attribute {kind & NLA_TYPE_MASK} at byte {position}"
            raise ParseError(source, f"{where} claims {length} bytes, {end - position} are left")
        yield kind & NLA_TYPE_MASK, position + 4, position + length
        position += (length + 3) & ~3


def unsigned(data: bytes, start: int, end: int, *, source: str) -> int:
    """An attribute's value as a number of 1, 2, 4 or 8 bytes (the width differs between drivers and kernels)."""
    if end - start not in (1, 2, 4, 8):
        raise ParseError(source, f"number of {end - start} bytes at byte {start}, expected 1, 2, 4 or 8")
    return int.from_bytes(data[start:end], sys.byteorder)


class Attributes(NamedTuple):
    """The attributes of a message or of a nest, by type: the span of each value in ``data``."""

    data: bytes
    spans: dict[int, Span]
    source: str

    def number(self, kind: int) -> int | None:
        """The value as a number; ``None`` when there is no such attribute."""
        span = self.spans.get(kind)
        return None if span is None else unsigned(self.data, *span, source=self.source)

    def flag(self, kind: int) -> bool | None:
        """The value as a boolean; ``None`` when there is no such attribute."""
        number = self.number(kind)
        return None if number is None else number != 0

    def nested(self, kind: int) -> Attributes:
        """The attributes inside one; empty when there is no such attribute."""
        return parse_attributes(self.data, *self.spans.get(kind, (0, 0)), source=self.source)


def parse_attributes(data: bytes, start: int, end: int, *, source: str) -> Attributes:
    """The attributes in ``data[start:end]``; of several of one type, the last."""
    spans = {kind: (first, last) for kind, first, last in attributes(data, start, end, source=source)}
    return Attributes(data, spans, source)


def attribute(kind: int, value: bytes) -> bytes:
    """Build one padded attribute."""
    return ATTRIBUTE.pack(4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


class Netlink:
    """Sends requests over one transport. Not thread-safe: each thread needs its own."""

    def __init__(self, transport: Transport, *, source: str) -> None:
        """``source`` names the interface in errors, e.g. ``netlink route``."""
        self._transport, self._source = transport, source
        self._sequence = itertools.count(1)

    def dump(self, kind: int, payload: bytes) -> Dump:
        """All replies to a dump request. An interrupted dump is repeated, up to three attempts in all, and the last
        used as it is: containers may come and go all the time. So identify objects by index, not by position."""
        for _ in range(_DUMP_ATTEMPTS):
            dump = self._exchange(kind, payload, NLM_F_REQUEST | NLM_F_DUMP)
            if not any(message.flags & NLM_F_DUMP_INTR for message in dump.messages):
                break
        return dump

    def get(self, kind: int, payload: bytes) -> Message | None:
        """The reply to a request for one object; ``None`` when the kernel only acknowledges it."""
        replies = self._exchange(kind, payload, NLM_F_REQUEST).messages
        return replies[0] if replies else None

    def _exchange(self, kind: int, payload: bytes, flags: int) -> Dump:
        sequence = next(self._sequence) & 0xFFFFFFFF
        try:
            self._transport.send(HEADER.pack(HEADER.size + len(payload), kind, flags, sequence, 0) + payload)
            return self._collect(sequence, dump=bool(flags & NLM_F_DUMP))
        except PlumblineError:
            self._transport.reset()
            raise

    def _collect(self, sequence: int, *, dump: bool) -> Dump:
        replies: list[Message] = []
        while True:
            for message in parse_messages(self._transport.receive(), source=self._source):
                if message.sequence != sequence:
                    continue  # the answer to an abandoned request
                if message.type == NLMSG_DONE:
                    return Dump(tuple(replies), self._errno(message))
                if message.type == NLMSG_ERROR:
                    code = self._errno(message)
                    if dump and replies and code:
                        return Dump(tuple(replies), code)
                    raise_errno(code, self._source)
                    return Dump(tuple(replies))  # code 0 is an acknowledgement
                if message.type == NLMSG_OVERRUN:
                    raise PlumblineError(f"{self._source}: replies were lost (overrun)")
                replies.append(message)
            if not dump and replies:
                return Dump(tuple(replies))

    def _errno(self, message: Message) -> int:
        if message.end - message.start < 4:
            return 0  # old kernels send an empty NLMSG_DONE
        return abs(int(_ERRNO.unpack_from(message.data, message.start)[0]))


class KernelError(PlumblineError):
    """The kernel answered with an errno."""

    def __init__(self, code: int, source: str) -> None:
        self.code = code
        # ENOTSUP is the same number, and errno.errorcode happens to use that name
        name = "EOPNOTSUPP" if code == errno.EOPNOTSUPP else errno.errorcode.get(code, f"errno {code}")
        super().__init__(f"{source}: {name} ({os.strerror(code)})")


class Refused(KernelError, Unavailable):
    """The kernel refused for an ordinary reason: no such device, no support, no permission."""


class Failed(KernelError):
    """The kernel refused for a reason that should not occur."""


def raise_errno(code: int, source: str) -> None:
    """Raise :class:`Refused` or :class:`Failed`, depending on the errno; do nothing for 0."""
    if code:
        raise (Refused if code in _NORMAL else Failed)(code, source)


def skip_reason(error: PlumblineError) -> str:
    """Why one device was skipped, as a short label value."""
    if isinstance(error, ParseError):
        return "malformed"
    return _REASONS.get(error.code, "failed") if isinstance(error, KernelError) else "failed"


class NetlinkSocket:
    """The real transport, opened at the first request after :meth:`close`. ``timeout_s`` bounds the wait for a
    datagram; the kernel answers a dump inside ``send`` and may wait there for the RTNL lock, without a bound."""

    def __init__(self, protocol: int, *, timeout_s: float = 2.0) -> None:
        self._protocol, self._timeout_s = protocol, timeout_s
        self._socket: socket.socket | None = None
        self._buffer = bytearray()

    def send(self, message: bytes) -> None:
        try:
            if self._socket is None:
                self._socket, self._buffer = self._open(), bytearray(_RECEIVE_BYTES)
            self._socket.send(message)
        except OSError as error:
            raise_errno(error.errno or errno.EIO, "netlink socket")

    def receive(self) -> bytes:
        if self._socket is None:
            raise PlumblineError("netlink socket: receive without a request")
        try:
            size, _, flags, _ = self._socket.recvmsg_into([self._buffer])
        except BlockingIOError as error:
            raise PlumblineError(
                f"netlink socket: no reply within {self._timeout_s:g} s; something holds the kernel's RTNL lock"
            ) from error
        except OSError as error:
            raise_errno(error.errno or errno.EIO, "netlink socket")
            raise
        if flags & socket.MSG_TRUNC:
            raise ParseError("netlink socket", f"a datagram was longer than {_RECEIVE_BYTES} bytes: truncated")
        return bytes(memoryview(self._buffer)[:size])

    def reset(self) -> None:
        """Close the socket; old replies can't reach the new one that the next request opens."""
        self.close()

    def close(self) -> None:
        """Release the file descriptor. Does nothing if none is open."""
        if self._socket is not None:
            self._socket.close()
            self._socket, self._buffer = None, bytearray()

    def _open(self) -> socket.socket:
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, self._protocol)
        try:
            # not settimeout(): with it Python calls poll() before every call, doubling the system calls
            seconds, fraction = divmod(self._timeout_s, 1)
            sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(seconds), int(fraction * 1e6))
            )
            sock.bind((0, 0))
        except OSError:
            sock.close()
            raise
        return sock
