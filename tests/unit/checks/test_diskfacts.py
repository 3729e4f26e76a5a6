"""From a whole host's readings to disks, and on to findings."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from plumbline.checks.disk import CHECKS, Disk, disk_facts
from plumbline.checks.model import judge
from plumbline.metrics.snapshot import Readings
from plumbline.sources.disk.block import BlockDevice, DevicesReading
from plumbline.sources.disk.blocktree import BlockTree
from plumbline.sources.disk.diskusers import DiskUsers, DiskUsesReading
from plumbline.sources.disk.queuesettings import QueueSettings
from support.hosts import devices_of, parts, silent_network, tree


@pytest.fixture
def readings(tmp_path: Path) -> Readings:
    given = parts(tree(tmp_path, "disks-storage-node", "disk-queues"), silent_network())
    for job in given.storage.jobs():
        job.run(threading.Event())
    return Readings.of(DevicesReading(devices_of(given)), given.storage.queues.value)


def test_a_disk_with_its_queue(readings: Readings) -> None:
    disks = {each.device: each for each in disk_facts(readings)}
    sda = disks["sda"]
    assert (sda.volatile_cache, sda.physical, sda.medium, sda.queue.scheduler) == (True, True, "flash", "bfq")
    assert (disks["sdc"].queue.write_cache, disks["sdc"].volatile_cache) == ("write through", True)
    assert disks["nvme1n1"].queue.rq_affinity is None
    assert {name for name, disk in disks.items() if disk.physical} >= {"sda", "sdb", "sdc", "nvme0n1", "nvme1n1"}
    assert not any(disks[name].physical for name in ("dm-0", "dm-2", "md127", "rbd0", "sdd", "sde", "xvda1", "mmcblk0"))


def test_its_findings(readings: Readings) -> None:
    found = {(each.check, each.subject): each.severity for each in judge(CHECKS, disk_facts(readings)) if not each.met}
    assert found == {
        ("disk.scheduler", "sda"): "warning",
        ("disk.read-ahead", "sda"): "info",
        ("disk.scheduler", "sdc"): "info",
        ("disk.flushes-omitted", "sdc"): "warning",
    }


def test_who_has_anything_of_ceph_on_a_disk() -> None:
    sda, sdb = BlockDevice("sda", 8, 0, 1 << 40), BlockDevice("sdb", 8, 16, 1 << 40)
    uses = (("sda", "osd", "osd.3"), ("sdb", "osd-db", "osd.71"), ("sdb", "filesystem", "/"))
    assert disk_facts(
        Readings.of(
            DevicesReading((sda, sdb), {"sda": "osd.3,osd.4"}), DiskUsesReading(DiskUsers(BlockTree({}), (), uses))
        )
    ) == (
        Disk(sda, QueueSettings("sda"), frozenset({"osd.3", "osd.4"})),
        Disk(sdb, QueueSettings("sdb"), frozenset({"osd.71"})),
    )
