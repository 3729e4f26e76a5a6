"""Disks asked in the background: what hangs, sleeps or leaves spoils it for nobody else."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plumbline.background.health import REMEMBER_S, DiskAsker, HealthWatch, controller_disks, is_queried
from plumbline.background.storage import StorageWatch
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.disk.block import BlockDevice
from plumbline.sources.disk.diskhealth import Answer, Asleep, DiskHealth, NoHealth, Reason
from support.filesystems import skip_without_root
from support.programs import need

GOOD = DiskHealth(smart_passed=True, temperature_celsius=30)
NEVER = threading.Event()


def disk(name: str, transport: str = "sata", device_class: str | None = "hdd", serial: str = "S") -> BlockDevice:
    return BlockDevice(name, 8, 0, 1 << 40, transport=transport, device_class=device_class, serial=serial)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    """What hung asks wait for; set at the end, so that no thread is left."""
    event = threading.Event()
    yield event
    event.set()


def test_disks_behind_a_controller_are_asked() -> None:
    """By the program itself: without such a controller it says so, under the disk's own name."""
    first, second = controller_disks({"/dev/bus/0": ("megaraid,8",), "/dev/sg0": ("cciss,0",)})
    assert (first.name, second.name) == ("bus/0:megaraid,8", "sg0:cciss,0")
    assert is_queried(first)
    skip_without_root("needs CAP_SYS_RAWIO")
    need("smartctl")
    ask = DiskAsker(Roots.under(Path("/")), os.environ)
    with pytest.raises(NoHealth, match=r"smartctl /dev/bus/0 megaraid,8: .*megaraid_disk_08"):
        ask(first)
    with pytest.raises(NoHealth, match=r"smartctl /dev/sg0 cciss,0: .*cciss_disk_00"):
        ask(second)


@pytest.mark.parametrize(
    "device",
    [
        disk("sda"),
        disk("sdaa", "sas"),
        disk("sdb", "scsi", "ssd"),
        disk("nvme10n1", "nvme", "nvme"),
    ],
)
def test_real_disks_are_asked(device: BlockDevice) -> None:
    assert is_queried(device)


@pytest.mark.parametrize(
    "device",
    [
        disk("vda", "virtio", "virtual"),
        disk("sda", "virtio", "virtual"),
        disk("sda", "sata", "virtual"),
        disk("loop0", "loop", None),
        disk("zram0", "zram", None),
        disk("md127", "md", "hdd"),
        disk("dm-0", "dm", "ssd"),
        disk("nvme1c1n1", "nvme", "nvme"),
        disk("sdc", "usb"),
        disk("sdd", "fc"),
        disk("sde", "iscsi"),
        disk("mmcblk0", "mmc", "ssd"),
        disk("rbd0", "rbd", None),
    ],
)
def test_all_else_is_not(device: BlockDevice) -> None:
    assert not is_queried(device)


def watch(
    devices: Callable[[], list[BlockDevice]],
    ask: Callable[[BlockDevice], Answer],
    clock: Clock | None = None,
    within_s: float = 20.0,
) -> HealthWatch:
    clock_ = clock or Clock()
    return HealthWatch(
        devices=devices, ask=ask, interval_s=lambda: 300.0, within_s=within_s, clock=clock_, wall=lambda: 5000.0
    )


def test_each_disk_is_asked_once_an_interval() -> None:
    clock, calls = Clock(), []
    health = watch(lambda: [disk("sda"), disk("sdb")], lambda device: calls.append(device.name) or GOOD, clock)
    for _ in range(3):
        health.refresh(NEVER)
        clock.now += 100
    assert calls == ["sda", "sdb"]
    health.refresh(NEVER)
    assert calls == ["sda", "sdb"] * 2
    assert [(state.device, state.available, state.last_success_at) for state in health.states] == [
        ("sda", True, 5000.0),
        ("sdb", True, 5000.0),
    ]


