"""OSDs' answers as samples, from sockets of the test that say what a real Ceph 16.2.15 said."""

import json
import os
import socket
import threading
from functools import partial
from pathlib import Path

import pytest

from plumbline.background.ceph import LIMITS_EVERY_S, OSD_CLIENTS_RUNS, LimitsMemory, OsdWatch
from plumbline.collectors import osd
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.metrics.spec import Kind
from plumbline.sources.ceph import adminsocket
from plumbline.sources.ceph.osd_clients import Owner
from plumbline.sources.ceph.osd_perf import EDGES, OPERATIONS, Compression, SetOption
from plumbline.sources.ceph.osds import OsdReading, OsdsReading, OsdState, find_osds, read_osds, read_stores
from plumbline.sources.kernel.cgroup import read_limits
from support.admin_sockets import serving
from support.osd_fleet import answers as fleet_answers

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOADED = FIXTURES / "ceph-16.2-states" / "load-2"


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("s")


@pytest.fixture
def answers():
    files = {
        "perf dump": "perf-dump",
        "perf histogram dump": "perf-histogram-dump",
        "dump_osd_network": "dump_osd_network",
    }
    return {
        **{prefix: (LOADED / f"{name}.json").read_bytes() for prefix, name in files.items()},
        "dump_blocked_ops": (FIXTURES / "ceph-16.2" / "dump_ops_in_flight.json").read_bytes(),
        "dump_historic_slow_ops": (FIXTURES / "ceph-16.2" / "dump_historic_slow_ops.json").read_bytes(),
        "bluestore allocator score block": b'{"fragmentation_rating": 0.25}',
    }


@pytest.fixture
def limited(tmp_path):
    """A host on which this process, that plays the OSDs, has limits of every kind."""
    group = tmp_path / "sys/fs/cgroup/osd"
    group.mkdir(parents=True)
    (tmp_path / f"proc/{os.getpid()}").mkdir(parents=True)
    (tmp_path / f"proc/{os.getpid()}/cgroup").write_text("0::/osd\n")
    (group / "io.max").write_text("8:16 rbps=1048576 wbps=max riops=max wiops=30\n")
    (group / "cpu.max").write_text("50000 100000\n")
    (group / "cpu.stat").write_text("nr_periods 1200\nnr_throttled 480\n")
    return Roots.under(tmp_path)


def shown(osds, stores=()):
    return {(spec.name, *labels): value for spec, labels, value in osd.samples(OsdsReading(osds, stores))}


@pytest.mark.parametrize(
    ("release", "reads", "writes", "subops"), [("18.2", 4838, 4611, 4631), ("20.2", 8278, 7114, 8212)]
)
def test_what_an_osd_of_a_newer_release_says(folder, release, reads, writes, subops):
    files = {
        "perf dump": "perf-dump",
        "perf histogram dump": "perf-histogram-dump",
        "dump_osd_network": "dump_osd_network",
        "dump_blocked_ops": "dump_blocked_ops-none",
        "dump_historic_slow_ops": "dump_historic_slow_ops-none",
        "bluestore allocator score block": "allocator-score",
        "config get": "config",
    }
    captured = {prefix: (FIXTURES / f"ceph-{release}" / f"{name}.json").read_bytes() for prefix, name in files.items()}
    with serving(folder / "ceph-osd.7.asok", captured):
        sockets = find_osds([f"{folder}/*.asok"])
        found = shown(read_osds(sockets, timeout_s=60), read_stores(sockets, timeout_s=60))
    assert found["plumbline_osd_socket_up", "osd.7"] == 1
    assert found["plumbline_osd_latency_seconds", "osd.7", "read"].count == reads
    assert found["plumbline_osd_latency_seconds", "osd.7", "write"].count == writes
    assert found["plumbline_osd_subops_total", "osd.7"] == subops
    assert found["plumbline_osd_heartbeat_worst_peer_id", "osd.7", "back"] == 2
    assert found["plumbline_osd_blocked_operations", "osd.7", "peer"] == 0
    assert found["plumbline_osd_onode_lookups_total", "osd.7", "hit"] > 20_000
    shares = {tuple(labels): ratio for (name, *labels), ratio in found.items() if name.endswith("mclock_share_ratio")}
    assert shares == {
        ("osd.7", "balanced", "client", "reservation"): 0.5,
        ("osd.7", "balanced", "recovery", "reservation"): 0.5,
        ("osd.7", "balanced", "best_effort", "reservation"): 0.0 if release == "18.2" else 0.05,
        ("osd.7", "balanced", "best_effort", "limit"): 0.9,
    }
    for kind in ("immediate", "client", "recovery", "best_effort"):
        assert found["plumbline_osd_mclock_queued_operations", "osd.7", kind] == 0


