"""``plumbline ceph top``: rows and suspicions from two real looks at an OSD of Ceph 16.2.15, 75 s apart, under load."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.ceph_top.model import between, parts, slowest_first, with_connections
from plumbline.ceph_top.verdict import Thresholds, suspect
from plumbline.sources.ceph.osd_connections import Far, OsdConnections
from plumbline.sources.ceph.osd_network import parse_heartbeats
from plumbline.sources.ceph.osd_operations import STAGES, BlockedOperations
from plumbline.sources.ceph.osd_perf import LongRunAverage, parse_latencies, parse_stages
from plumbline.sources.ceph.osds import OsdReading, OsdState

STATES = Path(__file__).parents[2] / "fixtures" / "ceph-16.2-states"
APART_S = 75.0


def captured(state, daemon="osd.0"):
    counters = (STATES / state / "perf-dump.json").read_bytes()
    histograms = (STATES / state / "perf-histogram-dump.json").read_bytes()
    return OsdReading(
        daemon=daemon,
        path="/run/ceph/ceph-osd.0.asok",
        state=OsdState.ANSWERS,
        latencies=parse_latencies(histograms, counters, source=daemon),
        stages=parse_stages(counters, source=daemon),
        heartbeats=parse_heartbeats((STATES / state / "dump_osd_network.json").read_bytes(), source=daemon),
        blocked=BlockedOperations(dict.fromkeys(STAGES, 0), 0.0),
    )


BEFORE, AFTER = captured("load-1"), captured("load-2")
(ROW,) = between([BEFORE], [AFTER], interval_s=APART_S, host="storage1", classes={"osd.0": "hdd"})


def test_the_counters_as_the_osd_said_them():
    stages = parse_stages((STATES / "load-2" / "perf-dump.json").read_bytes(), source="osd.0")
    assert stages.operations["write"].total == LongRunAverage(20037, 315.011732211)
    assert stages.operations["write"].process.sum == 298.872713453
    assert stages.operations["write"].prepare.avgcount == 20038
    assert stages.replica_writes == LongRunAverage(33708, 360.320772641)
    assert stages.commit == LongRunAverage(53868, 505.308404269)  # called commit_lat before Ceph 17
    assert stages.device == LongRunAverage(53872, 0.005277545)
    assert stages.kv is not None


def test_since_17_the_commit_has_another_name():
    dump = b'{"bluestore": {"txc_commit_lat": {"avgcount": 2, "sum": 0.5}, "commit_lat": {"avgcount": 9, "sum": 9}}}'
    assert parse_stages(dump, source="x").commit == LongRunAverage(2, 0.5)


def test_a_row_is_what_happened_between_the_two_looks():
    operations = 20037 - 8367
    assert (ROW.daemon, ROW.host, ROW.device_class, ROW.answers) == ("osd.0", "storage1", "hdd", True)
    assert ROW.operations == operations
    assert ROW.operations_per_s == pytest.approx(operations / APART_S)
    assert ROW.mean_s == pytest.approx((315.011732211 - 110.650172117) / operations)
    assert ROW.commit_s == pytest.approx((505.308404269 - 186.664452224) / (53868 - 22624))
    assert ROW.replica_s == pytest.approx((360.320772641 - 128.383285805) / (33708 - 14134))
    assert 0 < ROW.p50_s < ROW.mean_s * 1.5
    assert ROW.mean_s < ROW.p99_s < 1


def test_the_parts_of_a_write_make_up_its_mean():
    prepare = (21.87820129 - 8.308444097) / (20038 - 8371)
    assert ROW.split_of == "write"
    assert ROW.queue_s + ROW.store_s + ROW.peers_s + prepare == pytest.approx(ROW.mean_s, rel=1e-6)
    assert ROW.store_s == ROW.commit_s  # the wait was longer than the own commit: for the replicas
    assert ROW.peers_s > 0


def test_a_write_that_waits_for_nobody_else_has_no_peers():
    assert parts("write", queue=-1e-9, process=0.005, waits=0.004, in_store=0.006) == (0.0, 0.004, 0.0)
    assert parts("write", queue=0.001, process=0.005, waits=0.004, in_store=None) == (0.001, None, None)
    assert parts("read", queue=0.001, process=0.005, waits=0.0, in_store=0.004) == (0.001, 0.004, 0.0)


def test_an_idle_osd_has_no_times():
    (idle,) = between([AFTER], [AFTER], interval_s=5.0)
    assert idle.operations_per_s == 0
    assert (idle.mean_s, idle.p50_s, idle.p99_s, idle.queue_s, idle.store_s, idle.split_of) == (*[None] * 5, "")


def test_one_that_started_anew_has_none_either():
    (row,) = between([AFTER], [BEFORE], interval_s=5.0)
    assert row.answers
    assert (row.operations_per_s, row.p99_s) == (None, None)
    (new,) = between([], [AFTER], interval_s=5.0)
    assert new.operations_per_s is None


def test_the_worst_ping_and_whose():
    worst = max(AFTER.heartbeats, key=lambda each: each.worst_s)
    assert (ROW.heartbeat_worst_s, ROW.heartbeat_interface) == (worst.worst_s, worst.interface)
    assert ROW.heartbeat_peer in ("osd.1", "osd.2")


# --- suspicions ---------------------------------------------------------------------------------------------------


def fleet(count=6, **of_the_last):
    """As many like the captured one, each a little slower than the one before; the last one's figures replaced."""
    times = ("mean_s", "split_mean_s", "p50_s", "p99_s", "queue_s", "store_s", "peers_s", "commit_s", "replica_s")
    rows = []
    for number in range(count):
        slower = {name: getattr(ROW, name) * (1 + number / 20) for name in times}
        rows.append(replace(ROW, daemon=f"osd.{number}", **slower))
    if "mean_s" in of_the_last:  # all operations are of one kind
        of_the_last = {"split_mean_s": of_the_last["mean_s"], **of_the_last}
    rows[-1] = replace(rows[-1], **of_the_last)
    return rows


