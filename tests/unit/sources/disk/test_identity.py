from __future__ import annotations

import pytest

from plumbline.sources.disk.identity import device_class_of, parse_vpd_serial, transport_of
from support.offenders import for_every

PCI = "../devices/pci0000:00"


@for_every(
    ("link", "name", "transport"),
    [
        (f"{PCI}/0000:00:02.0/virtio1/block/vda", "vda", "virtio"),
        (f"{PCI}/0000:00:05.0/virtio2/host7/target7:0:0/7:0:0:0/block/sde", "sde", "virtio"),
        ("../devices/vbd-51712/block/xvda", "xvda", "xen"),
        (
            "../devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/00000000-0000-8899-0000-000000000000"
            "/host0/target0:0:0/0:0:0:0/block/sda",
            "sda",
            "vmbus",
        ),
        (f"{PCI}/0000:00:1d.4/0000:71:00.0/nvme/nvme0/nvme0n1", "nvme0n1", "nvme"),
        ("../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", "nvme0n1", "nvme"),
        ("../devices/virtual/nvme-fabrics/ctl/nvme3/nvme3c3n1", "nvme3c3n1", "nvme"),
        (f"{PCI}/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda", "sda", "sata"),
        (f"{PCI}/0000:03:00.0/host1/port-1:0/end_device-1:0/target1:0:0/1:0:0:0/block/sdb", "sdb", "sas"),
        (
            f"{PCI}/0000:03:00.0/host1/port-1:1/expander-1:0/port-1:0:5/end_device-1:0:5/target1:0:1/1:0:1:0/block/sdc",
            "sdc",
            "sas",
        ),
        (f"{PCI}/0000:03:00.0/host0/target0:2:0/0:2:0:0/block/sda", "sda", "scsi"),
        (f"{PCI}/0000:00:14.0/usb2/2-4/2-4:1.0/host6/target6:0:0/6:0:0:0/block/sdd", "sdd", "usb"),
        (f"{PCI}/0000:05:00.0/host9/rport-9:0-2/target9:0:0/9:0:0:1/block/sdf", "sdf", "fc"),
        ("../devices/platform/host5/session1/target5:0:0/5:0:0:1/block/sdg", "sdg", "iscsi"),
        (f"{PCI}/0000:00:1a.0/mmc_host/mmc0/mmc0:0001/block/mmcblk0", "mmcblk0", "mmc"),
        ("../devices/virtual/block/loop0", "loop0", "loop"),
        ("../devices/virtual/block/dm-0", "dm-0", "dm"),
        ("../devices/virtual/block/md127", "md127", "md"),
        ("../devices/virtual/block/zram0", "zram0", "zram"),
        ("../devices/virtual/block/nbd0", "nbd0", "nbd"),
        ("../devices/rbd/0/block/rbd0", "rbd0", "rbd"),
        (f"{PCI}/0000:06:00.0/cciss0/c0d0/block/cciss!c0d0", "cciss/c0d0", None),
        ("", "", None),
        ("../devices/virtual/block/0", "0", None),
    ],
)
def test_transport(link: str, name: str, transport: str | None) -> None:
    assert transport_of(link, name) == transport


def test_the_name_of_the_disk_itself_is_no_path_component() -> None:
    assert transport_of("../devices/pci0000:00/0000:06:00.0/block/nvme", "nvme") is None


@pytest.mark.parametrize(
    ("transport", "rotational", "vendor", "model", "device_class"),
    [
        ("virtio", True, "0x1af4", None, "virtual"),
        ("virtio", False, "QEMU", "QEMU HARDDISK", "virtual"),
        ("xen", False, None, None, "virtual"),
        ("vmbus", True, "Msft", "Virtual Disk", "virtual"),
        ("sata", True, "ATA", "QEMU HARDDISK", "virtual"),
        ("sata", True, "ATA", "VBOX HARDDISK", "virtual"),
        ("scsi", True, "VMware", "Virtual disk", "virtual"),
        ("nvme", False, None, "QEMU NVMe Ctrl", "virtual"),
        ("nvme", False, None, "VMware Virtual NVMe Disk", "virtual"),
        ("nvme", False, None, "INTEL SSDPE2KX020T8", "nvme"),
        ("nvme", None, None, None, "nvme"),
        ("sata", False, "ATA", "Samsung SSD 883 DCT 480GB", "ssd"),
        ("sas", True, "SEAGATE", "ST4000NM0025", "hdd"),
        ("sas", False, "QEMUlike", "Virtuality", "ssd"),
        (None, True, "HP", "LOGICAL VOLUME", "hdd"),
        ("sas", None, "SEAGATE", "ST4000NM0025", None),
    ],
)
def test_device_class(
    transport: str | None, rotational: bool | None, vendor: str | None, model: str | None, device_class: str | None
) -> None:
    assert device_class_of(transport, rotational, vendor, model) == device_class


@pytest.mark.parametrize(
    ("page", "serial"),
    [
        (b"\x00\x80\x00\x14            ZC1EXAMP", "ZC1EXAMP"),
        (b"\x00\x80\x00\x04ABCDEFGH", "ABCD"),
        (b"\x00\x80\x00\xffshorter than it says", "shorter than it says"),
        (b"\x00\x80\x00\x04    ", None),
        (b"\x00\x80\x00\x00", None),
        (b"\x00\x83\x00\x04ABCD", None),
        (b"\x00\x80", None),
        (b"", None),
    ],
)
def test_vpd_serial(page: bytes, serial: str | None) -> None:
    assert parse_vpd_serial(page) == serial
