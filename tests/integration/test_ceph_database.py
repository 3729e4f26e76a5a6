"""OSDs of a real cluster whose database has a small device of its own: it spills over, a compaction brings it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plumbline.collectors import osd
from plumbline.sources.ceph.osds import OsdsReading, find_osds, read_osds
from support.ceph_cluster import CephCluster, ceph_cluster, missing
from support.daemon import eventually

pytestmark = pytest.mark.ceph
SIZE = 256 << 20
"""Less than RocksDB's log may grow to, so that something spills over at the first start."""


@pytest.fixture
def spilled() -> Iterator[CephCluster]:
    if absent := missing():
        pytest.skip(f"{', '.join(absent)} not installed")
    options = {
        "bluestore_block_db_create": "true",
        "bluestore_block_db_size": str(SIZE),
        "bluestore_warn_on_bluefs_spillover": "false",  # a cluster that is not healthy does not start here
    }
    with ceph_cluster(options=options) as cluster:
        yield cluster


def shown(cluster: CephCluster) -> dict[str, float]:
    """Metric → value, of osd.0."""
    (reading,) = read_osds({"osd.0": find_osds([f"{cluster.folder}/run/*.asok"])["osd.0"]}, timeout_s=60)
    return {
        spec.name: value
        for spec, labels, value in osd.samples(OsdsReading((reading,)))
        if labels == ("osd.0",) and isinstance(value, int | float)
    }


def test_a_database_that_spills_over(spilled: CephCluster) -> None:
    spilled.add_pool("objects", pg_num=16)
    spilled.run("rados", "-p", "objects", "bench", "5", "write", "-b", "4096", "-t", "32", "--no-cleanup")
    before = shown(spilled)
    assert SIZE * 0.9 < before["plumbline_osd_database_size_bytes"] <= SIZE
    assert 0 < before["plumbline_osd_database_used_bytes"] < SIZE
    assert before["plumbline_osd_database_spilled_bytes"] > 0
    counted = spilled.daemon("osd.0", "perf", "dump")["bluefs"]
    assert before["plumbline_osd_database_spilled_bytes"] == pytest.approx(counted["slow_used_bytes"], rel=0.2)
    assert before["plumbline_osd_bluefs_log_compactions_total"] == counted["compact_lat"]["avgcount"]

    spilled.ceph("tell", "osd.0", "compact")

    def back() -> bool:
        return shown(spilled)["plumbline_osd_database_spilled_bytes"] < before["plumbline_osd_database_spilled_bytes"]

    eventually(back, within_s=60.0, every_s=1.0)
    newer = int(spilled.release.split(".")[0]) >= 18
    assert ("plumbline_osd_database_compaction_seconds" in shown(spilled)) == newer
