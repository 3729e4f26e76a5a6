"""``plumbline disk --safe-to-pull`` on a real cluster: no while data depends on the OSD, yes when none does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plumbline.commands.ceph.admin import Admin, Cluster
from plumbline.commands.pull import Answer, judge
from support.ceph_cluster import CephCluster

pytestmark = [pytest.mark.integration, pytest.mark.ceph]

POOL = "pulled"


@pytest.fixture
def pool(ceph: CephCluster) -> Iterator[CephCluster]:
    """Two copies on three OSDs; one is enough to serve."""
    ceph.add_pool(POOL, size=2)
    ceph.ceph("osd", "pool", "set", POOL, "min_size", "1")
    ceph.run("rados", "-p", POOL, "bench", "5", "write", "-b", "64K", "--no-cleanup")
    yield ceph
    ceph.remove_pool(POOL)
    ceph.ceph("osd", "in", "0")


def ask(ceph: CephCluster) -> Answer:
    cluster = Cluster(Admin(str(ceph.conf)), ceph.environment)
    return judge("sda", [("osd", "osd.0")], unreadable=False, cluster=cluster)


def test_no_until_its_data_has_moved(pool: CephCluster) -> None:
    needed = ask(pool)
    assert (needed.safe, needed.first.split(",")[0]) == (False, "ceph osd out 0")
    assert "pgs" in needed.reason
    pool.ceph("osd", "pool", "set", POOL, "min_size", "2")
    harmful = ask(pool)
    assert (harmful.safe, harmful.first.split(",")[1]) == (False, " let it run")
    assert harmful.reason.startswith("placement groups would become inactive (")
    pool.ceph("osd", "pool", "set", POOL, "min_size", "1")
    pool.ceph("osd", "out", "0")
    pool.wait_clean()
    pool.eventually(lambda: ask(pool).safe, "never safe, although its data has moved")
    assert ask(pool).reason == "no data depends on osd.0"
