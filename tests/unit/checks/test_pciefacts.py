"""From readings to what the PCI Express checks ask: OSDs by their disks, errors by what hangs below, their growth."""

from __future__ import annotations

from msgspec.structs import replace

from plumbline.checks.growth import Count, Growth
from plumbline.checks.pcie import PcieErrors, PcieFacts, pcie_facts
from plumbline.checks.run import Judge
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.block import DevicesReading
from plumbline.sources.pci.pcidevices import PciFunction, PciReading

HBA = PciFunction(
    "0000:17:00.0",
    "hba",
    "SAS3008 [1000:0097]",
    slot="2",
    upstream="0000:16:00.0",
    devices=("sda", "sdb", "sdc"),
    mtps=5_000,
    max_mtps=8_000,
    lanes=4,
    max_lanes=8,
    aspm_l1=True,
    ltr_enabled=True,
    ltr_no_snoop_ns=1_000,
    behind_chipset=False,
)


def facts(reading: PciReading, **osds: str) -> PcieFacts:
    growth = Growth()
    growth.look(0.0)
    return pcie_facts(Readings.of(reading, DevicesReading((), osds)), growth)


def test_nothing_is_known_of_nothing() -> None:
    assert facts(PciReading((), {})) == PcieFacts()


def test_a_controller_serves_the_osds_on_its_disks() -> None:
    found = facts(PciReading((HBA,), {}), sdb="osd.5,osd.4", sdc="")
    assert found.devices == (HBA,)
    assert found.serves_osd(HBA)
    assert not found.serves_osd(replace(HBA, devices=("sda", "sdc")))


def test_errors_of_a_port_are_those_of_what_is_below() -> None:
    reading = PciReading((HBA,), {"0000:16:00.0": {"correctable": 3, "fatal": 0}})
    assert facts(reading).errors == (
        PcieErrors("0000:16:00.0", ("sda", "sdb", "sdc"), {"correctable": Count(3), "fatal": Count(0)}),
    )


def test_errors_that_came_between_two_looks_are_a_finding() -> None:
    judge = Judge()
    judge.look(Readings.of(PciReading((HBA,), {HBA.address: {"nonfatal": 7}})), 100.0)
    assert "pcie.aer" not in {each.check for each in judge.findings or ()}
    found = judge.look(Readings.of(PciReading((HBA,), {HBA.address: {"nonfatal": 9}})), 160.0)
    (errors,) = [each for each in found if each.check == "pcie.aer"]
    assert (errors.met, errors.actual) == (False, "9 nonfatal errors since boot, 2 of them recently (sda, sdb, sdc)")
