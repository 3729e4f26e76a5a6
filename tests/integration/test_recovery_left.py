"""How long a recovery still takes: what the rules say when half of it is done, and when it really ended.

A real cluster whose OSD is taken out, with the shipped rules over shorter spans. Five times, at five paces.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from support.ceph_cluster import CephCluster, missing
from support.daemon import eventually
from support.prometheus import Prometheus, prometheus
from support.rules import rendered

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.calm,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(missing("prometheus")), reason="Ceph or Prometheus is not installed"),
]
POOL = "moving"
OBJECTS = 3000
SITE = "{ _config+:: { recovery+: { spans: ['60s', '150s'] } } }"
PACE = {"osd_recovery_max_active": 1, "osd_max_backfills": 1, "osd_delete_sleep": 0.01}
TOLERANCE = 0.2
WITHIN_S = 600.0


@pytest.fixture(scope="module")
def watched(shared_ceph: CephCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Two hundred groups of two copies each, which move one object at a time."""
    folder = tmp_path_factory.mktemp("prometheus")
    shared_ceph.add_pool(POOL, size=2, pg_num=200)
    words = ("bench", "600", "write", "-b", "4K", "-t", "32", "--max-objects", str(OBJECTS), "--no-cleanup")
    shared_ceph.run("rados", "-p", POOL, *words)
    shared_ceph.ceph_all(*(f"config set osd {name} {value}" for name, value in PACE.items()))
    (port,) = shared_ceph.managers.values()
    rules = rendered(folder, SITE)
    with prometheus(folder, interval_s=2, rules=rules, others={"ceph": f"127.0.0.1:{port}"}) as server:
        yield server
    shared_ceph.ceph_all(*(f"config rm osd {name}" for name in PACE))
    shared_ceph.remove_pool(POOL)


def copies_left(server: Prometheus) -> float:
    return sum(value for _, value in server.query("plumbline:recovery_left:copies"))


def told(server: Prometheus) -> list[float]:
    return sorted(value for _, value in server.query("plumbline:recovery_left:seconds"))


def strays(ceph: CephCluster) -> int:
    counters = [ceph.daemon(f"osd.{number}", "perf", "dump", "osd")["osd"] for number in range(3)]
    return sum(each["numpg_stray"] + each["numpg_removing"] for each in counters)


@pytest.mark.parametrize("sleep_s", [0.2, 0.25, 0.3, 0.35, 0.4])
def test_the_range_at_half_way_holds_the_end(ceph: CephCluster, watched: Prometheus, sleep_s: float) -> None:
    ceph.ceph("config", "set", "osd", "osd_recovery_sleep", str(sleep_s))
    ceph.ceph("osd", "out", "0")
    try:
        eventually(lambda: copies_left(watched), until=lambda copies: copies > OBJECTS / 4, within_s=60)
        most = copies_left(watched)
        while (copies := copies_left(watched)) > most / 2:
            most = max(most, copies)
            time.sleep(1)
        at, bounds = time.monotonic(), told(watched)
        eventually(lambda: copies_left(watched) == 0, within_s=WITHIN_S, every_s=1)
        took_s = time.monotonic() - at
        assert bounds, "nothing was told at half-way"
        assert bounds[0] * (1 - TOLERANCE) <= took_s <= bounds[-1] * (1 + TOLERANCE), (bounds, took_s)
        assert bounds[-1] <= 2 * bounds[0], "a range that says nothing"
        print(f"sleep {sleep_s}: {bounds} told, {took_s:.0f} s")
    finally:
        ceph.ceph("config", "rm", "osd", "osd_recovery_sleep")
        ceph.ceph("osd", "in", "0")
        ceph.wait_clean(WITHIN_S)
        # where a group was before, its data lies until it is deleted: the next time nothing would have to move
        eventually(lambda: strays(ceph), until=lambda groups: groups == 0, within_s=WITHIN_S, every_s=1)
        eventually(lambda: copies_left(watched) == 0, within_s=60, every_s=1)
