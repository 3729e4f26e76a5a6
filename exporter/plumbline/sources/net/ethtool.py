"""The ``SIOCETHTOOL`` ioctl: a port's driver, and the statistics only that driver has (``ethtool -i``, ``-S``).

https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/ethtool.h

Driver statistics have no netlink form. Names and values take two calls; a big card's names are 600 × 32 bytes that
never change while the driver keeps its queues. So the slow tier reads driver facts and names, and caches them by
(interface, driver, number of statistics). The scrape reads only the values, with one call per port.

**The kernel does not check the length of our buffer.** Before 6.18 it writes as many values as the driver has *now*;
queues may have been added, or another card may have taken the name. Every call therefore uses one buffer of 1 MiB (the
largest driver fills a tenth), and the returned count must match the names.
"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import socket
import struct
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from plumbline.errors import ParseError
from plumbline.sources.net.links import label
from plumbline.sources.net.netlink import U32, raise_errno

ETHTOOL_GDRVINFO, ETHTOOL_GRINGPARAM, ETHTOOL_GPAUSEPARAM = 0x03, 0x10, 0x12
ETHTOOL_GSTRINGS, ETHTOOL_GSTATS, ETHTOOL_GSSET_INFO = 0x1B, 0x1D, 0x37
ETH_SS_STATS, ETH_SS_FEATURES = 1, 4
SOURCE = "ioctl SIOCETHTOOL"
T = TypeVar("T")

_SIOCETHTOOL = 0x8946
_IFREQ = struct.Struct("@16sP16x")  # struct ifreq: name, pointer, the remainder of its union
_BUFFER_BYTES = 1 << 20
_STRING_BYTES = 32  # ETH_GSTRING_LEN
_DRVINFO = struct.Struct("=I32s32s32s32s32s12xIIIII")  # cmd, driver, version, firmware, bus, rom, counts
_COUNTED = struct.Struct("=II")  # struct ethtool_stats: cmd, n_stats
_STRINGS = struct.Struct("=III")  # struct ethtool_gstrings: cmd, string_set, len
_SSET_INFO = struct.Struct("=IIQI")  # cmd, reserved, mask, one count


class EthtoolTransport(Protocol):
    """Exchanges one ethtool structure with the kernel; tests replay recorded ones."""

    def call(self, device: bytes, request: bytes, size: int) -> bytes:
        """The first ``size`` bytes after the call; ``Unavailable`` without the device, the call or permission."""

    def close(self) -> None:
        """Release open resources; the next call reopens them."""


class Structure(Struct, Generic[T], frozen=True):
    """A fixed-size request, sent empty, and the parser for its reply."""

    command: int
    size: int
    parse: Callable[[bytes], T]


class DriverInfo(Struct, frozen=True):
    """``ETHTOOL_GDRVINFO``. ``statistics`` is the number of values ``GSTATS`` returns."""

    driver: str
    firmware: str
    bus: str
    statistics: int
    version: str = ""  # The driver's own version; in-tree drivers repeat the kernel release


def parse_driver_info(data: bytes) -> DriverInfo:
    """Parse ``struct ethtool_drvinfo``; :class:`ParseError` when it is truncated."""
    _cmd, driver, version, firmware, bus, _rom, _flags, statistics, *_ = unpack(_DRVINFO, data, "GDRVINFO")
    return DriverInfo(_string(driver), _string(firmware), _string(bus), statistics, _string(version))


def parse_strings(data: bytes) -> tuple[str, ...]:
    """Parse ``struct ethtool_gstrings`` → the names in order, without padding blanks (cxgb4 has them)."""
    _cmd, _set, count = unpack(_STRINGS, data, "GSTRINGS")
    need(data, _STRINGS.size + count * _STRING_BYTES, "GSTRINGS")
    starts = range(_STRINGS.size, _STRINGS.size + count * _STRING_BYTES, _STRING_BYTES)
    return tuple(_string(data[start : start + _STRING_BYTES]) for start in starts)


def parse_stats(data: bytes) -> tuple[int, ...]:
    """Parse ``struct ethtool_stats`` → the values in the order of the strings."""
    _cmd, count = unpack(_COUNTED, data, "GSTATS")
    need(data, _COUNTED.size + 8 * count, "GSTATS")
    return struct.unpack_from(f"={count}Q", data, _COUNTED.size)


class Ethtool:
    """The ethtool calls. Each raises ``Unavailable`` when the device has gone or its driver lacks the call."""

    def __init__(self, transport: EthtoolTransport) -> None:
        self._call = transport.call

    def driver_info(self, device: bytes) -> DriverInfo:
        return parse_driver_info(self._call(device, _request(ETHTOOL_GDRVINFO, _DRVINFO.size), _DRVINFO.size))

    def reader(self, structure: Structure[T]) -> Callable[[bytes], T]:
        """A function that reads and parses this structure for a device."""
        request, size, parse = _request(structure.command, structure.size), structure.size, structure.parse
        return lambda device: parse(self._call(device, request, size))

    def call(self, device: bytes, request: bytes, size: int) -> bytes:
        return self._call(device, request, size)

    def strings(self, device: bytes, string_set: int = ETH_SS_STATS) -> tuple[str, ...]:
        """The names of the driver's statistics (or of another set), in order."""
        request = _SSET_INFO.pack(ETHTOOL_GSSET_INFO, 0, 1 << string_set, 0)
        reply = self._call(device, request, _SSET_INFO.size)
        _cmd, _reserved, mask, count = unpack(_SSET_INFO, reply, "GSSET_INFO")
        if not mask or not count:
            return ()
        size = _STRINGS.size + count * _STRING_BYTES
        if size > _BUFFER_BYTES:
            raise ParseError(SOURCE, f"{label(device)} claims {count} strings")
        return parse_strings(self._call(device, _STRINGS.pack(ETHTOOL_GSTRINGS, string_set, count), size))

    def stats(self, device: bytes, count: int) -> tuple[int, ...] | None:
        """The ``count`` values; ``None`` when the driver now has a different number: read the strings again."""
        reply = self._call(device, _COUNTED.pack(ETHTOOL_GSTATS, count), _COUNTED.size + 8 * count)
        return parse_stats(reply) if unpack(_COUNTED, reply, "GSTATS")[1] == count else None


