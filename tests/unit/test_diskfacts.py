"""From a whole host's series to disks, and on to findings."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from plumbline.baseline.book import load_book
from plumbline.checks.disk import judge
from plumbline.checks.disk_facts import Disk, DiskQueue
from plumbline.config import Config
from plumbline.diskfacts import disk_facts
from plumbline.exposition import Exposition
from plumbline.registry import NAMES, collectors, configured
from plumbline.seriesview import SeriesView
from plumbline.workloads import load_catalogue
from support.hosts import parts, silent_network, tree


@pytest.fixture
def view(tmp_path: Path) -> SeriesView:
    given = parts(tree(tmp_path, "disks-storage-node", "disk-queues"), silent_network())
    for job in given.storage.jobs():
        job.run(threading.Event())
    config = Config(collectors={name: name in ("device", "queue") for name in NAMES})
    book = load_book(config.baseline, where="test", storage=tmp_path, host="x", catalogue=load_catalogue(), targets=())
    host = configured(given, config, book)
    logger = logging.getLogger("test")
    return SeriesView(Exposition(collectors(config), host, clock=lambda: 0.0, logger=logger).scrape())


def test_a_disk_with_its_queue(view: SeriesView) -> None:
    disks = {each.device: each for each in disk_facts(view, 2.0).disks}
    sda = disks["sda"]
    assert (sda.device, sda.device_class, sda.transport, sda.model) == (
        "sda",
        "ssd",
        "sata",
        "Samsung SSD 883 DCT 480GB",
    )
    assert (sda.rotational, sda.volatile_cache, sda.physical, sda.medium) == (False, True, True, "flash")
    assert sda.queue == DiskQueue("bfq", True, "none", 64, 4 << 20, 1, False)
    assert disks["sdc"].queue.write_back is False
    assert disks["sdc"].volatile_cache is True
    assert disks["nvme1n1"].queue.rq_affinity is None
    assert {name for name, disk in disks.items() if disk.physical} >= {"sda", "sdb", "sdc", "nvme0n1", "nvme1n1"}
    assert not any(disks[name].physical for name in ("dm-0", "dm-2", "md127", "rbd0", "sdd", "sde", "xvda1", "mmcblk0"))


def test_its_findings(view: SeriesView) -> None:
    found = {(each.check, each.subject): each.severity for each in judge(disk_facts(view, None)) if not each.met}
    assert found == {
        ("disk.scheduler", "sda"): "warning",
        ("disk.read-ahead", "sda"): "info",
        ("disk.scheduler", "sdc"): "info",
        ("disk.flushes-omitted", "sdc"): "warning",
    }


class FakeView(SeriesView):
    """Rows as another release may write them."""

    def __init__(self, rows: dict[str, list[dict[str, str]]]) -> None:
        self._given = rows

    def rows(self, name):
        return iter([(row, 1.0) for row in self._given.get(name, [])])

    def series(self, name):
        return {}


def test_who_has_anything_of_ceph_on_a_disk() -> None:
    info = {"model": "", "serial": "", "rotational": "", "transport": "", "device_class": "", "osd": "osd.3,osd.4"}
    view = FakeView(
        {
            "plumbline_disk_info": [{"device": "sda", **info}, {"device": "sdb", **info, "osd": ""}],
            "plumbline_disk_use_info": [
                {"device": "sda", "kind": "osd", "name": "osd.3"},
                {"device": "sdb", "kind": "osd-db", "name": "osd.71"},
                {"device": "sdb", "kind": "filesystem", "name": "/"},
            ],
        }
    )
    assert disk_facts(view, None).disks == (
        Disk("sda", osds=frozenset({"osd.3", "osd.4"})),
        Disk("sdb", osds=frozenset({"osd.71"})),
    )
