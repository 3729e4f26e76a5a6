"""PCI Express as samples."""

from __future__ import annotations

from plumbline.collectors.pcie import samples
from plumbline.sources.pci.pcidevices import PciFunction, PciReading

DRIVE = PciFunction(
    address="0000:02:00.0",
    kind="nvme",
    name="Samsung [144d:a808]",
    driver="nvme",
    slot="3",
    upstream="0000:00:1c.0",
    devices=("nvme0n1", "nvme0n2"),
    numa_node=1,
    mtps=2_500,
    max_mtps=8_000,
    lanes=2,
    max_lanes=4,
    aspm_l0s=False,
    aspm_l1=True,
    ltr_enabled=True,
    ltr_snoop_ns=71_680,
    ltr_no_snoop_ns=0,
    behind_chipset=True,
)


def shown(reading: PciReading) -> list[tuple[str, tuple[str, ...], object]]:
    return [(spec.name.removeprefix("plumbline_pcie_"), labels, value) for spec, labels, value in samples(reading)]


def test_everything_of_a_drive_in_base_units() -> None:
    here = "0000:02:00.0"
    assert shown(PciReading((DRIVE,), {here: {"correctable": 7}, "0000:00:1c.0": {"fatal": 0}})) == [
        ("info", (here, "nvme", "3", "nvme", "Samsung [144d:a808]", "0000:00:1c.0", "1"), 1),
        ("device_info", (here, "nvme0n1"), 1),
        ("device_info", (here, "nvme0n2"), 1),
        ("link_speed_transfers_per_second", (here,), 2_500_000_000),
        ("link_speed_max_transfers_per_second", (here,), 8_000_000_000),
        ("link_lanes", (here,), 2),
        ("link_lanes_max", (here,), 4),
        ("ltr_enabled", (here,), 1),
        ("behind_chipset", (here,), 1),
        ("aspm_enabled", (here, "l0s"), 0),
        ("aspm_enabled", (here, "l1"), 1),
        ("ltr_latency_max_seconds", (here, "yes"), 71.68e-6),
        ("ltr_latency_max_seconds", (here, "no"), 0.0),
        ("aer_errors_total", (here, "correctable"), 7),
        ("aer_errors_total", ("0000:00:1c.0", "fatal"), 0),
    ]


def test_what_is_not_known_has_no_series() -> None:
    bare = PciFunction("0000:00:03.0", "nic", "[1af4:1041]")
    assert shown(PciReading((bare,), {})) == [("info", ("0000:00:03.0", "nic", "", "", "[1af4:1041]", "", ""), 1)]