class EthtoolSocket:
    """The real transport: any socket serves as the handle, opened at first use and closed by :meth:`close`. Not
    thread-safe (one buffer): each thread needs its own."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._buffer: mmap.mmap | None = None

    def call(self, device: bytes, request: bytes, size: int) -> bytes:
        try:
            if self._socket is None or self._buffer is None:
                self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
                # a mapping takes memory only for the pages that a reply fills
                self._buffer = mmap.mmap(-1, _BUFFER_BYTES)
            if size > _BUFFER_BYTES:
                raise ParseError(SOURCE, f"{label(device)}: {size} bytes requested, the limit is {_BUFFER_BYTES}")
            self._buffer[: len(request)] = request
            address = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
            fcntl.ioctl(self._socket, _SIOCETHTOOL, _IFREQ.pack(device, address))
            return self._buffer[:size]
        except OSError as error:
            raise_errno(error.errno or errno.EIO, f"{SOURCE}: {label(device)}")
            raise

    def close(self) -> None:
        """Release the file descriptor and the buffer. Does nothing if neither is open."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.close()
        self._socket = self._buffer = None


def _request(command: int, size: int) -> bytes:
    return U32.pack(command) + bytes(size - 4)


def need(data: bytes, size: int, what: str) -> None:
    """Raise :class:`ParseError` when a structure is truncated."""
    if len(data) < size:
        raise ParseError(SOURCE, f"{what}: {len(data)} bytes, {size} expected")


def unpack(layout: struct.Struct, data: bytes, what: str) -> tuple[Any, ...]:
    """The fields at the structure's start; :class:`ParseError` when it is truncated."""
    need(data, layout.size, what)
    return layout.unpack_from(data)


def _string(value: bytes) -> str:
    return label(value.partition(b"\0")[0].strip())
