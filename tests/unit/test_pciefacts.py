"""From series to what the PCI Express checks ask: OSDs by their disks, errors by what hangs below, and their growth."""

from __future__ import annotations

from plumbline.catalogue import Kind, MetricSpec
from plumbline.checks.facts import Count
from plumbline.checks.pcie_facts import PcieDevice, PcieErrors, PcieFacts
from plumbline.collectors.pcie import samples
from plumbline.judging import Judge
from plumbline.pciefacts import pcie_facts
from plumbline.seriesview import SeriesView
from plumbline.snapshot import Family, Snapshot
from plumbline.sources.pcidevices import PciFunction, PciReading

DISKS = MetricSpec("plumbline_disk_info", Kind.GAUGE, "Help.", ("device", "model", "osd"))
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


def snapshot(reading: PciReading, *disks: tuple[str, str, str]) -> Snapshot:
    families: dict[MetricSpec, tuple[list[tuple[str, ...]], list[float]]] = {}
    for spec, labels, value in samples(reading):
        assert isinstance(value, (int, float))
        rows, values = families.setdefault(spec, ([], []))
        rows.append(labels)
        values.append(value)
    if disks:
        families[DISKS] = (list(disks), [1.0] * len(disks))
    return Snapshot(tuple(Family(spec, tuple(rows), values) for spec, (rows, values) in families.items()), ())


def test_nothing_is_known_of_nothing() -> None:
    assert pcie_facts(SeriesView(Snapshot((), ())), None) == PcieFacts()


def test_a_controller_whole_with_the_osds_on_its_disks() -> None:
    disks = (("sda", "x", "osd.3"), ("sdb", "x", "osd.5,osd.4"), ("sdc", "x", ""), ("sdd", "x", "osd.9"))
    (device,) = pcie_facts(SeriesView(snapshot(PciReading((HBA,), {}), *disks)), 2.0).devices
    assert device == PcieDevice(
        address="0000:17:00.0",
        kind="hba",
        name="SAS3008 [1000:0097]",
        slot="2",
        upstream="0000:16:00.0",
        devices=("sda", "sdb", "sdc"),
        osds=("osd.3", "osd.4", "osd.5"),
        transfers_per_second=5e9,
        max_transfers_per_second=8e9,
        lanes=4,
        max_lanes=8,
        aspm_l0s=None,
        aspm_l1=True,
        ltr_enabled=True,
        ltr_snoop_s=None,
        ltr_no_snoop_s=1e-6,
        behind_chipset=False,
    )
    assert device.tolerated_s == 1e-6


def test_errors_of_a_port_are_those_of_what_is_below() -> None:
    reading = PciReading((HBA,), {"0000:16:00.0": {"correctable": 3, "fatal": 0}})
    assert pcie_facts(SeriesView(snapshot(reading)), None).errors == (
        PcieErrors("0000:16:00.0", ("sda", "sdb", "sdc"), Count(3), None, Count(0)),
    )


def test_errors_that_came_between_two_looks_are_a_finding() -> None:
    judge = Judge()
    judge.look(snapshot(PciReading((HBA,), {HBA.address: {"nonfatal": 7}})), 100.0)
    assert "pcie.aer" not in {each.check for each in judge.findings or ()}
    found = judge.look(snapshot(PciReading((HBA,), {HBA.address: {"nonfatal": 9}})), 160.0)
    (errors,) = [each for each in found if each.check == "pcie.aer"]
    assert (errors.met, errors.is_) == (False, "9 nonfatal errors since boot, 2 of them lately (sda, sdb, sdc)")
