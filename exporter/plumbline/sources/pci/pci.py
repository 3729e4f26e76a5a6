"""PCI functions' attributes in sysfs: their formats and meanings.

https://docs.kernel.org/PCI/sysfs-pci.html, Documentation/ABI/testing/sysfs-bus-pci,
Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats (Linux 4.19)

::

    class               0x010802        base class, subclass, interface
    current_link_speed  8.0 GT/s PCIe   "8 GT/s" until 5.7; "Unknown", "Unknown speed"
    current_link_width  4               0 and 255: unknown; 63: the function has gone
    numa_node           0               -1: none
    aer_dev_correctable Receiver Error 2 … TOTAL_ERR_COR 2
"""

from __future__ import annotations

import re

from plumbline.errors import ParseError
from plumbline.sources.kernel.sysfs import parse_number

AER_TOTALS = {"correctable": "TOTAL_ERR_COR", "nonfatal": "TOTAL_ERR_NONFATAL", "fatal": "TOTAL_ERR_FATAL"}
"""Severity, which is also the suffix of the file name → the line with the total."""

BRIDGE = 0x0604
# PCI Code and ID Assignment Specification: SCSI, RAID, SATA, SAS, non-volatile memory
_STORAGE = {0x0100: "hba", 0x0104: "hba", 0x0106: "hba", 0x0107: "hba", 0x0108: "nvme"}
_NETWORK = 0x02

_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_ADDRESSES = re.compile(rf"(?<=/){_ADDRESS}(?=/|$)")
_SPEED = re.compile(r"([0-9]{1,3})(\.5|\.0)? GT/s(?: PCIe)?")
_UNKNOWN_LANES = (0, 63, 255)


def parse_class(text: str, *, source: str) -> int:
    """``0x010802`` → 0x0108: base class and subclass."""
    return parse_id(text, source=source, digits=6) >> 8


def parse_id(text: str, *, source: str, digits: int = 4) -> int:
    """``0x8086`` → 0x8086."""
    if not re.fullmatch(rf"0x[0-9a-f]{{{digits}}}", text):
        raise ParseError(source, f"not a PCI id of {digits} digits: {text[:40]!r}")
    return int(text, 16)


def kind_of(class_: int) -> str | None:
    """``nvme``, ``hba``, ``nic``; ``None`` for functions that carry neither disks nor networks."""
    return "nic" if class_ >> 8 == _NETWORK else _STORAGE.get(class_)


def parse_speed(text: str, *, source: str) -> int | None:
    """``8.0 GT/s PCIe`` → 8,000 megatransfers per second and lane; ``None`` for text that begins with ``Unknown``."""
    if text.startswith("Unknown"):
        return None
    match = _SPEED.fullmatch(text)
    if not match:
        raise ParseError(source, f"not a link speed: {text[:40]!r}")
    return int(match[1]) * 1000 + (500 if match[2] == ".5" else 0)


def parse_lanes(text: str, *, source: str) -> int | None:
    """``4`` → 4; ``None`` for the numbers that mean unknown."""
    lanes = parse_number(text, source=source)
    return None if lanes in _UNKNOWN_LANES else lanes


def parse_aer(text: str, *, source: str, total: str) -> int:
    """The total at the end of an ``aer_dev_*`` file; the causes above it differ between kernels."""
    for number, line in enumerate(text.splitlines(), start=1):
        name, _, count = line.rpartition(" ")
        if name == total:
            if not re.fullmatch(r"[0-9]{1,20}", count):
                raise ParseError(source, f"not a number: {count[:40]!r}", line=number)
            return int(count)
    raise ParseError(source, f"no line {total}")


def addresses_in(path: str) -> tuple[str, ...]:
    """The PCI functions on a device's path in sysfs, from the root complex down."""
    return tuple(_ADDRESSES.findall(path))
