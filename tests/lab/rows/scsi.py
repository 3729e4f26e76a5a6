"""SATA, SAS, a MegaRAID volume, virtio: identity, queue, requests, SMART."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lab.guest import Guest
from lab.rows import disks
from lab.table import Group, NotShown, Row, Seen

_KINDS = {
    "SATA0001": "SATA hard disk", "SATA0002": "SATA SSD", "SAS00001": "SAS hard disk", "SAS00002": "SAS SSD",
    "MEGA0001": "MegaRAID volume", "VBLK0001": "virtio disk",
}  # fmt: skip


def health(serial: str, guest: Guest) -> Seen:
    """As smartctl has it now; the daemon asks every few minutes."""
    name = guest.disk(serial)
    report = guest.json(f"smartctl --json --all /dev/{name} || true")
    if "smart_status" not in report:
        raise NotShown("the emulated disk has no SMART")
    truth = {"passed": float(report["smart_status"]["passed"])}
    scrape = guest.until(
        guest.scrape, lambda scrape: scrape.get("plumbline_disk_health_available", device=name) == 1, within_s=120
    )
    figure = {"passed": scrape.get("plumbline_disk_smart_passed", device=name)}
    for ours, path, metric in (
        ("celsius", ("temperature", "current"), "temperature_celsius"),
        ("hours", ("power_on_time", "hours"), "power_on_seconds_total"),
        ("cycles", ("power_cycle_count",), "power_cycles_total"),
    ):
        value = report
        for key in path:
            value = value.get(key, {}) if isinstance(value, dict) else value
        if value != {}:
            truth[ours] = float(value)
            found = scrape.get(f"plumbline_disk_{metric}", device=name)
            figure[ours] = found / 3600 if found is not None and ours == "hours" else found
    return Seen(truth, figure)


def unsupported(guest: Guest) -> Seen:
    """A volume of a RAID controller has no health of its own: said as that, not as a disk that does not answer."""
    name = guest.disk("MEGA0001")
    scrape = guest.until(
        guest.scrape,
        lambda scrape: bool(scrape.series("plumbline_disk_health_unavailable_info", device=name)),
        within_s=120,
    )
    return Seen({"not-supported"}, scrape.labels("plumbline_disk_health_unavailable_info", "reason", device=name))


def _rows() -> Iterator[Row]:
    for serial, kind in _KINDS.items():
        yield Row(kind, "identity", partial(disks.identity, serial))
        yield Row(kind, "queue", partial(disks.queue, serial))
        yield Row(kind, "200 reads", partial(disks.reads, serial))
    for serial in ("SATA0001", "SATA0002", "SAS00001"):
        yield Row(_KINDS[serial], "SMART", partial(health, serial))
    yield Row("MegaRAID volume", "SMART", unsupported)
    for serial in ("SAS00001", "VBLK0001"):
        yield Row(_KINDS[serial], "made larger", partial(disks.resized, serial))


GROUP = Group("scsi", tuple(_rows()))
