"""The check of shards: pinned to an earlier release's defaults, at this release's, and chosen by somebody."""

from __future__ import annotations

import pytest

from plumbline.checks.model import Finding
from plumbline.checks.run import Judge
from plumbline.metrics.snapshot import Readings
from plumbline.sources.ceph.osd_perf import SetOption
from plumbline.sources.ceph.osds import OsdsReading, OsdStore
from plumbline.sources.disk.block import DevicesReading
from support.disk_facts import HDD, SSD, but

SHARDS, THREADS = "osd_op_num_shards_hdd", "osd_op_num_threads_per_shard_hdd"
OLD = {SHARDS: SetOption("1", "5", "mon"), THREADS: SetOption("5", "1", "mon")}


def found(shards: dict[str, SetOption] | None, *, rotating: bool = True) -> list[Finding]:
    """What is said of osd.3 and osd.4, which share a disk; osd.9 is on none that is known."""
    disk = but(HDD if rotating else SSD, name="sda").block
    stores = tuple(OsdStore(daemon, shards=shards) for daemon in ("osd.3", "osd.4", "osd.9"))
    readings = Readings.of(DevicesReading((disk,), {"sda": "osd.3,osd.4"}), OsdsReading((), stores))
    return [each for each in Judge().look(readings, 1.0) if each.check == "osd.shards-of-an-earlier-release"]


def test_pinned_by_the_monitors() -> None:
    first, second = found(OLD)
    assert (first.subject, second.subject, first.met) == ("osd.3", "osd.4", False)
    assert first.actual == f"{SHARDS} = 5, {THREADS} = 1"
    assert first.expected == f"{SHARDS} = 1, {THREADS} = 5: this release's default"
    assert first.fix is not None
    assert first.fix.now == f"ceph config rm osd {SHARDS} && ceph config rm osd {THREADS}"


def test_one_of_the_two() -> None:
    first, _ = found({SHARDS: OLD[SHARDS], THREADS: SetOption("5", "4", "mon")})
    assert first.actual == f"{SHARDS} = 5"
    assert first.fix is not None
    assert first.fix.now == f"ceph config rm osd {SHARDS}"


def test_pinned_elsewhere() -> None:
    first, _ = found({SHARDS: SetOption("1", "5", "file"), THREADS: OLD[THREADS]})
    assert first.fix is not None
    assert first.fix.now == "ceph config show osd.3 | grep osd_op_num_"


def test_nothing_is_set() -> None:
    assert [(each.subject, each.met) for each in found({})] == [("osd.3", True), ("osd.4", True)]


@pytest.mark.parametrize(
    "shards",
    [
        None,  # another scheduler, or it did not answer
        {SHARDS: SetOption("1", "2", "mon")},
        {SHARDS: SetOption("5", "5", "mon"), THREADS: SetOption("1", "1", "mon")},  # the release's own
        OLD | {"osd_op_num_shards": SetOption("0", "2", "file")},
        OLD | {"osd_op_num_threads_per_shard": SetOption("0", "1", "file")},
    ],
)
def test_it_does_not_apply(shards: dict[str, SetOption] | None) -> None:
    assert found(shards) == []


def test_flash_has_other_options() -> None:
    assert found(OLD, rotating=False) == []
