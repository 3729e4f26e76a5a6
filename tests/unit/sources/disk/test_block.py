from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.disk.block import (
    BlockDevice,
    device_below,
    list_built_in_disks,
    list_real_disks,
    read_block_device,
    read_block_devices,
)
from plumbline.sources.disk.identity import device_class_of, transport_of

FIXTURES = Path(__file__).parents[3] / "fixtures"
NODE = FIXTURES / "disks-storage-node"


def skip_nothing(name: str, reason: str) -> None:
    pytest.fail(f"{name} skipped: {reason}")


@pytest.fixture(scope="module")
def node() -> dict[str, BlockDevice]:
    return {device.name: device for device in read_block_devices(Roots.under(NODE), on_skip=skip_nothing)}


@pytest.fixture
def changing(tmp_path: Path) -> Path:
    """A copy of the storage node to unplug things from."""
    return Path(shutil.copytree(NODE, tmp_path / "node", symlinks=True))


def test_a_real_virtio_disk() -> None:
    devices = read_block_devices(Roots.under(FIXTURES / "disks-virtio-vm"), on_skip=skip_nothing)
    assert [device.name for device in devices] == ["loop0", "vda", "zram0"]
    assert devices[1] == BlockDevice(
        name="vda",
        major=254,
        minor=0,
        size_bytes=274877906944,
        serial="overlayblk",
        rotational=True,  # what virtio-blk always says
        transport="virtio",
        device_class="virtual",
        logical_block_bytes=512,
        physical_block_bytes=4096,
        scheduler="mq-deadline",
        queue_requests=256,
    )


def test_a_sata_disk_is_named_by_udev(node: dict[str, BlockDevice]) -> None:
    """SCSI's inquiry has 16 characters for the model and 4 for the revision."""
    assert node["sda"] == BlockDevice(
        name="sda",
        major=8,
        minor=0,
        size_bytes=480103981056,
        model="Samsung SSD 883 DCT 480GB",
        serial="S4EXAMPLE00001",
        firmware="HXT7904Q",
        rotational=False,
        transport="sata",
        device_class="ssd",
        logical_block_bytes=512,
        physical_block_bytes=4096,
        scheduler="mq-deadline",
        queue_requests=32,
        queue_depth=32,
    )


def test_a_sas_disk_has_its_own_serial_not_its_wwn(node: dict[str, BlockDevice]) -> None:
    disk = node["sdb"]
    assert (disk.model, disk.serial, disk.firmware) == ("ST4000NM0025", "ZC1EXAMPLE0000C8370001", "N003")
    assert (disk.transport, disk.device_class) == ("sas", "hdd")


def test_without_udev_scsi_tells_what_it_can(node: dict[str, BlockDevice]) -> None:
    disk = node["sdc"]
    assert (disk.model, disk.serial, disk.firmware) == ("ST4000NM0035-1V4", "ZC1EXAMP", "TN02")


def test_nvme(node: dict[str, BlockDevice]) -> None:
    disk = node["nvme0n1"]
    assert (disk.model, disk.serial, disk.firmware) == ("INTEL SSDPE2KX020T8", "PHLJEXAMPLE0012P0GN", "VDV10131")
    assert (disk.transport, disk.device_class, disk.size_bytes) == ("nvme", "nvme", 1920383410176)
    assert node["nvme1n1"].serial == "S6EXAMPLE00002"


def test_a_hidden_path_of_a_multipath_disk_is_no_disk(node: dict[str, BlockDevice]) -> None:
    assert "nvme1c1n1" not in node


def test_queue_depth_and_zones(node: dict[str, BlockDevice]) -> None:
    assert (node["sda"].queue_depth, node["sda"].zoned) == (32, None)
    assert (node["sdb"].queue_depth, node["sdb"].zoned) == (254, "host-managed")
    assert (node["nvme0n1"].queue_depth, node["nvme0n1"].zoned) == (None, None)


