from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.disk.blocktree import BlockNode
from plumbline.sources.disk.lvm import LogicalVolume, parse_metadata, read_tags, tags_by_uuid, volume_of

FIXTURES = Path(__file__).parents[3] / "fixtures"
UUID = "LVM-" + 64 * "x"


def node(name: str, uuid: str = UUID, **properties: bytes) -> BlockNode:
    return BlockNode(name="dm-0", number="253:0", disk="dm-0", dm_name=name, dm_uuid=uuid, properties=properties)


@pytest.mark.parametrize(
    ("name", "volume"),
    [
        ("vg-lv", "vg/lv"),
        ("ceph--1b2c-osd--block--5d6e", "ceph-1b2c/osd-block-5d6e"),
        ("a--b-c", "a-b/c"),
        ("vg-root_tmeta", None),
        ("vg-mirror_rimage_0", None),
        ("vg-data_tdata2", "vg/data_tdata2"),
        ("nohyphen", None),
        ("", None),
    ],
)
def test_names_as_device_mapper_joins_them(name: str, volume: str | None) -> None:
    found = volume_of(node(name))
    assert (found and found.name) == volume


def test_udev_knows_the_names_apart() -> None:
    found = volume_of(node("x---y", DM_VG_NAME=b"x-", DM_LV_NAME=b"y"))
    assert found == LogicalVolume("x-", "y")


@pytest.mark.parametrize("uuid", ["", "CRYPT-LUKS2-abc-x", "mpath-3500", f"{UUID}-real", f"{UUID}-tpool", "LVM-short"])
def test_other_devices_and_layers_are_no_volumes(uuid: str) -> None:
    assert volume_of(node("vg-lv", uuid)) is None


def test_tags_of_a_backup() -> None:
    tags = read_tags(Roots.under(FIXTURES / "ceph-package-node"))
    (block,) = [each for each in tags.values() if "ceph.type=block" in each]
    assert "ceph.osd_id=74" in block
    assert all(uuid.startswith("LVM-") and len(uuid) == 68 for uuid in tags)
    assert len(tags) == 3


def test_a_host_without_lvm(tmp_path: Path) -> None:
    assert read_tags(Roots.under(tmp_path)) == {}


def test_the_text_format() -> None:
    text = 'a = 1 # one\nb = "x # \\" y"\nc = []\nd = ["p", "q",\n  3]\ns { t { u = "" } }\n'
    assert parse_metadata(text, source="x") == {
        "a": "1", "b": 'x # " y', "c": [], "d": ["p", "q", "3"], "s": {"t": {"u": ""}},
    }  # fmt: skip
    assert parse_metadata("", source="x") == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a", "x:1: not LVM metadata: 'a'"),
        ("\n= 3", "x:2: not LVM metadata: '='"),
        ("}", "x:1: not LVM metadata: '}'"),
        ("a =", "x:1: 'a' has no value"),
        ("a = }", "x:1: 'a' has no value"),
        ("a = [1, 2", "x:1: 'a': the list has no end"),
        ("a = [1 = 2]", "x:1: 'a': the list has no end"),
        ("a {", "x: the last section has no end"),
        ('a = "open', "x:1: not LVM metadata: "),
        ("a {" * 50, "x:1: sections are nested too deeply"),
    ],
)
def test_what_is_no_metadata(text: str, says: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_metadata(text, source="x")
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    "text",
    [
        "vg = 3",
        "vg { id = [] logical_volumes { lv { id = 3 } } }",
        "vg { logical_volumes = 3 }",
        "vg { logical_volumes { lv = 3 } }",
    ],
)
def test_metadata_of_another_shape_has_no_tags(text: str) -> None:
    assert tags_by_uuid(parse_metadata(text, source="x")) == {}
