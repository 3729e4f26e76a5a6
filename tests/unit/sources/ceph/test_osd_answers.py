"""What OSDs answer on their admin sockets, from answers of a real Ceph 16.2.15, 18.2.7 and 20.2.4."""

import json
from pathlib import Path

import pytest

from plumbline.errors import ParseError
from plumbline.probes.run.histogram import quantile
from plumbline.sources.ceph.osd_mclock import parse_queues, parse_share
from plumbline.sources.ceph.osd_network import Heartbeats, parse_heartbeats
from plumbline.sources.ceph.osd_operations import PEER, QUEUE, STORE, parse_blocked, parse_slow
from plumbline.sources.ceph.osd_perf import (
    EDGES,
    SHARD_OPTIONS,
    Compression,
    Database,
    LongRunAverage,
    OnodeCache,
    SetOption,
    parse_bytes,
    parse_capacity,
    parse_compression,
    parse_database,
    parse_fragmentation,
    parse_latencies,
    parse_onode_cache,
    parse_option,
    parse_set_options,
    parse_stages,
    parse_tier,
)

FIXTURES = Path(__file__).parents[3] / "fixtures"
HEALTHY, LOADED = FIXTURES / "ceph-16.2", FIXTURES / "ceph-16.2-states" / "load-2"
REEF, TENTACLE = FIXTURES / "ceph-18.2", FIXTURES / "ceph-20.2"
SOURCE = "osd.0"


def latencies(folder):
    read = [(folder / name).read_bytes() for name in ("perf-histogram-dump.json", "perf-dump.json")]
    return parse_latencies(*read, source=SOURCE)


# --- latency ------------------------------------------------------------------------------------------------------


of_each_release = pytest.mark.parametrize("folder", [LOADED, REEF, TENTACLE], ids=lambda folder: folder.name)


@of_each_release
def test_the_buckets_hold_what_the_osds_own_counter_counts(folder):
    writes = latencies(folder)["write"]
    counted = json.loads((folder / "perf-dump.json").read_text())["osd"]["op_w_latency"]
    assert writes.count == pytest.approx(counted["avgcount"], rel=0.01)  # the dumps are moments apart
    assert writes.count > 4000
    assert writes.sum == counted["sum"]
    assert list(writes.cumulative) == sorted(writes.cumulative)
    assert writes.cumulative[-1] == writes.count


@of_each_release
def test_the_axis_is_in_nanoseconds(folder):
    """The mean of the same operations lies between the quartiles; by the axis' name they would be 1000 times off."""
    writes = latencies(folder)["write"]
    assert quantile(writes, 0.25) < writes.sum / writes.count < quantile(writes, 0.95)


@of_each_release
def test_edges_are_cephs_own(folder):
    ranges = json.loads((folder / "perf-histogram-dump.json").read_text())["osd"]["op_w_latency_in_bytes_histogram"]
    ends = [each["max"] + 1 for each in ranges["axes"][0]["ranges"][1:-1]]
    assert [round(edge * 1e9) for edge in EDGES] == ends[: len(EDGES)]


def histogram(rows, ranges=None):
    ranges = ranges or [{"max": -1}, {"min": 0, "max": 99_999}, {"min": 100_000, "max": 199_999}, {"min": 200_000}]
    dump = {"osd": {"op_r_latency_out_bytes_histogram": {"axes": [{"ranges": ranges}], "values": rows}}}
    return parse_latencies(json.dumps(dump).encode(), b"{}", source=SOURCE)


def test_each_range_goes_to_the_bucket_that_holds_it():
    reads = histogram([[1, 0], [2, 3], [4, 0], [0, 5]])["read"]
    # below zero (a clock that was set back) is below the first edge; without an end is only in +Inf
    assert (reads.cumulative[0], reads.cumulative[1], reads.cumulative[-1], reads.count) == (6, 10, 10, 15)
    assert reads.sum == 0


