"""The map of a real cluster: OSDs that moved in CRUSH, pools of every kind, one that is out, a manager that hangs."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plumbline.background.ceph import CephMapWatch
from plumbline.collectors import cephmap
from plumbline.commands.ceph.setup import MON_CAPS
from plumbline.config.model import CephConfig, Config
from plumbline.core.roots import Roots
from support.ceph_cluster import WITHIN_S, CephCluster, missing
from support.daemon import Daemon, eventually, running
from support.scraped import Scrape

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.skipif(bool(missing("getconf")), reason="Ceph is not installed"),
]
USER = "client.mapreader"
OSDS = ("osd.0", "osd.1", "osd.2")
OSD_BYTES = 4 << 30
PLACES = {
    "osd.0": {"rack": "rack-a", "host": "store-1", "device_class": "hdd"},
    "osd.1": {"rack": "rack-a", "host": "store-2", "device_class": "hdd"},
    "osd.2": {"rack": "rack-b", "host": "store-3", "device_class": "ssd"},
}
POOLS = ("map-any", "map-cold", "map-racks", "map-coded")
PREFIX = "plumbline_ceph_"


def config_of(ceph: CephCluster, word: str = "always") -> dict[str, Any]:
    return {
        "probes": [],
        "ceph": {"conf": str(ceph.conf), "user": USER.removeprefix("client."), "map": word, "timeout": "2s"},
    }


def _moves() -> Iterator[str]:
    yield "osd crush add-bucket east room root=default"
    for rack, above in (("rack-a", "room=east"), ("rack-b", "root=default")):
        yield f"osd crush add-bucket {rack} rack {above}"
    for osd, place in PLACES.items():
        yield f"osd crush add-bucket {place['host']} host rack={place['rack']}"
        yield f"osd crush move {osd} root=default rack={place['rack']} host={place['host']}"
    yield "osd crush rm-device-class osd.2"
    yield "osd crush set-device-class ssd osd.2"
    yield "osd crush rule create-replicated map-cold default host hdd"
    yield "osd crush rule create-replicated map-racks default rack"
    yield "osd erasure-code-profile set map-two-one k=2 m=1 crush-failure-domain=host"
    for pool in ("map-any", "map-cold", "map-racks"):
        yield f"osd pool create {pool} 8 8 replicated {'replicated_rule' if pool == 'map-any' else pool}"
    yield "osd pool create map-coded 8 8 erasure map-two-one"
    yield "osd pool set map-any size 3"
    yield "osd pool set map-any min_size 2"
    for pool in POOLS:
        yield f"osd pool application enable {pool} plumbline"


def _moves_back() -> Iterator[str]:
    for rule in ("map-cold", "map-racks", "map-coded"):
        yield f"osd crush rule rm {rule}"
    yield "osd erasure-code-profile rm map-two-one"
    yield "osd crush rm-device-class osd.2"
    yield "osd crush set-device-class hdd osd.2"
    for number, place in enumerate(PLACES.values()):
        yield f"osd crush move osd.{number} root=default host=node-{number}"
        yield f"osd crush rm {place['host']}"
    for bucket in ("rack-a", "rack-b", "east"):
        yield f"osd crush rm {bucket}"


@pytest.fixture(scope="module")
def moved(shared_ceph: CephCluster) -> Iterator[CephCluster]:
    """Three hosts of other names in two racks, one in a room; one OSD of another class, four pools, and a user with the
    least rights."""
    ceph = shared_ceph
    ceph.ceph_all(*_moves())
    ceph.add_user(USER, {"mon": MON_CAPS})
    ceph.wait_clean()
    ceph.run("rados", "-p", "map-coded", "bench", "2", "write", "-b", "65536", "--no-cleanup")
    yield ceph
    ceph.heal()
    ceph.remove_user(USER)
    for pool in POOLS:
        ceph.remove_pool(pool)
    ceph.ceph_all(*_moves_back())
    ceph.wait_healthy()


@pytest.fixture(scope="module")
def daemon(moved: CephCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("map"), config=config_of(moved)) as started:
        eventually(lambda: started.metrics().get(f"{PREFIX}map_timestamp_seconds"), within_s=WITHIN_S, every_s=0.5)
        yield started


def looked_again(daemon: Daemon, ceph: CephCluster) -> Scrape:
    """The page after another look, which a reload brings at once; also where that look failed."""
    before = daemon.metrics().get(f"{PREFIX}map_timestamp_seconds")
    daemon.reload(config_of(ceph))
    eventually(lambda: daemon.metrics().get(f"{PREFIX}map_timestamp_seconds") != before, within_s=WITHIN_S, every_s=0.5)
    return daemon.metrics()


def infos(page: Scrape, name: str, key: str) -> dict[str, dict[str, str]]:
    """``key``'s value → the other labels."""
    series = page.series(f"{PREFIX}{name}")
    return {each.labels[key]: {name: text for name, text in each.labels.items() if name != key} for each in series}


