"""Each disk check on disks that meet it, that don't, and that it does not apply to."""

from __future__ import annotations

from typing import Any

import pytest

from plumbline.checks.disk.cache import FLUSHES_OMITTED, WRITE_CACHE
from plumbline.checks.disk.completion import ADD_RANDOM, RQ_AFFINITY
from plumbline.checks.disk.facts import Disk, Disks
from plumbline.checks.disk.medium import ROTATIONAL_FLAG
from plumbline.checks.disk.queueing import NR_REQUESTS, READ_AHEAD, SCHEDULER
from plumbline.checks.model import Check
from support.disk_facts import HDD, LOOP, NVME, SSD, STACK, VIRTUAL, but, of

Q = dict
VOLATILE = Q(device_cache="write back")
RAID_SSD = but(SSD, transport="scsi", device_class="hdd", rotational=True, model="INTEL SSDSC2BB480G4", name="sdq")
"""As a controller hands an SSD through and hides that it is one."""
RAID_HDD = but(HDD, transport="scsi", model="LSI RAID 5/6 SAS 6G", queue=VOLATILE)
OSD = frozenset({"osd.3"})


@pytest.mark.parametrize(
    ("check", "disk"),
    [
        (SCHEDULER, SSD),
        (SCHEDULER, NVME),
        (SCHEDULER, but(NVME, queue=Q(scheduler="kyber"))),
        (SCHEDULER, but(SSD, queue=Q(scheduler="noop"))),
        (SCHEDULER, but(SSD, queue=Q(scheduler="deadline"))),
        (SCHEDULER, HDD),
        (SCHEDULER, but(HDD, queue=Q(scheduler="bfq"))),
        (SCHEDULER, but(HDD, queue=Q(scheduler="cfq"))),
        (SCHEDULER, but(RAID_HDD, queue=Q(scheduler="none"))),
        (SCHEDULER, but(HDD, queue=Q(zoned="host-managed"))),
        (SCHEDULER, but(RAID_SSD, queue=Q(scheduler="none"))),
        (READ_AHEAD, SSD),
        (READ_AHEAD, but(SSD, queue=Q(read_ahead_kib=0))),
        (READ_AHEAD, but(NVME, osds=OSD, queue=Q(read_ahead_kib=4 << 10))),
        (NR_REQUESTS, SSD),
        (NR_REQUESTS, but(SSD, queue=Q(requests=32))),
        (NR_REQUESTS, but(HDD, queue_depth=1014)),  # smartpqi takes more than the kernel's own choice
        (RQ_AFFINITY, SSD),
        (RQ_AFFINITY, but(NVME, queue=Q(rq_affinity=2))),
        (ADD_RANDOM, NVME),
        (ROTATIONAL_FLAG, SSD),
        (ROTATIONAL_FLAG, NVME),
        (WRITE_CACHE, but(SSD, osds=OSD)),
        (FLUSHES_OMITTED, but(HDD, queue=VOLATILE | Q(write_cache="write back"))),
    ],
)
def test_met(check: Check[Disks], disk: Disk) -> None:
    found = of(check, disk)
    assert found is not None
    assert found.met


