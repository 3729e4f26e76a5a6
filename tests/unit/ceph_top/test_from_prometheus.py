"""OSDs of a cluster as Prometheus tells them: its API's answers, rows, and what goes wrong."""

from __future__ import annotations

import json
import urllib.parse
from contextlib import contextmanager

import pytest

from plumbline.ceph_top.from_prometheus import QUERY, merged, osds_of
from plumbline.ceph_top.model import OsdPerformance, Suspicion
from plumbline.errors import ParseError, PlumblineError, Unavailable
from plumbline.sources.prometheus.api import Series, parse_vector, read_vector
from support.answering import answering

URL = "http://prometheus:9090"


def series(name, value, **labels):
    return Series(name, labels, value)


def cluster_of(daemon="osd.3", **also):
    own = {"ceph_daemon": daemon, **also}
    latency, store = "plumbline:osd_latency:mean5m", "plumbline:osd_store_latency:mean5m"
    return [
        series("plumbline:osd:info", 1, device_class="ssd", hostname="storage1", **own),
        series("plumbline:osd_operations:rate5m", 30, operation="write", **own),
        series("plumbline:osd_operations:rate5m", 10, operation="read", **own),
        series(latency, 0.020, operation="write", part="total", **own),
        series(latency, 0.004, operation="read", part="total", **own),
        series(latency, 0.001, operation="write", part="queue", **own),
        series(latency, 0.018, operation="write", part="commit_wait", **own),
        series(store, 0.012, part="commit", **own),
        series(store, 0.010, part="device", **own),
        series("plumbline:osd_latency:p50_seconds", 0.015, operation="write", **own),
        series("plumbline:osd_latency:p99_seconds", 0.090, operation="write", **own),
        series("plumbline_osd_heartbeat_seconds", 0.002, interface="back", statistic="worst", **own),
        series("plumbline_osd_heartbeat_seconds", 0.001, interface="back", statistic="median", **own),
        series("plumbline_osd_heartbeat_seconds", 0.001, interface="front", statistic="worst", **own),
        series("plumbline_osd_heartbeat_worst_peer_id", 7, interface="back", **own),
        series("plumbline_osd_socket_up", 1, instance="storage1:9948", **own),
        series("plumbline_osd_blocked_operations", 0, stage="store", **own),
        series("plumbline_osd_blocked_operation_age_seconds", 0, **own),
    ]


def test_a_row_from_the_rules():
    (osd,) = osds_of(cluster_of(), cluster=None, url=URL)
    assert (osd.daemon, osd.host, osd.device_class, osd.answers) == ("osd.3", "storage1", "ssd", True)
    assert (osd.operations_per_s, osd.operations) == (40, 12_000)
    assert osd.mean_s == pytest.approx((30 * 0.020 + 10 * 0.004) / 40)
    assert (osd.split_of, osd.queue_s, osd.store_s) == ("write", 0.001, 0.012)
    assert osd.peers_s == pytest.approx(0.006)
    assert (osd.p50_s, osd.p99_s, osd.commit_s, osd.device_s) == (0.015, 0.090, 0.012, 0.010)
    assert (osd.heartbeat_worst_s, osd.heartbeat_median_s, osd.heartbeat_peer) == (0.002, 0.001, "osd.7")
    assert (osd.blocked, osd.suspicion) == (0, None)


def test_connections_from_the_rules():
    own = {"ceph_daemon": "osd.3"}
    said = [
        series("plumbline:osd_connection_rtt:seconds", 0.024, statistic="worst", **own),
        series("plumbline:osd_connection_rtt:seconds", 0.0003, statistic="median", **own),
        series("plumbline:osd_connection_retransmits:rate5m", 1.5, **own),
        series("plumbline_osd_connection_worst_peer_id", 7, figure="rtt", **own),
        series("plumbline_osd_connection_worst_peer_id", 8, figure="retransmits", **own),
        series("plumbline:osd_suspect:info", 1, verdict="network", **own),
    ]
    (osd,) = osds_of(cluster_of() + said, cluster=None, url=URL)
    assert (osd.rtt_worst_s, osd.rtt_median_s, osd.rtt_peer) == (0.024, 0.0003, "osd.7")
    assert (osd.retransmits_per_s, osd.retransmits_peer) == (1.5, "osd.8")
    assert osd.suspicion.word == "network"
    assert osd.suspicion.reason.endswith("ping 2 ms, TCP round trip to osd.7 24 ms")


def test_verdicts_are_the_rules():
    said = [series("plumbline:osd_suspect:info", 1, ceph_daemon="osd.3", verdict="disk")]
    (osd,) = osds_of(cluster_of() + said, cluster=None, url=URL)
    assert osd.suspicion == Suspicion(
        word="disk",
        reason="the rules' verdict over the last minutes; queue 1 ms, store 12 ms, peers 6 ms, ping 2 ms",
        source="prometheus",
    )