def words(rows, limits=None):
    judged, _ = suspect(rows, limits)
    return {osd.daemon: osd.suspicion.word for osd in judged if osd.suspicion}


SLOW_DISK = {"mean_s": 0.09, "store_s": 0.08, "commit_s": 0.08, "replica_s": 0.08, "p99_s": 0.4}


def test_healthy_osds_are_not_suspected():
    assert words(fleet()) == {}
    assert words([ROW]) == {}


def test_a_slow_store_is_a_disk():
    judged, notes = suspect(fleet(**SLOW_DISK))
    said = judged[-1].suspicion
    assert said.word == "disk"
    assert said.reason.startswith("its own store: 80 ms of each write (89%); the median of its class is 1")
    assert not notes
    assert [osd.suspicion for osd in judged[:-1]] == [None] * 5


@pytest.mark.parametrize(
    ("split_mean_s", "percent"),
    [
        (0.1, "80%"),  # beside fast reads, which lower the mean of all operations below the store's part of a write
        (0.079, "100%"),  # counters that are read apart
    ],
)
def test_a_share_is_of_the_kind_that_is_split(split_mean_s, percent):
    judged, _ = suspect(fleet(**{**SLOW_DISK, "mean_s": 0.069, "split_mean_s": split_mean_s}))
    assert judged[-1].suspicion.reason.startswith(f"its own store: 80 ms of each write ({percent}); the median")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"operations": 19}, "too few operations for a mean"),
        ({"device_class": "ssd"}, "the only one of its class"),
        ({"replica_s": ROW.replica_s, "p99_s": ROW.p99_s}, "no second figure agrees"),
        ({"mean_s": 0.2}, "less than half of an operation"),
        ({"store_s": 0.025}, "not three times the median"),
    ],
)
def test_what_does_not_suffice(changed, why):
    assert words(fleet(**{**SLOW_DISK, **changed})) == {}, why


def test_four_osds_are_too_few():
    assert words(fleet(4, **SLOW_DISK)) == {}
    assert words(fleet(5, **SLOW_DISK)) == {"osd.4": "disk"}


def test_flash_is_judged_like_hard_disks():
    times = ("mean_s", "split_mean_s", "store_s", "p99_s", "replica_s")
    fast = [replace(osd, **{name: getattr(osd, name) / 100 for name in times}) for osd in fleet(**SLOW_DISK)]
    assert words(fast) == {"osd.5": "disk"}


def test_waiting_for_others_is_a_peer_and_not_its_disk():
    assert words(fleet(mean_s=0.09, peers_s=0.07, p99_s=0.4)) == {"osd.5": "peer"}


def test_a_slow_disk_elsewhere_makes_all_wait_and_nobody_a_suspect():
    rows = [replace(osd, peers_s=0.07, mean_s=0.09, split_mean_s=0.09) for osd in fleet()]
    assert words(rows) == {}


WAITS = {"mean_s": 0.09, "split_mean_s": 0.09, "peers_s": 0.07, "p99_s": 0.4}
NEAR = {"rtt_worst_s": 0.0004, "rtt_median_s": 0.0003, "rtt_peer": "osd.2", "retransmits_per_s": 0.0}


@pytest.mark.parametrize(
    ("connections", "said"),
    [
        ({"rtt_worst_s": 0.03}, "a TCP round trip to osd.2 takes 30 ms, to its median peer 300 µs"),
        (
            {"rtt_worst_s": 0.03, "rtt_median_s": 0.025},
            "a TCP round trip to its median peer takes 25 ms, for the median",
        ),
        (
            {"retransmits_per_s": 40.0, "retransmits_peer": "osd.4"},
            "40.0 TCP segments a second are sent again, most of them to osd.4",
        ),
    ],
)
def test_waiting_over_a_slow_connection_is_the_network(connections, said):
    rows = [replace(osd, **NEAR, operations_per_s=100.0) for osd in fleet(**WAITS)]
    assert words(rows) == {"osd.5": "peer"}
    rows[-1] = replace(rows[-1], **connections)
    judged, _ = suspect(rows)
    assert words(rows) == {"osd.5": "network"}
    assert said in judged[-1].suspicion.reason


