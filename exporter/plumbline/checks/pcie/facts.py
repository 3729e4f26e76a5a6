"""What the PCI Express checks need to know about a host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plumbline.checks.growth import Count, Growth
from plumbline.checks.readings import Readings
from plumbline.sources.pci.pcidevices import PciFunction


@dataclass(frozen=True, slots=True)
class PcieErrors:
    """Errors reported by one function: a device, or a port with the devices ``below`` it."""

    address: str
    below: tuple[str, ...]
    counts: Mapping[str, Count]
    """By severity: correctable, nonfatal, fatal."""


@dataclass(frozen=True, slots=True)
class PcieFacts:
    """One host's storage controllers and network cards."""

    devices: tuple[PciFunction, ...] = ()
    errors: tuple[PcieErrors, ...] = ()
    osd_disks: frozenset[str] = frozenset()
    """Disks that hold OSD data."""

    def twins(self, device: PciFunction) -> tuple[PciFunction, ...]:
        """The other devices of the same model: only the slot and its settings differ."""
        return tuple(
            each
            for each in self.devices
            if device.name and (each.kind, each.name) == (device.kind, device.name) and each.address != device.address
        )

    def serves_osd(self, device: PciFunction) -> bool:
        """Whether its disks hold OSD data."""
        return not self.osd_disks.isdisjoint(device.devices)


def pcie_facts(readings: Readings, growth: Growth) -> PcieFacts:
    """Collect the facts of one host."""
    osd_disks = frozenset(disk for disk, osds in readings.osds.items() if osds)
    return PcieFacts(readings.pcie.functions, tuple(_errors(readings, growth)), osd_disks)


def _errors(readings: Readings, growth: Growth) -> Iterator[PcieErrors]:
    below: dict[str, list[str]] = defaultdict(list)
    for function in readings.pcie.functions:
        for address in (function.address, function.upstream):
            below[address].extend(function.devices)
    for address, totals in readings.pcie.aer.items():
        counts = {severity: growth.count("pcie errors", total, address, severity) for severity, total in totals.items()}
        yield PcieErrors(
            address, tuple(below[address]), {severity: count for severity, count in counts.items() if count}
        )
