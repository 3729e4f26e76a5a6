"""``zpool status``, as text of many shapes and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.errors import ParseError
from plumbline.sources.disk.zfs import PoolStatus, Vdev, parse_count, parse_text

TEXT = (Path(__file__).parents[3] / "fixtures" / "arrays-storage-node" / "zpool_status.txt").read_text()


def pool(*rows: str, errors: str = "No known data errors") -> PoolStatus:
    """A pool of these rows, from its text."""
    config = "\n".join(f"\t{row}" for row in ("NAME  STATE  READ WRITE CKSUM", "tank  ONLINE  0 0 0", *rows))
    (found,) = parse_text(f"  pool: tank\n state: ONLINE\nconfig:\n\n{config}\n\nerrors: {errors}\n")
    return found


def test_two_pools_whole() -> None:
    tank, scratch = parse_text(TEXT)
    assert (tank.name, tank.state, tank.data_errors) == ("tank", "DEGRADED", 2)
    assert [(vdev.path, vdev.state) for vdev in tank.vdevs] == [
        ("raidz2-0", "DEGRADED"),
        ("raidz2-0/sdb", "ONLINE"),
        ("raidz2-0/sdc", "ONLINE"),
        ("raidz2-0/replacing-2", "DEGRADED"),
        ("raidz2-0/replacing-2/127286639182292558", "UNAVAIL"),
        ("raidz2-0/replacing-2/sdd", "ONLINE"),
        ("raidz2-0/spare-3", "DEGRADED"),
        ("raidz2-0/spare-3/sde", "FAULTED"),
        ("raidz2-0/spare-3/sdh", "ONLINE"),
        ("special/mirror-1", "ONLINE"),
        ("special/mirror-1/nvme0n1p1", "ONLINE"),
        ("special/mirror-1/nvme1n1p1", "ONLINE"),
        ("logs/mirror-2", "ONLINE"),
        ("logs/mirror-2/nvme0n1p2", "ONLINE"),
        ("logs/mirror-2/nvme1n1p2", "ONLINE"),
        ("cache/nvme2n1", "UNAVAIL"),
        ("spares/sdh", "INUSE"),
        ("spares/sdi", "AVAIL"),
    ]
    assert tank.vdevs[2] == Vdev("raidz2-0/sdc", "ONLINE", 3, 0, 12)
    assert tank.vdevs[7] == Vdev("raidz2-0/spare-3/sde", "FAULTED", 11, 253, 0)
    assert tank.vdevs[-1] == Vdev("spares/sdi", "AVAIL", None, None, None)
    assert scratch == PoolStatus(
        "scratch",
        "ONLINE",
        (
            Vdev("draid1:4d:6c:1s-0", "ONLINE", 0, 0, 0),
            Vdev("draid1:4d:6c:1s-0/sdj", "ONLINE", 0, 0, 0),
            Vdev("draid1:4d:6c:1s-0/sdk", "ONLINE", 0, 0, 0),
            Vdev("/srv/a disk.img", "ONLINE", 0, 0, 0),
            Vdev("spares/draid1-0-0", "AVAIL", None, None, None),
        ),
        0,
    )


@pytest.mark.parametrize(
    ("row", "vdev"),
    [
        ("  sda  ONLINE  0  0  0", Vdev("sda", "ONLINE", 0, 0, 0)),
        ("  sda  ONLINE  1.2K  3  2.5M", Vdev("sda", "ONLINE", 1229, 3, 2_621_440)),
        ("  917  UNAVAIL  0  0  0  was /dev/sdb1", Vdev("917", "UNAVAIL", 0, 0, 0)),
        ("  sdb  UNAVAIL  0  0  0  cannot open", Vdev("sdb", "UNAVAIL", 0, 0, 0)),
        ("  sdb  REMOVED  0  0  0  (awaiting resilver)", Vdev("sdb", "REMOVED", 0, 0, 0)),
        ("  sdb  OFFLINE  0  0  0", Vdev("sdb", "OFFLINE", 0, 0, 0)),
        ("  sdb  ONLINE  0  0  0  block size: 512B configured, 4096B native", Vdev("sdb", "ONLINE", 0, 0, 0)),
        ("  sdb  ONLINE  0  0  0     -  (trimming)", Vdev("sdb", "ONLINE", 0, 0, 0)),
        ("  sdb  ONLINE  -  -  -", Vdev("sdb", "ONLINE", None, None, None)),
        ("  /srv/OFFLINE copy  ONLINE  0  0  7", Vdev("/srv/OFFLINE copy", "ONLINE", 0, 0, 7)),
        ("  pci-0000:00:1f.2-1  FAULTED  3  170  0  too many errors", Vdev("pci-0000:00:1f.2-1", "FAULTED", 3, 170, 0)),
    ],
)  # fmt: skip
def test_rows(row: str, vdev: Vdev) -> None:
    assert pool(row).vdevs == (vdev,)


def test_groups_of_one_name_stay_apart() -> None:
    found = pool(
        "  mirror-0  DEGRADED  0  0  0",
        "    replacing-0  DEGRADED  0  0  0",
        "      sda  OFFLINE  0  0  0",
        "    sdb  ONLINE  0  0  0",
        "  mirror-1  DEGRADED  0  0  0",
        "    replacing-0  DEGRADED  0  0  0",
        "      sdc  OFFLINE  0  0  0",
    )
    assert [vdev.path for vdev in found.vdevs if "replacing" in vdev.path] == [
        "mirror-0/replacing-0",
        "mirror-0/replacing-0/sda",
        "mirror-1/replacing-0",
        "mirror-1/replacing-0/sdc",
    ]


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("No known data errors", 0),
        ("1 data error, use '-v' for a list", 1),
        ("14 data errors, use '-v' for a list", 14),
        ("List of errors unavailable: pool I/O is currently suspended", None),
        ("Permanent errors have been detected in the following files:", None),
    ],
)
def test_data_errors(said: str, count: int | None) -> None:
    assert pool(errors=said).data_errors == count


def test_no_pools() -> None:
    assert parse_text("no pools available\n") == ()
    assert parse_text("") == ()


def test_an_indent_that_fits_nothing_is_malformed() -> None:
    with pytest.raises(ParseError, match="zpool status:7: an indent without a parent: 'sda  ONLINE  0  0  0'"):
        pool("      sda  ONLINE  0  0  0")


def test_counts() -> None:
    assert [parse_count(text) for text in ("0", "17", "1K", "1.5K", "2M", "-")] == [0, 17, 1024, 1536, 2_097_152, None]
    with pytest.raises(ParseError, match=r"zpool status: not a count: '1\.2Q'"):
        parse_count("1.2Q")
