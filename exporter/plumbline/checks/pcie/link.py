"""The link: is it as fast and as wide as both of its ends allow?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from plumbline.checks.model import Check, Severity, Verdict
from plumbline.checks.pcie.facts import PcieFacts
from plumbline.checks.pcie.words import on, show
from plumbline.core.units import si
from plumbline.sources.pci.pcidevices import PciFunction

_MEND = (
    "LnkCap is what this end can do, LnkSta what runs. Reseat card, riser or cable, clean the contacts, look at the"
    " slot's speed and bifurcation in the BIOS setup"
)


def _links(facts: PcieFacts) -> Iterator[PciFunction]:
    """One function of each card, with the devices of all its functions, which share one link."""
    cards: dict[str, list[PciFunction]] = defaultdict(list)
    for device in facts.devices:
        cards[device.address.rpartition(".")[0]].append(device)
    for functions in cards.values():
        functions.sort(key=lambda each: each.address)
        yield replace(functions[0], devices=tuple(name for each in functions for name in each.devices))


def _slow(facts: PcieFacts) -> Iterator[Verdict]:
    for device in _links(facts):
        speed, most = device.mtps, device.max_mtps
        if speed is None or most is None:
            continue
        is_, should = f"{si(speed * 1e6, 'T/s')}{on(device)}", f"{si(most * 1e6, 'T/s')}, the fastest both ends can do"
        fix = None if speed >= most else show(device.address, f"{_MEND}; the port above is {device.upstream}.")
        yield Verdict(device.address, is_, should, fix)


def _narrow(facts: PcieFacts) -> Iterator[Verdict]:
    for device in _links(facts):
        lanes, most = device.lanes, device.max_lanes
        if lanes is None or most is None:
            continue
        is_, should = f"x{lanes}{on(device)}", f"x{most}, the widest both ends can do"
        fix = None if lanes >= most else show(device.address, f"{_MEND}; the port above is {device.upstream}.")
        yield Verdict(device.address, is_, should, fix)


SPEED = Check(
    "pcie.link-speed",
    "Run each PCI Express link at the fastest speed that both ends can do.",
    "Storage controllers and network cards that are awake, whose port above is known. A card that lowers its speed "
    "when idle (some do, to save power) shows it in a quiet hour too.",
    "Each step down halves what the link can carry, for all disks or ports behind it.",
    "PCI Express Base 5.0, 4.2.6 (link training) and 7.5.3 (LnkCap, LnkSta); Documentation/ABI/testing/sysfs-bus-pci",
    Severity.WARNING,
    _slow,
    "lspci -vv -s <address>",
)
WIDTH = Check(
    "pcie.link-width",
    "Run each PCI Express link on all lanes that both ends have.",
    "Storage controllers and network cards that are awake, whose port above is known. A card in a slot with fewer "
    "lanes than its own meets this: moving it is a matter of planning.",
    "A lane that failed in training takes its share of the throughput, for all disks or ports behind the link.",
    "PCI Express Base 5.0, 4.2.6 (link training) and 7.5.3 (LnkCap, LnkSta); Documentation/ABI/testing/sysfs-bus-pci",
    Severity.WARNING,
    _narrow,
    "lspci -vv -s <address>",
)

CHECKS = (SPEED, WIDTH)
