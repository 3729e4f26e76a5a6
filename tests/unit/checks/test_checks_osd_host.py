"""What OSDs stand on: a disk or a controller's volume, targets within the memory, a database that is large enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.checks.model import Finding, Severity
from plumbline.checks.osd_host import OsdHost, database_share, memory_target, raid_volume
from plumbline.core.roots import Roots
from plumbline.sources.ceph.osd_perf import Database
from plumbline.sources.kernel.meminfo import parse_total, read_total
from support.disk_facts import HDD, SSD, but

GIB = 1 << 30


def volume(model: str, transport: str = "scsi", osds: frozenset[str] = frozenset({"osd.3"})) -> list[Finding]:
    disk = but(HDD, name="sdb", model=model, transport=transport, osds=osds)
    return list(raid_volume.findings(OsdHost((disk,))))


@pytest.mark.parametrize(
    "model", ["PERC H730P Mini", "MR9361-8i", "LOGICAL VOLUME", "ServeRAID M5210", "LogicalDrv 0", "SMC3108"]
)
def test_a_controllers_volume(model: str) -> None:
    (finding,) = volume(model)
    assert (finding.subject, finding.actual, finding.met) == ("sdb", f"a volume, {model}", False)
    assert finding.fix is not None
    assert finding.fix.now == "lsblk --scsi /dev/sdb"
    assert finding.why.endswith("osd.3 is on it.")


def test_a_disk_that_is_passed_through_is_not_judged() -> None:
    assert volume("ST12000NM0027") == []


def test_disks_of_their_own_and_disks_without_osds() -> None:
    (finding,) = volume("ST12000NM0027", "sas")
    assert (finding.actual, finding.met) == ("a disk", True)
    assert volume("PERC H730P Mini", osds=frozenset()) == []
    virtual = but(SSD, transport="virtio", device_class="virtual", osds=frozenset({"osd.3"}))
    assert list(raid_volume.findings(OsdHost((virtual,)))) == []


@pytest.mark.parametrize(
    ("memory_gib", "met", "severity"),
    [
        (50, True, Severity.WARNING),
        (49, False, Severity.INFO),
        (40, False, Severity.INFO),
        (39, False, Severity.WARNING),
    ],
)
def test_targets_within_the_memory(memory_gib: int, met: bool, severity: Severity) -> None:
    """Ten OSDs of 4 GiB: 80 % of 50 GiB."""
    host = OsdHost(targets_bytes={f"osd.{osd}": 4 * GIB for osd in range(10)}, memory_bytes=memory_gib * GIB)
    (finding,) = memory_target.findings(host)
    assert (finding.subject, finding.met, finding.severity) == ("memory", met, severity)
    assert finding.actual.startswith("10 OSDs with 40 GiB of ")


def test_a_target_below_two_gib() -> None:
    host = OsdHost(targets_bytes={"osd.1": 2 * GIB, "osd.2": 2 * GIB - 1}, memory_bytes=None)
    (finding,) = memory_target.findings(host)
    assert (finding.subject, finding.met, finding.severity) == ("osd.2", False, Severity.WARNING)


@pytest.mark.parametrize(("size", "met", "actual"), [(120, True, "1.00%"), (119, False, "0.99%")])
def test_a_databases_share(size: int, met: bool, actual: str) -> None:
    database = Database(size_bytes=size * GIB, data_bytes=12_000 * GIB)
    (finding,) = database_share.findings(OsdHost(databases={"osd.1": database}))
    assert (finding.subject, finding.met) == ("osd.1", met)
    assert finding.actual == f"{actual} ({size} GiB for 11.7 TiB)"


def test_a_database_beside_the_data_has_no_share() -> None:
    assert list(database_share.findings(OsdHost(databases={"osd.1": Database()}))) == []


def test_the_memory_of_a_host(tmp_path: Path) -> None:
    assert parse_total("MemTotal:       263833164 kB\nMemFree: 1 kB\n") == 270165159936
    assert parse_total("MemTotal: many\n") is None
    assert read_total(Roots.under(tmp_path)) is None
