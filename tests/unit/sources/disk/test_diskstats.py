from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.disk.diskstats import (
    DiskStats,
    WholeDisks,
    merge_paths,
    parse_diskstats,
    read_diskstats,
    read_whole_disks,
)

FIXTURES = Path(__file__).parents[3] / "fixtures"
SDA = "   8       0 sda 25 12 1000 18 28 11 5056 63 4 9650 82"


def everything(_name: str) -> bool:
    return True


def read(
    scenario: str, exclude: str = r"(?:loop|ram|zram|fd|sr|nbd)\d+", *, partitions: bool = False
) -> dict[str, DiskStats]:
    roots = Roots.under(FIXTURES / scenario)
    disks = WholeDisks(roots, exclude=re.compile(exclude), partitions=partitions)
    return {disk.name: disk for disk in read_whole_disks(roots, disks)}


def test_twenty_columns_of_a_real_kernel() -> None:
    text = (FIXTURES / "disks-virtio-vm/proc/diskstats").read_text("utf-8")
    (vda,) = (disk for disk in parse_diskstats(text, keep=everything) if disk.name == "vda")
    columns = next(line for line in text.splitlines() if " vda " in line).split()
    assert len(columns) == 20
    assert [str(getattr(vda, field)) for field in vda.__struct_fields__] == columns[2:]


def test_every_column_lands_in_its_field() -> None:
    (disk,) = parse_diskstats(" 259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", keep=everything)
    assert disk == DiskStats(
        name="nvme0n1",
        reads=1,
        reads_merged=2,
        sectors_read=3,
        reading_ms=4,
        writes=5,
        writes_merged=6,
        sectors_written=7,
        writing_ms=8,
        in_flight=9,
        busy_ms=10,
        weighted_ms=11,
        discards=12,
        discards_merged=13,
        sectors_discarded=14,
        discarding_ms=15,
        flushes=16,
        flushing_ms=17,
    )


def test_kernels_before_4_18_count_neither_discards_nor_flushes() -> None:
    text = (FIXTURES / "diskstats-linux-4.14/proc/diskstats").read_text("utf-8")
    sda = next(disk for disk in parse_diskstats(text, keep=everything) if disk.name == "sda")
    assert sda.weighted_ms == 82220872
    assert (sda.discards, sda.discards_merged, sda.sectors_discarded, sda.discarding_ms) == (None,) * 4
    assert (sda.flushes, sda.flushing_ms) == (None, None)


def test_kernels_before_5_5_count_discards_but_no_flushes() -> None:
    text = (FIXTURES / "diskstats-linux-4.19/proc/diskstats").read_text("utf-8")
    sdb = parse_diskstats(text, keep=everything)[0]
    assert (sdb.discards, sdb.discards_merged, sdb.sectors_discarded, sdb.discarding_ms) == (
        68851,
        0,
        1925173784,
        11130,
    )
    assert (sdb.flushes, sdb.flushing_ms) == (None, None)


def test_columns_of_newer_kernels_are_ignored() -> None:
    line = "8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"
    assert parse_diskstats(f"{line} 18 19\n", keep=everything) == parse_diskstats(f"{line}\n", keep=everything)


def test_counters_of_64_bits() -> None:
    (disk,) = parse_diskstats(SDA.replace(" 1000 ", f" {2**64 - 1} "), keep=everything)
    assert disk.sectors_read == 18446744073709551615