def test_beyond_the_last_edge_is_in_infinity_alone():
    reads = histogram([[0], [0], [7]], [{"max": -1}, {"min": 0, "max": 99_999}, {"min": 10**14, "max": 10**15}])["read"]
    assert (reads.cumulative[-1], reads.count) == (0, 7)


@pytest.mark.parametrize(
    "dump",
    [
        b"",
        b"[]",
        b'{"osd": []}',
        b'{"osd": {"op_r_latency_out_bytes_histogram": {"axes": [], "values": []}}}',
        b'{"osd": {"op_r_latency_out_bytes_histogram": {"axes": [{"ranges": [{"max": 1}]}], "values": [[1], [2]]}}}',
        b'{"osd": {"op_r_latency_out_bytes_histogram": {"axes": [{"ranges": [{"max": 1}]}], "values": [[-1]]}}}',
    ],
)
def test_another_form_is_one_clear_error(dump):
    with pytest.raises(ParseError, match=r"^osd\.0"):
        parse_latencies(dump, b"{}", source=SOURCE)


def test_a_replicas_part_of_others_writes():
    counters = (LOADED / "perf-dump.json").read_bytes()
    assert parse_stages(counters, source=SOURCE).replica_writes == LongRunAverage(avgcount=33708, sum=360.320772641)
    assert parse_stages(b'{"osd": {"op": 1}}', source=SOURCE).replica_writes is None
    with pytest.raises(ParseError, match=SOURCE):
        parse_stages(b'{"osd": {"subop_w_latency": 7}}', source=SOURCE)


@pytest.mark.parametrize(
    ("folder", "write", "replica", "commit", "device", "kv", "read"),
    [
        (REEF, (4611, 26.124489582), (4631, 17.644106861), (12397, 79.121749133), (12397, 0.398446555),
         (4695, 11.044671988), (4851, 1.388468636)),
        (TENTACLE, (7114, 29.28548365), (8212, 20.573581136), (18498, 65.623189155), (18498, 0.358261271),
         (8850, 9.594468495), (8289, 1.700699987)),
    ],
    ids=["18.2", "20.2"],
)  # fmt: skip
def test_stages_by_the_names_of_newer_releases(folder, write, replica, commit, device, kv, read):
    found = parse_stages((folder / "perf-dump.json").read_bytes(), source=SOURCE)
    assert found.operations.keys() == {"read", "write", "read-modify-write"}
    assert found.operations["write"].total == LongRunAverage(*write)
    assert (found.replica_writes, found.commit, found.device, found.kv, found.store_read) == tuple(
        LongRunAverage(*pair) for pair in (replica, commit, device, kv, read)
    )


def test_a_release_without_histograms_has_no_latencies():
    assert parse_latencies(b'{"osd": {}}', b"{}", source=SOURCE) == {}


# --- heartbeats ---------------------------------------------------------------------------------------------------


def test_the_worst_and_the_median_peer_of_each_network():
    found = parse_heartbeats((HEALTHY / "dump_osd_network.json").read_bytes(), source=SOURCE)
    back, front = found
    # milliseconds of the last minute: 1.009 to osd.1, 1.046 to osd.2
    assert back == Heartbeats("back", median_s=pytest.approx(1.0275e-3), worst_s=1.046e-3, worst_peer=2, peers=2)
    assert front.interface == "front"


@pytest.mark.parametrize(
    ("folder", "worst_s", "median_s"), [(REEF, 0.717e-3, 0.6275e-3), (TENTACLE, 0.53e-3, 0.49e-3)], ids=["18.2", "20.2"]
)
def test_heartbeats_of_newer_releases(folder, worst_s, median_s):
    back, front = parse_heartbeats((folder / "dump_osd_network.json").read_bytes(), source=SOURCE)
    assert back == Heartbeats("back", pytest.approx(median_s), pytest.approx(worst_s), worst_peer=2, peers=2)
    assert (front.interface, front.peers) == ("front", 2)
    assert parse_heartbeats((folder / "dump_osd_network-none.json").read_bytes(), source=SOURCE) == ()


