"""A disk's identity: transport, class, model, serial and firmware, each from its best source.

Facts: Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-block-device, drivers/scsi/scsi_sysfs.c,
drivers/nvme/host/sysfs.c, udev's rules.d/60-persistent-storage.rules.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from plumbline.sources.disk.udevdb import decode_enc
from plumbline.sources.kernel.sysfs import clean, entries, read_bytes, read_text

_TRANSPORTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    # The first match wins: a hypervisor or a cable in between is more specific than the SCSI layer above it.
    ("virtio", re.compile(r"virtio\d+")),
    ("xen", re.compile(r"vbd-\d+")),
    ("vmbus", re.compile(r"VMBUS:.*")),
    ("nvme", re.compile(r"nvme|nvme-subsystem|nvme-fabrics")),
    ("mmc", re.compile(r"mmc_host")),
    ("usb", re.compile(r"usb\d+")),
    ("iscsi", re.compile(r"session\d+")),
    ("fc", re.compile(r"rport-.*")),
    ("sas", re.compile(r"end_device-.*")),
    ("sata", re.compile(r"ata\d+")),
    ("scsi", re.compile(r"host\d+")),
)
_PARAVIRTUAL = frozenset({"virtio", "xen", "vmbus"})
# Storage networks and cables: volumes are mapped, and enclosures plugged in, while the host runs.
_ATTACHED = _PARAVIRTUAL | {"iscsi", "fc", "usb"}
# Network volumes that a cloud presents as NVMe disks on PCI Express. Its local disks have other models.
_VOLUME = re.compile(r"Amazon Elastic Block Store|nvme_card-pd|MSFT NVMe Accelerator|Alibaba Cloud Elastic Block")
_EMULATED = re.compile(r"(?:QEMU|VBOX|VMware|Virtual [Dd]isk|Msft)\b")


def is_software(link: str) -> bool:
    """Whether a disk's link in ``/sys/block`` shows one made from others: loop, dm, md, zram … and Ceph's images."""
    return "/virtual/block/" in link or "/devices/rbd/" in link


def transport_of(link: str, name: str) -> str | None:
    """How the disk is attached, from the link target of its ``/sys/block`` entry, in the words of ``lsblk -o TRAN``:
    sata, sas (any disk behind a SAS port), nvme, usb, fc, iscsi, mmc. Others: virtio (virtio-blk and virtio-scsi), xen,
    vmbus (Hyper-V), scsi (any other SCSI host); for software devices the driver's name: loop, dm, md, zram, rbd …"""
    if is_software(link):
        word = re.match(r"[a-z]+", name)
        return word[0] if word else None
    parts = link.split("/")[:-1]
    return next((word for word, pattern in _TRANSPORTS if any(map(pattern.fullmatch, parts))), None)


def is_attached(link: str, directory: Path) -> bool:
    """Whether a disk comes and goes by design, judged by how it is attached: by a hypervisor, a storage network, a USB
    cable. ``link`` and ``directory`` are of its entry in ``/sys/block``. No disk is queried."""
    transport = transport_of(link, directory.name)
    return transport in _ATTACHED or (transport == "nvme" and _over_fabrics(directory / "device"))


def is_volume(device_class: str | None, model: str | None) -> bool:
    """Whether a disk is a volume of a hypervisor or a cloud, judged by what it says it is."""
    return device_class == "virtual" or bool(_VOLUME.match(model or ""))


def _over_fabrics(device: Path) -> bool:
    """``device`` is a controller, or with native multipath a subsystem that holds links to its controllers."""
    controllers = [device, *(device / name for name in entries(device) if re.fullmatch(r"nvme[0-9]+", name))]
    transports = {read_text(controller / "transport") for controller in controllers} - {None}
    return bool(transports) and "pcie" not in transports


def device_class_of(
    transport: str | None, rotational: bool | None, vendor: str | None, model: str | None
) -> str | None:
    """``nvme``, ``hdd``, ``ssd``, ``virtual`` (paravirtual or emulated: its backing may be anything, and virtio-blk
    always sets the rotational flag) or ``None``: unknown. ``vendor`` is the SCSI vendor. Not for software devices."""
    if transport in _PARAVIRTUAL or _EMULATED.match(vendor or "") or _EMULATED.match(model or ""):
        return "virtual"
    if transport == "nvme":
        return "nvme"
    return None if rotational is None else "hdd" if rotational else "ssd"


def read_model(directory: Path, properties: Mapping[str, bytes]) -> str | None:
    """SCSI truncates an ATA disk's model to 16 characters; udev has it in full. MMC has a ``name`` instead."""
    if properties.get("ID_BUS") == b"ata" and "ID_MODEL_ENC" in properties:
        return clean(decode_enc(properties["ID_MODEL_ENC"]))
    return _first(directory, "device/model") or (
        _first(directory, "device/name") if directory.name.startswith("mmcblk") else None
    )


def read_serial(directory: Path, properties: Mapping[str, bytes]) -> str | None:
    """In order: NVMe and MMC, SCSI's unit serial number (ATA's too), udev, virtio, and last the world-wide id. SCSI's
    own page precedes udev's ``ID_SERIAL_SHORT``, which is the WWN of a SAS disk."""
    return (
        _first(directory, "device/serial")
        or clean(properties.get("ID_SCSI_SERIAL", b""))
        or parse_vpd_serial(read_bytes(directory / "device/vpd_pg80") or b"")
        or clean(properties.get("ID_SERIAL_SHORT", b""))
        or _first(directory, "serial", "device/wwid", "wwid")
    )


def read_firmware(directory: Path, properties: Mapping[str, bytes]) -> str | None:
    """As with the model, SCSI truncates: it shows four of an ATA disk's eight characters."""
    if properties.get("ID_BUS") == b"ata" and "ID_REVISION" in properties:
        return clean(properties["ID_REVISION"])
    return _first(directory, "device/firmware_rev", "device/rev", "device/fwrev")  # nvme, scsi, mmc


def read_zoned(directory: Path) -> str | None:
    """The kernel's name for a zoned disk's zone model; ``None`` where any sector may be written at any time."""
    model = read_text(directory / "queue/zoned")
    return None if model == "none" else model


def parse_vpd_serial(page: bytes) -> str | None:
    """Parse the serial of a SCSI VPD page 0x80 (SPC-4, 7.8.15): code in byte 1, length in 2-3, then ASCII."""
    if len(page) < 4 or page[1] != 0x80:
        return None
    return clean(page[4 : 4 + int.from_bytes(page[2:4], "big")])


def _first(directory: Path, *attributes: str) -> str | None:
    return next((text for name in attributes if (text := read_text(directory / name))), None)
