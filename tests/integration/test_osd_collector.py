"""The OSD collector and ``plumbline ceph top`` on a real cluster: all is there, percentiles are fio's, one that hangs
hurts nobody."""

from __future__ import annotations

import json
import re
import stat
import statistics
import subprocess
import time
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from plumbline.background.ceph import OSDS_EVERY_S, TIMEOUT_S
from plumbline.collectors import osd
from plumbline.core.histogram import HistogramValue
from plumbline.probes.run.histogram import quantile
from plumbline.sources.ceph.osd_perf import EDGES
from plumbline.sources.ceph.osds import find_osds, read_osds
from support.ceph_cluster import WITHIN_S, CephCluster, missing
from support.daemon import COMMAND, Daemon, eventually, running, write_config

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.skipif(bool(missing("fio")), reason="Ceph or fio is not installed"),
]
OSDS = ("osd.0", "osd.1", "osd.2")
POOL = "percentiles"
FIO_S = 20
STEPS = 3 * OSDS_EVERY_S + TIMEOUT_S
"""Seconds within which what an OSD says is on the page, and some for a busy machine."""
NOT_HERE = {osd.LIMIT_IOPS, osd.LIMIT_BYTES, osd.CPU_PERIODS, osd.CPU_THROTTLED}
"""No limit is set for the cluster's control group."""


def config_of(ceph: CephCluster) -> dict[str, Any]:
    return {"probes": [], "ceph": {"admin_sockets": [f"{ceph.folder}/run/*-osd.*.asok"]}}


