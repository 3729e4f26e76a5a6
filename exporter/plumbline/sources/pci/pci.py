"""PCI functions' attributes in sysfs: their formats and meanings, and which ports belong to a chipset.

https://docs.kernel.org/PCI/sysfs-pci.html, Documentation/ABI/testing/sysfs-bus-pci,
Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats (Linux 4.19)

::

    class               0x010802        base class, subclass, interface
    current_link_speed  8.0 GT/s PCIe   "8 GT/s" until 5.7; "Unknown", "Unknown speed"
    current_link_width  4               0 and 255: unknown; 63: the function has gone
    numa_node           0               -1: none
    aer_dev_correctable Receiver Error 2 … TOTAL_ERR_COR 2
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from plumbline.errors import ParseError
from plumbline.sources.kernel.sysfs import matched, parse_number

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
# Vendors of ports that only hypervisors make (https://pci-ids.ucw.cz/): QEMU (two), VMware, VirtualBox, Parallels, Xen.
_EMULATORS = frozenset({0x1B36, 0x1AF4, 0x15AD, 0x80EE, 0x1AB8, 0x5853})

_INTEL, _AMD = 0x8086, 0x1022
_CHIPSET_NAME = re.compile(r"\b(?:chipset|PCH|platform controller hub|ICH[0-9]*)\b", re.IGNORECASE)
# ports by vendor, first and last device id (https://pci-ids.ucw.cz/); no advice is based on a port not listed here
_CHIPSETS = (
    (_INTEL, 0x1C10, 0x1C1F),  # 6 series, C200
    (_INTEL, 0x1D10, 0x1D1F),  # C600, X79
    (_INTEL, 0x1E10, 0x1E1F),  # 7 series, C210
    (_INTEL, 0x8C10, 0x8C1F),  # 8 series, C220
    (_INTEL, 0x8D10, 0x8D1F),  # C610, X99
    (_INTEL, 0xA110, 0xA11F),  # 100 series, C230
    (_INTEL, 0xA167, 0xA16A),  # 100 series, C230
    (_INTEL, 0xA190, 0xA19F),  # C620
    (_INTEL, 0xA1E7, 0xA1EA),  # C620
    (_INTEL, 0xA290, 0xA29F),  # 200 series
    (_INTEL, 0xA32C, 0xA343),  # 300 series, C240
    (_AMD, 0x4300, 0x43FF),  # 300 to 600 series, FCH
    (_AMD, 0x57A3, 0x57AD),  # X570
)
_CPUS = (
    (_INTEL, 0x0E02, 0x0E0B),  # Xeon E5 and E7 v2
    (_INTEL, 0x2030, 0x2033),  # Xeon Scalable, first and second generation
    (_INTEL, 0x2F02, 0x2F0B),  # Xeon E5 and E7 v3
    (_INTEL, 0x3C02, 0x3C0B),  # Xeon E5
    (_INTEL, 0x6F02, 0x6F0B),  # Xeon E5 and E7 v4, Xeon D
    (_AMD, 0x1453, 0x1453),  # EPYC, Zen
    (_AMD, 0x1483, 0x1483),  # EPYC, Zen 2 and 3
)


def parse_class(text: str, *, source: str) -> int:
    """``0x010802`` → 0x0108: base class and subclass."""
    return parse_id(text, source=source, digits=6) >> 8


def parse_id(text: str, *, source: str, digits: int = 4) -> int:
    """``0x8086`` → 0x8086."""
    return int(matched(rf"0x[0-9a-f]{{{digits}}}", text, f"a PCI id of {digits} digits", source)[0], 16)


def kind_of(class_: int) -> str | None:
    """``nvme``, ``hba``, ``nic``; ``None`` for functions that carry neither disks nor networks."""
    return "nic" if class_ >> 8 == _NETWORK else _STORAGE.get(class_)


def parse_speed(text: str, *, source: str) -> int | None:
    """``8.0 GT/s PCIe`` → 8,000 megatransfers per second and lane; ``None`` for text that begins with ``Unknown``."""
    if text.startswith("Unknown"):
        return None
    match = matched(_SPEED, text, "a link speed", source)
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


class Bridge(Struct, frozen=True):
    """A port between the CPU and a device; ``name`` is udev's, or empty."""

    vendor: int
    device: int
    name: str = ""

    @property
    def emulated(self) -> bool:
        """Whether a hypervisor made it. Its link registers say what the hypervisor was told, not what a slot can do."""
        return self.vendor in _EMULATORS


def behind_chipset(bridges: Sequence[Bridge]) -> bool | None:
    """Whether a port on the path belongs to a chipset, by udev's name (``C620 Series Chipset Family PCI Express Root
    Port #1``) or by an id known for certain; ``False`` only if one is known to be a CPU's, else ``None``. AMD's
    chipsets are switches below a CPU's port, so a single chipset port decides."""
    if any(_CHIPSET_NAME.search(bridge.name) or _within(bridge, _CHIPSETS) for bridge in bridges):
        return True
    return False if any(_within(bridge, _CPUS) for bridge in bridges) else None


def _within(bridge: Bridge, table: Iterable[tuple[int, int, int]]) -> bool:
    return any(bridge.vendor == vendor and first <= bridge.device <= last for vendor, first, last in table)
