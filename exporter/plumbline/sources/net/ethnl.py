"""Ethtool over generic netlink: one dump for all interfaces instead of one ioctl each.

https://docs.kernel.org/networking/ethtool-netlink.html
https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/ethtool_netlink.h

A dump skips devices that do not support the request (``EOPNOTSUPP``), but any other error of a device ends it. A NIC
whose driver has detached it after a PCI error answers ``ENODEV``, and every device after it in the list would be
missing. So after an incomplete dump, each expected device that is missing is queried separately.
"""

import struct
from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

from plumbline.errors import ParseError, PlumblineError
from plumbline.sources.net import netlink
from plumbline.sources.net.netlink import Attributes, Message, Netlink, Span, attribute, attributes, parse_attributes

STRSET_GET, LINKINFO_GET, LINKMODES_GET, FEATURES_GET = 1, 2, 4, 11
RINGS_GET, CHANNELS_GET, COALESCE_GET, PAUSE_GET, FEC_GET = 15, 17, 19, 21, 29
FLAG_COMPACT_BITSETS, FLAG_STATS = 0x1, 0x4
FAMILY = "ethtool"

_GENL_HEADER_BYTES = 4  # command, version, reserved
_HEADER, _NESTED = 1, 0x8000  # ETHTOOL_A_*_HEADER is 1 in every request and reply
_DEV_INDEX, _FLAGS = 1, 3
_VERSION = 1
_BITSET_VALUE, _BITSET_MASK = 4, 5
T = TypeVar("T")


class Bitset(NamedTuple):
    """Bits as integers: 64 are too few for link modes (Linux 6.18 has 121). ``mask``: ``None`` for a plain list."""

    value: int
    mask: int | None


def request(command: int, *, flags: int = 0, ifindex: int | None = None) -> bytes:
    """The payload of an ethtool request for one device or, without ``ifindex``, for all devices."""
    header = b"" if ifindex is None else attribute(_DEV_INDEX, netlink.U32.pack(ifindex))
    if flags:
        header += attribute(_FLAGS, netlink.U32.pack(flags))
    return bytes((command, _VERSION, 0, 0)) + attribute(_HEADER | _NESTED, header)


def parse_reply(message: Message, *, source: str) -> tuple[int, Attributes]:
    """Parse a reply → interface index and attributes; :class:`ParseError` without an index."""
    reply = parse_attributes(message.data, message.start + _GENL_HEADER_BYTES, message.end, source=source)
    ifindex = _ifindex(message.data, reply.spans.get(_HEADER), source)
    if ifindex is None:
        raise ParseError(source, "reply names no interface")
    return ifindex, reply


def _ifindex(data: bytes, header: Span | None, source: str) -> int | None:
    for kind, *span in attributes(data, *header, source=source) if header else ():
        if kind == _DEV_INDEX:
            return netlink.unsigned(data, *span, source=source)
    return None


def _is_about(message: Message, ports: Collection[int], *, source: str) -> bool:
    """Whether a reply is for one of ``ports``; a quarter of the cost of parsing it. True if it names no interface."""
    for kind, start, end in attributes(message.data, message.start + _GENL_HEADER_BYTES, message.end, source=source):
        if kind == _HEADER:  # the first
            ifindex = _ifindex(message.data, (start, end), source)
            return ifindex is None or ifindex in ports
    return True


def parse_bitset(nest: Attributes) -> Bitset:
    """Parse a compact bitset: a value and maybe a mask, each in 32-bit words (FLAG_COMPACT_BITSETS); else
    :class:`ParseError`. https://docs.kernel.org/networking/ethtool-netlink.html#bit-sets"""
    data, spans, source = nest
    value, mask = (
        words(data, *spans[kind], source=source) if kind in spans else None for kind in (_BITSET_VALUE, _BITSET_MASK)
    )
    if value is None:
        raise ParseError(source, "bitset has no value")
    return Bitset(value, mask)


def words(data: bytes, start: int, end: int, *, source: str) -> int:
    """Join 32-bit words into one integer, lowest first; :class:`ParseError` unless the length is a multiple of 4."""
    if (end - start) % 4:
        raise ParseError(source, f"bitset of {end - start} bytes, expected a multiple of 4")
    return sum(word << (32 * place) for place, (word,) in enumerate(struct.iter_unpack("=I", data[start:end])))


def read_all(
    ethtool: Netlink,
    family: int,
    command: int,
    parse: Callable[[Message], tuple[int, T]],
    *,
    flags: int = 0,
    expected: Collection[int] = (),
    only: Collection[int] | None = None,
    on_skip: Callable[[str, str], None],
) -> dict[int, T]:
    """Parse every device's reply with ``parse``; results by interface index. After an incomplete dump the ``expected``
    devices are queried one by one, and any that fails is skipped (item ``ifindex <n>``). ``only`` limits parsing to
    these. :class:`.netlink.Refused` or :class:`.netlink.Failed` when a dump fails without replies and nothing is
    expected."""
    dump = ethtool.dump(family, request(command, flags=flags))
    source = f"ethtool netlink: command {command}"
    replies = dict(
        parse(message)
        for message in dump.messages
        if message.type == family and (only is None or _is_about(message, only, source=source))
    )
    if not dump.error:
        return replies
    if not replies and not expected:
        netlink.raise_errno(dump.error, source)
    for ifindex in expected:
        if ifindex in replies:
            continue
        try:
            reply = ethtool.get(family, request(command, flags=flags, ifindex=ifindex))
        except PlumblineError as error:
            on_skip(f"ifindex {ifindex}", netlink.skip_reason(error))
            continue
        if reply is not None and reply.type == family:
            index, value = parse(reply)
            replies[index] = value
    return replies