@pytest.fixture(scope="module")
def daemon(shared_ceph: CephCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("osds")
    with running(folder, config=config_of(shared_ceph)) as started:
        yield started


@pytest.fixture
def pool(ceph: CephCluster) -> Iterator[str]:
    ceph.add_pool(POOL)
    yield POOL
    ceph.heal()
    ceph.remove_pool(POOL)


def fio(ceph: CephCluster, *, depth: int, runtime_s: int = FIO_S) -> Any:
    """Its job's result: 4 KiB random writes through RADOS on objects that are there already."""
    argv = (
        "fio", "--name=w", "--ioengine=rados", "--clientname=admin", f"--conf={ceph.conf}", f"--pool={POOL}",
        "--rw=randwrite", "--bs=4k", "--size=8m", "--nrfiles=32", f"--iodepth={depth}", "--time_based",
        f"--runtime={runtime_s}", "--touch_objects=0", "--lat_percentiles=1", "--clat_percentiles=0",
        "--percentile_list=50:90:99",
        "--output-format=json",
    )  # fmt: skip
    said = ceph.run(*argv)
    return json.loads(said[said.index("{") :])["jobs"][0]


def writes_of(ceph: CephCluster) -> HistogramValue:
    """All OSDs' writes since their starts."""
    readings = read_osds(find_osds(config_of(ceph)["ceph"]["admin_sockets"]), timeout_s=WITHIN_S)
    each = [reading.latencies["write"] for reading in readings]
    assert len(each) == len(OSDS), readings
    cumulative = tuple(sum(column) for column in zip(*(one.cumulative for one in each), strict=True))
    return HistogramValue(EDGES, cumulative, sum(one.count for one in each), sum(one.sum for one in each))


def exported(daemon: Daemon) -> HistogramValue:
    """The same from the daemon's page, as Prometheus would sum it up."""
    page, name = daemon.metrics(), "plumbline_osd_latency_seconds"
    by_edge: dict[float, float] = {}
    for sample in page.series(f"{name}_bucket", operation="write"):
        edge = float(sample.labels["le"])
        by_edge[edge] = by_edge.get(edge, 0) + sample.value
    cumulative = tuple(int(by_edge[edge]) for edge in EDGES)
    count, total = (page.total(f"{name}_{part}", operation="write") for part in ("count", "sum"))
    return HistogramValue(EDGES, cumulative, int(count), total)


@pytest.mark.smoke
def test_everything_an_osd_says_is_on_the_page(ceph: CephCluster, daemon: Daemon) -> None:
    def all_there() -> bool:  # pings are averages of a minute, which have to pass after the start
        page = daemon.metrics()
        late = (osd.HEARTBEAT, osd.HEARTBEAT_WORST, osd.FRAGMENTATION, osd.ONODES)
        return all(page.labels(spec.name, "ceph_daemon") == set(OSDS) for spec in late)

    eventually(all_there, within_s=WITHIN_S, every_s=1)
    page = daemon.metrics()
    assert page.get("plumbline_collector_available", collector="osd") == 1
    assert page.labels("plumbline_osd_socket_up", "ceph_daemon") == set(OSDS)
    # Ceph 16 schedules with wpq unless told otherwise
    mclock = ceph.daemon("osd.0", "config", "get", "osd_op_queue")["osd_op_queue"] == "mclock_scheduler"
    absent = NOT_HERE if mclock else NOT_HERE | {osd.CAPACITY, osd.QUEUED, osd.SHARE}
    # none has ended, no cache tier is there, and the site names no pools of clients
    absent = absent | {osd.ENDED, osd.TIER, osd.CLIENT}
    # of a database on a device of its own, and of compactions that somebody asked for
    absent = absent | {osd.DB_SIZE, osd.DB_USED, osd.DB_SPILLED, osd.DB_COMPACTION}
    # there once the test below has run on this cluster
    compressing = {osd.COMPRESSED, osd.COMPRESSIONS, osd.COMPRESSION_SECONDS}
    for spec in set(osd.COLLECTOR.specs) - compressing:
        found = page.labels(f"{spec.name}{'_count' if spec is osd.LATENCY else ''}", "ceph_daemon")
        assert found == (set() if spec in absent else set(OSDS)), spec.name
    assert page.labels("plumbline_osd_heartbeat_seconds", "interface") == {"front", "back"}
    for each in OSDS:
        assert page.get("plumbline_osd_socket_up", ceph_daemon=each) == 1
        worst = page.get("plumbline_osd_heartbeat_seconds", ceph_daemon=each, interface="back", statistic="worst")
        assert worst is not None
        assert 0 < worst < 20


@pytest.mark.calm
@pytest.mark.parametrize("depth", [1, 4])
def test_percentiles_agree_with_fios_own(ceph: CephCluster, daemon: Daemon, pool: str, depth: int) -> None:
    """The same writes, timed by the client and by the OSDs.

    An OSD's time begins when it has the message and ends with the reply, so a client's is longer by the way there and
    back: no percentile of fio's is below the bucket that holds the OSDs', and it is at most in the next one.
    """
    fio(ceph, depth=depth, runtime_s=3)  # makes the objects, and connections
    before = writes_of(ceph)
    job = fio(ceph, depth=depth)["write"]
    after = writes_of(ceph)
    eventually(lambda: exported(daemon).count >= after.count, within_s=STEPS + WITHIN_S, every_s=1)
    shown = exported(daemon)
    assert (shown.count, shown.cumulative) == (after.count, after.cumulative)
    grown = HistogramValue(
        EDGES,
        tuple(late - early for early, late in zip(before.cumulative, shown.cumulative, strict=True)),
        shown.count - before.count,
        shown.sum - before.sum,
    )
    assert grown.count == pytest.approx(job["total_ios"], rel=0.02, abs=40), "the same operations"
    assert grown.sum / grown.count < job["lat_ns"]["mean"] / 1e9
    compared = {}
    for percent in (50, 90, 99):
        client_s = job["lat_ns"]["percentile"][f"{percent}.000000"] / 1e9
        osds_s = quantile(grown, percent / 100)
        assert osds_s is not None
        compared[percent] = f"fio {client_s * 1e3:.2f} ms, OSDs {osds_s * 1e3:.2f} ms"
        bucket = bisect_left(EDGES, osds_s)
        print(f"p{percent} at {depth} in flight, {grown.count} writes: {compared[percent]}")
        lower = EDGES[bucket - 1] if bucket else 0.0
        # fio's own buckets are 1.6 % wide
        assert lower / 1.016 <= client_s <= EDGES[bucket + 1] * 1.016, compared


def top(folder: Path, ceph: CephCluster, *flags: str) -> subprocess.CompletedProcess[str]:
    argv = [*COMMAND, "ceph", "top", "--config.file", write_config(folder, config_of(ceph)), *flags]
    return subprocess.run(argv, capture_output=True, text=True, timeout=WITHIN_S, check=False)


def test_top_shows_what_is_going_on(ceph: CephCluster, pool: str, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool_of_threads:
        writing = pool_of_threads.submit(fio, ceph, depth=4, runtime_s=40)
        time.sleep(5)
        said = top(tmp_path, ceph, "--json", "--interval", "10s")
        text = top(tmp_path, ceph, "--once", "--interval", "5s").stdout
        done = writing.result()["write"]
    assert said.returncode == 0, said.stderr
    shown = json.loads(said.stdout)
    print(text)
    assert {each["daemon"] for each in shown["osds"]} == set(OSDS)
    rate = sum(each["operations_per_s"] for each in shown["osds"])
    assert done["iops"] / 3 < rate < done["iops"] * 3
    for each in shown["osds"]:
        assert each["answers"]
        assert each["split_of"] == "write"
        parts = each["queue_s"] + each["store_s"] + each["peers_s"]
        assert 0 < parts <= each["mean_s"]
        assert 0 < each["p50_s"] <= each["p99_s"]
        assert each["blocked"] == 0
    p99 = [each["p99_s"] for each in shown["osds"]]
    assert p99 == sorted(p99, reverse=True)
    assert text.splitlines()[0].startswith("3 OSDs, ")


def test_one_that_hangs_is_named_and_hurts_nobody(ceph: CephCluster, daemon: Daemon, pool: str, tmp_path: Path) -> None:
    def socket_up(name: str) -> float | None:
        return daemon.metrics().get("plumbline_osd_socket_up", ceph_daemon=name)

    eventually(lambda: all(socket_up(each) == 1 for each in OSDS), within_s=WITHIN_S, every_s=1)
    before = scrape_s(daemon)
    ceph.freeze_osd(0)
    try:
        eventually(lambda: socket_up("osd.0") == 0, within_s=STEPS + WITHIN_S, every_s=0.5)
        page = daemon.metrics()
        assert page.labels("plumbline_osd_socket_up", "ceph_daemon") == set(OSDS)
        for spec in (
            osd.LATENCY,
            osd.HEARTBEAT,
            osd.HEARTBEAT_WORST,
            osd.BLOCKED,
            osd.BLOCKED_AGE,
            osd.SLOW,
            osd.ONODES,
        ):
            name = f"{spec.name}{'_count' if spec is osd.LATENCY else ''}"
            assert page.labels(name, "ceph_daemon") == {"osd.1", "osd.2"}, "what it said before is not kept"
        during = scrape_s(daemon)
        print(f"a scrape: {before * 1e3:.1f} ms before, {during * 1e3:.1f} ms while one hangs")
        assert during < max(10 * before, TIMEOUT_S / 10)
        said = json.loads(top(tmp_path, ceph, "--json", "--interval", "1s").stdout)
        hung, *others = said["osds"]
        assert (hung["daemon"], hung["answers"], hung["suspicion"]["word"]) == ("osd.0", False, "hung")
        assert re.search(r"no answer within 5 s|hangs: it accepts no connection", hung["suspicion"]["reason"])
        assert [each["answers"] for each in others] == [True, True]
        # the others are read on: what is written to them is counted, once the cluster does without the one
        eventually(lambda: "OSD_DOWN" in ceph.ceph_json("health")["checks"], within_s=WITHIN_S, every_s=1)
        count = exported(daemon).count
        fio(ceph, depth=1, runtime_s=3)
        eventually(lambda: exported(daemon).count > count, within_s=STEPS + WITHIN_S, every_s=1)
    finally:
        ceph.thaw_osd(0)
    eventually(lambda: socket_up("osd.0") == 1, within_s=STEPS + WITHIN_S, every_s=1)


def scrape_s(daemon: Daemon) -> float:
    """Median seconds of a scrape."""
    took = []
    for _ in range(15):
        began = time.perf_counter()
        daemon.metrics()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def test_sockets_are_their_owners_alone_unless_told_otherwise(ceph: CephCluster) -> None:
    """What docs/ceph.md says of rights: others and the group may not write, so not connect, until an option says so."""
    assert mode(ceph.socket("osd.2")) == 0o755
    ceph.ceph("config", "set", "osd", "admin_socket_mode", "0770")
    try:
        ceph.stop_osd(2)
        ceph.start_osd(2)
        assert mode(ceph.socket("osd.2")) == 0o770
        assert mode(ceph.socket("osd.1")) == 0o755, "taken up at the start only"
    finally:
        ceph.ceph("config", "rm", "osd", "admin_socket_mode")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.smoke
def test_what_is_compressed(ceph: CephCluster, pool: str, daemon: Daemon, tmp_path: Path) -> None:
    for name, value in (("compression_algorithm", "zlib"), ("compression_mode", "force")):
        ceph.ceph("osd", "pool", "set", pool, name, value)
    written = 4 << 20
    (tmp_path / "words").write_bytes(b"the same again " * (written // 15 + 1))

    def sizes() -> dict[str, float]:
        # written again each time: a replica takes a write before its placement group has the pool's new options
        ceph.run("rados", "-p", pool, "put", "words", str(tmp_path / "words"))
        page = daemon.metrics()
        return {size: page.total(osd.COMPRESSED.name, size=size) for size in ("stored", "compressed", "allocated")}

    found = eventually(sizes, until=lambda now: now["stored"] >= 2 * written, within_s=STEPS + WITHIN_S, every_s=5)
    assert found["compressed"] <= found["allocated"] <= found["stored"] / 2
    page = daemon.metrics()
    assert page.total(osd.COMPRESSIONS.name, result="success") > 0
    assert page.total(osd.COMPRESSION_SECONDS.name) > 0