def test_everything_is_on_the_page(moved: CephCluster, daemon: Daemon) -> None:
    page = looked_again(daemon, moved)
    assert page.get("plumbline_collector_available", collector="cephmap") == 1
    assert page.get("plumbline_collector_success", collector="cephmap") == 1
    # of erasure coded pools; of Ceph 20, where tracking is switched on
    absent = {cephmap.POOL_READ_UNIT, cephmap.POOL_AVAILABLE, cephmap.POOL_UP, cephmap.POOL_DOWN, cephmap.POOL_FAILURES}
    assert {spec.name for spec in cephmap.COLLECTOR.specs if spec not in absent} <= page.names()
    assert infos(page, "osd_crush_location_info", "ceph_daemon") == {
        osd: {**place, "root": "default"} for osd, place in PLACES.items()
    }
    room = {"bucket_type": "room", "bucket": "east"}
    assert infos(page, "osd_crush_bucket_info", "ceph_daemon") == {"osd.0": room, "osd.1": room}
    for osd in OSDS:
        assert page.get(f"{PREFIX}osd_size_bytes", ceph_daemon=osd) == OSD_BYTES
        used = page.get(f"{PREFIX}osd_used_bytes", ceph_daemon=osd)
        assert used is not None
        assert 0 < used < OSD_BYTES
        assert page.get(f"{PREFIX}osd_in", ceph_daemon=osd) == 1
        assert page.get(f"{PREFIX}osd_reweight_ratio", ceph_daemon=osd) == 1
    limits = {each.labels["limit"]: each.value for each in page.series(f"{PREFIX}full_ratio")}
    assert limits == {"nearfull": 0.85, "backfillfull": 0.9, "full": 0.95}
    stamp = page.get(f"{PREFIX}map_timestamp_seconds")
    assert stamp is not None
    assert 0 <= time.time() - stamp < WITHIN_S


def test_pools(moved: CephCluster, daemon: Daemon) -> None:
    numbers = {each["poolname"]: str(each["poolnum"]) for each in moved.ceph_json("osd", "lspools")}
    page = looked_again(daemon, moved)
    told = infos(page, "pool_info", "pool")
    plain = {"pool_type": "replicated", "root": "default", "device_class": "", "failure_domain": "host"}
    expected = {
        "map-any": plain,
        "map-cold": {**plain, "device_class": "hdd"},
        "map-racks": {**plain, "failure_domain": "rack"},
        "map-coded": {**plain, "pool_type": "erasure"},
    }
    assert {pool: told[pool] for pool in POOLS} == {
        pool: {**labels, "pool_id": numbers[pool]} for pool, labels in expected.items()
    }
    figures = {
        pool: tuple(
            page.get(f"{PREFIX}pool_{name}", pool_id=numbers[pool]) for name in ("copies", "copies_min", "raw_ratio")
        )
        for pool in POOLS
    }
    assert figures == {
        "map-any": (3, 2, 3), "map-cold": (2, 1, 2), "map-racks": (2, 1, 2), "map-coded": (3, 2, 1.5),
    }  # fmt: skip

    def sizes_are_the_clusters() -> bool:  # what was written comes to the manager's knowledge within seconds
        page = looked_again(daemon, moved)
        df = {each["name"]: each["stats"] for each in moved.ceph_json("df")["pools"]}
        stored = page.get(f"{PREFIX}pool_stored_bytes", pool_id=numbers["map-coded"])
        available = {pool: page.get(f"{PREFIX}pool_max_avail_bytes", pool_id=numbers[pool]) for pool in POOLS}
        expected = {pool: pytest.approx(df[pool]["max_avail"], rel=0.05) for pool in POOLS}
        return bool(stored == df["map-coded"]["stored"] > 0) and available == expected

    eventually(sizes_are_the_clusters, within_s=WITHIN_S, every_s=1)