def test_a_chassis_of_60_with_one_asleep_and_one_hung(let_go: threading.Event) -> None:
    names = [f"sd{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(60)]
    under_way, most, calls = [0], [0], []

    def ask(device: BlockDevice) -> Answer:
        calls.append(device.name)
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        if device.name == names[7]:
            let_go.wait(600)
        under_way[0] -= 1
        return Asleep() if device.name == names[5] else GOOD

    interval_s = [300.0]
    health = HealthWatch(
        devices=lambda: [disk(name) for name in names], ask=ask, interval_s=lambda: interval_s[0], within_s=2
    )
    before = time.monotonic()
    health.refresh(NEVER)
    assert time.monotonic() - before < 60
    states = {state.device: state for state in health.states}
    assert {name for name, state in states.items() if state.health == GOOD} == set(names) - {names[5], names[7]}
    assert (states[names[5]].asleep, states[names[5]].available, states[names[5]].health) == (True, True, None)
    hung = states[names[7]]
    assert (hung.available, hung.reason, hung.in_flight_s >= 2) == (False, Reason.NO_ANSWER, True)
    assert most[0] <= 2  # one at a time, and the one that hangs

    interval_s[0] = 0.0
    health.refresh(NEVER)
    assert calls.count(names[7]) == 1  # never a second question to one that hangs
    assert calls.count(names[8]) == 2


def test_a_disk_that_stops_answering_keeps_its_last_seen_and_loses_its_figures(let_go: threading.Event) -> None:
    clock = Clock()
    broken = [False]

    def ask(_device: BlockDevice) -> Answer:
        if broken[0]:
            raise NoHealth(Reason.NO_ANSWER, "sda: no answer")
        return GOOD

    health = watch(lambda: [disk("sda")], ask, clock)
    health.refresh(NEVER)
    broken[0] = True
    clock.now += 300
    health.refresh(NEVER)
    (state,) = health.states
    assert (state.available, state.health, state.reason, state.last_success_at) == (
        False,
        None,
        Reason.NO_ANSWER,
        5000.0,
    )


def test_figures_that_nobody_renews_are_not_shown() -> None:
    clock = Clock()
    health = watch(lambda: [disk("sda")], lambda _device: GOOD, clock)
    health.refresh(NEVER)
    clock.now += 3 * 300 + 21
    (state,) = health.states
    assert (state.available, state.health, state.reason) == (False, None, Reason.NO_ANSWER)


def test_an_answer_that_comes_late_counts(let_go: threading.Event) -> None:
    def ask(_device: BlockDevice) -> Answer:
        let_go.wait(600)
        return GOOD

    health = HealthWatch(devices=lambda: [disk("sda")], ask=ask, interval_s=lambda: 300.0, within_s=0.2)
    health.refresh(NEVER)
    assert not health.states[0].available
    let_go.set()
    deadline = time.monotonic() + 30
    while not health.states[0].available and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (health.states[0].health, health.states[0].in_flight_s) == (GOOD, 0.0)


@pytest.mark.parametrize("error", [ParseError("smartctl /dev/sda", "odd"), ValueError("odd")])
def test_an_odd_answer_is_one_disks_affair(error: Exception) -> None:
    def ask(device: BlockDevice) -> Answer:
        if device.name == "sda":
            raise error
        return GOOD

    health = watch(lambda: [disk("sda"), disk("sdb")], ask)
    health.refresh(NEVER)
    assert [(state.reason, state.health) for state in health.states] == [(Reason.MALFORMED, None), ("", GOOD)]
    assert "odd" in health.states[0].message


def test_a_disk_that_left_stays_for_a_week() -> None:
    clock, there = Clock(), [disk("sda"), disk("sdb")]
    health = watch(lambda: list(there), lambda _device: GOOD, clock)
    health.refresh(NEVER)
    del there[1]
    clock.now += 60
    health.refresh(NEVER)
    assert [(state.device, state.reason) for state in health.states] == [("sda", ""), ("sdb", Reason.GONE)]
    assert health.states[1].last_success_at == 5000.0
    clock.now += REMEMBER_S
    health.refresh(NEVER)
    assert [state.device for state in health.states] == ["sda"]


def test_what_the_configuration_no_longer_names_is_not_gone() -> None:
    """A disk behind a controller whose number was mistyped and corrected."""
    configured = {"/dev/bus/0": ("megaraid,8",)}
    health = watch(lambda: controller_disks(configured), lambda _device: GOOD)
    health.refresh(NEVER)
    configured["/dev/bus/0"] = ("megaraid,9",)
    health.refresh(NEVER)
    assert [(state.device, state.reason) for state in health.states] == [("bus/0:megaraid,9", "")]


def test_another_disk_of_the_same_name_inherits_nothing() -> None:
    there = [disk("sda", serial="OLD")]
    answers: list[Answer | PlumblineError] = [GOOD, NoHealth(Reason.NO_ANSWER, "sda: no answer")]

    def ask(_device: BlockDevice) -> Answer:
        answer = answers.pop(0)
        if isinstance(answer, PlumblineError):
            raise answer
        return answer

    health = watch(lambda: list(there), ask)
    health.refresh(NEVER)
    there[0] = disk("sda", serial="NEW")
    health.refresh(NEVER)
    assert (health.states[0].last_success_at, health.states[0].reason) == (None, Reason.NO_ANSWER)


def test_nothing_to_ask_is_said() -> None:
    health = watch(lambda: [disk("vda", "virtio", "virtual")], lambda _device: GOOD)
    with pytest.raises(Unavailable, match="not been queried"):
        _ = health.states
    health.refresh(NEVER)
    with pytest.raises(Unavailable, match="no SATA, SAS or NVMe disk"):
        _ = health.states
    with pytest.raises(Unavailable, match="not queried for their health"):
        _ = StorageWatch(Roots.under(Path("/nowhere"))).health


def test_facts_that_are_not_there_yet_are_waited_for() -> None:
    calls = []

    def devices() -> list[BlockDevice]:
        calls.append(1)
        if len(calls) < 3:
            raise Unavailable("the disks have not answered yet")
        return [disk("sda")]

    health = watch(devices, lambda _device: GOOD)
    health.refresh(NEVER)
    assert health.states[0].health == GOOD


def test_the_daemons_end_does_not_wait_for_a_disk(let_go: threading.Event) -> None:
    cancel = threading.Event()

    def ask(_device: BlockDevice) -> Answer:
        cancel.set()
        let_go.wait(600)
        return GOOD

    calls = []
    health = HealthWatch(
        devices=lambda: [disk("sda"), disk("sdb")],
        ask=lambda device: calls.append(device.name) or ask(device),
        interval_s=lambda: 300.0,
        within_s=600.0,
    )
    before = time.monotonic()
    health.refresh(cancel)
    assert time.monotonic() - before < 60
    assert calls == ["sda"]


def test_a_disk_whose_turn_has_not_come_says_nothing(let_go: threading.Event) -> None:
    health: list[HealthWatch] = []
    seen = []

    def ask(device: BlockDevice) -> Answer:
        seen.append([state.device for state in health[0].states])
        return GOOD

    health.append(watch(lambda: [disk("sda"), disk("sdb")], ask))
    health[0].refresh(NEVER)
    assert seen == [[], ["sda"]]


def test_a_change_of_state_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock, broken = Clock(), [True]

    def ask(_device: BlockDevice) -> Answer:
        if broken[0]:
            raise NoHealth(Reason.NO_ANSWER, "sda: no answer")
        return GOOD

    health = watch(lambda: [disk("sda")], ask, clock)
    with caplog.at_level(logging.INFO, "plumbline.background.health"):
        for round_ in range(4):
            broken[0] = round_ < 2
            health.refresh(NEVER)
            clock.now += 300
    assert [record.message for record in caplog.records] == [
        "health of sda is not available: sda: no answer",
        "health of sda is available again",
    ]


def test_a_process_that_may_not_send_ata_commands_does_not_try(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    (roots.proc / "self").mkdir(parents=True)
    status = roots.proc / "self" / "status"
    asker = DiskAsker(roots, {"PATH": str(tmp_path)})
    marker = tmp_path / "ran"
    (tmp_path / "smartctl").write_text(f"#!/bin/sh\n/usr/bin/touch {marker}\n")
    (tmp_path / "smartctl").chmod(0o755)

    status.write_text("Name:\tplumbline\nCapEff:\t0000000000000000\n")
    with pytest.raises(NoHealth, match="CAP_SYS_RAWIO") as caught:
        asker(disk("sda"))
    assert (caught.value.reason, marker.exists()) == (Reason.NO_PERMISSION, False)

    status.write_text("Name:\tplumbline\nCapEff:\t0000000000020000\n")
    with pytest.raises(NoHealth, match="printed nothing"):
        asker(disk("sda"))
    assert marker.exists()


def scsi_disk(roots: Roots, place: str, driver: str) -> None:
    """``sda`` at ``place``, behind a host of ``driver``."""
    host = place.partition(":")[0]
    (roots.sys / "block").mkdir(parents=True)
    (roots.sys / "block/sda").symlink_to(
        f"../devices/pci0000:00/0000:00:03.0/0000:01:00.0/host{host}/target{place[:5]}/{place}/block/sda"
    )
    (roots.sys / f"class/scsi_host/host{host}").mkdir(parents=True)
    (roots.sys / f"class/scsi_host/host{host}/proc_name").write_text(f"{driver}\n")


def test_a_volume_of_a_megaraid_is_not_asked(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    scsi_disk(roots, "4:2:0:0", "megaraid_sas")
    with pytest.raises(NoHealth, match="a volume of a MegaRAID controller") as caught:
        DiskAsker(roots, {"PATH": str(tmp_path)})(disk("sda", "scsi"))
    assert caught.value.reason == Reason.NOT_SUPPORTED


@pytest.mark.parametrize(("place", "driver"), [("4:1:0:0", "megaraid_sas"), ("4:2:0:0", "mpt3sas")])
def test_a_disk_behind_a_megaraid_and_other_controllers_disks_are_asked(
    place: str, driver: str, tmp_path: Path
) -> None:
    roots = Roots.under(tmp_path)
    scsi_disk(roots, place, driver)
    (tmp_path / "smartctl").write_text("#!/bin/sh\n")
    (tmp_path / "smartctl").chmod(0o755)
    with pytest.raises(NoHealth, match="printed nothing"):
        DiskAsker(roots, {"PATH": str(tmp_path)})(disk("sda", "scsi"))


def test_an_nvme_disk_is_asked_through_its_controllers_node(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    (roots.sys / "block").mkdir(parents=True)
    asker = DiskAsker(roots, os.environ)
    with pytest.raises(NoHealth, match="controller is gone") as caught:
        asker(disk("nvme0n1", "nvme", "nvme"))
    assert caught.value.reason == Reason.GONE
    (roots.sys / "block" / "nvme0n1").symlink_to("../devices/pci0000:00/nvme/nvme0/nvme0n1")
    with pytest.raises(NoHealth, match="/dev/nvme0"):
        asker(disk("nvme0n1", "nvme", "nvme"))


def test_a_node_whose_reader_hangs_leaves_one_thread(tmp_path: Path) -> None:
    """A fifo without a writer stands in for a controller that does not answer: its reader hangs in the kernel."""
    fifo = tmp_path / "nvme0"
    os.mkfifo(fifo)
    begun, interval_s = [], [0.0]

    def ask(_device: BlockDevice) -> Answer:
        begun.append(1)
        return GOOD if fifo.read_bytes() else Asleep()

    health = HealthWatch(
        devices=lambda: [disk("nvme0n1", "nvme", "nvme")], ask=ask, interval_s=lambda: interval_s[0], within_s=0.2
    )
    for _ in range(3):
        health.refresh(NEVER)
    assert (len(begun), health.states[0].reason) == (1, Reason.NO_ANSWER)
    interval_s[0] = 300.0
    fifo.write_bytes(b"x")  # lets go of it
    deadline = time.monotonic() + 30
    while health.states[0].in_flight_s and time.monotonic() < deadline:
        time.sleep(0.01)
    assert health.states[0].health == GOOD
