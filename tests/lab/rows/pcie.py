"""PCI Express: links as lspci reads them, nodes, and errors (AER) that the hypervisor injects."""

from __future__ import annotations

import re
from functools import partial

from lab.guest import Guest
from lab.table import Group, NotShown, Row, Seen


def _addresses(guest: Guest) -> list[str]:
    """What the daemon has links of: storage controllers and network cards."""
    return sorted(guest.scrape().labels("plumbline_pcie_link_lanes", "pci_address"))


def links(guest: Guest) -> Seen:
    """Lanes and speed of every link, by lspci's reading of the link status register."""
    scrape, truth, figure = guest.scrape(), {}, {}
    for address in _addresses(guest):
        found = re.search(r"LnkSta:\s+Speed ([\d.]+)GT/s[^,]*, Width x(\d+)", guest.run(f"lspci -vvs {address}"))
        if found:
            truth[address] = f"x{found[2]} at {float(found[1]):g} GT/s"
        lanes = scrape.get("plumbline_pcie_link_lanes", pci_address=address)
        speed = scrape.get("plumbline_pcie_link_speed_transfers_per_second", pci_address=address)
        figure[address] = f"x{lanes or 0:g} at {(speed or 0) / 1e9:g} GT/s"
    return Seen(truth, figure)


def nodes(guest: Guest) -> Seen:
    """Which NUMA node each is near; -1 in the kernel is no node."""
    truth, figure = {}, {}
    for each in guest.scrape().series("plumbline_pcie_info"):
        address = each.labels["pci_address"]
        node = guest.value(f"/sys/bus/pci/devices/{address}/numa_node")
        truth[address], figure[address] = node.replace("-1", "none"), each.labels["numa_node"] or "none"
    return Seen(truth, figure)


def _above(guest: Guest, serial: str) -> str:
    """The root port above an NVMe drive, as the kernel addresses it."""
    path = guest.run(f"readlink -f /sys/block/{guest.disk(serial)}").strip()
    return str(re.findall(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d", path)[0])


def aer(error: str, severity: str, guest: Guest) -> Seen:
    """Of the root port above the first NVMe drive; the kernel's own total beside."""
    address = _above(guest, "NVME0001")
    file = f"/sys/bus/pci/devices/{address}/aer_dev_{severity}"
    total = f"awk '/^TOTAL/ {{print $2}}' {file}"
    before = guest.run(total, check=False).strip()
    if not before:
        raise NotShown("the kernel does not handle AER here")
    guest.monitor(f"pcie_aer_inject_error rp1 {error}")
    guest.until(lambda: guest.run(total).strip(), lambda now: now != before, within_s=20)
    grown = float(guest.run(total))
    if grown == float(before):
        raise NotShown("the kernel counted no error")
    look = partial(_errors, guest, address, severity)
    return Seen(grown, guest.until(look, lambda found: found == grown, within_s=120))


def _errors(guest: Guest, address: str, severity: str) -> float | None:
    return guest.scrape().get("plumbline_pcie_aer_errors_total", pci_address=address, aer_severity=severity)


def port_without_disk(guest: Guest) -> Seen:
    """The port's errors stay visible when the drive below it is gone: it may be why."""
    address = _above(guest, "NVME0001")
    guest.monitor("device_del nvme1")
    guest.until(lambda: guest.run("lsblk -ndo SERIAL"), lambda said: "NVME0001" not in said, within_s=60)
    truth = float(guest.run(f"awk '/^TOTAL/ {{print $2}}' /sys/bus/pci/devices/{address}/aer_dev_correctable"))
    return Seen(truth, _errors(guest, address, "correctable"))


GROUP = Group(
    "pcie",
    (
        Row("all controllers and NICs", "lanes and speed", links),
        Row("all controllers and NICs", "NUMA node", nodes),
        Row("root port of an NVMe drive", "correctable error", partial(aer, "RCVR", "correctable")),
        Row("root port of an NVMe drive", "nonfatal error", partial(aer, "COMP_TIME", "nonfatal")),
        Row("root port of an NVMe drive", "its errors after the drive is pulled", port_without_disk),
    ),
)
