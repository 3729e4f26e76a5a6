"""How many placement groups are late for a scrub: the monitors say it with the check, until none is."""

from __future__ import annotations

import pytest

from plumbline.probes.ceph.ceph_status import parse_status
from support.ceph_cluster import CephCluster
from support.daemon import eventually

pytestmark = [pytest.mark.integration, pytest.mark.ceph, pytest.mark.timeout(600)]

POOL, GROUPS = "scrubbed", 32
CHECK = "PG_NOT_DEEP_SCRUBBED"
INTERVAL = "osd_deep_scrub_interval"


def late(ceph: CephCluster) -> int:
    checks = parse_status(ceph.ceph_json("status")).checks
    return next((check.count for check in checks if check.name == CHECK), 0)


def test_late_groups_are_counted(ceph: CephCluster) -> None:
    ceph.add_pool(POOL, pg_num=GROUPS)
    ceph.ceph_all("osd set nodeep-scrub", f"config set global {INTERVAL} 1")
    try:
        # the monitors call late what has waited for 1.75 of the interval; the pools of the manager have groups, too
        eventually(lambda: late(ceph), until=lambda count: count >= GROUPS, within_s=120, every_s=1)
        ceph.ceph_all(f"config set global {INTERVAL} 300", "osd unset nodeep-scrub")
        eventually(lambda: late(ceph), until=lambda count: count == 0, within_s=120, every_s=1)
    finally:
        ceph.ceph_all("osd unset nodeep-scrub", f"config rm global {INTERVAL}")
        ceph.remove_pool(POOL)
