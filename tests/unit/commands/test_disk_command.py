"""``plumbline disk``: what is said of a disk, as structure, as text, and by the command."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from plumbline import cli
from plumbline.commands.disk import Disk, Use, describe, in_the_end, pick, print_disk
from plumbline.core.console import make_console
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError, UnknownName
from plumbline.sources.disk.block import read_block_devices
from plumbline.sources.disk.diskusers import read_disk_users
from plumbline.sources.disk.slots import Slot, switch

NODE = Path(__file__).parents[2] / "fixtures" / "ceph-package-node"


@pytest.fixture(scope="module")
def disks() -> dict[str, Disk]:
    roots = Roots.under(NODE)
    found = describe(read_block_devices(roots, on_skip=lambda *_: None), read_disk_users(roots), roots)
    return {each.device: each for each in found}


def roots_of(path: Path) -> list[str]:
    trees = {"procfs": "proc", "sysfs": "sys", "devfs": "dev", "udev": "run/udev", "etc": "etc", "var": "var"}
    return [part for flag, tree in trees.items() for part in (f"--path.{flag}", str(path / tree))]


def printed(disk: Disk) -> list[str]:
    stream = io.StringIO()
    print_disk(make_console(stream), disk)
    return stream.getvalue().splitlines()


def test_a_disk_and_its_stack(disks: dict[str, Disk]) -> None:
    disk = disks["sdg"]
    assert (disk.model, disk.transport, disk.device_class, disk.queue_depth) == ("MK01920GWSSE", "sas", "hdd", 254)
    assert disk.osd == "osd.71"
    assert in_the_end(disk) == (Use(kind="osd", name="osd.71"),)
    (partition,) = disk.stack.upper
    (crypt,) = partition.upper
    (volume,) = crypt.upper
    assert [layer.device for layer in (disk.stack, partition, crypt, volume)] == ["sdg", "sdg1", "dm-3", "dm-5"]
    assert (partition.what, crypt.what) == ("partition", "dm luks-sdg1 (encrypted)")
    assert volume.what.startswith("lvm ceph-0000b10c-")
    assert volume.uses == (Use(kind="osd", name="osd.71"),)


def test_one_disk_as_text(disks: dict[str, Disk]) -> None:
    lines = printed(disks["sdg"])
    assert lines[0] == "sdg: MK01920GWSSE, 7.28 TiB"
    assert "  commands the disk takes: 254" in lines
    assert "  OSD: osd.71" in lines
    tree = lines[lines.index("") + 1 :]
    assert [line.strip("└─│ ").split()[0] for line in tree] == ["sdg", "sdg1", "dm-3", "dm-5"]
    assert tree[-1].endswith("→ osd.71")


def test_a_stack_that_branches_and_one_below(disks: dict[str, Disk]) -> None:
    tree = "\n".join(printed(disks["md0"]))
    assert "  built on: sdq, sdr" in tree
    assert "dm-13  lvm vg0/swap  → swap /dev/dm-13" in tree
    assert "dm-16  lvm vg0/thin-root  → filesystem /" in tree


def test_who_nobody_names(disks: dict[str, Disk]) -> None:
    assert any("osd-db (owner unknown)" in line for line in printed(disks["sdl"]))
    assert in_the_end(disks["sdp"]) == ()


def test_one_disk_or_all_and_an_unknown_one_with_the_known(disks: dict[str, Disk]) -> None:
    all_of_them = tuple(disks.values())
    assert pick(all_of_them, None) == all_of_them
    assert pick(all_of_them, "/dev/sdg") == pick(all_of_them, "sdg") == (disks["sdg"],)
    with pytest.raises(UnknownName, match=r"^no disk sdzz; there are: bcache0, dm-0, "):
        pick(all_of_them, "sdzz")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["disk", *roots_of(NODE)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Device", "Model", "Class", "Transport", "Size", "Scheduler", "Used", "by"]
    (line,) = [line for line in lines if line.startswith("sdg ")]
    assert line.split() == ["sdg", "MK01920GWSSE", "hdd", "sas", "7.28", "TiB", "mq-deadline", "osd.71"]
    assert cli.main(["disk", "/dev/sdg", "--json", *roots_of(NODE)]) == 0
    (disk,) = json.loads(capsys.readouterr().out)
    assert (disk["device"], disk["osd"], disk["zoned"]) == ("sdg", "osd.71", None)
    assert disk["stack"]["upper"][0]["device"] == "sdg1"
    assert cli.main(["disk", "none", *roots_of(NODE)]) == 2
    refused = capsys.readouterr()
    assert refused.out == ""
    assert refused.err.startswith("plumbline: no disk none; there are: ")
    assert refused.err.count("\n") == 1


def test_an_excluded_disk_is_shown_when_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    node = NODE.parent / "disks-storage-node"
    assert cli.main(["disk", *roots_of(node)]) == 0
    assert "loop0" not in capsys.readouterr().out
    assert cli.main(["disk", "loop0", *roots_of(node)]) == 0
    assert capsys.readouterr().out.startswith("loop0: no model, ")


def block(folder: Path, name: str) -> Path:
    """A disk of that name."""
    disk = folder / "sys/devices/bus/block" / name
    disk.mkdir(parents=True)
    (disk / "size").write_text("1000\n")
    (disk / "dev").write_text("8:0\n")
    for place in ("sys/block", "sys/class/block"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / name).symlink_to(disk)
    return disk


def in_enclosure(folder: Path) -> Path:
    """A host with a SAS disk in slot 3 of an enclosure, as drivers/misc/enclosure.c lays it out; returns its light."""
    disk = folder / "sys/devices/pci/host0/target0:0:1/0:0:1:0"
    component = folder / "sys/devices/pci/host0/target0:0:12/0:0:12:0/enclosure/0:0:12:0/Slot 03"
    component.mkdir(parents=True)
    disk.mkdir(parents=True)
    (component.parent / "id").write_text("0x500304801f0abf7f\n")
    (component / "locate").write_text("0\n")
    (disk / "enclosure_device:Slot 03").symlink_to(component)
    (block(folder, "sda") / "device").symlink_to(disk)
    return component / "locate"


def in_pci_slot(folder: Path) -> Path:
    slots = folder / "sys/bus/pci/slots"
    for number, address in ((6, "0000:3a:00"), (7, "0000:3b:00")):
        (slots / str(number)).mkdir(parents=True)
        (slots / str(number) / "address").write_text(f"{address}\n")
        (slots / str(number) / "attention").write_text("0\n")
    controller = folder / "sys/devices/pci/nvme0"
    controller.mkdir(parents=True)
    (controller / "address").write_text("0000:3b:00.0\n")
    (block(folder, "nvme0n1") / "device").symlink_to(controller)
    return slots / "7" / "attention"


def test_the_light_of_an_enclosures_slot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    light = in_enclosure(tmp_path)
    where = "Slot 03 of enclosure 0x500304801f0abf7f"
    for state, digit in (("on", "1"), ("off", "0")):
        assert cli.main(["disk", "/dev/sda", "--locate", state, *roots_of(tmp_path)]) == 0
        assert (light.read_text(), capsys.readouterr().out) == (digit, f"sda: the light of {where} is {state}\n")
    assert cli.main(["disk", "sda", *roots_of(tmp_path)]) == 0
    assert f"  slot: {where}\n" in capsys.readouterr().out
    light.write_text("1")
    assert cli.main(["disk", "sda", "--json", *roots_of(tmp_path)]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["slot"], found["slot_lit"]) == (where, True)


def test_the_light_of_a_slot_for_nvme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    light = in_pci_slot(tmp_path)
    assert cli.main(["disk", "nvme0n1", "--locate", "on", *roots_of(tmp_path)]) == 0
    assert capsys.readouterr().out == "nvme0n1: the light of PCI slot 7 is on\n"
    assert (light.read_text(), (light.parents[1] / "6/attention").read_text()) == ("1", "0\n")


def test_what_has_no_light(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    in_enclosure(tmp_path).unlink()
    block(tmp_path, "sdb")
    assert cli.main(["disk", "sda", "--locate", "on", *roots_of(tmp_path)]) == 1
    assert "Slot 03 of enclosure 0x500304801f0abf7f has no light that can be switched" in capsys.readouterr().err
    assert cli.main(["disk", "sdb", "--locate", "off", *roots_of(tmp_path)]) == 1
    assert "sdb: the kernel lists no slot of it" in (said := capsys.readouterr().err)
    assert "ledctl locate_off=/dev/sdb" in said
    assert cli.main(["disk", "--locate", "on", *roots_of(tmp_path)]) != 0
    assert "--locate: say which disk" in capsys.readouterr().err


def test_a_light_that_does_not_follow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that can't be switched, one that refuses, one that ignores it."""
    light = in_enclosure(tmp_path)
    light.unlink()
    light.mkdir()
    assert cli.main(["disk", "sda", "--locate", "on", *roots_of(tmp_path)]) == 1
    assert "no light that can be switched" in capsys.readouterr().err
    with pytest.raises(PlumblineError, match=r"/dev/full: No space left on device$"):
        switch(Slot("Slot 03", Path("/dev/full")), "sda", on=True)
    with pytest.raises(PlumblineError, match="was written and still says otherwise: the enclosure ignores it"):
        switch(Slot("Slot 03", Path("/dev/null")), "sda", on=True)


def test_is_it_safe_to_pull(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block(tmp_path, "sdb")
    assert cli.main(["disk", "sdb", "--safe-to-pull", *roots_of(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("sdb: safe to pull: yes; nothing that the kernel lists uses it\n")
    assert cli.main(["disk", "sdb", "--safe-to-pull", "--json", *roots_of(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["safe"] is True
    assert cli.main(["disk", "--safe-to-pull", *roots_of(tmp_path)]) != 0
    assert "--safe-to-pull: say which disk: plumbline disk sda --safe-to-pull" in capsys.readouterr().err
    assert cli.main(["disk", "md0", "--safe-to-pull", *roots_of(NODE)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == ["  first: unmount it"]