def test_everything_an_osd_says(folder, answers):
    with serving(folder / "ceph-osd.7.asok", answers) as server:
        sockets = find_osds([f"{folder}/*.asok"])
        found = shown(read_osds(sockets, timeout_s=60), read_stores(sockets, timeout_s=60))
    assert found["plumbline_osd_socket_up", "osd.7"] == 1
    assert found["plumbline_osd_latency_seconds", "osd.7", "write"].count > 10_000
    assert found["plumbline_osd_latency_seconds", "osd.7", "read"].count == 0
    assert ("plumbline_osd_latency_seconds", "osd.7", "read-modify-write") not in found
    assert found["plumbline_osd_subops_total", "osd.7"] == 33708
    assert found["plumbline_osd_subop_seconds_total", "osd.7"] == 360.320772641
    assert 0 < found["plumbline_osd_heartbeat_seconds", "osd.7", "back", "median"] < 0.1
    assert found["plumbline_osd_heartbeat_worst_peer_id", "osd.7", "back"] in (1, 2)
    assert found["plumbline_osd_blocked_operations", "osd.7", "peer"] == 2
    assert found["plumbline_osd_blocked_operation_age_seconds", "osd.7"] > 2
    assert found["plumbline_osd_slow_operations", "osd.7", "store"] == 1
    assert found["plumbline_osd_onode_lookups_total", "osd.7", "hit"] > 0
    assert found["plumbline_osd_fragmentation_ratio", "osd.7"] == 0.25
    assert not [name for name, *_ in found if "mclock" in name], "Ceph 16 tells nothing of its queues"
    network = next(each for each in server.asked if each["prefix"] == "dump_osd_network")
    assert network["value"] == 0, "all peers, not only the slow ones"


def test_compression_and_cache_tiers_only_where_they_are_at_work():
    quiet = OsdReading("osd.0", "", OsdState.ANSWERS)
    assert not [key for key in shown((quiet,)) if "compress" in key[0] or "tier" in key[0]]
    busy = OsdReading(
        "osd.0", "", OsdState.ANSWERS, compression=Compression(65536, 4096, 8192, 3, 2, 0.25), tier={"promote": 7}
    )
    found = shown((busy,))
    assert {key: value for key, value in found.items() if key[0] != "plumbline_osd_socket_up"} == {
        ("plumbline_osd_compressed_bytes", "osd.0", "stored"): 65536,
        ("plumbline_osd_compressed_bytes", "osd.0", "compressed"): 4096,
        ("plumbline_osd_compressed_bytes", "osd.0", "allocated"): 8192,
        ("plumbline_osd_compressions_total", "osd.0", "success"): 3,
        ("plumbline_osd_compressions_total", "osd.0", "rejected"): 2,
        ("plumbline_osd_compression_seconds_total", "osd.0"): 0.25,
        ("plumbline_osd_cache_tier_operations_total", "osd.0", "promote"): 7,
    }


def test_one_that_hangs_is_named_and_the_others_are_read(folder, answers):
    with serving(folder / "ceph-osd.1.asok", {}, silent=True), serving(folder / "ceph-osd.2.asok", answers):
        read = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=2)
    found = shown(read)
    assert found["plumbline_osd_socket_up", "osd.1"] == 0
    assert found["plumbline_osd_socket_up", "osd.2"] == 1
    assert {key: value for key, value in found.items() if key[1] == "osd.1"} == {
        ("plumbline_osd_socket_up", "osd.1"): 0,
    }
    assert read[0].state is OsdState.HANGS
    assert "no answer within 2 s" in read[0].why


