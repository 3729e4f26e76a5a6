"""Promises about the disk checks: each setting that the slides of SDC 2013 recommend has one, and all say all."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from plumbline.checks.disk import CHECKS
from plumbline.checks.model import judge
from plumbline.checks.run import CHECKS as EVERY
from plumbline.sources.disk.queuesettings import QueueSettings
from support.disk_facts import HDD, LOOP, NVME, SSD, STACK, VIRTUAL, but, disk

IDS = {check.id for check in CHECKS}
SETTINGS = CHECKS

RECOMMENDED = {
    # "Intel PCIe-SSD 910 data sheet", Recommended Settings in Linux → the check that holds a host to it
    "rq_affinity 1": "disk.rq-affinity",
    "scheduler noop": "disk.scheduler",
    "rotational 0": "disk.rotational-flag",
    "read_ahead_kb 0": "disk.read-ahead",
}
OPTIONS = {
    # "Block Device options for /dev/rbdX, /dev/sdY": what its authors varied in their tests
    "scheduler": "disk.scheduler",
    "rq_affinity": "disk.rq-affinity",
    "rotational": "disk.rotational-flag",
    "read_ahead_kb": "disk.read-ahead",
}


@pytest.mark.parametrize("line", RECOMMENDED)
def test_every_recommended_setting_is_a_check_that_names_it(line: str) -> None:
    (check,) = [each for each in CHECKS if each.id == RECOMMENDED[line]]
    assert "Fujitsu, SDC 2013" in check.source
    assert line in check.source


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_varied_in_the_tests_is_a_check(option: str) -> None:
    assert OPTIONS[option] in IDS


SSD_910 = disk(
    "sdq",
    device_class="hdd",
    transport="sas",
    model="INTEL(R) SSD 910 200GB",
    rotational=True,
    queue=QueueSettings("sdq", "cfq", requests=128, read_ahead_kib=128, rq_affinity=0),
)
"""A module of the slides' SSD as nobody has set it yet: CentOS 6.4, vanilla kernel 3.8.13."""


def test_the_slides_ssd_before_its_settings_gets_their_commands() -> None:
    found = {each.check: each.fix.now for each in judge(CHECKS, (SSD_910,)) if each.fix}
    assert found == {
        "disk.rq-affinity": "echo 1 > /sys/block/sdq/queue/rq_affinity",
        "disk.scheduler": "echo noop > /sys/block/sdq/queue/scheduler",
        "disk.rotational-flag": "echo 0 > /sys/block/sdq/queue/rotational",
    }  # and not 0 for read-ahead: the kernel's own 128 KiB serves files, and an OSD of today does without either way


def test_the_slides_ssd_with_their_settings_has_nothing_to_mend() -> None:
    done = but(
        SSD_910,
        device_class="ssd",
        rotational=False,
        queue={"scheduler": "noop", "rq_affinity": 1, "read_ahead_kib": 0},
    )
    found = judge(CHECKS, (done,))
    assert {each.check for each in found} == set(RECOMMENDED.values())
    assert all(each.met for each in found)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_every_check_says_all_it_has_to(check) -> None:
    assert re.fullmatch(r"disk\.[a-z]+(-[a-z]+)*", check.id)
    for text in (check.advice, check.applies, check.why):
        assert text.endswith(".")
    assert re.search(r"Documentation/", check.source)
    assert check.fix


def test_ids_are_unique_in_all_layers() -> None:
    assert [name for name, count in Counter(check.id for check in EVERY).items() if count > 1] == []
    assert {check.id for check in EVERY} >= IDS


BAD = (
    but(
        SSD,
        rotational=True,
        osds=frozenset({"osd.0"}),
        queue={"device_cache": "write back", "scheduler": "bfq", "requests": 4, "rq_affinity": 0, "add_random": True},
    ),
    but(NVME, queue={"read_ahead_kib": 1 << 14}),
)


def test_every_check_of_a_setting_can_find_something() -> None:
    assert {each.check for each in judge(CHECKS, BAD) if not each.met} == {check.id for check in SETTINGS}


def test_every_finding_that_is_not_met_writes_what_its_check_says_it_writes() -> None:
    written = {check.id: check.fix.rsplit("/", 1)[1] for check in CHECKS}
    for each in judge(CHECKS, BAD):
        if each.fix is not None:
            assert each.fix.now.endswith(f"/{written[each.check]}")


def test_sound_disks_have_nothing_to_mend() -> None:
    found = judge(CHECKS, (SSD, NVME, HDD))
    assert {each.subject for each in found} == {"sda", "nvme0n1", "sdb"}
    assert [each.check for each in found if not each.met] == []


def test_a_host_that_tells_nothing_gets_no_advice() -> None:
    assert judge(CHECKS, ()) == ()


def test_this_kind_of_machine_gets_no_advice() -> None:
    """A virtual machine: virtio-blk with 8 MiB of read-ahead and the rotational flag, loop devices, device mapper."""
    assert judge(CHECKS, (VIRTUAL, LOOP, STACK)) == ()
