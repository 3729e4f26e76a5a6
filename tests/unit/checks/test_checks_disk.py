"""Each disk check on disks that meet it, that don't, and that it does not apply to."""

from __future__ import annotations

from typing import Any

import pytest

from plumbline.checks.disk import (
    Disk,
    Disks,
    add_random,
    flushes_omitted,
    nr_requests,
    read_ahead,
    rotational_flag,
    rq_affinity,
    scheduler,
    write_cache,
)
from plumbline.checks.model import Check
from support.disk_facts import HDD, LOOP, NVME, SSD, STACK, VIRTUAL, but, of
from support.offenders import for_every

Q = dict
VOLATILE = Q(device_cache="write back")
RAID_SSD = but(SSD, transport="scsi", device_class="hdd", rotational=True, model="INTEL SSDSC2BB480G4", name="sdq")
"""As a controller hands an SSD through and hides that it is one."""
RAID_HDD = but(HDD, transport="scsi", model="LSI RAID 5/6 SAS 6G", queue=VOLATILE)
OSD = frozenset({"osd.3"})


@for_every(
    ("check", "disk"),
    [
        (scheduler, SSD),
        (scheduler, NVME),
        (scheduler, but(NVME, queue=Q(scheduler="kyber"))),
        (scheduler, but(SSD, queue=Q(scheduler="noop"))),
        (scheduler, but(SSD, queue=Q(scheduler="deadline"))),
        (scheduler, HDD),
        (scheduler, but(HDD, queue=Q(scheduler="bfq"))),
        (scheduler, but(HDD, queue=Q(scheduler="cfq"))),
        (scheduler, but(RAID_HDD, queue=Q(scheduler="none"))),
        (scheduler, but(HDD, queue=Q(zoned="host-managed"))),
        (scheduler, but(RAID_SSD, queue=Q(scheduler="none"))),
        (read_ahead, SSD),
        (read_ahead, but(SSD, queue=Q(read_ahead_kib=0))),
        (read_ahead, but(NVME, osds=OSD, queue=Q(read_ahead_kib=4 << 10))),
        (nr_requests, SSD),
        (nr_requests, but(SSD, queue=Q(requests=32))),
        (nr_requests, but(HDD, queue_depth=1014)),  # smartpqi takes more than the kernel's own choice
        (rq_affinity, SSD),
        (rq_affinity, but(NVME, queue=Q(rq_affinity=2))),
        (add_random, NVME),
        (rotational_flag, SSD),
        (rotational_flag, NVME),
        (write_cache, but(SSD, osds=OSD)),
        (flushes_omitted, but(HDD, queue=VOLATILE | Q(write_cache="write back"))),
    ],
)
def test_met(check: Check[Disks], disk: Disk) -> None:
    found = of(check, disk)
    assert found is not None
    assert found.met