def test_one_that_ended_does_not_hang(folder):
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(folder / "ceph-osd.1.asok"))
        left_behind.listen()
    (read,) = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=60)
    assert read.state is OsdState.ENDED
    assert read.why.endswith("the daemon ended without removing its socket")
    assert shown([read]) == {("plumbline_osd_socket_ended", "osd.1"): 1}


def test_one_that_ends_while_it_is_queried_has_ended(folder):
    """It accepted some connections, and resets them when it ends."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "ceph-osd.1.asok"))
        listening.listen(2)
        ending = threading.Timer(0.3, listening.close)
        ending.start()
        (read,) = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=10)
        ending.join()
    assert read.state is OsdState.ENDED


def test_one_that_answers_nonsense_does_not_hang(folder):
    with serving(folder / "ceph-osd.1.asok", {}):
        (read,) = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=60)
    assert read.state is OsdState.ANSWERS


def test_one_that_was_not_queried_in_time_is_unknown(folder, answers, monkeypatch):
    monkeypatch.setattr(adminsocket, "AT_ONCE", 5)
    with serving(folder / "ceph-osd.1.asok", {}, silent=True), serving(folder / "ceph-osd.2.asok", answers):
        hangs, unknown = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=0.5)
    assert (hangs.state, unknown.state) == (OsdState.HANGS, OsdState.UNKNOWN)


def test_one_that_may_not_be_asked_is_no_daemon_that_hangs(folder, answers):
    with serving(folder / "ceph-osd.2.asok", answers):
        (read,) = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=60)
    denied = OsdReading("osd.1", "/run/ceph/ceph-osd.1.asok", OsdState.UNKNOWN, why="permission denied")
    found = shown([denied, read])
    assert {key[1] for key in found} == {"osd.2"}


def test_a_part_that_is_garbled_is_left_out_and_counted(folder, answers):
    with serving(folder / "ceph-osd.1.asok", {**answers, "dump_osd_network": b"{"}):
        (read,) = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=60)
    assert read.unread == (("dump_osd_network", "malformed"),)
    assert read.heartbeats == ()
    assert read.latencies["write"].count


def test_limits_of_the_process_that_answers(folder, answers, limited):
    with serving(folder / "ceph-osd.7.asok", answers):
        (read,) = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=60, limits=partial(read_limits, limited))
    found = shown([read])
    assert found["plumbline_osd_cgroup_limit_iops", "osd.7", "8:16", "write", "/osd"] == 30
    assert found["plumbline_osd_cgroup_limit_bytes_per_second", "osd.7", "8:16", "read", "/osd"] == 1048576
    assert found["plumbline_osd_cgroup_cpu_periods_total", "osd.7", "/osd"] == 1200
    assert found["plumbline_osd_cgroup_cpu_throttled_periods_total", "osd.7", "/osd"] == 480
    assert sum("cgroup" in name for name, *_ in found) == 4


def test_a_control_group_that_is_garbled_is_left_out_and_counted(folder, answers, limited):
    (limited.sys / "fs/cgroup/osd/io.max").write_text("sdb\n")
    with serving(folder / "ceph-osd.7.asok", answers):
        (read,) = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=60, limits=partial(read_limits, limited))
    assert read.unread == (("control group", "malformed"),)
    assert read.limits is None
    assert read.latencies["write"].count


def test_the_watch_reads_limits_of_its_host(folder, answers, limited):
    watch = OsdWatch(lambda: [f"{folder}/*.asok"], roots=limited)
    with serving(folder / "ceph-osd.7.asok", answers):
        watch.osds.refresh()
    assert watch.osds.value[0].limits.cpu.periods == 1200


def test_limits_are_read_again_once_a_minute(limited):
    now_s = [1000.0]
    memory, pid = LimitsMemory(limited, clock=lambda: now_s[0]), os.getpid()
    stat = limited.sys / "fs/cgroup/osd/cpu.stat"
    before = memory.of(pid).cpu.periods
    stat.write_text(stat.read_text().replace(str(before), str(before + 1)))
    now_s[0] += LIMITS_EVERY_S - 1
    assert memory.of(pid).cpu.periods == before
    now_s[0] += 1
    assert memory.of(pid).cpu.periods == before + 1
    stat.write_text("nr_periods x\n")
    now_s[0] += LIMITS_EVERY_S
    for _ in range(2):
        with pytest.raises(ParseError):
            memory.of(pid)


def test_slow_operations_of_long_ago_are_left_out(folder, answers):
    long_ago = answers["dump_historic_slow_ops"].replace(b'"age":0.517276107', b'"age":700.5')
    with serving(folder / "ceph-osd.1.asok", {**answers, "dump_historic_slow_ops": long_ago}):
        (read,) = read_osds(find_osds([f"{folder}/*.asok"]), timeout_s=60)
    assert len(read.slow) == 1


@pytest.mark.parametrize(("queue", "expected"), [(b"mclock_scheduler", 21500.0), (b"wpq", None)])
def test_capacity_counts_where_mclock_schedules(folder, queue, expected):
    # every option is asked for by the same command: one answer that holds all
    said = b'{"osd_op_queue": "%s", "osd_mclock_max_capacity_iops_ssd": "21500.000000"}' % queue
    with serving(folder / "ceph-osd.1.asok", {"config get": said}):
        (store,) = read_stores(find_osds([f"{folder}/*.asok"]), timeout_s=60)
    assert store.capacity_iops.get("ssd") == expected
    assert "hdd" not in store.capacity_iops


@pytest.mark.parametrize(
    ("queue", "expected"),
    [(b"mclock_scheduler", {"osd_op_num_shards_hdd": SetOption("1", "5", "mon")}), (b"wpq", None)],
)
def test_shards_matter_where_mclock_schedules(folder, queue, expected):
    said = b'{"diff": {"osd_op_num_shards_hdd": {"default": 1, "mon": 5, "final": 5}}}'
    with serving(folder / "ceph-osd.1.asok", {"config get": b'{"osd_op_queue": "%s"}' % queue, "config diff": said}):
        (store,) = read_stores(find_osds([f"{folder}/*.asok"]), timeout_s=60)
    assert store.shards == expected


def test_the_memory_target_whatever_schedules(folder):
    answer = b'{"osd_op_queue": "wpq", "osd_memory_target": "4294967296"}'
    with serving(folder / "ceph-osd.1.asok", {"config get": answer}):
        (store,) = read_stores(find_osds([f"{folder}/*.asok"]), timeout_s=60)
    assert store.memory_target_bytes == 4294967296


def test_other_daemons_and_second_clusters_are_passed_by(tmp_path):
    for name in ("a/ceph-osd.1.asok", "b/ceph-osd.1.asok", "ceph-mon.a.asok", "ceph-osd.x.asok", "ceph-osd.1.asok.bak"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_osds([f"{tmp_path}/*", f"{tmp_path}/*/*"]) == {"osd.1": tmp_path / "a" / "ceph-osd.1.asok"}


def test_an_osd_has_a_bounded_number_of_series_however_many_peers_it_has(folder, answers, limited):
    """Sixty OSDs on a host are 6,960 series at most; peers, which are hundreds, are summed up."""
    histograms = json.loads(answers["perf histogram dump"])
    used = histograms["osd"]["op_w_latency_in_bytes_histogram"]
    histograms["osd"] |= {name: used for name, _ in OPERATIONS.values()}
    every = {**fleet_answers(peers=300), "perf histogram dump": json.dumps(histograms).encode()}
    counters = json.loads(every["perf dump"])
    counters["osd"]["tier_promote"] = counters.setdefault("bluestore", {})["compress_success_count"] = 1
    every["perf dump"] = json.dumps(counters).encode()
    with serving(folder / "ceph-osd.7.asok", every):
        sockets = find_osds([f"{folder}/*.asok"])
        read = read_osds(sockets, timeout_s=60, limits=partial(read_limits, limited))
        stores = read_stores(sockets, timeout_s=60)
        samples = list(osd.samples(OsdsReading(read, stores, clients={Owner(1, "image", "aa"): 1.0})))
    buckets_sum_count = len(EDGES) + 3
    series = sum(buckets_sum_count if spec.kind is Kind.HISTOGRAM else 1 for spec, _, _ in samples)
    assert {spec.name for spec, _, _ in samples} == {spec.name for spec in osd.COLLECTOR.specs} - {osd.ENDED.name}
    assert series <= 127
    assert len({(spec.name, *labels) for spec, labels, _ in samples}) == len(samples)


def test_a_host_without_osds_has_nothing_to_tell(tmp_path):
    watch = OsdWatch(lambda: [f"{tmp_path}/*.asok"])
    watch.osds.refresh()
    with pytest.raises(Unavailable, match="no OSD's admin socket"):
        print(watch.osds.value)


def in_flight(*objects: str) -> bytes:
    """An OSD's answer with a write to each object, of a client with a number of its own."""
    described = (
        f"osd_op(client.{number}.0:1 1.3 {name}:head [write 0~4096] snapc 0=[] ondisk+write e33)"
        for number, name in enumerate(objects)
    )
    return json.dumps({"ops": [{"description": text} for text in described]}).encode()