@pytest.mark.parametrize(
    ("check", "disk", "severity", "now"),
    [
        (SCHEDULER, but(SSD, queue=Q(scheduler="bfq")), "warning", "echo none > /sys/block/sda/queue/scheduler"),
        (SCHEDULER, but(SSD, queue=Q(scheduler="cfq")), "warning", "echo noop > /sys/block/sda/queue/scheduler"),
        (SCHEDULER, but(RAID_SSD, queue=Q(scheduler="bfq")), "warning", "echo none > /sys/block/sdq/queue/scheduler"),
        (SCHEDULER, but(HDD, queue=Q(scheduler="none")), "info", "echo mq-deadline > /sys/block/sdb/queue/scheduler"),
        (SCHEDULER, but(HDD, queue=Q(scheduler="kyber")), "info", "echo mq-deadline > /sys/block/sdb/queue/scheduler"),
        (SCHEDULER, but(HDD, queue=Q(scheduler="noop")), "info", "echo deadline > /sys/block/sdb/queue/scheduler"),
        (
            SCHEDULER,
            but(HDD, queue=Q(scheduler="bfq", zoned="host-managed")),
            "warning",
            "echo mq-deadline > /sys/block/sdb/queue/scheduler",
        ),
        (
            READ_AHEAD,
            but(NVME, queue=Q(read_ahead_kib=4 << 10)),
            "info",
            "echo 128 > /sys/block/nvme0n1/queue/read_ahead_kb",
        ),
        (NR_REQUESTS, but(SSD, queue=Q(requests=4)), "info", "echo 32 > /sys/block/sda/queue/nr_requests"),
        (
            NR_REQUESTS,
            but(HDD, queue_depth=1014, queue=Q(requests=128)),
            "info",
            "echo 256 > /sys/block/sdb/queue/nr_requests",
        ),
        (RQ_AFFINITY, but(NVME, queue=Q(rq_affinity=0)), "info", "echo 1 > /sys/block/nvme0n1/queue/rq_affinity"),
        (ADD_RANDOM, but(SSD, queue=Q(add_random=True)), "info", "echo 0 > /sys/block/sda/queue/add_random"),
        (ROTATIONAL_FLAG, RAID_SSD, "info", "echo 0 > /sys/block/sdq/queue/rotational"),
        (ROTATIONAL_FLAG, but(RAID_SSD, osds=OSD), "warning", "echo 0 > /sys/block/sdq/queue/rotational"),
        (
            WRITE_CACHE,
            but(HDD, osds=OSD, queue=VOLATILE),
            "info",
            "echo 'write through' | tee /sys/block/sdb/device/scsi_disk/*/cache_type",
        ),
        (
            FLUSHES_OMITTED,
            but(SSD, queue=VOLATILE),
            "warning",
            "echo 'write back' > /sys/block/sda/queue/write_cache",
        ),
    ],
)
def test_not_met(check: Check[Disks], disk: Disk, severity: str, now: str) -> None:
    found = of(check, disk)
    assert found is not None
    assert (found.met, found.severity, found.subject) == (False, severity, disk.device)
    assert found.fix is not None
    assert found.fix.now == now
    assert found.fix.caution or check not in (SCHEDULER, WRITE_CACHE, FLUSHES_OMITTED)
    if check is FLUSHES_OMITTED:
        assert found.fix.keep is None  # the next start asks the disk anew: what set it has to go
        return
    assert found.fix.keep is not None
    assert found.fix.keep.file == "/etc/udev/rules.d/90-storage-disks.rules"
    assert str(disk.block.serial) in found.fix.keep.content


@pytest.mark.parametrize(
    ("check", "disk"),
    [
        (READ_AHEAD, HDD),
        (ADD_RANDOM, HDD),  # a hard disk's seeks are random
        (ROTATIONAL_FLAG, HDD),
        (ROTATIONAL_FLAG, RAID_HDD),  # its name says nothing of what is in it
        (ROTATIONAL_FLAG, but(HDD, model="ST1000LX015 SSHD")),  # a hybrid turns
        (WRITE_CACHE, but(SSD, queue=VOLATILE)),  # nobody's OSD
        (WRITE_CACHE, but(RAID_HDD, osds=OSD)),  # the controller's business
        (WRITE_CACHE, but(NVME, osds=OSD, queue=Q(write_cache="write back"))),
        (FLUSHES_OMITTED, SSD),
        (FLUSHES_OMITTED, RAID_HDD),
    ],
)
def test_does_not_apply(check: Check[Disks], disk: Disk) -> None:
    assert of(check, disk) is None