def test_one_that_is_out_keeps_its_place(moved: CephCluster, daemon: Daemon) -> None:
    def size_of(page: Scrape) -> float | None:
        return page.get(f"{PREFIX}osd_size_bytes", ceph_daemon="osd.1")

    moved.ceph("osd", "out", "1")
    moved.ceph("osd", "reweight", "0", "0.5")
    try:
        page = looked_again(daemon, moved)
        assert page.get(f"{PREFIX}osd_in", ceph_daemon="osd.1") == 0
        assert page.get(f"{PREFIX}osd_reweight_ratio", ceph_daemon="osd.1") == 0
        assert page.get(f"{PREFIX}osd_reweight_ratio", ceph_daemon="osd.0") == pytest.approx(0.5, abs=1e-4)
        assert infos(page, "osd_crush_location_info", "ceph_daemon")["osd.1"]["host"] == "store-2"
        # the manager forgets its size at its next look
        eventually(lambda: size_of(looked_again(daemon, moved)) is None, within_s=WITHIN_S, every_s=1)
        assert size_of(daemon.metrics()) is None
    finally:
        moved.ceph("osd", "in", "1")
        moved.ceph("osd", "reweight", "0", "1")
    eventually(lambda: size_of(looked_again(daemon, moved)) == OSD_BYTES, within_s=WITHIN_S, every_s=1)
    moved.wait_clean()


def test_without_a_manager(moved: CephCluster, daemon: Daemon, tmp_path: Path) -> None:
    """Who knew the map keeps it for a while; to who asks anew nothing is said of what is used."""
    used = {f"{PREFIX}{name}" for name in ("osd_size_bytes", "osd_used_bytes", "pool_stored_bytes")}
    used.add(f"{PREFIX}pool_max_avail_bytes")
    looked_again(daemon, moved)
    (manager,) = moved.managers
    moved.freeze(f"mgr.{manager}")
    try:
        daemon.reload(config_of(moved))
        eventually(lambda: "the last map is shown" in daemon.said(), within_s=WITHIN_S, every_s=0.5)
        page = daemon.metrics()
        assert used <= page.names()
        assert page.get("plumbline_collector_success", collector="cephmap") == 1
        with running(tmp_path, config=config_of(moved)) as started:
            stamp = f"{PREFIX}map_timestamp_seconds"
            eventually(lambda: started.metrics().get(stamp), within_s=WITHIN_S, every_s=0.5)
            page = started.metrics()
            assert not used & page.names(), "what the manager said last is not said as if it were now"
            assert infos(page, "osd_crush_location_info", "ceph_daemon").keys() == set(OSDS)
            assert page.get("plumbline_collector_success", collector="cephmap") == 1
            skipped = page.get("plumbline_collector_items_skipped_total", collector="cephmap", reason="unreadable")
            assert skipped is not None
            assert skipped > 0
    finally:
        moved.thaw(f"mgr.{manager}")
    looked_again(daemon, moved)


def test_how_available_a_pool_is(moved: CephCluster, daemon: Daemon) -> None:
    if int(moved.release.split(".")[0]) < 20:
        pytest.skip(f"Ceph {moved.release} does not track it")
    (number,) = (str(each["poolnum"]) for each in moved.ceph_json("osd", "lspools") if each["poolname"] == "map-any")

    def figure(name: str) -> float | None:
        return looked_again(daemon, moved).get(f"{PREFIX}pool_{name}", pool_id=number)

    assert figure("available") is None, "not tracked"
    moved.ceph("config", "set", "mon", "enable_availability_tracking", "true")
    try:
        eventually(lambda: figure("available") == 1, within_s=WITHIN_S, every_s=1)
        eventually(lambda: (figure("available_seconds_total") or 0) > 0, within_s=WITHIN_S, every_s=1)
        failures = figure("failures_total")
        assert failures is not None
        moved.kill_osd(0)
        moved.kill_osd(1)
        eventually(lambda: figure("available") == 0, within_s=WITHIN_S, every_s=1)
        moved.start_osd(0)
        moved.start_osd(1)
        eventually(lambda: figure("available") == 1, within_s=WITHIN_S, every_s=1)
        assert figure("failures_total") == failures + 1
        assert (figure("unavailable_seconds_total") or 0) > 0
    finally:
        moved.heal()
        moved.ceph("config", "rm", "mon", "enable_availability_tracking")


def test_only_where_it_makes_sense(moved: CephCluster, tmp_path: Path) -> None:
    """No monitor is set up in this machine's usual places: the test's lives elsewhere."""
    with running(tmp_path, config=config_of(moved, "auto")) as started:
        page = started.metrics()
        assert page.get("plumbline_collector_available", collector="cephmap") == 0
        assert page.get("plumbline_collector_success", collector="cephmap") == 1
        assert not any(name.startswith(PREFIX) for name in page.names())
        assert "ceph.map: always queries the map anyway" in started.page()


def test_its_cost(moved: CephCluster) -> None:
    """Printed. A look is a process: most of it is its start."""
    ceph = CephConfig(conf=str(moved.conf), user=USER.removeprefix("client."), map="always")
    watch = CephMapWatch(lambda: Config(ceph=ceph), roots=Roots.under(Path("/")), environment=os.environ)
    used = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        watch.map.refresh()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert watch.map.value.pools
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"a look: {statistics.median(used) * 1e3:.0f} ms of CPU time")