def test_real_disks_are_listed_without_asking_them(changing: Path) -> None:
    for attribute in (changing / "sys/devices").rglob("serial"):
        attribute.unlink()
        attribute.mkdir()  # reading it would fail
    assert list_real_disks(Roots.under(changing)) == (
        "cciss/c0d0", "mmcblk0", "nvme0n1", "nvme1n1", "sda", "sdb", "sdc", "sdd", "sde", "xvda1",
    )  # fmt: skip
    attached = set(list_real_disks(Roots.under(changing))) - set(list_built_in_disks(Roots.under(changing)))
    assert attached == {"sdd", "sde", "xvda1"}, "by USB, by a storage network, by Xen"


def test_sticks_and_cards_are_not_built_in(changing: Path) -> None:
    for name, removable in (("sdd", "1"), ("sdb", "0")):
        (changing / "sys/block" / name / "removable").write_text(f"{removable}\n")
    names = list_real_disks(Roots.under(changing))
    assert "sdd" not in names
    assert "sdb" in names


@pytest.mark.parametrize(
    ("name", "transport", "device_class"),
    [
        ("sdd", "usb", "hdd"),
        ("sde", "virtio", "virtual"),
        ("cciss/c0d0", None, "hdd"),
        ("mmcblk0", "mmc", "ssd"),
        ("xvda1", "xen", "virtual"),
        ("loop0", "loop", None),
        ("rbd0", "rbd", None),
        ("dm-0", "dm", "hdd"),
        ("dm-1", "dm", None),
        ("dm-2", "dm", "nvme"),
        ("md127", "md", "nvme"),
    ],
)
def test_transport_and_class(
    node: dict[str, BlockDevice], name: str, transport: str | None, device_class: str | None
) -> None:
    assert (node[name].transport, node[name].device_class) == (transport, device_class)


def test_texts_that_are_no_utf8_or_empty(node: dict[str, BlockDevice]) -> None:
    assert node["sdd"].model == "Disk�� Pro"
    assert node["sdd"].firmware is None
    assert node["sdd"].serial is None


def test_mmc(node: dict[str, BlockDevice]) -> None:
    disk = node["mmcblk0"]
    assert (disk.model, disk.serial, disk.firmware) == ("DG4032", "0x1a2b3c4d", "0x3632303000000000")


def test_lower_disks_are_whole_disks(node: dict[str, BlockDevice]) -> None:
    assert node["dm-0"].lower == ("sdb",)
    assert node["dm-1"].lower == ("sda", "sdc")  # sda2 by its disk
    assert node["dm-2"].lower == ("md127",)
    assert node["md127"].lower == ("nvme0n1", "nvme1n1")
    assert node["sda"].lower == ()


def test_partitions_are_not_listed(node: dict[str, BlockDevice]) -> None:
    assert not {"sda1", "sda2", "nvme0n1p1"} & set(node)


def test_only_what_is_asked_for() -> None:
    asked = []
    devices = read_block_devices(
        Roots.under(NODE), on_skip=skip_nothing, keep=lambda name: asked.append(name) is None and name == "cciss/c0d0"
    )
    assert [device.name for device in devices] == ["cciss/c0d0"]
    assert "dm-0" in asked


def test_a_stack_over_unlisted_disks_has_no_class() -> None:
    (device,) = read_block_devices(Roots.under(NODE), on_skip=skip_nothing, keep=lambda name: name == "dm-0")
    assert (device.lower, device.device_class) == (("sdb",), None)


def test_a_disk_unplugged_between_listing_and_reading(changing: Path) -> None:
    skipped = []

    def unplug_sdb(name: str) -> bool:
        if name == "sdb":
            shutil.rmtree((changing / "sys/block/sdb").resolve())
            (changing / "sys/block/sdb").unlink()
        return True

    devices = read_block_devices(
        Roots.under(changing), on_skip=lambda name, reason: skipped.append((name, reason)), keep=unplug_sdb
    )
    assert skipped == [("sdb", "vanished")]
    assert len(devices) == 15