IMAGE, OTHER_POOL = "1:c29934cb:::rbd_data.aa.000000000000002c", "2:5e862387:::rbd_data.bb.0000000000000009"


def test_who_has_operations_in_flight_in_the_pools_that_a_site_names(folder):
    pools = [1, 3]
    watch = OsdWatch(lambda: [f"{folder}/*.asok"], client_pools=lambda: pools)
    answers = {"dump_ops_in_flight": in_flight(IMAGE, IMAGE, OTHER_POOL, "3:0a:mine::photos")}
    with serving(folder / "ceph-osd.1.asok", answers), serving(folder / "ceph-osd.2.asok", answers):
        watch.clients.refresh()
    seen = watch.clients.value
    assert seen == {Owner(1, "image", "aa"): 4.0, Owner(3, "objects", "mine"): 2.0}
    assert [(spec.name, *labels, value) for spec, labels, value in osd.samples(OsdsReading(clients=seen))] == [
        ("plumbline_osd_client_operations", "1", "image", "aa", 4.0),
        ("plumbline_osd_client_operations", "3", "objects", "mine", 2.0),
    ]


def test_a_burst_counts_as_long_as_it_was_seen_and_what_ended_is_forgotten(folder):
    watch = OsdWatch(lambda: [f"{folder}/*.asok"], client_pools=lambda: [1])
    with serving(folder / "ceph-osd.1.asok", {"dump_ops_in_flight": in_flight(IMAGE)}):
        watch.clients.refresh()
    with serving(folder / "again-osd.1.asok", {"dump_ops_in_flight": in_flight()}):
        (folder / "ceph-osd.1.asok").unlink()
        watch.clients.refresh()
        assert watch.clients.value == {Owner(1, "image", "aa"): 0.5}
        for _ in range(OSD_CLIENTS_RUNS):
            watch.clients.refresh()
    assert watch.clients.value == {}


