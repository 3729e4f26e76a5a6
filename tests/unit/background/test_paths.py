"""A multipath disk that loses a path stays one, and shows the path as gone for a week."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from plumbline.background.paths import MOST_GONE, PathMemory, remember
from plumbline.background.presence import FORGET_AFTER_S
from plumbline.checks.array import ArrayFacts, path_lost
from plumbline.checks.model import Severity
from plumbline.core.roots import Roots
from plumbline.probes.run.state import PathRecord, StateStore
from plumbline.sources.disk.multipath import DiskPath, MultipathDisk

FIXTURES = Path(__file__).parents[2] / "fixtures"


class Host:
    """The arrays' fixture, with a local NVMe drive of two controllers, from which to take paths away."""

    def __init__(self, path: Path) -> None:
        self.path = Path(shutil.copytree(FIXTURES / "arrays-storage-node", path / "node", symlinks=True))
        self.storage, self.now = path / "state", 1_700_000_000.0
        (self.subsystem / "nvme8n1").mkdir(parents=True)
        (self.subsystem / "nvme8n1/wwid").write_text("eui.0025385b01a1b2c3\n")
        for number in (8, 9):
            self.plug(number)
        self.store = StateStore(self.storage)
        self.store.open()

    @property
    def subsystem(self) -> Path:
        return self.path / "sys/class/nvme-subsystem/nvme-subsys8"

    def plug(self, number: int) -> None:
        controller = self.subsystem / f"nvme{number}"
        (controller / f"nvme8c{number}n1").mkdir(parents=True)
        for name, text in (("state", "live"), ("transport", "pcie"), ("address", f"0000:0{number}:00.0")):
            (controller / name).write_text(f"{text}\n")

    def pull(self, number: int) -> None:
        shutil.rmtree(self.subsystem / f"nvme{number}")

    def restart(self) -> None:
        self.store.close()
        self.store = StateStore(self.storage)
        self.store.open()

    def look(self, after_s: float = 0.0) -> dict[str, MultipathDisk]:
        self.now += after_s
        memory = PathMemory(self.store, wall=lambda: self.now)
        return {disk.device: disk for disk in memory.read(Roots.under(self.path))}

    def states(self, device: str = "nvme8n1", *, after_s: float = 0.0) -> list[str]:
        disk = self.look(after_s).get(device)
        return [] if disk is None else [f"{path.name} {path.state}" for path in disk.paths]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_an_nvme_drive_that_loses_one_of_two_controllers_stays_multipath(host: Host) -> None:
    assert host.states() == ["nvme8c8n1 live", "nvme8c9n1 live"]
    host.pull(9)
    assert host.states(after_s=15) == ["nvme8c8n1 live", "nvme8c9n1 gone"]
    disk = host.look()["nvme8n1"]
    assert (disk.usable, len(disk.paths)) == (1, 2)
    (verdict,) = path_lost.judge(ArrayFacts(multipaths=(disk,)))
    assert (verdict.actual, verdict.severity) == ("1 of 2 usable; nvme8c9n1 gone (0000:09:00.0)", Severity.WARNING)


def test_a_deleted_path_of_device_mapper_is_lost(host: Host) -> None:
    host.look()
    (host.path / "sys/block/dm-1/slaves").rename(host.path / "before")
    left, *lost = sorted(path.name for path in (host.path / "before").iterdir())
    (host.path / "sys/block/dm-1/slaves").mkdir()
    (host.path / "before" / left).rename(host.path / "sys/block/dm-1/slaves" / left)
    assert host.states("dm-1", after_s=15) == [f"{left} running", *(f"{name} gone" for name in lost)]


def test_a_gone_path_is_known_after_a_restart_and_under_another_name_of_the_disk(host: Host) -> None:
    host.look()
    host.pull(9)
    host.restart()
    (host.subsystem / "nvme8n1").rename(host.subsystem / "nvme3n1")
    assert host.states("nvme3n1") == ["nvme8c8n1 live", "nvme8c9n1 gone"]


def test_it_is_forgotten_after_a_week(host: Host) -> None:
    host.look()
    host.pull(9)
    assert host.states(after_s=15) != []
    assert host.states(after_s=FORGET_AFTER_S) != []
    assert host.states(after_s=1) == ["nvme8c8n1 live"]  # the last look that takes it for a multipath disk
    assert host.states(after_s=1) == []


def test_a_path_that_comes_back_is_not_gone(host: Host) -> None:
    host.look()
    host.pull(9)
    host.look(15)
    host.plug(9)
    assert host.states(after_s=15) == ["nvme8c8n1 live", "nvme8c9n1 live"]


def test_another_path_replaces_the_one_that_is_gone(host: Host) -> None:
    host.look()
    host.pull(9)
    host.look(15)
    host.plug(7)
    assert host.states(after_s=15) == ["nvme8c7n1 live", "nvme8c8n1 live"]


def test_a_drive_that_never_had_two_controllers_is_none(host: Host) -> None:
    host.pull(9)
    assert host.states() == host.states(after_s=15) == []


def test_a_path_with_an_address_is_known_by_it() -> None:
    before = (PathRecord("w", "sdb", "", "1:0:0:2"), PathRecord("w", "sdc", "", "2:0:0:2"))
    found = MultipathDisk("dm-0", "mpatha", (DiskPath("sdb", "running", "", "2:0:0:2"),), "w")
    assert remember(before, (found,), 5.0) == (
        PathRecord("w", "sdb", "", "2:0:0:2"),
        PathRecord("w", "sdb", "", "1:0:0:2", 5.0),
    )


def test_it_is_written_only_when_something_changes(host: Host) -> None:
    host.look()
    file = host.storage / "state.json"
    before = file.stat().st_ino
    host.look(3600)
    assert file.stat().st_ino == before


def test_volumes_that_come_and_go_do_not_fill_the_state() -> None:
    gone = [PathRecord(f"volume-{number}", "sda", "", "", float(number)) for number in range(MOST_GONE + 5)]
    assert remember(gone, (), 2000.0) == tuple(gone[5:])
