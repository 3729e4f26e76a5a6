"""Readings of arrays and paths as samples; one kind that hangs does not hide the others."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable
from pathlib import Path

from plumbline.background.storage import StorageWatch
from plumbline.baseline.book import load_book
from plumbline.collectors import array as metrics
from plumbline.collectors.registry import configured
from plumbline.config.model import Config
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.metrics.spec import Sample
from plumbline.sources.disk.md import MdArray, MdReading, read_md
from plumbline.sources.disk.multipath import read_multipath
from plumbline.sources.disk.zfs import NO_ZFS, Arc, PoolStatus, Vdev, ZfsReading
from support.hosts import parts, silent_network

FIXTURE = Path(__file__).parents[2] / "fixtures" / "arrays-storage-node"
NODE = Roots.under(FIXTURE)


def plain(samples: Iterable[Sample], first: str = "") -> list[tuple[object, ...]]:
    """Name, labels and value of each; of one device or pool, without its name."""
    flat = [(spec.name.removeprefix("plumbline_"), *labels, value) for spec, labels, value in samples]
    return [(name, *rest[1:]) for name, *rest in flat if rest[0] == first] if first else flat


def test_an_array_in_base_units() -> None:
    assert plain(metrics.md_samples(read_md(NODE)), "md0") == [
        ("md_info", "raid5", "active", 1),
        ("md_disks", 3),
        ("md_degraded_disks", 1),
        ("md_redundant_disks", 1),
        ("md_mismatch_sectors", 0),
        ("md_sync_info", "recover", 1),
        ("md_sync_ratio", 0.25),
        ("md_sync_bytes_per_second", 134_217_728),
        ("md_member_info", "sdb1", "in_sync", "0", 1),
        ("md_member_errors", "sdb1", 0),
        ("md_member_info", "sdc1", "in_sync", "1", 1),
        ("md_member_errors", "sdc1", 12),
        ("md_member_info", "sdd1", "faulty", "none", 1),
        ("md_member_errors", "sdd1", 0),
        ("md_member_info", "sde1", "spare", "2", 1),
        ("md_member_errors", "sde1", 0),
    ]


def test_what_an_array_does_not_say_is_absent() -> None:
    array = MdArray("md9", "", "inactive", None, None, None, "", None, None, 99, None, ())
    assert plain(metrics.md_samples(MdReading((array,)))) == [("md_info", "md9", "", "inactive", 1)]


def test_a_pools_devices() -> None:
    status = PoolStatus("tank", "ONLINE", (Vdev("sda", "ONLINE", 1, 2, 3), Vdev("spares/sdb", "AVAIL", *[None] * 3)), 7)
    assert plain(metrics.zfs_samples(ZfsReading({"tank": "DEGRADED"}, None), (status,))) == [
        ("zfs_status_available", 1),
        ("zfs_pool_info", "tank", "DEGRADED", 1),
        ("zfs_pool_healthy", "tank", 0),
        ("zfs_pool_data_errors", "tank", 7),
        ("zfs_vdev_healthy", "tank", "sda", 1),
        ("zfs_vdev_errors_total", "tank", "sda", "read", 1),
        ("zfs_vdev_errors_total", "tank", "sda", "write", 2),
        ("zfs_vdev_errors_total", "tank", "sda", "checksum", 3),
        ("zfs_vdev_healthy", "tank", "spares/sdb", 1),
    ]


def test_a_module_that_tells_no_state_leaves_it_to_the_tool() -> None:
    status = PoolStatus("tank", "ONLINE", (), None)
    assert plain(metrics.zfs_samples(ZfsReading({"tank": "", "old": ""}, None), (status,))) == [
        ("zfs_status_available", 1),
        ("zfs_pool_info", "tank", "ONLINE", 1),
        ("zfs_pool_healthy", "tank", 1),
    ]


def test_a_tool_that_does_not_answer_leaves_the_pools_state() -> None:
    assert plain(metrics.zfs_samples(ZfsReading({"tank": "SUSPENDED"}, None), None)) == [
        ("zfs_status_available", 0),
        ("zfs_pool_info", "tank", "SUSPENDED", 1),
        ("zfs_pool_healthy", "tank", 0),
    ]


def test_a_pool_that_has_left_since_the_tool_was_asked_is_gone() -> None:
    assert plain(metrics.zfs_samples(NO_ZFS, (PoolStatus("tank", "ONLINE", (), 0),))) == []


def test_the_cache() -> None:
    assert plain(metrics.zfs_samples(ZfsReading({}, Arc(9, 1, None, 4096)), ())) == [
        ("zfs_arc_hits_total", 9),
        ("zfs_arc_misses_total", 1),
        ("zfs_arc_max_bytes", 4096),
    ]


def test_a_disk_with_paths() -> None:
    assert plain(metrics.multipath_samples(read_multipath(NODE)), "dm-0") == [
        ("multipath_info", "mpatha", 1),
        ("multipath_paths", 2),
        ("multipath_usable_paths", 1),
        ("multipath_lost_paths", 1),
        ("multipath_path_info", "sdp", "running", "", "1:0:0:2", 1),
        ("multipath_path_info", "sdq", "transport-offline", "", "2:0:0:2", 1),
    ]


def collected(roots: Roots, *, refresh: bool) -> tuple[set[str], list[tuple[str, str]]]:
    """The names that the registry's collector gives of this host, and what it leaves out."""
    given = parts(roots, silent_network())
    for job in given.storage.jobs() if refresh else ():
        job.run(threading.Event())
    config = Config()
    book = load_book(config.baseline, where="test", storage=Path("/nowhere"), host="h", targets=())
    skipped: list[tuple[str, str]] = []
    reading = metrics.COLLECTOR.read(
        configured(given, config, book), lambda item, reason: skipped.append((item, reason))
    )
    names = {spec.name for spec, _, _ in metrics.COLLECTOR.samples(reading)}
    return {name.split("_")[1] for name in names}, skipped


def test_a_host_with_none_of_it_is_a_success() -> None:
    assert collected(Roots.under(Path("/nowhere")), refresh=True) == (set(), [])


def test_before_the_first_look_there_is_nothing() -> None:
    assert collected(NODE, refresh=False) == (set(), [])


def test_every_kind() -> None:
    assert collected(NODE, refresh=True) == ({"md", "zfs", "multipath"}, [])


def test_one_kind_that_fails_does_not_hide_the_others(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path, symlinks=True, dirs_exist_ok=True)
    (tmp_path / "proc/spl/kstat/zfs/arcstats").write_text("garbage\n")
    (tmp_path / "sys/block/md0/md/raid_disks").write_text("many\n")
    families, skipped = collected(Roots.under(tmp_path), refresh=True)
    assert families == {"md", "multipath"}
    assert skipped == [("md0", "malformed"), ("ZFS pools", "unreadable")]


def test_each_part_has_a_job_of_its_own_and_stopping_ends_the_tool() -> None:
    class Tool(ProcessRunner):
        ended = False

        def stop(self) -> None:
            self.ended = True
            super().stop()

    tool = Tool({})
    jobs = StorageWatch(NODE, zpool=tool).jobs()
    assert {job.name for job in jobs} >= {"md arrays", "ZFS pools", "zpool status", "multipath disks"}
    for job in jobs:
        job.cancel()
    assert tool.ended