def test_stale_pings_are_left_out_and_none_is_no_summary():
    entry = {"to osd": 1, "interface": "back", "average": {"1min": 1.0}, "stale": True}
    assert parse_heartbeats(json.dumps({"entries": [entry]}).encode(), source=SOURCE) == ()
    assert parse_heartbeats(b'{"threshold": 0, "entries": []}', source=SOURCE) == ()


# --- operations ---------------------------------------------------------------------------------------------------


def test_blocked_operations_by_what_they_wait_for():
    """osd.2 was stopped: writes to osd.0 wait for it, their own store having committed or not."""
    found = parse_blocked((HEALTHY / "dump_ops_in_flight.json").read_bytes(), source=SOURCE)
    assert found.by_stage[PEER] == sum(found.by_stage.values()) > 0
    assert found.oldest_s > 2


@pytest.mark.parametrize("folder", [REEF, TENTACLE], ids=["18.2", "20.2"])
def test_none_is_blocked_or_slow(folder):
    found = parse_blocked((folder / "dump_blocked_ops-none.json").read_bytes(), source=SOURCE)
    assert (sum(found.by_stage.values()), found.oldest_s) == (0, 0.0)
    assert parse_slow((folder / "dump_historic_slow_ops-none.json").read_bytes(), source=SOURCE) == ()


def test_a_replica_that_committed_leaves_the_own_store():
    events = [{"event": "waiting for subops from 1"}, {"event": "sub_op_commit_rec"}]
    op = {"age": 31.0, "type_data": {"flag_point": "waiting for sub ops", "events": events}}
    assert parse_blocked(json.dumps({"ops": [op]}).encode(), source=SOURCE).by_stage[STORE] == 1


def test_where_slow_operations_waited():
    first, second = parse_slow((HEALTHY / "dump_historic_slow_ops.json").read_bytes(), source=SOURCE)
    # waiting for subops at .994067; the replica's commit at .995769, the own one at .995993
    assert (first.stage, first.stage_s) == (STORE, pytest.approx(0.001926))
    assert (second.stage, second.stage_s) == (QUEUE, pytest.approx(0.000446))
    assert parse_slow((HEALTHY / "dump_historic_slow_ops-none.json").read_bytes(), source=SOURCE) == ()


def slow(*events):
    listed = [{"event": name, "time": f"2026-11-21T12:40:{at:09.6f}+0000"} for name, at in events]
    op = {"age": 20.0, "duration": 15.0, "type_data": {"events": listed}}
    return parse_slow(json.dumps({"Ops": [op]}).encode(), source=SOURCE)[0]


def test_the_later_commit_is_the_one_that_was_waited_for():
    waiting = ("waiting for subops from 1,2", 1.0)
    assert slow(waiting, ("op_commit", 1.1), ("sub_op_commit_rec", 1.2), ("sub_op_commit_rec", 14.0)).stage == PEER
    assert slow(waiting, ("sub_op_commit_rec", 1.2), ("op_commit", 14.0)).stage == STORE
    assert slow(("queued_for_pg", 1.0), ("reached_pg", 12.0), waiting, ("op_commit", 1.1)).stage == QUEUE
    assert slow(("unheard of", 1.0), ("of", 2.0)).stage == "other"
    assert slow().stage == "other"


# --- the store ----------------------------------------------------------------------------------------------------


