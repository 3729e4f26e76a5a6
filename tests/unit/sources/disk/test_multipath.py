"""Disks with several paths from a sysfs tree."""

from __future__ import annotations

from pathlib import Path

from plumbline.core.roots import Roots
from plumbline.sources.disk.multipath import DiskPath, MultipathDisk, read_multipath

NODE = Roots.under(Path(__file__).parents[3] / "fixtures" / "arrays-storage-node")
DISKS = {disk.device: disk for disk in read_multipath(NODE)}


def test_only_disks_with_paths_are_multipath() -> None:
    """Neither its partition, nor a logical volume, nor a local NVMe drive."""
    assert list(DISKS) == ["dm-0", "dm-1", "nvme1n1", "nvme1n2"]


def test_a_lost_scsi_path() -> None:
    assert DISKS["dm-0"] == MultipathDisk(
        "dm-0",
        "mpatha",
        (DiskPath("sdp", "running", "", "1:0:0:2"), DiskPath("sdq", "transport-offline", "", "2:0:0:2")),
        "mpath-3600a098000aa1",
    )
    assert [path.usable for path in DISKS["dm-0"].paths] == [True, False]


def test_a_controllers_state_goes_before_what_the_array_said_last() -> None:
    first, second = DISKS["nvme1n1"].paths
    assert first == DiskPath("nvme1c1n1", "optimized", "tcp", "traddr=192.0.2.1,trsvcid=4420")
    assert (second.name, second.state, second.usable) == ("nvme1c2n1", "connecting", False)


def test_the_policy_is_the_subsystems() -> None:
    assert {device: disk.policy for device, disk in DISKS.items()} == {
        "dm-0": "",
        "dm-1": "",
        "nvme1n1": "round-robin",
        "nvme1n2": "round-robin",
    }


def test_the_passive_side_is_not_usable() -> None:
    assert [(path.state, path.usable) for path in DISKS["nvme1n2"].paths] == [
        ("inaccessible", False),
        ("connecting", False),
    ]


def test_the_passive_side_is_not_lost() -> None:
    assert {device: [path.name for path in disk.lost] for device, disk in DISKS.items()} == {
        "dm-0": ["sdq"],
        "dm-1": [],
        "nvme1n1": ["nvme1c2n1"],
        "nvme1n2": ["nvme1c2n2"],
    }


def test_nvme_left_to_device_mapper(tmp_path: Path) -> None:
    dm = tmp_path / "sys/block/dm-0"
    controller = tmp_path / "sys/class/nvme/nvme0"
    controller.mkdir(parents=True)
    for name, text in (("state", "live"), ("transport", "fc"), ("address", "traddr=nn-0x20:pn-0x21")):
        (controller / name).write_text(text + "\n")
    for name, text in (("dm/uuid", "mpath-uuid.1"), ("dm/name", "mpathn")):
        (dm / name).parent.mkdir(parents=True, exist_ok=True)
        (dm / name).write_text(text + "\n")
    (dm / "slaves/nvme0n1").mkdir(parents=True)
    (dm / "slaves/nvme0n1/device").symlink_to(controller)
    (disk,) = read_multipath(Roots.under(tmp_path))
    assert disk.paths == (DiskPath("nvme0n1", "live", "fc", "traddr=nn-0x20:pn-0x21"),)
    assert disk.paths[0].usable


def test_two_local_ports_of_one_drive_are_two_paths(tmp_path: Path) -> None:
    root = tmp_path / "sys/class/nvme-subsystem/nvme-subsys0"
    (root / "nvme0n1").mkdir(parents=True)
    for controller in ("nvme0", "nvme1"):
        (root / controller / f"nvme0c{controller[-1]}n1").mkdir(parents=True)
        (root / controller / "transport").write_text("pcie\n")
        (root / controller / "state").write_text("live\n")
    (disk,) = read_multipath(Roots.under(tmp_path))
    assert [(path.name, path.state) for path in disk.paths] == [("nvme0c0n1", "live"), ("nvme0c1n1", "live")]


def test_a_path_that_says_nothing_is_unknown_and_not_usable(tmp_path: Path) -> None:
    dm = tmp_path / "sys/block/dm-0"
    (dm / "dm").mkdir(parents=True)
    (dm / "dm/uuid").write_text("mpath-1\n")
    (dm / "slaves/sda").mkdir(parents=True)
    (disk,) = read_multipath(Roots.under(tmp_path))
    assert disk == MultipathDisk("dm-0", "dm-0", (DiskPath("sda", "unknown", "", ""),), "mpath-1")
    assert not disk.paths[0].usable
    assert not disk.lost


def test_a_host_without() -> None:
    assert read_multipath(Roots.under(Path("/nowhere"))) == ()
