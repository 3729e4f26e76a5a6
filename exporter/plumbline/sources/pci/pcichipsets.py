"""Which ports belong to a chipset and which to a CPU, as far as known for certain.

A port's name shows it if udev knows the port (``C620 Series Chipset Family PCI Express Root Port #1``). Without udev,
or if the name is inconclusive, its id does. Ids are as listed on https://pci-ids.ucw.cz/. A port that is not listed
here is of unknown kind, and no advice is based on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_INTEL, _AMD = 0x8086, 0x1022
_CHIPSET_NAME = re.compile(r"\b(?:chipset|PCH|platform controller hub|ICH[0-9]*)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bridge:
    """A port between the CPU and a device; ``name`` is udev's, or empty."""

    vendor: int
    device: int
    name: str = ""


class _Ports(NamedTuple):
    vendor: int
    first: int
    last: int
    what: str


_CHIPSETS = (
    _Ports(_INTEL, 0x1C10, 0x1C1F, "6 series, C200"),
    _Ports(_INTEL, 0x1D10, 0x1D1F, "C600, X79"),
    _Ports(_INTEL, 0x1E10, 0x1E1F, "7 series, C210"),
    _Ports(_INTEL, 0x8C10, 0x8C1F, "8 series, C220"),
    _Ports(_INTEL, 0x8D10, 0x8D1F, "C610, X99"),
    _Ports(_INTEL, 0xA110, 0xA11F, "100 series, C230"),
    _Ports(_INTEL, 0xA167, 0xA16A, "100 series, C230"),
    _Ports(_INTEL, 0xA190, 0xA19F, "C620"),
    _Ports(_INTEL, 0xA1E7, 0xA1EA, "C620"),
    _Ports(_INTEL, 0xA290, 0xA29F, "200 series"),
    _Ports(_INTEL, 0xA32C, 0xA343, "300 series, C240"),
    _Ports(_AMD, 0x4300, 0x43FF, "300 to 600 series, FCH"),
    _Ports(_AMD, 0x57A3, 0x57AD, "X570"),
)
_CPUS = (
    _Ports(_INTEL, 0x0E02, 0x0E0B, "Xeon E5 and E7 v2"),
    _Ports(_INTEL, 0x2030, 0x2033, "Xeon Scalable, first and second generation"),
    _Ports(_INTEL, 0x2F02, 0x2F0B, "Xeon E5 and E7 v3"),
    _Ports(_INTEL, 0x3C02, 0x3C0B, "Xeon E5"),
    _Ports(_INTEL, 0x6F02, 0x6F0B, "Xeon E5 and E7 v4, Xeon D"),
    _Ports(_AMD, 0x1453, 0x1453, "EPYC, Zen"),
    _Ports(_AMD, 0x1483, 0x1483, "EPYC, Zen 2 and 3"),
)


def behind_chipset(bridges: Sequence[Bridge]) -> bool | None:
    """Whether a port on the path belongs to a chipset; ``False`` only if one is known to be a CPU's, else ``None``.

    AMD's chipsets are switches below a CPU's port, so a single chipset port decides.
    """
    if any(_CHIPSET_NAME.search(each.name) or _within(each, _CHIPSETS) for each in bridges):
        return True
    return False if any(_within(each, _CPUS) for each in bridges) else None


def _within(bridge: Bridge, table: tuple[_Ports, ...]) -> bool:
    return any(bridge.vendor == each.vendor and each.first <= bridge.device <= each.last for each in table)