def test_onode_cache_of_both_names():
    assert parse_onode_cache((LOADED / "perf-dump.json").read_bytes(), source=SOURCE).hits > 0
    assert parse_onode_cache((REEF / "perf-dump.json").read_bytes(), source=SOURCE) == OnodeCache(24377, 15770)
    assert parse_onode_cache((TENTACLE / "perf-dump.json").read_bytes(), source=SOURCE) == OnodeCache(38397, 26630)
    old = b'{"bluestore": {"bluestore_onode_hits": 3, "bluestore_onode_misses": 1}}'
    assert parse_onode_cache(old, source=SOURCE) == OnodeCache(3, 1)
    assert parse_onode_cache(b'{"filestore": {}}', source=SOURCE) is None


@pytest.mark.parametrize("name", ["compressed", "bluestore_compressed"])
def test_compression_of_both_names(name):
    counters = {name: 4096, f"{name}_allocated": 8192, f"{name}_original": 65536}
    counters |= {"compress_success_count": 3, "compress_rejected_count": 2}
    counters["compress_lat"] = {"avgcount": 5, "sum": 0.25}
    found = parse_compression(json.dumps({"bluestore": counters}).encode(), source=SOURCE)
    assert found == Compression(65536, 4096, 8192, 3, 2, 0.25)


def test_a_cache_tier():
    counters = {"tier_promote": 7, "tier_evict": 2, "tier_dirty": 900}
    assert parse_tier(json.dumps({"osd": counters}).encode(), source=SOURCE) == {
        "promote": 7, "flush": 0, "evict": 2, "proxy_read": 0, "proxy_write": 0, "delay": 0,
    }  # fmt: skip


def test_nothing_is_compressed_and_no_tier_is_at_work():
    for release in (HEALTHY, REEF, TENTACLE):
        counters = (release / "perf-dump.json").read_bytes()
        assert parse_compression(counters, source=SOURCE) is None
        assert parse_tier(counters, source=SOURCE) == {}


@of_each_release
def test_a_database_on_the_device_with_the_data_has_no_size_of_its_own(folder):
    found = parse_database((folder / "perf-dump.json").read_bytes(), source=SOURCE)
    assert (found.size_bytes, found.used_bytes, found.spilled_bytes, found.last_compaction_s) == (None,) * 4
    assert found.log_compactions.avgcount >= 0


def test_a_database_that_has_spilled_over_from_its_own_device():
    found = parse_database((HEALTHY / "perf-dump-spilled.json").read_bytes(), source=SOURCE)
    assert (found.size_bytes, found.used_bytes, found.spilled_bytes) == (268427264, 25165824, 295305216)
    assert found.data_bytes == 4294967296


def test_compactions():
    assert parse_database((LOADED / "perf-dump.json").read_bytes(), source=SOURCE).log_compactions.avgcount == 4
    asked = b'{"bluefs": {}, "rocksdb": {"compact_completed": 1, "compact_lasted": 0.25}}'
    assert parse_database(asked, source=SOURCE) == Database(last_compaction_s=0.25)
    assert parse_database(b'{"filestore": {}}', source=SOURCE) is None
    with pytest.raises(ParseError, match=SOURCE):
        parse_database(b'{"bluefs": {"db_total_bytes": -1}}', source=SOURCE)


@pytest.mark.parametrize(
    ("folder", "rating"), [(REEF, 1.415749766331118e-3), (TENTACLE, 9.790067193422885e-6)], ids=["18.2", "20.2"]
)
def test_fragmentation(folder, rating):
    assert parse_fragmentation((folder / "allocator-score.json").read_bytes(), source=SOURCE) == pytest.approx(rating)


def test_a_fragmentation_that_is_no_ratio():
    with pytest.raises(ParseError):
        parse_fragmentation(b'{"fragmentation_rating": 12}', source=SOURCE)


