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
from plumbline.errors import Unavailable
from plumbline.sources.disk.block import read_block_devices
from plumbline.sources.disk.diskusers import read_disk_users

NODE = Path(__file__).parents[2] / "fixtures" / "ceph-package-node"


@pytest.fixture(scope="module")
def disks() -> dict[str, Disk]:
    roots = Roots.under(NODE)
    found = describe(read_block_devices(roots, on_skip=lambda *_: None), read_disk_users(roots))
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
    with pytest.raises(Unavailable, match=r"^no disk sdzz; there are: bcache0, dm-0, "):
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
    assert cli.main(["disk", "none", *roots_of(NODE)]) == 1
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