def test_a_disk_half_gone(changing: Path) -> None:
    """sysfs removes attributes one by one; what is left must not pass for a disk of no size."""
    (changing / "sys/block/sdb/size").unlink()
    skipped = []
    read_block_devices(Roots.under(changing), on_skip=lambda name, reason: skipped.append((name, reason)))
    assert skipped == [("sdb", "vanished")]


@pytest.mark.parametrize(
    ("attribute", "content"),
    [("dev", "8\n"), ("dev", "8:16:1\n"), ("dev", "a:b\n"), ("size", "big\n"), ("queue/nr_requests", "-1\n")],
)
def test_a_broken_number_costs_one_disk(changing: Path, attribute: str, content: str) -> None:
    (changing / "sys/block/sdb" / attribute).write_text(content)
    skipped = []
    devices = read_block_devices(Roots.under(changing), on_skip=lambda name, reason: skipped.append((name, reason)))
    assert skipped == [("sdb", "malformed")]
    assert len(devices) == 15
    with pytest.raises(ParseError, match=f"sys/block/sdb/{attribute}: not "):
        read_block_device("sdb", Roots.under(changing))


def test_missing_attributes_are_not_told(changing: Path) -> None:
    shutil.rmtree(changing / "sys/block/sdb/queue")
    for name in ("vendor", "model", "rev", "wwid", "vpd_pg80", "queue_depth"):
        (changing / "sys/block/sdb/device" / name).unlink()
    shutil.rmtree(changing / "run")
    assert read_block_device("sdb", Roots.under(changing)) == BlockDevice(
        name="sdb", major=8, minor=16, size_bytes=4000787030016, transport="sas"
    )


def test_the_world_wide_id_is_the_last_resort(changing: Path) -> None:
    shutil.rmtree(changing / "run")
    (changing / "sys/block/sdb/device/vpd_pg80").unlink()
    assert read_block_device("sdb", Roots.under(changing)).serial == "naa.5000c50000000001"
    (changing / "sys/block/nvme0n1/device/serial").unlink()
    assert read_block_device("nvme0n1", Roots.under(changing)).serial == "eui.01000000000000005cd2e4000000001"


def test_without_sysfs(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"sys/block: No such file or directory; is sysfs mounted there\?"):
        read_block_devices(Roots.under(tmp_path), on_skip=skip_nothing)


@pytest.mark.parametrize(
    ("below", "disk", "device_class"),
    [
        ("block/sdb", "sdb", "hdd"),
        ("class/block/sda2", "sda", "ssd"),
        ("class/block/nvme0n1p1", "nvme0n1", "nvme"),
        ("block/cciss!c0d0", "cciss/c0d0", "hdd"),
        ("block/xvda1", "xvda1", "virtual"),
        ("block/dm-0", "sdb", "hdd"),
        ("block/dm-1", "dm-1", None),
        ("block/dm-2", "nvme0n1", "nvme"),
        ("block/md127", "nvme0n1", "nvme"),
        ("block/loop0", "loop0", None),
    ],
)
def test_device_below(changing: Path, tmp_path: Path, below: str, disk: str, device_class: str | None) -> None:
    """The path lies on this machine's own device number, which the fixture gives to one of its disks."""
    number = tmp_path.stat().st_dev
    entry = changing / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    entry.unlink(missing_ok=True)
    target = os.path.relpath((changing / "sys" / below).resolve(), entry.parent)
    entry.symlink_to(target)
    roots = Roots.under(changing)
    found = device_below(tmp_path, roots)
    assert found is not None
    assert (found.name, found.device_class) == (disk, device_class)
    assert device_below(tmp_path / "not" / "yet" / "there", roots) == found