def test_options():
    option = "osd_mclock_max_capacity_iops_ssd"
    assert parse_capacity(json.dumps({option: "21500.000000"}).encode(), option, source=SOURCE) == 21500.0
    assert parse_option(b'{"osd_op_queue": "wpq"}', "osd_op_queue", source=SOURCE) == "wpq"
    for folder in (REEF, TENTACLE):
        captured = (folder / "config.json").read_bytes()
        assert parse_capacity(captured, option, source=SOURCE) == 21500.0
        assert parse_option(captured, "osd_op_queue", source=SOURCE) == "mclock_scheduler"
    for value in ("", "many", "nan", "-1", "1e300"):
        with pytest.raises(ParseError, match=option):
            parse_capacity(json.dumps({option: value}).encode(), option, source=SOURCE)
    with pytest.raises(ParseError, match="no osd_op_queue"):
        parse_option(b"{}", "osd_op_queue", source=SOURCE)


def test_the_shares_of_a_profile():
    option = "osd_mclock_scheduler_background_best_effort_"
    for folder, reserved in ((REEF, 0.0), (TENTACLE, 0.05)):
        captured = (folder / "config.json").read_bytes()
        assert parse_share(captured, f"{option}res", source=SOURCE) == reserved
        assert parse_share(captured, f"{option}lim", source=SOURCE) == 0.9
    assert parse_share(b'{"x": "57"}', "x", source=SOURCE) is None  # operations a second, in 16.2
    for value in (b"", b"many", b"nan", b"-0.1", b"1.5"):
        with pytest.raises(ParseError, match="x = "):
            parse_share(b'{"x": "%s"}' % value, "x", source=SOURCE)


def test_what_waits_in_the_queues_of_all_shards():
    shards = {
        "mclock-shard-queue-0": {"mclock_client_queue_len": 3, "mclock_recovery_queue_len": 1},
        "mclock-shard-queue-1": {"mclock_client_queue_len": 4, "mclock_immediate_queue_len": 2},
        "osd": {"op": 1},
    }
    waiting = parse_queues(json.dumps(shards).encode(), source=SOURCE)
    assert waiting == {"immediate": 2, "client": 7, "recovery": 1, "best_effort": 0}
    for folder in (REEF, TENTACLE):
        assert parse_queues((folder / "perf-dump.json").read_bytes(), source=SOURCE) == dict.fromkeys(waiting, 0)
    assert parse_queues((LOADED / "perf-dump.json").read_bytes(), source=SOURCE) == {}
    with pytest.raises(ParseError, match="mclock-shard-queue-0"):
        parse_queues(b'{"mclock-shard-queue-0": {"mclock_client_queue_len": -1}}', source=SOURCE)


def test_options_that_are_set_and_where():
    """In Ceph 20.2.4 by `ceph config set`; what is at its default is not said."""
    said = (FIXTURES / "ceph-20.2" / "osd-config-diff-pinned.json").read_bytes()
    assert parse_set_options(said, SHARD_OPTIONS, source=SOURCE) == {
        "osd_op_num_shards_hdd": SetOption("1", "5", "mon"),
        "osd_op_num_threads_per_shard_hdd": SetOption("5", "1", "mon"),
    }
    assert parse_set_options(said, ["bluestore_cache_size", "no_config_file"], source=SOURCE) == {
        "bluestore_cache_size": SetOption("0", "67108864", "file"),
        "no_config_file": SetOption("False", "False", "override"),
    }


@pytest.mark.parametrize("said", [b"{}", b'{"diff": []}', b'{"diff": {"a": {"default": 1}}}', b'{"diff": {"a": 1}}'])
def test_options_in_another_form(said):
    with pytest.raises(ParseError, match=SOURCE):
        parse_set_options(said, ["a"], source=SOURCE)


def test_a_memory_target() -> None:
    answer = b'{"osd_memory_target": "4294967296"}'
    assert parse_bytes(answer, "osd_memory_target", source=SOURCE) == 4294967296
    for text in (b"-1", b"4G", b"1e9", b"", b"9" * 20):
        with pytest.raises(ParseError, match="no number of bytes"):
            parse_bytes(b'{"osd_memory_target": "%s"}' % text, "osd_memory_target", source=SOURCE)
