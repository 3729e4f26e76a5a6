"""Arrays and paths judged: by facts made up, and a whole host from its trees to its findings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.checks.array import (
    CHECKS,
    ArrayFacts,
    ZfsPool,
    array_facts,
    degraded,
    mismatch,
    nvme_policy,
    path_lost,
    pool_errors,
    pool_state,
)
from plumbline.checks.model import Check, Finding, Keep, Severity, judge
from plumbline.checks.run import Judge
from plumbline.core.roots import Roots
from plumbline.metrics.snapshot import Readings
from plumbline.sources.arrays import Arrays
from plumbline.sources.disk.md import MdArray, MdMember, read_md
from plumbline.sources.disk.multipath import DiskPath, MultipathDisk, read_multipath
from plumbline.sources.disk.zfs import Vdev, ZfsReading, parse_text, read_zfs
from support.arrays import array as raid_of

FIXTURE = Path(__file__).parents[2] / "fixtures" / "arrays-storage-node"
RAID = raid_of(
    "md0", "raid5", "active", disks=4, degraded_disks=0, redundant_disks=1, sync_action="idle", mismatch_sectors=0
)
POOL = ZfsPool("tank", "ONLINE", data_errors=0, errors=(), unhealthy=())
DISK = MultipathDisk(
    "dm-0", "mpatha", (DiskPath("sda", "running", "", "1:0:0:2"), DiskPath("sdb", "running", "", "2:0:0:2"))
)


def only(check: Check[ArrayFacts], *of: MdArray | ZfsPool | MultipathDisk) -> Finding | None:
    """The one finding about these, or that there is none."""
    facts = ArrayFacts(
        tuple(each for each in of if isinstance(each, MdArray)),
        tuple(each for each in of if isinstance(each, ZfsPool)),
        tuple(each for each in of if isinstance(each, MultipathDisk)),
    )
    found = list(check.findings(facts))
    assert len(found) <= 1
    return found[0] if found else None


def said(check: Check[ArrayFacts], of: MdArray | ZfsPool | MultipathDisk) -> tuple[Severity, str, str]:
    """How bad, what is, and the command."""
    found = only(check, of)
    assert found is not None
    assert not found.met
    assert found.fix is not None
    return found.severity, found.actual, found.fix.now


# --- md


def test_a_whole_array() -> None:
    found = only(degraded, RAID)
    assert found is not None
    assert (found.met, found.actual) == (True, "all 4 disks in place")


@pytest.mark.parametrize(
    ("level", "redundant", "missing", "severity"),
    [
        ("raid5", 1, 1, Severity.CRITICAL),
        ("raid6", 2, 1, Severity.WARNING),
        ("raid6", 2, 2, Severity.CRITICAL),
        ("raid1", 1, 1, Severity.CRITICAL),
        ("raid1", 2, 1, Severity.WARNING),
        ("raid10", 1, 1, Severity.CRITICAL),
        ("raid10", 1, 2, Severity.CRITICAL),  # of different pairs: it still runs
        ("raid10", None, 1, Severity.WARNING),
    ],
)
def test_how_bad_a_missing_disk_is(level: str, redundant: int | None, missing: int, severity: Severity) -> None:
    raid = replace(RAID, level=level, redundant_disks=redundant, degraded_disks=missing)
    disks = "1 disk" if missing == 1 else "2 disks"
    assert said(degraded, raid) == (severity, f"{level}, {disks} missing", "mdadm --detail /dev/md0")


def test_a_faulty_member_can_be_put_back() -> None:
    raid = replace(
        RAID,
        degraded_disks=1,
        members=(MdMember("sdb1", "in_sync", "0", None), MdMember("cciss!c0d1", "faulty", "", None)),
    )
    assert said(degraded, raid) == (
        Severity.CRITICAL,
        "raid5, 1 disk missing (faulty: cciss!c0d1)",
        "mdadm /dev/md0 --remove /dev/cciss/c0d1 && mdadm /dev/md0 --re-add /dev/cciss/c0d1",
    )


def test_a_rebuild_has_to_be_waited_for() -> None:
    raid = replace(RAID, degraded_disks=1, sync_action="recover", sync_done_sectors=1, sync_total_sectors=4)
    assert said(degraded, raid) == (
        Severity.CRITICAL,
        "raid5, 1 disk missing; recover, 25.0% done",
        "cat /proc/mdstat",
    )


@pytest.mark.parametrize("state", ["inactive", "broken"])
def test_an_array_that_does_not_run(state: str) -> None:
    raid = raid_of(
        "md5", "", state, members=(MdMember("sda", "spare", "none", None), MdMember("sdb", "spare", "none", None))
    )
    assert said(degraded, raid) == (Severity.CRITICAL, f"{state}, with 2 disks present", "mdadm --detail /dev/md5")


@pytest.mark.parametrize(
    "raid",
    [
        raid_of("md127", "container", "inactive"),
        raid_of("md0", "", "clear"),
        raid_of("md2", "raid0", "clean", disks=2, redundant_disks=0),
    ],
)
def test_what_has_no_redundancy_to_lose_is_left_in_peace(raid: MdArray) -> None:
    assert only(degraded, raid) is None
    assert only(mismatch, raid) is None


def test_mismatches_of_parity_and_of_mirrors() -> None:
    repair = "echo repair > /sys/block/md0/md/sync_action"
    parity = replace(RAID, mismatch_sectors=8)
    mirror = replace(RAID, level="raid1", mismatch_sectors=256)
    assert said(mismatch, parity) == (Severity.WARNING, "raid5, 8 sectors disagree", repair)
    assert said(mismatch, mirror) == (Severity.INFO, "raid1, 256 sectors disagree", repair)
    found = only(mismatch, mirror)
    assert found is not None
    assert "swap" in found.why
    met = only(mismatch, RAID)
    assert met is not None
    assert met.met


# --- ZFS


@pytest.mark.parametrize(
    ("state", "severity", "command"),
    [
        ("DEGRADED", Severity.WARNING, "zpool status -v tank"),
        ("FAULTED", Severity.CRITICAL, "zpool status -v tank"),
        ("UNAVAIL", Severity.CRITICAL, "zpool status -v tank"),
        ("SUSPENDED", Severity.CRITICAL, "zpool clear tank"),
    ],
)
def test_a_pools_state(state: str, severity: Severity, command: str) -> None:
    assert said(pool_state, ZfsPool("tank", state)) == (severity, state, command)


def test_a_pool_that_is_online_with_a_cache_that_is_not() -> None:
    pool = replace(POOL, unhealthy=("cache/nvme0n1",))
    assert said(pool_state, pool) == (Severity.WARNING, "ONLINE, not working: cache/nvme0n1", "zpool status -v tank")


def test_a_sound_pool_and_one_whose_tool_is_not_there() -> None:
    for check in (pool_state, pool_errors):
        found = only(check, POOL)
        assert found is not None
        assert found.met
    unasked = only(pool_state, ZfsPool("tank", "ONLINE"))
    assert unasked is not None
    assert unasked.met
    assert only(pool_errors, ZfsPool("tank", "ONLINE")) is None


def test_errors() -> None:
    pool = replace(POOL, errors=(Vdev("raidz1-0/sdb", "ONLINE", 3, 0, 1200),))
    status = "zpool status -v tank"
    assert said(pool_errors, pool) == (Severity.WARNING, "raidz1-0/sdb (3 read, 1,200 checksum)", status)
    assert said(pool_errors, replace(POOL, data_errors=1)) == (Severity.CRITICAL, "1 damaged object", status)
    both = replace(pool, data_errors=2)
    assert said(pool_errors, both)[1] == "2 damaged objects; raidz1-0/sdb (3 read, 1,200 checksum)"


# --- paths


def test_a_lost_path() -> None:
    lost = replace(DISK, paths=(DISK.paths[0], DiskPath("sdb", "offline", "", "2:0:0:2")))
    actual = "1 of 2 usable; sdb offline (2:0:0:2)"
    assert said(path_lost, lost) == (Severity.WARNING, actual, "multipath -ll mpatha")


def test_no_path_left() -> None:
    paths = (DiskPath("nvme1c1n1", "connecting", "", ""), DiskPath("nvme1c2n1", "inaccessible", "", ""))
    gone = MultipathDisk("nvme1n1", "nvme-subsys1", paths)
    actual = "0 of 2 usable; nvme1c1n1 connecting"
    assert said(path_lost, gone) == (Severity.CRITICAL, actual, "nvme list-subsys /dev/nvme1n1")
    assert said(path_lost, MultipathDisk("dm-0", "mpatha", ())) == (
        Severity.CRITICAL,
        "0 of 0 usable",
        "multipath -ll mpatha",
    )


def test_a_path_whose_state_is_unreadable_is_not_lost() -> None:
    unreadable, offline = DiskPath("sda", "unknown", "", "1:0:0:2"), DiskPath("sdb", "offline", "", "2:0:0:2")
    assert only(path_lost, replace(DISK, paths=(unreadable, unreadable))) is None
    assert only(path_lost, replace(DISK, paths=(DISK.paths[0], unreadable))) is None
    actual = "0 of 2 usable; sdb offline (2:0:0:2); 1 with an unreadable state"
    assert said(path_lost, replace(DISK, paths=(unreadable, offline)))[:2] == (Severity.WARNING, actual)


def test_a_path_that_was_taken_away_leaves_one_alone() -> None:
    alone = replace(DISK, paths=DISK.paths[:1])
    assert said(path_lost, alone) == (Severity.WARNING, "1 path", "multipath -ll mpatha")
    portal = MultipathDisk("nvme1n1", "nvme-subsys1", (DiskPath("nvme1c1n1", "live", "", ""),))
    assert said(path_lost, portal) == (Severity.INFO, "1 path", "nvme list-subsys /dev/nvme1n1")
    whole = only(path_lost, DISK)
    assert whole is not None
    assert (whole.met, whole.actual) == (True, "all 2 paths working")


def test_a_passive_side_is_no_lost_path() -> None:
    paths = (DiskPath("nvme1c1n1", "optimized", "", ""), DiskPath("nvme1c2n1", "inaccessible", "", ""))
    found = only(path_lost, MultipathDisk("nvme1n1", "nvme-subsys1", paths))
    assert found is not None
    assert found.met


# --- all of them


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_every_check_says_all_it_has_to(check: Check[ArrayFacts]) -> None:
    assert re.fullmatch(r"array\.[a-z]+(-[a-z]+)*", check.id)
    for text in (check.advice, check.applies, check.why):
        assert text.endswith(".")
    assert re.search(r"Documentation/|\([1-8]\)", check.source)
    assert check.fix


def fixture_host() -> Readings:
    roots = Roots.under(FIXTURE)
    pools = parse_text((FIXTURE / "zpool_status.txt").read_text())
    return Readings.of(Arrays(read_md(roots), read_zfs(roots), pools, read_multipath(roots)))


def test_a_whole_host_from_its_trees_to_its_findings() -> None:
    found = Judge().look(fixture_host(), 0.0)
    assert [(each.severity.value, each.check, each.subject, each.actual) for each in found if not each.met] == [
        ("critical", "array.md-degraded", "md0", "raid5, 1 disk missing (faulty: sdd1); recover, 25.0% done"),
        ("critical", "array.md-degraded", "md5", "inactive, with 2 disks present"),
        (
            "critical",
            "array.path-lost",
            "nvme1n2",
            "0 of 2 usable; nvme1c2n2 connecting (traddr=192.0.2.2,trsvcid=4420)",
        ),
        (
            "critical",
            "array.zfs-errors",
            "tank",
            "2 damaged objects; raidz2-0/sdc (3 read, 12 checksum), raidz2-0/spare-3/sde (11 read, 253 write)",
        ),
        ("critical", "array.zfs-pool", "gone", "SUSPENDED"),
        ("warning", "array.path-lost", "dm-0", "1 of 2 usable; sdq transport-offline (2:0:0:2)"),
        (
            "warning",
            "array.path-lost",
            "nvme1n1",
            "1 of 2 usable; nvme1c2n1 connecting (traddr=192.0.2.2,trsvcid=4420)",
        ),
        (
            "warning",
            "array.zfs-pool",
            "tank",
            "DEGRADED, not working: raidz2-0/replacing-2/127286639182292558, raidz2-0/spare-3/sde, cache/nvme2n1",
        ),
        ("info", "array.md-mismatch", "md1", "raid1, 256 sectors disagree"),
    ]
    assert {(each.check, each.subject) for each in found if each.met} >= {
        ("array.md-degraded", "md126"),
        ("array.md-degraded", "md3"),
        ("array.zfs-pool", "scratch"),
        ("array.zfs-errors", "scratch"),
        ("array.path-lost", "dm-1"),
    }


def test_facts_of_a_host_without_any_of_it() -> None:
    assert array_facts(Readings()) == ArrayFacts()
    assert judge(CHECKS, ArrayFacts()) == ()


def test_a_group_counts_where_no_member_of_it_says_more() -> None:
    """OpenZFS issue 8480: checksum errors of a raidz whose disks have none."""
    text = (
        "  pool: tank\nconfig:\n\n\ttank  ONLINE  0  0  21\n\t  raidz1-0  ONLINE  0  0  4\n\t    sda  ONLINE  0  0  0\n"
        "errors: 4 data errors, use '-v' for a list\n"
    )

    arrays = Arrays(None, ZfsReading({"tank": "ONLINE"}, None), parse_text(text), None)
    (pool,) = array_facts(Readings.of(arrays)).pools
    assert pool.errors == (Vdev("raidz1-0", "ONLINE", 0, 0, 4),)


def fabric(policy: str, *states: str, transport: str = "tcp") -> MultipathDisk:
    paths = tuple(DiskPath(f"nvme1c{number}n1", state, transport, "") for number, state in enumerate(states))
    return MultipathDisk("nvme1n1", "nvme-subsys1", paths, policy=policy)


def test_numa_leaves_paths_unused() -> None:
    found = only(nvme_policy, fabric("numa", "optimized", "optimized"))
    assert found is not None
    assert (found.met, found.actual) == (False, "numa")
    assert found.fix is not None
    assert found.fix.now == "echo round-robin > /sys/class/nvme-subsystem/nvme-subsys1/iopolicy"
    assert found.fix.keep == Keep(
        "/etc/udev/rules.d/90-storage-nvme.rules",
        'ACTION=="add|change", SUBSYSTEM=="nvme-subsystem", ATTR{iopolicy}="round-robin"',
    )


@pytest.mark.parametrize("policy", ["round-robin", "queue-depth"])
def test_policies_that_use_all_paths(policy: str) -> None:
    found = only(nvme_policy, fabric(policy, "optimized", "optimized"))
    assert found is not None
    assert found.met


@pytest.mark.parametrize(
    "disk",
    [
        fabric("numa", "optimized", "inaccessible"),
        fabric("numa", "live", "live", transport="pcie"),
        fabric("", "optimized", "optimized"),
    ],
)
def test_a_policy_without_a_choice(disk: MultipathDisk) -> None:
    assert only(nvme_policy, disk) is None