def test_a_disk_that_goes_while_it_is_looked_for(changing: Path, tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    entry = changing / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    entry.unlink(missing_ok=True)
    entry.symlink_to("../../devices/pci0000:00/gone/block/sdz")
    (changing / "proc/self").mkdir()
    (changing / "proc/self/fdinfo").symlink_to("/proc/self/fdinfo")
    (changing / "proc/self/mountinfo").symlink_to("/proc/self/mountinfo")
    assert device_below(tmp_path, Roots.under(changing)) is None


def test_no_proc_to_look_up_an_anonymous_device(changing: Path) -> None:
    with pytest.raises(Unavailable, match=r"can't tell which mount /proc/self is on"):
        device_below(Path("/proc/self"), Roots.under(changing))


def test_a_path_that_may_not_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Unavailable, match="Too many levels of symbolic links; the disk below it is unknown"):
        device_below(tmp_path / "loop", Roots.under(Path("/")))


CARD = "../devices/pci0000:00/0000:00:1f.0"


@pytest.mark.parametrize(
    ("link", "attributes", "listed"),
    [
        (f"{CARD}/nvme/nvme7/nvme7n1", {"model": "SAMSUNG MZQL21T9HCJR-00A07", "transport": "pcie"}, True),
        (f"{CARD}/nvme/nvme7/nvme7n1", {"model": "Amazon EC2 NVMe Instance Storage", "transport": "pcie"}, True),
        (f"{CARD}/nvme/nvme7/nvme7n1", {"model": "Amazon Elastic Block Store", "transport": "pcie"}, False),
        (f"{CARD}/nvme/nvme7/nvme7n1", {"model": "nvme_card-pd", "transport": "pcie"}, False),
        (f"{CARD}/nvme/nvme7/nvme7n1", {"model": "nvme_card", "transport": "pcie"}, True),
        (f"{CARD}/nvme/nvme7/nvme7n1", {"model": "MSFT NVMe Accelerator v1.0", "transport": "pcie"}, False),
        (f"{CARD}/nvme/nvme7/nvme7n1", {"model": "QEMU NVMe Ctrl", "transport": "pcie"}, False),
        ("../devices/virtual/nvme-fabrics/ctl/nvme7/nvme7n1", {"model": "Linux", "transport": "tcp"}, False),
        (
            "../devices/virtual/nvme-subsystem/nvme-subsys7/nvme7n1",
            {"model": "Linux", "nvme8/transport": "rdma"},
            False,
        ),
        ("../devices/virtual/nvme-subsystem/nvme-subsys7/nvme7n1", {"model": "X", "nvme8/transport": "pcie"}, True),
        (f"{CARD}/virtio9/block/vdz", {}, False),
        (f"{CARD}/host9/rport-9:0-2/target9:0:0/9:0:0:4/block/sdz", {"vendor": "NETAPP"}, False),
        ("../devices/platform/host9/session4/target9:0:0/9:0:0:4/block/sdz", {"vendor": "LIO-ORG"}, False),
        (f"{CARD}/host9/target9:0:0/9:0:0:0/block/sdz", {"vendor": "VMware", "model": "Virtual disk"}, False),
        (f"{CARD}/host9/target9:2:0/9:2:0:0/block/sdz", {"vendor": "AVAGO", "model": "MR9361-8i"}, True),
        (f"{CARD}/ata9/host9/target9:0:0/9:0:0:0/block/sdz", {"vendor": "ATA", "model": "ST4000NM0033"}, True),
    ],
)
def test_a_volume_that_is_attached_is_no_disk_that_can_be_missed(
    tmp_path: Path, link: str, attributes: dict[str, str], listed: bool
) -> None:
    name = link.rpartition("/")[2]
    disk = tmp_path / "sys" / link.removeprefix("../")
    for attribute, text in attributes.items():
        file = disk / "device" / attribute
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    disk.mkdir(parents=True, exist_ok=True)
    (tmp_path / "sys/block").mkdir()
    (tmp_path / "sys/block" / name).symlink_to(f"../{link.removeprefix('../')}")
    disk_class = device_class_of(transport_of(link, name), False, attributes.get("vendor"), attributes.get("model"))
    facts = [BlockDevice(name, 8, 0, 0, model=attributes.get("model"), device_class=disk_class)]
    assert list_built_in_disks(Roots.under(tmp_path), facts) == ((name,) if listed else ())
