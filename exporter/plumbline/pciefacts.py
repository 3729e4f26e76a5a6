"""From series to what the PCI Express checks ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from plumbline.checks.pcie_facts import PcieDevice, PcieErrors, PcieFacts
from plumbline.seriesview import SeriesView


def pcie_facts(view: SeriesView, window_s: float | None) -> PcieFacts:
    """All that is known after ``window_s`` seconds of looking (``None``: one look)."""
    devices = tuple(_devices(view))
    return PcieFacts(window_s, devices, tuple(_errors(view, devices)))


def _devices(view: SeriesView) -> Iterator[PcieDevice]:
    below: dict[str, list[str]] = defaultdict(list)
    for row, _ in view.rows("plumbline_pcie_device_info"):
        below[row["address"]].append(row["device"])
    osds = {row["device"]: row.get("osd", "") for row, _ in view.rows("plumbline_disk_info")}
    speed, most = (view.series(f"plumbline_pcie_link_{which}transfers_per_second") for which in ("", "max_"))
    lanes, most_lanes = (view.series(f"plumbline_pcie_link_{which}lanes") for which in ("", "max_"))
    aspm = view.series("plumbline_pcie_aspm_enabled")
    ltr = view.series("plumbline_pcie_ltr_enabled")
    latency = view.series("plumbline_pcie_ltr_max_latency_seconds")
    chipset = view.series("plumbline_pcie_behind_chipset")
    for row, _ in view.rows("plumbline_pcie_info"):
        address = row["address"]
        labels = (address,)
        on = {osd for device in below[address] for osd in osds.get(device, "").split(",") if osd}
        yield PcieDevice(
            address=address,
            kind=row["kind"],
            name=row["name"],
            slot=row["slot"],
            upstream=row["upstream"],
            devices=tuple(below[address]),
            osds=tuple(sorted(on)),
            transfers_per_second=speed.get(labels),
            max_transfers_per_second=most.get(labels),
            lanes=_whole(lanes.get(labels)),
            max_lanes=_whole(most_lanes.get(labels)),
            aspm_l0s=_truth(aspm.get((address, "l0s"))),
            aspm_l1=_truth(aspm.get((address, "l1"))),
            ltr_enabled=_truth(ltr.get(labels)),
            ltr_snoop_s=latency.get((address, "yes")),
            ltr_no_snoop_s=latency.get((address, "no")),
            behind_chipset=_truth(chipset.get(labels)),
        )


def _errors(view: SeriesView, devices: tuple[PcieDevice, ...]) -> Iterator[PcieErrors]:
    name = "plumbline_pcie_aer_errors_total"
    below: dict[str, list[str]] = defaultdict(list)
    for device in devices:
        for address in (device.address, device.upstream):
            below[address].extend(device.devices)
    for address in dict.fromkeys(address for address, _ in view.series(name)):
        counts = (view.count(name, address, severity) for severity in ("correctable", "nonfatal", "fatal"))
        yield PcieErrors(address, tuple(below[address]), *counts)


def _truth(value: float | None) -> bool | None:
    return None if value is None else bool(value)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