@pytest.mark.parametrize(
    "connections",
    [
        {"rtt_worst_s": 0.0019},  # longer than the others, but short
        {"rtt_worst_s": 0.01},  # long, but a small part of what it waits
        {"rtt_worst_s": 0.03, "rtt_median_s": 0.025, "others": 0.02},  # the network is so, for all
        {"retransmits_per_s": 17.0},  # 3.4 s of the 7 s that it waits in a second
    ],
)
def test_a_connection_that_explains_little_leaves_it_the_peer(connections):
    others = connections.pop("others", NEAR["rtt_median_s"])
    rows = [replace(osd, **{**NEAR, "rtt_median_s": others}, operations_per_s=100.0) for osd in fleet(**WAITS)]
    rows[-1] = replace(rows[-1], **connections)
    assert words(rows) == {"osd.5": "peer"}


def test_all_that_wait_for_one_over_a_slow_connection_are_told():
    waiting = [replace(osd, **{**WAITS, **NEAR, "rtt_worst_s": 0.05, "rtt_peer": "osd.0"}) for osd in fleet()]
    assert words(waiting) == {osd.daemon: "network" for osd in waiting}


def test_what_two_readings_say_of_connections():
    def reading(retransmits, **figures):
        known = {"worst_s": 0.024, "worst_deviation_s": 0.004, "worst": Far("10.0.0.2:6802", 2), "measured": 3}
        known |= {"median_s": 0.001, "median_deviation_s": 0.002, "losing": Far("10.0.0.3:6802", None)}
        return OsdConnections(daemon="osd.5", source="kernel", retransmits=retransmits, **known | figures)

    rows = fleet()
    *others, osd = with_connections(rows, [reading(10)], [reading(25)], interval_s=10.0)
    assert (osd.rtt_worst_s, osd.rtt_median_s, osd.rtt_peer) == (pytest.approx(0.02), 0.0, "osd.2")
    assert (osd.retransmits_per_s, osd.retransmits_peer) == (1.5, "10.0.0.3:6802")
    assert others == rows[:-1]
    (*_, new) = with_connections(rows, [], [reading(25, worst_s=None, worst=None)], interval_s=10.0)
    assert (new.rtt_worst_s, new.rtt_peer, new.retransmits_per_s) == (None, "", None)


def test_a_long_queue():
    assert words(fleet(mean_s=0.05, queue_s=0.03)) == {"osd.5": "queue"}
    assert words(fleet(mean_s=0.5, queue_s=0.03)) == {}, "a small part of an operation"


def pinging(worst_s, peer="osd.5", count=6):
    return [
        replace(
            osd, heartbeat_worst_s=worst_s, heartbeat_median_s=0.001, heartbeat_peer=peer, heartbeat_interface="back"
        )
        for osd in fleet(count)
    ]


def test_the_one_all_others_find_slow_is_the_networks():
    judged, notes = suspect(pinging(0.08))
    assert words(pinging(0.08)) == {"osd.5": "network"}
    assert judged[-1].suspicion.reason == "5 of 5 OSDs find it the slowest to answer pings, up to 80 ms"
    assert not notes
    assert words(pinging(0.02)) == {}, "hosts short of CPU time"


def test_one_that_is_not_on_the_screen_is_named_below_it():
    judged, notes = suspect(pinging(0.08, peer="osd.77"))
    assert notes == ("osd.77: 6 of 6 OSDs find it the slowest to answer pings, up to 80 ms",)
    assert all(osd.suspicion is None for osd in judged)


def test_a_network_that_is_slow_everywhere_accuses_nobody():
    rows = [replace(osd, heartbeat_median_s=0.07) for osd in pinging(0.08)]
    assert words(rows) == {}


def test_one_that_hangs_and_one_with_blocked_operations_come_first():
    hangs = OsdReading("osd.1", "/run/ceph/ceph-osd.1.asok", OsdState.HANGS, why="no answer within 5 s")
    blocked = replace(captured("load-2", "osd.2"), blocked=BlockedOperations({"store": 1, "peer": 2}, 41.7))
    rows = between([BEFORE], [AFTER, hangs, blocked], interval_s=APART_S)
    judged, _ = suspect(rows)
    first, second, last = slowest_first(judged)
    assert (first.daemon, first.suspicion.word, first.suspicion.reason) == ("osd.1", "hung", "no answer within 5 s")
    assert second.suspicion.reason == "3 operations blocked up to 42 s; most wait for: peer"
    assert (last.daemon, last.suspicion) == ("osd.0", None)


def test_the_slowest_by_p99_come_first_and_the_idle_ones_last():
    idle = replace(ROW, daemon="osd.9", p99_s=None, mean_s=None)
    assert [osd.daemon for osd in slowest_first([idle, *fleet(3)])] == ["osd.2", "osd.1", "osd.0", "osd.9"]


def test_thresholds_can_be_given():
    assert words(fleet(3, **SLOW_DISK), Thresholds(minimum_osds=3)) == {"osd.2": "disk"}