@pytest.mark.parametrize("text", ["", "\n", "\n\n"])
def test_no_disks(text: str) -> None:
    assert parse_diskstats(text, keep=everything) == ()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param("garbage", "not a diskstats line", id="one word"),
        pytest.param("   8       0 sda", "not a diskstats line", id="no counters"),
        pytest.param("   8       0 sda 1 2 3 4", "not a diskstats line", id="seven columns as Linux 2.6.24"),
        pytest.param(SDA.rsplit(" ", 1)[0], "not a diskstats line", id="cut short"),
        pytest.param(f"{SDA} 1 2", "16 columns, expected 14, 18 or 20", id="cut in the discards"),
        pytest.param(f"{SDA} 1 2 3 4 5", "19 columns, expected 14, 18 or 20", id="cut in the flushes"),
        pytest.param(SDA.replace(" 25 ", " 25x "), "not a diskstats line", id="letters"),
        pytest.param(SDA.replace(" 25 ", " -25 "), "not a diskstats line", id="negative"),
        pytest.param(SDA.replace(" 25 ", " +25 "), "not a diskstats line", id="signed"),
        pytest.param(SDA.replace(" 25 ", " 2_5 "), "not a diskstats line", id="what int() accepts"),
        pytest.param(SDA.replace(" 25 ", " ٢٥ "), "not a diskstats line", id="other digits"),
        pytest.param(SDA.replace(" 25 ", ' "25" '), "not a diskstats line", id="quoted"),
        pytest.param(SDA.replace(" 25 ", " 25  "), "not a diskstats line", id="a missing value"),
        pytest.param(SDA.replace("sda", 's"a'), "not a diskstats line", id="quote in the name"),
    ],
)
def test_a_malformed_line_names_itself(line: str, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_diskstats(f"{SDA}\n{line}\n", keep=everything, source="/proc/diskstats")
    assert str(caught.value).startswith(f"/proc/diskstats:2: {reason}")
    assert caught.value.line == 2


def test_of_two_lines_of_one_disk_the_later_holds() -> None:
    """The kernel writes the table in pieces: a disk that leaves and comes back meanwhile may stand there twice."""
    lines = [
        f"8 {minor} {name} {reads} 2 3 4 5 6 7 8 9 10 11" for minor, name, reads in ((0, "sda", 1), (16, "sdb", 2))
    ]
    lines.append("8 32 sda 7 2 3 4 5 6 7 8 9 10 11")
    found = parse_diskstats("\n".join(lines), keep=lambda _name: True)
    assert [(disk.name, disk.reads) for disk in found] == [("sda", 7), ("sdb", 2)]


def test_a_line_that_is_not_kept_is_not_judged() -> None:
    text = f"7 0 loop0 broken beyond repair\n{SDA}\n"
    assert [disk.name for disk in parse_diskstats(text, keep=lambda name: name != "loop0")] == ["sda"]


def test_whole_disks_by_default() -> None:
    disks = read("disks-storage-node")
    assert sorted(disks) == [
        "cciss/c0d0",
        "dm-0",
        "dm-1",
        "dm-2",
        "md127",
        "mmcblk0",
        "nvme0n1",
        "nvme1n1",
        "rbd0",
        "sda",
        "sdb",
        "sdc",
        "sdd",
        "sde",
        "xvda1",
    ]
    assert disks["nvme0n1"].in_flight == 2
    assert disks["sda"].flushing_ms == 22576


def test_disks_can_be_excluded_by_their_whole_name() -> None:
    assert "sda" not in read("disks-storage-node", exclude="sd[a-c]")
    assert "sda" in read("disks-storage-node", exclude="d")
    assert "loop0" in read("disks-storage-node", exclude="")


def test_a_partition_is_looked_up_once(tmp_path: Path) -> None:
    roots = _sysfs(tmp_path)
    keep = WholeDisks(roots, exclude=re.compile("x"))
    assert (keep("sda"), keep("sda1")) == (True, False)
    (tmp_path / "sys/class/block/sda1/partition").unlink()
    (tmp_path / "sys/block/sda1").mkdir()
    assert keep("sda1") is False


def test_a_disk_that_sysfs_does_not_show_yet_is_asked_again(tmp_path: Path) -> None:
    roots = _sysfs(tmp_path)
    keep = WholeDisks(roots, exclude=re.compile("x"))
    assert keep("sdb") is False
    (tmp_path / "sys/block/sdb").mkdir()
    assert keep("sdb") is True


def _sysfs(tmp_path: Path) -> Roots:
    (tmp_path / "sys/block/sda").mkdir(parents=True)
    (tmp_path / "sys/class/block/sda1").mkdir(parents=True)
    (tmp_path / "sys/class/block/sda1/partition").write_text("1\n")
    return Roots.under(tmp_path)


def test_without_sysfs_there_is_no_telling(tmp_path: Path) -> None:
    keep = WholeDisks(Roots.under(tmp_path), exclude=re.compile("loop.*"))
    assert keep("loop0") is False
    with pytest.raises(Unavailable, match="mount sysfs"):
        keep("sda")


def test_without_procfs(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"/proc/diskstats: No such file or directory; is procfs mounted there\?"):
        read_diskstats(Roots.under(tmp_path), keep=everything)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/diskstats").write_bytes(b"\xff\xfe\n")
    with pytest.raises(ParseError, match=r"proc/diskstats:1: not a diskstats line"):
        read_diskstats(Roots.under(tmp_path), keep=everything)


def test_this_machine() -> None:
    roots = Roots.under(Path("/"))
    keep = WholeDisks(roots, exclude=re.compile(r"(?:loop|ram|zram)\d+"))
    names = {disk.name for disk in read_diskstats(roots, keep=keep)}
    present = {path.name.replace("!", "/") for path in Path("/sys/block").iterdir()}
    assert names <= present
    assert {name for name in present if not re.fullmatch(r"(?:loop|ram|zram)\d+", name)} <= names


def test_partitions_of_kept_disks_on_demand() -> None:
    names = read("disks-storage-node", partitions=True)
    assert {"sda1", "sda2", "nvme0n1p1"} <= set(names)
    assert set(names) - {"sda1", "sda2", "nvme0n1p1"} == set(read("disks-storage-node"))
    assert not {"sda", "sda1", "sda2"} & set(read("disks-storage-node", exclude="sda", partitions=True))


def test_what_a_hidden_path_counts_is_its_disks() -> None:
    """Before Linux 6.4 the disk itself counts nothing."""
    disks = read("disks-storage-node")
    assert "nvme1c1n1" not in disks
    assert (disks["nvme1n1"].reads, disks["nvme1n1"].writes, disks["nvme1n1"].busy_ms) == (7114230, 7832012, 227661)


@pytest.mark.parametrize("iostats", ["1\n", None])
def test_a_disk_that_counts_itself_is_not_counted_twice(tmp_path: Path, iostats: str | None) -> None:
    shutil.copytree(FIXTURES / "disks-storage-node", tmp_path, symlinks=True, dirs_exist_ok=True)
    attribute = tmp_path / "sys/block/nvme1n1/queue/iostats"
    attribute.unlink()
    if iostats is not None:
        attribute.write_text(iostats)
    roots = Roots.under(tmp_path)
    disks = read_whole_disks(roots, WholeDisks(roots, exclude=re.compile("")))
    assert [(disk.name, disk.reads) for disk in disks if disk.name.startswith("nvme1")] == [("nvme1n1", 0)]


def test_a_disk_has_in_flight_what_its_paths_have(tmp_path: Path) -> None:
    """Since Linux 6.4 the disk counts in software, and until 6.9 its count stays when a path fails over."""
    shutil.copytree(FIXTURES / "disks-storage-node", tmp_path, symlinks=True, dirs_exist_ok=True)
    (tmp_path / "sys/block/nvme1n1/queue/iostats").write_text("1\n")
    lines = (
        " 259 2 nvme1n1 70 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0 0",
        " 259 3 nvme1c1n1 50 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0 0",
        " 8 0 sda 5 0 0 0 0 0 0 0 4 0 0 0 0 0 0 0 0",
    )
    (tmp_path / "proc/diskstats").write_text("\n".join(lines) + "\n")
    roots = Roots.under(tmp_path)
    disks = read_whole_disks(roots, WholeDisks(roots, exclude=re.compile("")))
    assert [(disk.name, disk.reads, disk.in_flight) for disk in disks] == [("nvme1n1", 70, 2), ("sda", 5, 4)]


def test_an_excluded_disk_takes_its_paths_along() -> None:
    assert not [name for name in read("disks-storage-node", exclude="nvme1n1") if name.startswith("nvme1")]


def test_paths_are_added_with_what_each_kernel_counts() -> None:
    old = " 259 2 nvme1n1 1 1 1 1 1 1 1 1 1 1 1\n 259 3 nvme1c0n1 2 2 2 2 2 2 2 2 2 2 2\n"
    both = old + " 259 4 nvme1c1n1 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3\n 8 0 sda 9 9 9 9 9 9 9 9 9 9 9\n"
    paths = {"nvme1c0n1": "nvme1n1", "nvme1c1n1": "nvme1n1"}
    merged = merge_paths(parse_diskstats(both, keep=everything), paths)
    assert [(disk.name, disk.reads, disk.flushes) for disk in merged] == [("nvme1n1", 6, 3), ("sda", 9, None)]
    assert [disk.name for disk in merge_paths(merged, {})] == ["nvme1n1", "sda"]
