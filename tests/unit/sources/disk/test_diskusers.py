"""Who uses each disk, in every layout that is known to be in use."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from plumbline.commands.node import osd_classes
from plumbline.core.roots import Roots
from plumbline.errors import Unavailable
from plumbline.sources.disk.diskusers import DiskUsers, read_disk_users
from support.rights import bound_by_permissions

FIXTURES = Path(__file__).parents[3] / "fixtures"
PACKAGES = FIXTURES / "ceph-package-node"
BLOCK_72 = "ceph-0000b10c-1111-4222-8333-000000000048/osd-block-0000005d-1111-4222-8333-000000000048"


@pytest.fixture(scope="module")
def packages() -> DiskUsers:
    return read_disk_users(Roots.under(PACKAGES))


@pytest.fixture
def changing(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGES, tmp_path / "node", symlinks=True))


def uses(users: DiskUsers, device: str) -> set[tuple[str, str]]:
    return {(kind, name) for used, kind, name in users.uses if used == device}


def ends(users: DiskUsers, device: str) -> set[tuple[str, str]]:
    """Without the layers between."""
    return {(kind, name) for kind, name in uses(users, device) if kind not in ("lvm", "dm", "md", "bcache")}


def test_an_osd_is_of_its_disks_class() -> None:
    assert osd_classes(config_file=None, roots=Roots.under(FIXTURES / "ceph-cephadm-node")) == {
        f"osd.{number}": "hdd" for number in range(10)
    }


def test_a_host_that_does_not_tell_has_no_classes(tmp_path: Path) -> None:
    assert osd_classes(config_file=None, roots=Roots.under(tmp_path)) == {}


def test_cephadm_data_on_disks_and_ten_databases_on_one_nvme() -> None:
    users = read_disk_users(Roots.under(FIXTURES / "ceph-cephadm-node"))
    osds = users.osds()
    assert {disk: osds[disk] for disk in osds if disk.startswith("sd")} == {
        f"sd{letter}": f"osd.{number}" for number, letter in enumerate("bcdefghijk")
    }
    assert ends(users, "nvme0n1") == {("osd-db", f"osd.{number}") for number in range(10)}
    assert "nvme0n1" not in osds
    assert ends(users, "sda") == {("filesystem", "/"), ("filesystem", "/boot/efi"), ("swap", "/dev/sda3")}
    assert users.unreadable == ()


def test_a_volume_on_encryption_on_a_partition(packages: DiskUsers) -> None:
    assert packages.osds()["sdg"] == packages.osds()["dm-3"] == packages.osds()["dm-5"] == "osd.71"
    assert ("dm", "luks-sdg1") in uses(packages, "sdg")


def test_encryption_on_a_volume(packages: DiskUsers) -> None:
    assert packages.osds()["sdh"] == "osd.72"
    assert ("lvm", BLOCK_72) in uses(packages, "sdh")
    assert ("lvm", BLOCK_72) not in uses(packages, "dm-0")  # the volume itself


def test_partitions_of_ceph_disk(packages: DiskUsers) -> None:
    assert uses(packages, "sdi") == {("osd", "osd.73"), ("filesystem", "/var/lib/ceph/osd/ceph-73")}


def test_a_stopped_osd_is_named_by_its_tags(packages: DiskUsers) -> None:
    assert packages.osds()["sdj"] == "osd.74"
    assert ("osd-wal", "osd.74") in uses(packages, "nvme0n1")
    assert not [use for use in packages.uses if use[2] == "osd.9"]  # a backup of a volume that is gone


def test_an_enabled_unit_names_the_osd(packages: DiskUsers) -> None:
    assert packages.osds()["sdk"] == "osd.75"


def test_a_partition_made_for_an_unknown_osd(packages: DiskUsers) -> None:
    assert uses(packages, "sdl") == {("osd-db", "")}
    assert "sdl" not in packages.osds()


def test_paths_arrays_caches_pools_swap(packages: DiskUsers) -> None:
    for path in ("sdm", "sdn"):
        assert uses(packages, path) == {("dm", "mpatha"), ("filesystem", "/srv/multi path")}
    assert uses(packages, "sdo") == {("zfs", "tank")}
    assert uses(packages, "sdp") == set()  # the label of a pool that is not imported
    for member in ("sdq", "sdr"):
        assert uses(packages, member) == {
            ("md", "md0"), ("lvm", "vg0/swap"), ("lvm", "vg0/thin-root"), ("filesystem", "/"), ("swap", "/dev/dm-13"),
        }  # fmt: skip
    assert uses(packages, "sds") == {
        ("bcache", "bcache0"), ("filesystem", "/srv/cached"), ("swap", "/srv/cached/swap file"),
    }  # fmt: skip
    assert uses(packages, "sds") <= uses(packages, "nvme0n1")


def test_relations_are_between_whole_devices(packages: DiskUsers) -> None:
    relations = set(packages.tree.relations())
    assert {("dm-3", "sdg"), ("dm-5", "dm-3"), ("md0", "sdq"), ("bcache0", "nvme0n1"), ("dm-12", "dm-11")} <= relations
    assert not [lower for _, lower in relations if lower == "sdg1"]


def test_without_a_look_into_cephs_directories_units_still_tell(changing: Path) -> None:
    """As the daemon runs by default: no user of its own, no capability."""
    for directory in ("var/lib/ceph", "etc/lvm/backup"):
        (changing / directory).chmod(0)
    with bound_by_permissions():
        users = read_disk_users(Roots.under(changing))
    assert users.unreadable == (changing / "var/lib/ceph",)
    assert {disk: osd for disk, osd in users.osds().items() if disk.startswith("sd")} == {
        "sdi": "osd.73", "sdk": "osd.75",
    }  # fmt: skip
    assert ("osd", "") in uses(users, "sdg")  # an OSD's by the volume's name; nobody says whose
    assert ("osd", "") in uses(users, "sdj")


def test_rooks_directories(changing: Path) -> None:
    osd = (
        changing
        / "var/lib/rook/rook-ceph"
        / f"{'3e1b7a52-0c4d-11ee-9d1a-b8599f000001'}_{'0000005d-1111-4222-8333-000000000081'}"
    )
    osd.mkdir(parents=True)
    (osd / "block").symlink_to("/dev/sdp")
    (osd / "whoami").write_text("81\n")
    (changing / "var/lib/rook/rook-ceph/log").mkdir()
    (changing / "var/lib/rook/rook-ceph/rook-ceph.config").write_text("[global]\n")
    assert read_disk_users(Roots.under(changing)).osds()["sdp"] == "osd.81"


def test_links_that_lead_nowhere(changing: Path) -> None:
    directory = changing / "var/lib/ceph/osd/ceph-99"
    directory.mkdir()
    for name, target in (("block", "/dev/gone/away"), ("block.db", "/dev/loop"), ("block.wal", "relative")):
        (directory / name).symlink_to(target)
    (changing / "dev/loop").symlink_to("loop")
    assert "osd.99" not in {name for _, _, name in read_disk_users(Roots.under(changing)).uses}


def test_several_osds_on_one_disk_stand_in_their_order(changing: Path) -> None:
    for number in (9, 10):
        directory = changing / f"var/lib/ceph/osd/ceph-{number}"
        directory.mkdir()
        (directory / "block").symlink_to("/dev/sdp")
    assert read_disk_users(Roots.under(changing)).osds()["sdp"] == "osd.9,osd.10"


@pytest.mark.parametrize(
    ("file", "text"),
    [("proc/1/mountinfo", "nonsense\n"), ("proc/swaps", "Filename\nx\n"), ("etc/lvm/backup/x", "{ broken")],
)
def test_a_damaged_source_costs_what_it_told(changing: Path, file: str, text: str) -> None:
    (changing / file).write_text(text)
    users = read_disk_users(Roots.under(changing))
    assert users.osds()["sdg"] == "osd.71"


def test_a_btrfs_over_several_disks(changing: Path) -> None:
    """The mount names one of them."""
    for device in ("sdp", "sdl"):
        target = changing / "sys/fs/btrfs/0a0a0a0a-0000-4000-8000-000000000001/devices" / device
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to("../../../../block/" + device)
    (changing / "sys/fs/btrfs/features").mkdir()
    mounts = changing / "proc/1/mountinfo"
    mounts.write_text(mounts.read_text() + "40 22 0:60 /@ /srv/pool rw - btrfs /dev/sdl rw,subvol=/@\n")
    users = read_disk_users(Roots.under(changing))
    assert ("filesystem", "/srv/pool") in uses(users, "sdp") & uses(users, "sdl")


def test_the_whole_tree_stands_before_a_bind_mount(changing: Path) -> None:
    mounts = changing / "proc/1/mountinfo"
    mounts.write_text(
        "50 22 8:240 /sub /run/early rw - xfs /dev/sdp rw\n51 22 8:240 / /srv/whole rw - xfs /dev/sdp rw\n"
        "52 22 8:240 / /srv/again rw - xfs /dev/sdp rw\n"
    )
    assert uses(read_disk_users(Roots.under(changing)), "sdp") == {("filesystem", "/srv/whole")}


def test_a_stack_with_a_loop_in_it_comes_to_an_end(changing: Path) -> None:
    (changing / "sys/devices/virtual/block/dm-3/slaves/dm-5").symlink_to("../../dm-5")
    assert read_disk_users(Roots.under(changing)).osds()["sdg"] == "osd.71"


def test_no_device_is_opened(changing: Path) -> None:
    """A pipe in a device's place would hang whoever opened it."""
    for name in ("sdg", "sdg1", "dm-5"):
        os.mkfifo(changing / "dev" / name)
    assert read_disk_users(Roots.under(changing)).osds()["sdg"] == "osd.71"


def test_without_sysfs(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"sys/class/block: No such file or directory; is sysfs mounted there\?"):
        read_disk_users(Roots.under(tmp_path))
