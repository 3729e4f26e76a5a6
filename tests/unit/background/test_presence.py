"""A disk that leaves stays visible for a week, and nothing else does."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.background.presence import FORGET_AFTER_S, SAVE_EVERY_S, DiskPresence, remember
from plumbline.core.roots import Roots
from plumbline.core.wall_clock import WallClock
from plumbline.errors import Unavailable
from plumbline.probes.run.state import DiskRecord, StateStore
from plumbline.sources.disk.block import BlockDevice, read_block_devices

FIXTURES = Path(__file__).parents[2] / "fixtures"
SERIAL = "ZC1EXAMPLE0000C8370001"


class Host:
    """A storage node to pull disks from."""

    def __init__(self, path: Path) -> None:
        self.path = Path(shutil.copytree(FIXTURES / "disks-storage-node", path / "node", symlinks=True))
        self.roots = Roots.under(self.path)
        self.now, self.set_s = 1_700_000_000.0, 0.0
        self.excluded: set[str] = set()
        self.facts: Iterable[BlockDevice] | None = None
        self.storage = path / "state"
        self.start()

    def start(self) -> None:
        """A new daemon."""
        self.store = StateStore(self.storage, WallClock(lambda: self.now, lambda: self.now - self.set_s))
        self.store.open()
        self.presence = DiskPresence(
            self.roots,
            facts=self.read,
            keep=lambda name: name not in self.excluded,
            store=self.store,
            wall=lambda: self.now,
        )

    def restart(self) -> None:
        self.store.close()
        self.start()

    def read(self) -> Iterable[BlockDevice]:
        return read_block_devices(self.roots, on_skip=lambda *_: None) if self.facts is None else self.facts

    def look(self, after_s: float = 0.0) -> dict[tuple[str, str], tuple[bool, float]]:
        self.now += after_s
        self.presence.look()
        return {(each.device, each.serial): (each.present, each.last_seen_ts) for each in self.presence.seen}

    def set_clock(self, by_s: float) -> None:
        self.now += by_s
        self.set_s += by_s

    def pull(self, name: str) -> None:
        (self.path / "sys/block" / name).rename(self.path / f"{name}.pulled")

    def push(self, name: str) -> None:
        (self.path / f"{name}.pulled").rename(self.path / "sys/block" / name)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_real_disks_are_present(host: Host) -> None:
    seen = host.look()
    assert seen["sdb", SERIAL] == (True, host.now)
    assert {name for name, _ in seen} == {
        "cciss/c0d0", "mmcblk0", "nvme0n1", "nvme1n1", "sda", "sdb", "sdc",
    }  # fmt: skip


def test_a_disk_that_leaves_stays_for_a_week_over_restarts(host: Host) -> None:
    host.look()
    left = host.now
    host.pull("sdb")
    assert host.look(15)["sdb", SERIAL] == (False, left)
    host.restart()
    assert host.look(FORGET_AFTER_S - 100)["sdb", SERIAL] == (False, left)
    assert ("sdb", SERIAL) not in host.look(100)
    host.restart()
    assert ("sdb", SERIAL) not in host.look()


def test_a_disk_that_comes_back_is_present_again(host: Host) -> None:
    host.look()
    host.pull("sdb")
    host.look(60)
    host.push("sdb")
    assert host.look(60)["sdb", SERIAL] == (True, host.now)


def test_another_disk_in_its_place_does_not_hide_that_it_is_gone(host: Host) -> None:
    host.look()
    left = host.now
    host.facts = [replace(each, serial="NEW") if each.name == "sdb" else each for each in host.read()]
    seen = host.look(60)
    assert seen["sdb", SERIAL] == (False, left)
    assert seen["sdb", "NEW"] == (True, host.now)


def test_facts_that_hang_take_no_disk_away(host: Host) -> None:
    """The reading of the facts stops; the old ones stay, or, after a start, there are none."""
    host.look()
    host.facts = list(host.read())
    assert host.look(60)["sdb", SERIAL] == (True, host.now)
    host.restart()

    def none() -> Iterable[BlockDevice]:
        raise Unavailable("the disks have not answered yet")

    host.read = none  # type: ignore[method-assign]
    host.presence = DiskPresence(host.roots, facts=none, keep=lambda _: True, store=host.store, wall=lambda: host.now)
    assert host.look(60)["sdb", SERIAL] == (True, host.now)


def test_what_is_excluded_is_not_missed(host: Host) -> None:
    host.look()
    host.excluded = {"sdb"}
    assert ("sdb", SERIAL) not in host.look(60)


def test_a_disk_under_a_new_name_is_not_gone(host: Host) -> None:
    """After a restart names may be given in another order."""
    host.look()
    host.facts = [replace(each, name={"sda": "sdb", "sdb": "sda"}.get(each.name, each.name)) for each in host.read()]
    host.restart()
    seen = host.look(60)
    assert {key for key in seen if key[0] in ("sda", "sdb")} == {("sda", SERIAL), ("sdb", "S4EXAMPLE00001")}
    assert all(present for present, _ in seen.values())


def test_one_of_two_paths_to_a_disk_is_missed() -> None:
    records = {(name, "S"): DiskRecord(name, "S", first_seen=0.0, last_seen=100.0) for name in ("sdb", "sdq")}
    known = remember(records, {("sdb", "S")}, 115.0)
    assert set(known) == {("sdb", "S"), ("sdq", "S")}
    assert known["sdq", "S"].last_seen == 100.0


def test_a_serial_number_that_is_told_late_leaves_nothing_behind() -> None:
    records = {("sdb", ""): DiskRecord("sdb", "", 0.0, 100.0)}
    assert set(remember(records, {("sdb", "S")}, 115.0)) == {("sdb", "S")}
    assert set(remember(records, {("sdc", "S")}, 115.0)) == {("sdc", "S"), ("sdb", "")}


def test_a_new_disk_in_the_slot_of_one_that_is_gone_takes_its_place() -> None:
    """Whatever name the kernel gives it: something may still hold the old one."""
    slots = {"sdb": "Slot 03", "sdc": "Slot 04", "sdq": "Slot 03", "sdr": "Slot 05", "sds": ""}
    before = remember({}, {("sdb", "OLD"), ("sdc", "STAYS")}, 100.0, slot=slots.__getitem__)
    gone = remember(before, {("sdc", "STAYS")}, 115.0)
    elsewhere = {("sdc", "STAYS"), ("sdr", "NEW"), ("sds", "NOWHERE")}
    assert ("sdb", "OLD") in remember(gone, elsewhere, 130.0, slot=slots.__getitem__)
    assert set(remember(gone, {("sdc", "STAYS"), ("sdq", "NEW")}, 130.0, slot=slots.__getitem__)) == {
        ("sdc", "STAYS"),
        ("sdq", "NEW"),
    }


def test_the_slot_is_read_when_a_disk_is_first_seen(host: Host) -> None:
    enclosure = host.path / "sys/class/enclosure/0:0:9:0"
    (enclosure / "Slot 03").mkdir(parents=True)
    (enclosure / "id").write_text("0x500304801f0abf7f\n")
    (host.path / "sys/block/sdb/device/enclosure_device:Slot 03").symlink_to(enclosure / "Slot 03")
    host.look()
    assert {disk.serial: disk.slot for disk in host.store.disks if disk.device == "sdb"} == {
        SERIAL: "Slot 03 of enclosure 0x500304801f0abf7f"
    }


def test_it_is_written_at_changes_and_once_an_hour(host: Host) -> None:
    file = host.storage / "state.json"
    host.look()
    written = file.read_bytes()
    host.look(60)
    assert file.read_bytes() == written
    host.look(SAVE_EVERY_S)
    assert file.read_bytes() != written
    host.pull("sdb")
    written = file.read_bytes()
    host.look(1)
    host.pull("sdc")
    host.look(1)
    assert file.read_bytes() == written  # nothing new came; they were here a second ago
    host.now -= 10 * SAVE_EVERY_S  # a clock that is set back
    host.look()
    assert file.read_bytes() != written


def test_a_command_beside_the_daemon_writes_nothing(tmp_path: Path) -> None:
    store = StateStore(tmp_path / "state")
    store.put_disks([DiskRecord("sda", "S", 1.0, 2.0)])
    assert store.disks == (DiskRecord("sda", "S", 1.0, 2.0),)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("set_s", [3600.0, -3600.0, 400 * 86400.0, -400 * 86400.0])
def test_a_clock_that_is_set_changes_no_disks_age(tmp_path: Path, set_s: float) -> None:
    """Neither forgotten at once nor shown for ever."""
    host = Host(tmp_path)
    host.look()
    host.pull("sda")
    seen = host.look(3 * 86400.0)
    key = next(key for key in seen if key[0] == "sda")
    present, last_seen = seen[key]
    assert not present
    host.set_clock(set_s)
    assert host.look()[key] == (False, last_seen + set_s)
    host.set_clock(-set_s)
    assert host.look()[key] == (False, last_seen)
    host.set_clock(set_s)
    assert key in host.look(FORGET_AFTER_S - 3 * 86400.0 - 60.0)
    assert key not in host.look(120.0)


def test_a_disk_last_seen_in_the_future_is_forgotten_after_a_week(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.look()
    host.pull("sda")
    host.look(400 * 86400.0)
    host.pull("sdb")
    host.look(60.0)
    host.now -= 400 * 86400.0  # the clock was wrong, and is right at the next start
    host.restart()
    assert {present for (name, _), (present, _) in host.look().items() if name == "sdb"} == {False}
    assert not any(name == "sdb" for name, _ in host.look(FORGET_AFTER_S + 60.0))
