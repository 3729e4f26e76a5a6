"""What is plugged into a guest: QEMU's words for it. Each disk is known by its serial number, each NIC by its name.

Two NUMA nodes: what hangs on ``pxb`` is near node 1. NICs come in pairs on one wire; the far end of each is moved into
the guest's network namespace ``peer``, so that traffic does go over the wire.
"""

from __future__ import annotations

from dataclasses import dataclass

MEMORY_MIB = 3072
ENCLOSURE = 0x5000C500000000FF
SLOTS = {3: 0x5000C50000000011, 6: 0x5000C50000000013}
"""The enclosure that the SAS disks are in, and its slots: each disk's address is its ``wwn``."""
PEER = "peer"


@dataclass(frozen=True, slots=True)
class Disk:
    """``device``: QEMU's device and its properties."""

    serial: str
    device: str
    again: str = ""  # a second way to the same disk


@dataclass(frozen=True, slots=True)
class Nic:
    """``name`` in the guest, the far end's starts with ``p``; ``wire``: both ends of one have the same."""

    name: str
    device: str
    wire: int

    def mac(self) -> str:
        return f"52:54:00:00:{'02' if self.name.startswith('p') else '01'}:{self.wire:02x}"


CONTROLLERS = (
    "pxb-pcie,id=pxb,bus_nr=128,numa_node=1,bus=pcie.0,addr=0x1e",
    "pcie-root-port,id=rp1,bus=pcie.0,chassis=1,slot=1,x-speed=8,x-width=4",
    "pcie-root-port,id=rp2,bus=pxb,chassis=2,slot=2",
    "pcie-root-port,id=rp3,bus=pcie.0,chassis=3,slot=3",
    "pcie-root-port,id=rp4,bus=pcie.0,chassis=4,slot=4",
    "pcie-root-port,id=rp5,bus=pcie.0,chassis=5,slot=5",
    "pcie-root-port,id=rp6,bus=pcie.0,chassis=6,slot=6",
    "pcie-root-port,id=rp7,bus=pcie.0,chassis=7,slot=7",
    # one NVMe disk behind two controllers, as dual-ported drives have it
    "nvme-subsys,id=pair,nqn=lab",
    "nvme,id=nvmea,bus=rp3,serial=NVMEPAIR,subsys=pair",
    "nvme,id=nvmeb,bus=rp4,serial=NVMEPAIR,subsys=pair",
    "mptsas1068,id=sas,bus=pcie.0",
    "megasas-gen2,id=mega,bus=rp7",
    "virtio-scsi-pci,id=lun1,bus=pcie.0",
    "virtio-scsi-pci,id=lun2,bus=pcie.0",
)
_LUN = "scsi-hd,serial=LUN00001,vendor=LABMP,product=LUN,wwn=0x5000c50000000021,share-rw=on,device_id=lun"
DISKS = (
    Disk("NVME0001", "nvme,id=nvme1,bus=rp1,serial=NVME0001"),
    Disk("NVME0002", "nvme,id=nvme2,bus=rp2,serial=NVME0002"),
    Disk("NVMEPAIR", "nvme-ns,bus=nvmeb,nsid=1,shared=on"),
    Disk("SATA0001", "ide-hd,bus=ide.0,serial=SATA0001,model=LAB-HDD,rotation_rate=7200,wwn=0x5000c50000000001"),
    Disk("SATA0002", "ide-hd,bus=ide.1,serial=SATA0002,model=LAB-SSD,rotation_rate=1,wwn=0x5000c50000000002"),
    Disk("SATA0003", "ide-hd,bus=ide.2,serial=SATA0003,model=LAB-SSD,rotation_rate=1,wwn=0x5000c50000000003"),
    Disk("SAS00001", "scsi-hd,id=sas1,bus=sas.0,scsi-id=0,serial=SAS00001,vendor=LABSAS,product=HDD15K,"
         "rotation_rate=15000,wwn=0x5000c50000000011"),
    Disk("SAS00002", "scsi-hd,id=sas2,bus=sas.0,scsi-id=1,serial=SAS00002,vendor=LABSAS,product=SSD,"
         "rotation_rate=1,wwn=0x5000c50000000013"),
    Disk("MEGA0001", "scsi-hd,bus=mega.0,scsi-id=0,serial=MEGA0001,vendor=LABRAID,product=VOLUME"),
    Disk("LUN00001", f"{_LUN},id=luna,bus=lun1.0", again=f"{_LUN},id=lunb,bus=lun2.0"),
    Disk("VBLK0001", "virtio-blk-pci,id=vblk,bus=pcie.0,serial=VBLK0001"),
)  # fmt: skip
NICS = (
    Nic("igb0", "igb,bus=rp5", 0), Nic("pigb0", "e1000e,bus=pcie.0", 0),
    Nic("igb1", "igb,bus=rp6", 1), Nic("pigb1", "e1000e,bus=pcie.0", 1),
    Nic("vmx0", "vmxnet3,bus=pcie.0", 2), Nic("pvmx0", "virtio-net-pci,bus=pcie.0", 2),
    Nic("e1k0", "e1000,bus=pcie.0", 3), Nic("pe1k0", "rtl8139,bus=pcie.0", 3),
)  # fmt: skip


def arguments(folder: str) -> list[str]:
    """QEMU's arguments; ``folder`` holds the disks as ``SERIAL.raw``."""
    half = MEMORY_MIB // 2
    words = []
    for node in range(2):
        words += ["-object", f"memory-backend-ram,id=m{node},size={half}M"]
        words += ["-numa", f"node,nodeid={node},cpus={node},memdev=m{node}"]
    for device in CONTROLLERS:
        words += ["-device", device]
    for disk in DISKS:
        for number, device in enumerate(filter(None, (disk.device, disk.again))):
            drive = f"{disk.serial}{'-again' * number}"
            shared = ",file.locking=off" if disk.again else ""
            words += ["-drive", f"file={folder}/{disk.serial}.raw,if=none,id={drive},format=raw{shared}"]
            words += ["-device", f"{device},drive={drive}"]
    for nic in NICS:
        words += ["-netdev", f"hubport,hubid={nic.wire},id=n-{nic.name}"]
        words += ["-device", f"{nic.device},id={nic.name},netdev=n-{nic.name},mac={nic.mac()}"]
    return words
