"""Recorded kernel replies in place of the kernel: netlink datagrams and ethtool structures, from files or bytes."""

from __future__ import annotations

import errno
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.sources.net import ethtool, netlink
from plumbline.sources.net.links import RTM_GETLINK
from plumbline.sources.net.netlink import HEADER, NLMSG_DONE, NLMSG_ERROR

ETHNL_COMMANDS = {
    "strset": 1,
    "linkinfo": 2,
    "linkmodes": 4,
    "features": 11,
    "rings": 15,
    "channels": 17,
    "coalesce": 19,
    "pause": 21,
    "fec": 29,
}
GLINKSETTINGS = 0x4C
IOCTLS = {
    "drvinfo": ethtool.ETHTOOL_GDRVINFO,
    "sset_info": ethtool.ETHTOOL_GSSET_INFO,
    "strings": ethtool.ETHTOOL_GSTRINGS,
    "stats": ethtool.ETHTOOL_GSTATS,
    "rings": ethtool.ETHTOOL_GRINGPARAM,
    "pause": ethtool.ETHTOOL_GPAUSEPARAM,
}


def message(kind: int, payload: bytes, *, flags: int = 2, sequence: int = 0) -> bytes:
    """One netlink message, padded; ``flags`` 2 is NLM_F_MULTI, a part of a dump."""
    return HEADER.pack(HEADER.size + len(payload), kind, flags, sequence, 0) + payload + b"\0" * (-len(payload) % 4)


def done(code: int = 0) -> bytes:
    """The end of a dump; ``code`` is an errno when a device broke it off."""
    return message(NLMSG_DONE, struct.pack("=i", -code))


def error(code: int) -> bytes:
    """The kernel's refusal of a request."""
    return message(NLMSG_ERROR, struct.pack("=i", -code) + bytes(16), flags=0)


class ReplayNetlink:
    """Answers requests with recorded datagrams, by message type and (generic netlink) command.

    An answer is a list of datagrams or one; the sequence numbers are made those of the request, as the kernel would.
    ``requests`` keeps what was sent. Without an answer the read times out, as the real one does.
    """

    def __init__(self, answers: Mapping[int | tuple[int, int], bytes | list[bytes]]) -> None:
        self.answers = dict(answers)
        self.requests: list[bytes] = []
        self.resets = 0
        self._waiting: list[bytes] = []

    @classmethod
    def load(cls, scenario: Path) -> ReplayNetlink:
        """What ``record_network`` wrote to ``<scenario>/netlink``."""
        where = scenario / "netlink"
        family = int((where / "family.txt").read_text())
        answers: dict[int | tuple[int, int], bytes | list[bytes]] = {RTM_GETLINK: (where / "links.bin").read_bytes()}
        for name, command in ETHNL_COMMANDS.items():
            answers[family, command] = (where / f"{name}.bin").read_bytes()
        return cls(answers)

    def send(self, request: bytes) -> None:
        _length, kind, _flags, sequence, _port = HEADER.unpack_from(request)
        self.requests.append(request)
        command = request[HEADER.size] if len(request) > HEADER.size else 0
        answer = self.answers.get((kind, command), self.answers.get(kind, []))
        self._waiting = [_numbered(data, sequence) for data in ([answer] if isinstance(answer, bytes) else answer)]

    def receive(self) -> bytes:
        if not self._waiting:
            raise PlumblineError("replay: no reply within 2 s")
        return self._waiting.pop(0)

    def reset(self) -> None:
        self.resets += 1
        self._waiting = []

    def close(self) -> None:
        self._waiting = []


