"""What a real RGW and a real metadata server show of themselves: the names and labels that our rules read."""

from __future__ import annotations

import re
import time

import pytest

from support.ceph_cluster import CephCluster, missing
from support.ceph_filesystem import PYTHON, metadata_server, work
from support.ceph_pages import WITH_COUNTERS, Page, parse
from support.ceph_schema import METRICS
from support.daemon import eventually

pytestmark = pytest.mark.ceph
READ = {name: metric for name, metric in METRICS.items() if re.match("ceph_(rgw|mds)_", name)}


def count(page: Page, name: str) -> float:
    return sum(value for (metric, _), value in page.items() if metric == name)


def test_names_and_labels_of_this_release(ceph: CephCluster) -> None:
    if absent := missing("radosgw", "radosgw-admin", "ceph-mds", PYTHON):
        pytest.skip(f"{', '.join(absent)} not installed")
    release = int(ceph.release.split(".")[0])
    ceph.start_rgw()
    with metadata_server(ceph):
        work(ceph, 20)

        def worked() -> Page | None:
            page = parse(ceph.metrics())
            return page if count(page, "ceph_mds_server_req_create_latency_count") >= 20 else None

        page = eventually(worked, within_s=120.0, every_s=1.0)
        labels = {name: {label for label, _ in found} for name, found in page}
        assert len(READ) > 20
        for name, metric in READ.items():
            assert (name in labels) == metric.written(release, WITH_COUNTERS), name
            if name in labels:
                assert labels[name] == metric.labels_in(release), name
        created = count(page, "ceph_mds_server_req_create_latency_sum")
        assert 0 < created < time.monotonic(), "seconds"