@pytest.mark.parametrize(
    ("check", "disk", "severity", "now"),
    [
        (scheduler, but(SSD, queue=Q(scheduler="bfq")), "warning", "echo none > /sys/block/sda/queue/scheduler"),
        (scheduler, but(SSD, queue=Q(scheduler="cfq")), "warning", "echo noop > /sys/block/sda/queue/scheduler"),
        (scheduler, but(RAID_SSD, queue=Q(scheduler="bfq")), "warning", "echo none > /sys/block/sdq/queue/scheduler"),
        (scheduler, but(HDD, queue=Q(scheduler="none")), "info", "echo mq-deadline > /sys/block/sdb/queue/scheduler"),
        (scheduler, but(HDD, queue=Q(scheduler="kyber")), "info", "echo mq-deadline > /sys/block/sdb/queue/scheduler"),
        (scheduler, but(HDD, queue=Q(scheduler="noop")), "info", "echo deadline > /sys/block/sdb/queue/scheduler"),
        (
            scheduler,
            but(HDD, queue=Q(scheduler="bfq", zoned="host-managed")),
            "warning",
            "echo mq-deadline > /sys/block/sdb/queue/scheduler",
        ),
        (
            read_ahead,
            but(NVME, queue=Q(read_ahead_kib=4 << 10)),
            "info",
            "echo 128 > /sys/block/nvme0n1/queue/read_ahead_kb",
        ),
        (nr_requests, but(SSD, queue=Q(requests=4)), "info", "echo 32 > /sys/block/sda/queue/nr_requests"),
        (
            nr_requests,
            but(HDD, queue_depth=1014, queue=Q(requests=128)),
            "info",
            "echo 256 > /sys/block/sdb/queue/nr_requests",
        ),
        (rq_affinity, but(NVME, queue=Q(rq_affinity=0)), "info", "echo 1 > /sys/block/nvme0n1/queue/rq_affinity"),
        (add_random, but(SSD, queue=Q(add_random=True)), "info", "echo 0 > /sys/block/sda/queue/add_random"),
        (rotational_flag, RAID_SSD, "info", "echo 0 > /sys/block/sdq/queue/rotational"),
        (rotational_flag, but(RAID_SSD, osds=OSD), "warning", "echo 0 > /sys/block/sdq/queue/rotational"),
        (
            write_cache,
            but(HDD, osds=OSD, queue=VOLATILE),
            "info",
            "echo 'write through' | tee /sys/block/sdb/device/scsi_disk/*/cache_type",
        ),
        (
            flushes_omitted,
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
    assert found.fix.caution or check not in (scheduler, write_cache, flushes_omitted)
    if check is flushes_omitted:
        assert found.fix.keep is None  # the next start asks the disk anew: what set it has to go
        return
    assert found.fix.keep is not None
    assert found.fix.keep.file == "/etc/udev/rules.d/90-storage-disks.rules"
    assert str(disk.block.serial) in found.fix.keep.content


@pytest.mark.parametrize(
    ("check", "disk"),
    [
        (read_ahead, HDD),
        (add_random, HDD),  # a hard disk's seeks are random
        (rotational_flag, HDD),
        (rotational_flag, RAID_HDD),  # its name says nothing of what is in it
        (rotational_flag, but(HDD, model="ST1000LX015 SSHD")),  # a hybrid turns
        (write_cache, but(SSD, queue=VOLATILE)),  # nobody's OSD
        (write_cache, but(RAID_HDD, osds=OSD)),  # the controller's business
        (write_cache, but(NVME, osds=OSD, queue=Q(write_cache="write back"))),
        (flushes_omitted, SSD),
        (flushes_omitted, RAID_HDD),
    ],
)
def test_does_not_apply(check: Check[Disks], disk: Disk) -> None:
    assert of(check, disk) is None


UNKNOWN: list[tuple[Check[Disks], dict[str, Any], dict[str, Any]]] = [
    (scheduler, {}, {"scheduler": None}),
    (scheduler, {"device_class": None}, {}),
    (scheduler, {"transport": None}, {}),
    (read_ahead, {}, {"read_ahead_kib": None}),
    (nr_requests, {}, {"requests": None}),
    (nr_requests, {"queue_depth": None}, {}),
    (rq_affinity, {}, {"rq_affinity": None}),
    (add_random, {}, {"add_random": None}),
    (rotational_flag, {"rotational": None}, {}),
    (rotational_flag, {"model": ""}, {}),
    (write_cache, {"osds": OSD}, {"device_cache": None}),
    (flushes_omitted, {}, {"device_cache": None}),
    (flushes_omitted, {}, {"device_cache": "write back", "write_cache": None}),
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
        scheduler,
        read_ahead,
        nr_requests,
        rq_affinity,
        add_random,
        rotational_flag,
        write_cache,
        flushes_omitted,
    )
    assert [check.id for check in checks if of(check, worst) is not None] == []


def test_no_command_and_no_rule_ever_tells_the_kernel_alone_that_a_cache_is_gone() -> None:
    for check in (write_cache, flushes_omitted):
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
    found = of(rq_affinity, but(disk, queue=Q(rq_affinity=0)))
    assert found is not None
    assert found.fix is not None
    assert found.fix.keep is not None
    assert found.fix.keep.content.splitlines() == [
        f'ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", {match}, ATTR{{queue/rq_affinity}}="1"'
        for match in matches
    ]
