"""Reads what ``lspci -vvv`` prints, as people paste it: the second opinion on configuration space.

Only what is printed is known; ``None`` is everything else.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from plumbline.errors import ParseError
from plumbline.sources.pci.pciconfig import PciConfig

_HEAD = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([^:]*(?:: (.*))?)")
_LINK = re.compile(r"Speed ([0-9.]+)GT/s(?: \([a-z]+\))?, Width x([0-9]+)")
_ASPM = re.compile(r"ASPM (Disabled|(L0s )?(L1 )?Enabled)")
_CONTINUED = "\t\t\t"
_LATENCY = re.compile(r"Max (no )?snoop latency: ([0-9]+)ns")


def parse_lspci(text: str) -> dict[str, tuple[str, PciConfig]]:
    """By address with its domain: the hardware's name, and its configuration space as far as it is shown."""
    found: dict[str, tuple[str, PciConfig]] = {}
    address = key = ""
    for number, line in enumerate(text.splitlines(), start=1):
        head = _HEAD.fullmatch(line)
        if head:
            address = head[1] if head[1].count(":") == 2 else f"0000:{head[1]}"
            if address in found:
                raise ParseError("lspci", f"{address} comes twice", line=number)
            found[address] = (re.sub(r" \(.*", "", head[3] or head[2]), PciConfig())
        elif address and line[:1].isspace():
            said = line.strip()
            if line.startswith(_CONTINUED):  # which words are there depends on the release
                said = f"{key}: {said}"
            else:
                key = said.partition(":")[0]
            name, config = found[address]
            found[address] = (name, _with(config, said))
    return found


def _with(config: PciConfig, line: str) -> PciConfig:
    key, _, rest = line.partition(":")
    link, aspm, latency = _LINK.search(rest), _ASPM.search(rest), _LATENCY.fullmatch(line)
    ltr = re.search(r"LTR([+-])", rest)
    if key == "LnkCap" and link:
        return replace(config, max_mtps=_mtps(link[1]), max_lanes=int(link[2]) or None)
    if key == "LnkSta" and link:
        return replace(config, mtps=_mtps(link[1]), lanes=int(link[2]) or None)
    if key == "LnkCtl" and aspm:
        return replace(config, aspm_l0s=bool(aspm[2]), aspm_l1=bool(aspm[3]))
    if key in ("DevCap2", "DevCtl2") and ltr:
        on = ltr[1] == "+"
        return replace(config, ltr_supported=on) if key == "DevCap2" else replace(config, ltr_enabled=on)
    if latency:
        ns = int(latency[2])
        return replace(config, ltr_no_snoop_ns=ns) if latency[1] else replace(config, ltr_snoop_ns=ns)
    if line.startswith("Capabilities: [") and "] Express " in line:
        return replace(config, express=True)
    if line.startswith("Capabilities: [") and "] Advanced Error Reporting" in line:
        return replace(config, aer=True)
    return config


def _mtps(gigatransfers: str) -> int:
    return round(float(gigatransfers) * 1000)