def test_the_twenty_with_the_most_operations_are_listed(folder):
    many = [IMAGE.replace("aa", f"{number:x}") for number in range(50) for _ in range(number)]
    watch = OsdWatch(lambda: [f"{folder}/*.asok"], client_pools=lambda: [1])
    with serving(folder / "ceph-osd.1.asok", {"dump_ops_in_flight": in_flight(*many)}):
        watch.clients.refresh()
    assert sorted(watch.clients.value.values()) == list(range(30, 50))


def test_no_osd_is_asked_for_its_clients_unless_a_site_names_pools(folder):
    watch = OsdWatch(lambda: [f"{folder}/*.asok"])
    with serving(folder / "ceph-osd.1.asok", {}) as served:
        watch.clients.refresh()
    with pytest.raises(Unavailable, match="client_pools"):
        print(watch.clients.value)
    assert served.asked == []


def test_an_osd_that_does_not_answer_costs_one_wait(folder):
    watch = OsdWatch(lambda: [f"{folder}/*.asok"], client_pools=lambda: [1], timeout_s=0.2)
    answers = {"dump_ops_in_flight": in_flight(IMAGE)}
    with serving(folder / "a-osd.1.asok", answers), serving(folder / "b-osd.2.asok", {}, silent=True) as hung:
        watch.clients.refresh()
    assert watch.clients.value == {Owner(1, "image", "aa"): 1.0}
    assert len(hung.asked) == 1