def test_a_slow_host_has_the_causes_that_set_it_apart():
    said = [
        series("plumbline:osd_suspect:info", 1, ceph_daemon="osd.3", verdict="host"),
        *(
            series("plumbline:osd_host_cause:info", 1, ceph_daemon="osd.3", instance="storage1:9948", cause=cause)
            for cause in ("cpu_pressure", "cpu_governor")
        ),
    ]
    (osd,) = osds_of(cluster_of() + said, cluster=None, url=URL)
    assert osd.suspicion.word == "host"
    assert osd.suspicion.reason.endswith("; unlike the other hosts its host has: cpu governor, cpu pressure")


def test_an_osd_of_which_little_is_known_has_a_row():
    (osd,) = osds_of([series("plumbline_osd_socket_up", 0, ceph_daemon="osd.1")], cluster=None, url=URL)
    assert osd.suspicion.word == "hung"
    assert (osd.operations_per_s, osd.p99_s, osd.heartbeat_worst_s, osd.blocked) == (None, None, None, None)


def test_of_several_clusters_one_has_to_be_chosen():
    both = cluster_of(cluster="a") + cluster_of(cluster="b")
    with pytest.raises(PlumblineError, match=r"several clusters \(a, b\); choose one with --cluster"):
        osds_of(both, cluster=None, url=URL)
    assert len(osds_of(both, cluster="b", url=URL)) == 1
    with pytest.raises(PlumblineError, match="no OSD of a cluster 'c'; there are: a, b"):
        osds_of(both, cluster="c", url=URL)
    with pytest.raises(PlumblineError, match="are the recording rules of alerts/ loaded there"):
        osds_of([], cluster=None, url=URL)


def test_sockets_are_younger_and_rules_have_seen_more():
    verdict = Suspicion(word="disk", reason="rules", source="prometheus")
    remote = OsdPerformance(
        daemon="osd.1", host="storage1.example.org", device_class="hdd", p99_s=1.0, suspicion=verdict
    )
    local = OsdPerformance(daemon="osd.1", host="storage1", p99_s=2.0, answers=True)
    (osd,), notes = merged([local], [remote])
    assert (osd.p99_s, osd.device_class, osd.suspicion, notes) == (2.0, "hdd", verdict, ())
    hung = Suspicion(word="hung", reason="no answer", source="sockets")
    (osd,), _ = merged([OsdPerformance(daemon="osd.1", answers=False, suspicion=hung)], [remote])
    assert osd.suspicion == hung
    assert {osd.daemon for osd in merged([OsdPerformance(daemon="osd.2")], [remote])[0]} == {"osd.1", "osd.2"}


def test_the_same_number_on_another_host_is_another_clusters():
    (osd,), notes = merged(
        [OsdPerformance(daemon="osd.1", host="b", p99_s=2.0)], [OsdPerformance(daemon="osd.1", host="a", p99_s=1.0)]
    )
    assert osd.p99_s == 1.0
    assert notes == ("osd.1 of this host is left out: in Prometheus, it is on host a",)


# --- the API ------------------------------------------------------------------------------------------------------


def vector(*results):
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": list(results)}}).encode()


def test_an_answer():
    up = {"metric": {"__name__": "up", "job": "x"}, "value": [1763726400.1, "1"]}
    nothing = {"metric": {"__name__": "ratio"}, "value": [1763726400.1, "NaN"]}
    assert parse_vector(vector(up, nothing), source=URL) == (Series("up", {"job": "x"}, 1.0),)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b'{"status": "error", "errorType": "bad_data", "error": "parse error"}', "refused the query: parse error"),
        (
            b'{"status": "success", "data": {"resultType": "matrix", "result": []}}',
            "not the answer to an instant query",
        ),
        (b"<html>", "not an answer of Prometheus"),
        (vector({"metric": {}, "value": [1, "many"]}), "not an answer of Prometheus"),
    ],
)
def test_what_is_no_answer(answer, said):
    with pytest.raises(ParseError, match=said):
        parse_vector(answer, source=URL)


@contextmanager
def server(status, body):
    asked = []

    def handle(request):
        asked.append((request.path, request.body.decode()))
        request.answer(body, status=status)

    with answering(handle) as url:
        yield url, asked


def test_it_is_asked_once_for_all_of_them_under_the_path_given():
    with server(200, vector()) as (url, asked):
        assert read_vector(f"{url}/prom/", QUERY, timeout_s=60) == ()
    ((path, body),) = asked
    assert path == "/prom/api/v1/query"
    assert urllib.parse.parse_qs(body)["query"] == [QUERY]


def test_errors_are_one_line():
    refused = b'{"status": "error", "error": "bad query"}'
    with server(400, refused) as (url, _), pytest.raises(ParseError, match="refused the query: bad query"):
        read_vector(url, "up", timeout_s=60)
    with server(404, b"page not found") as (url, _), pytest.raises(Unavailable, match="HTTP 404 Not Found; is this a"):
        read_vector(url, "up", timeout_s=60)
    with pytest.raises(Unavailable, match="Connection refused"):
        read_vector(url, "up", timeout_s=60)
    with pytest.raises(Unavailable, match="http://host:9090 is one"):
        read_vector("prometheus:9090", "up", timeout_s=60)