class ReplayEthtool:
    """Answers ethtool ioctls with recorded structures, by device and command; an errno in place of one is raised."""

    def __init__(self, answers: Mapping[tuple[bytes, int], bytes | int]) -> None:
        self.answers = dict(answers)
        self.calls: list[tuple[bytes, int]] = []

    @classmethod
    def load(cls, scenario: Path) -> ReplayEthtool:
        """What ``record_network`` wrote to ``<scenario>/ioctl``."""
        answers: dict[tuple[bytes, int], bytes | int] = {}
        for path in sorted((scenario / "ioctl").iterdir()):
            device, name, kind = path.name.rsplit(".", 2)
            answer = path.read_bytes() if kind == "bin" else getattr(errno, path.read_text().strip())
            answers[device.encode(), IOCTLS[name]] = answer
        return cls(answers)

    def call(self, device: bytes, request: bytes, size: int) -> bytes:
        command = struct.unpack_from("=I", request)[0]
        self.calls.append((device, command))
        answer = self.answers.get((device, command), errno.ENODEV)
        if isinstance(answer, int):
            netlink.raise_errno(answer, f"replay: {device!r}")
            raise AssertionError("unreachable")
        if command == GLINKSETTINGS and request[15] != answer[15]:
            # as the kernel: asked for sets of the wrong size, it says how many words they have, and nothing else
            return struct.pack("=I11xb32x", command, -answer[15])
        return answer[:size]

    def close(self) -> None:
        """Nothing is open."""


def drvinfo(driver: str, firmware: str, bus: str, statistics: int) -> bytes:
    """``struct ethtool_drvinfo``."""
    return struct.pack(
        "=I32s32s32s32s32s12xIIIII",
        ethtool.ETHTOOL_GDRVINFO,
        driver.encode(),
        b"",
        firmware.encode(),
        bus.encode(),
        b"",
        0,
        statistics,
        0,
        0,
        0,
    )


def sset_info(count: int) -> bytes:
    """``struct ethtool_sset_info`` with the statistics' count."""
    return struct.pack("=IIQI", ethtool.ETHTOOL_GSSET_INFO, 0, 1 << ethtool.ETH_SS_STATS, count)


def gstrings(names: list[str]) -> bytes:
    """``struct ethtool_gstrings``."""
    packed = b"".join(struct.pack("=32s", name.encode()) for name in names)
    return struct.pack("=III", ethtool.ETHTOOL_GSTRINGS, ethtool.ETH_SS_STATS, len(names)) + packed


def link_settings(*, speed: int, duplex: int = 1, port: int = 3, autoneg: int = 1, supported: int = 0) -> bytes:
    """``struct ethtool_link_settings`` with sets of four words, of which only the supported modes are not empty."""
    head = struct.pack("=IIBBBBBBBb32x", GLINKSETTINGS, speed, duplex, port, 0, autoneg, 0, 0, 0, 4)
    return head + supported.to_bytes(16, sys.byteorder) + bytes(32)


def gstats(values: list[int]) -> bytes:
    """``struct ethtool_stats``."""
    return struct.pack(f"=II{len(values)}Q", ethtool.ETHTOOL_GSTATS, len(values), *values)


def driver_answers(
    device: bytes, driver: str, statistics: Mapping[str, int], *, firmware: str = "", bus: str = ""
) -> dict[tuple[bytes, int], bytes | int]:
    """All that a port of this driver with these ``ethtool -S`` statistics answers."""
    return {
        (device, ethtool.ETHTOOL_GDRVINFO): drvinfo(driver, firmware, bus, len(statistics)),
        (device, ethtool.ETHTOOL_GSSET_INFO): sset_info(len(statistics)),
        (device, ethtool.ETHTOOL_GSTRINGS): gstrings(list(statistics)),
        (device, ethtool.ETHTOOL_GSTATS): gstats(list(statistics.values())),
    }


def _numbered(datagram: bytes, sequence: int) -> bytes:
    data = bytearray(datagram)
    position = 0
    while position + HEADER.size <= len(data):
        struct.pack_into("=I", data, position + 8, sequence)
        length = struct.unpack_from("=I", data, position)[0]
        position += max((length + 3) & ~3, HEADER.size)
    return bytes(data)