UNKNOWN: list[tuple[Check[Disks], dict[str, Any], dict[str, Any]]] = [
    (SCHEDULER, {}, {"scheduler": None}),
    (SCHEDULER, {"device_class": None}, {}),
    (SCHEDULER, {"transport": None}, {}),
    (READ_AHEAD, {}, {"read_ahead_kib": None}),
    (NR_REQUESTS, {}, {"requests": None}),
    (NR_REQUESTS, {"queue_depth": None}, {}),
    (RQ_AFFINITY, {}, {"rq_affinity": None}),
    (ADD_RANDOM, {}, {"add_random": None}),
    (ROTATIONAL_FLAG, {"rotational": None}, {}),
    (ROTATIONAL_FLAG, {"model": ""}, {}),
    (WRITE_CACHE, {"osds": OSD}, {"device_cache": None}),
    (FLUSHES_OMITTED, {}, {"device_cache": None}),
    (FLUSHES_OMITTED, {}, {"device_cache": "write back", "write_cache": None}),
]


@pytest.mark.parametrize(("check", "changes", "queue"), UNKNOWN)
def test_unknown_is_no_reason_to_advise(check: Check[Disks], changes: dict[str, Any], queue: dict[str, Any]) -> None:
    assert of(check, but(SSD, queue=queue, **changes)) is None


@pytest.mark.parametrize("disk", [VIRTUAL, LOOP, STACK, but(SSD, transport="usb"), but(SSD, transport="iscsi")])
def test_what_is_not_this_hosts_own_hardware_gets_no_advice(disk: Disk) -> None:
    worst = but(
        disk,
        model="SSD",
        rotational=True,
        osds=OSD,
        queue_depth=32,
        queue=VOLATILE | Q(scheduler="bfq", requests=4, rq_affinity=0, add_random=True, read_ahead_kib=1 << 20),
    )
    checks = (
        SCHEDULER,
        READ_AHEAD,
        NR_REQUESTS,
        RQ_AFFINITY,
        ADD_RANDOM,
        ROTATIONAL_FLAG,
        WRITE_CACHE,
        FLUSHES_OMITTED,
    )
    assert [check.id for check in checks if of(check, worst) is not None] == []


def test_no_command_and_no_rule_ever_tells_the_kernel_alone_that_a_cache_is_gone() -> None:
    for check in (WRITE_CACHE, FLUSHES_OMITTED):
        found = of(check, but(SSD, osds=OSD, queue=VOLATILE))
        assert found is not None
        assert found.fix is not None
        kept = found.fix.keep.content if found.fix.keep else ""
        for line in (found.fix.now, *kept.splitlines()):
            assert not ("write through" in line and "queue/write_cache" in line)


@pytest.mark.parametrize(
    ("disk", "matches"),
    [
        (SSD, ['ENV{ID_SERIAL_SHORT}=="S4EXAMPLE00001"']),
        (NVME, ['ENV{ID_SERIAL_SHORT}=="PHLJEXAMPLE0012P0GN"']),
        (
            HDD,
            [
                'ENV{ID_SCSI_SERIAL}=="ZC1EXAMPLE0000C8370001"',
                'ENV{ID_SERIAL_SHORT}=="ZC1EXAMPLE0000C8370001"',
            ],
        ),
        (but(SSD, serial="S4 X*Y"), ['ENV{ID_SERIAL_SHORT}=="S4?X?Y"']),
        (but(SSD, serial=None), ['KERNEL=="sda"']),
        (but(SSD, serial=None, name="cciss/c0d0"), ['KERNEL=="cciss!c0d0"']),
    ],
)
def test_a_rule_knows_the_disk_by_its_serial_number(disk: Disk, matches: list[str]) -> None:
    found = of(RQ_AFFINITY, but(disk, queue=Q(rq_affinity=0)))
    assert found is not None
    assert found.fix is not None
    assert found.fix.keep is not None
    assert found.fix.keep.content.splitlines() == [
        f'ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", {match}, ATTR{{queue/rq_affinity}}="1"'
        for match in matches
    ]
