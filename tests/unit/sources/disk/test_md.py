"""md arrays from a sysfs tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError
from plumbline.sources.disk.md import CONTAINER, MdArray, MdMember, parse_disks, parse_progress, read_md, redundancy

NODE = Roots.under(Path(__file__).parents[3] / "fixtures" / "arrays-storage-node")
ARRAYS = {array.device: array for array in read_md(NODE).arrays}


def test_an_array_that_is_being_rebuilt_whole() -> None:
    assert ARRAYS["md0"] == MdArray(
        device="md0",
        level="raid5",
        state="active",
        disks=3,
        degraded_disks=1,
        redundant_disks=1,
        sync_action="recover",
        sync_done_sectors=1_953_382_400,
        sync_total_sectors=7_813_529_600,
        sync_speed_kib_per_second=131_072,
        mismatch_sectors=0,
        members=(
            MdMember("sdb1", "in_sync", "0", 0),
            MdMember("sdc1", "in_sync", "1", 12),
            MdMember("sdd1", "faulty", "none", 0),
            MdMember("sde1", "spare", "2", 0),
        ),
    )


def test_raid0_can_miss_nothing_and_tells_nothing_of_it() -> None:
    striped = ARRAYS["md2"]
    assert (striped.level, striped.disks, striped.redundant_disks) == ("raid0", 2, 0)
    assert (striped.degraded_disks, striped.sync_action, striped.mismatch_sectors) == (None, "", None)


def test_a_container_and_the_array_in_it() -> None:
    assert (ARRAYS["md127"].level, ARRAYS["md127"].state, ARRAYS["md127"].disks) == (CONTAINER, "inactive", None)
    assert (ARRAYS["md126"].level, ARRAYS["md126"].disks) == ("raid1", 2)


def test_an_array_that_did_not_start_has_disks_and_no_level() -> None:
    array = ARRAYS["md5"]
    assert (array.level, array.state, array.disks, len(array.members)) == ("", "inactive", None, 2)


def test_growing_a_journal_and_a_hot_spare() -> None:
    array = ARRAYS["md3"]
    assert (array.disks, array.sync_action, array.sync_total_sectors) == (5, "check", None)
    assert {(each.device, each.state, each.slot) for each in array.members} >= {
        ("nvme4n1p1", "in_sync,journal", "journal"),
        ("sdk", "spare", "none"),
    }


def test_one_malformed_array_does_not_hide_the_other(tmp_path: Path) -> None:
    for device, disks in (("md0", "two"), ("md1", "2")):
        path = tmp_path / "sys" / "block" / device / "md"
        path.mkdir(parents=True)
        (path / "array_state").write_text("clean\n")
        (path / "raid_disks").write_text(disks + "\n")
    reading = read_md(Roots.under(tmp_path))
    assert [array.device for array in reading.arrays] == ["md1"]
    assert reading.skipped == (("md0", "malformed"),)


def test_a_host_without_arrays() -> None:
    assert read_md(Roots.under(Path("/nowhere"))).arrays == ()


@pytest.mark.parametrize(
    ("level", "disks", "layout", "left"),
    [
        ("raid0", 4, None, 0),
        ("linear", 4, None, 0),
        ("raid1", 3, None, 2),
        ("raid1", None, None, None),
        ("raid4", 4, None, 1),
        ("raid5", 4, None, 1),
        ("raid6", 6, None, 2),
        ("raid10", 4, 0x102, 1),  # two near copies
        ("raid10", 4, 0x201, 1),  # two far ones
        ("raid10", 6, 0x103, 2),
        ("raid10", 4, 0x20201, 1),  # far and improved
        ("raid10", 4, None, None),
        ("container", None, None, None),
        ("faulty", 1, None, None),
    ],
)
def test_redundancy(level: str, disks: int | None, layout: int | None, left: int | None) -> None:
    assert redundancy(level, disks, layout) == left


def test_progress() -> None:
    assert parse_progress("none", source="s") is None
    assert parse_progress("delayed", source="s") is None
    assert parse_progress("0 / 0", source="s") is None
    assert parse_progress("5 / 10", source="s") == (5, 10)
    assert parse_progress("12 / 10", source="s") == (10, 10)  # it runs over while the array shrinks
    with pytest.raises(ParseError, match="s: not none, delayed or done / total: '5 of 10'"):
        parse_progress("5 of 10", source="s")


def test_disks() -> None:
    assert parse_disks("4", source="s") == 4
    assert parse_disks("5 (4)", source="s") == 5
    with pytest.raises(ParseError, match="s: not a number of disks: '-1'"):
        parse_disks("-1", source="s")
