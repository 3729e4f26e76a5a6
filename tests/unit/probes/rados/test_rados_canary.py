"""The RADOS canary without a cluster: what the daemon makes of the worker's memory, and lanes with a pool of ours."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from plumbline.collectors import canary as collector
from plumbline.config.workloads import RadosOps
from plumbline.errors import ProbeRefused
from plumbline.probes.canary import memory as canary_memory
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.memory import WorkerMemory
from plumbline.probes.canary.pool import WorkerPool
from plumbline.probes.canary.process import Trouble
from plumbline.probes.ceph.librados import Access
from plumbline.probes.rados.osd_choice import ChosenOsd
from plumbline.probes.rados.rados_canary import OsdTarget
from plumbline.probes.rados.rados_canary_worker import (
    ERRORS,
    NOTES,
    Order,
    ReadLane,
    Worker,
    WriteLane,
    error_index,
    refused_by,
)
from plumbline.probes.run.reading import CanaryState

OPS = RadosOps(id="rados-ops-4k", layer="rados", object_size=4096)
OSDS = (ChosenOsd(3, "hdd", "hdd"), ChosenOsd(7, "ssd", "fast"))


def target(osd: ChosenOsd, **changes: object) -> OsdTarget:
    values: dict[str, object] = {
        "name": f"rados-canary/{osd.name}",
        "probe": "rados-canary",
        "target": osd.name,
        "device_class": osd.device_class,
        "workloads": ((OPS, ()),),
        "max_busy_ratio": 1.0,
        "access": Access("client.plumbline", "/nonexistent/ceph.conf"),
        "pool": "probe",
        "prefix": "plumbline/h/rados-canary",
        "host": "h",
        "words": ("host",),
        "object_size": 4096,
        "rate": 100.0,
        "stuck_after_s": 5.0,
        "osds": OSDS,
    }
    return OsdTarget(**(values | changes))  # type: ignore[arg-type]


def canaries() -> tuple[WorkerPool, list[Canary]]:
    pool = WorkerPool(clock=lambda: 100.0)
    bounds = {("rados-canary/osd.7", OPS.id, "write"): (0.001,)}
    plans = [target(osd).with_bounds(bounds) for osd in OSDS]
    return pool, [Canary(plan, pool=pool, clock=lambda: 100.0, wall=lambda: 1000.0) for plan in plans]


class Pretended:
    """Canaries whose worker is this test: it writes their memory."""

    def __init__(self) -> None:
        self.pool, self.osds = canaries()
        process = SimpleNamespace(pid=0, ended=False)
        self.pool._worker = cast(Any, SimpleNamespace(process=process, members=tuple(self.osds)))
        self.memories = [WorkerMemory(osd.memory_fd) for osd in self.osds]
        self.say(canary_memory.RUNNING)

    def say(self, state: int, text: str = "") -> None:
        for memory in self.memories:
            memory.say(state, text)

    def done(self, osd: int, stream: int, latency_ns: int = 10**6, wall_ns: int = 999 * 10**9) -> None:
        each = self.memories[osd].streams[stream]
        each.count(next(i for i, edge in enumerate(each.edges_ns) if edge >= latency_ns), latency_ns, wall_ns)


def test_all_osds_of_a_probe_have_a_plan_that_changes_together() -> None:
    """Their worker removes all objects below its prefix when it starts: no second one may start for some of them."""
    bounds = {("rados-canary/osd.7", OPS.id, "write"): (0.001,)}
    three, seven = (target(osd) for osd in OSDS)
    assert three.with_bounds(bounds) != three.with_bounds({})
    assert seven.with_bounds(bounds) != seven.with_bounds({})
    assert three.with_bounds(bounds) == three.with_bounds(dict(bounds))
    assert three.faster(8, spare=False).prefix == seven.faster(8, spare=False).prefix == "plumbline/h/rados-canary@now"


def test_the_worker_ends_with_the_first_of_its_osds() -> None:
    _, (three, seven) = canaries()
    three.start()
    seven.start()
    pid = three.pid
    assert pid is not None
    assert seven.pid == pid
    assert three.stop(30.0)
    assert (seven.pid, seven.read().state) == (None, CanaryState.STOPPED)
    assert not psutil.pid_exists(pid)
    assert seven.stop()


class TestReading:
    def test_each_osd_has_its_own(self) -> None:
        pretended = Pretended()
        for stream in range(3):
            pretended.done(0, stream)
        three, seven = (osd.read() for osd in pretended.osds)
        assert (three.probe, three.target, three.kind, three.device_class) == (
            "rados-canary/osd.3", "osd.3", "rados-canary", "hdd",
        )  # fmt: skip
        assert (three.state, three.success, three.reason) == (CanaryState.RUNNING, True, "")
        assert [each.latency.count for each in three.workloads] == [1, 1, 1]
        assert (seven.probe, seven.success) == ("rados-canary/osd.7", None)
        assert [each.latency.count for each in seven.workloads] == [0, 0, 0]
        assert seven.workloads[0].bounds == (0.001,)
        assert 0.001 in seven.workloads[0].latency.edges
        samples = list(collector.samples(collector.CanariesReading((three, seven))))
        targets = {labels for spec, labels, _ in samples if spec.name == "plumbline_probe_target_info"}
        assert targets == {("rados-canary/osd.3", "osd.3", ""), ("rados-canary/osd.7", "osd.7", "")}

    def test_one_is_stuck_alone(self) -> None:
        pretended = Pretended()
        pretended.memories[1].streams[1].started(90 * 10**9)
        three, seven = (osd.read() for osd in pretended.osds)
        assert (three.reason, three.in_flight_s) == ("", 0.0)
        assert (seven.reason, seven.in_flight_s, seven.success) == ("stuck", 10.0, False)

    def test_one_is_not_served(self) -> None:
        pretended = Pretended()
        for stream in pretended.memories[0].streams:
            stream.note(NOTES.index("out"))
        pretended.osds[0].read()
        three, seven = (osd.read() for osd in pretended.osds)
        assert (three.reason, three.success, three.message) == ("out", False, "osd.3: the OSD is out")
        assert len(three.workloads) == 3
        assert seven.reason == ""
        assert {"down", "out", "gone", "no-primary", "no-pool"} <= three.skips.keys()

    def test_why_one_was_not_served_is_known_afterwards(self) -> None:
        pretended = Pretended()
        for stream in pretended.memories[0].streams:
            stream.note(NOTES.index("no-primary"))
        pretended.pool._worker = None
        assert all(osd.stop() for osd in pretended.osds)
        three, seven = (osd.read() for osd in pretended.osds)
        assert (three.state, three.reason) == (CanaryState.STOPPED, "no-primary")
        assert "pg_num is too low" in three.message
        assert seven.reason == ""

    def test_errors_by_their_number(self) -> None:
        pretended = Pretended()
        pretended.memories[0].streams[0].count_error(ERRORS.index("EDQUOT"), 999 * 10**9)
        reading = pretended.osds[0].read()
        assert reading.workloads[0].errors == dict.fromkeys(ERRORS, 0) | {"EDQUOT": 1}
        assert (reading.reason, reading.success) == ("errors", False)
        assert reading.message == "osd.3: the last write failed; the most frequent error is EDQUOT"

    def test_other_osds_than_planned(self) -> None:
        pretended = Pretended()
        pretended.say(canary_memory.RUNNING, f"{canary_memory.OUTDATED}\nosd.9: new")
        reading = pretended.osds[0].read()
        assert (reading.outdated, reading.reason) == (True, "")

    def test_one_that_tries_again_is_not_well_and_says_why(self) -> None:
        """Else it would be well for every other second, as long as its last operations are young."""
        pretended = Pretended()
        for stream in range(3):
            pretended.done(0, stream)
        osd = pretended.osds[0]
        assert osd.read().success is True
        pretended.pool.trouble = Trouble(CanaryState.REFUSED, "unreachable", "no monitor answered")
        pretended.say(canary_memory.PREPARING)
        reading = osd.read()
        assert (reading.state, reading.reason, reading.success) == (CanaryState.PREPARING, "preparing", False)
        assert (
            reading.message
            == "the worker is connecting and choosing its objects; the previous worker: no monitor answered"
        )
        pretended.say(canary_memory.RUNNING)
        assert (osd.read().reason, osd.read().success) == ("", True)

    def test_without_a_cluster_it_says_why(self) -> None:
        _, (three, seven) = canaries()
        assert three.read().state is CanaryState.IDLE
        three.start()
        seven.start()
        deadline = time.monotonic() + 60
        while three.read().state is not CanaryState.REFUSED and time.monotonic() < deadline:
            three.poll()
            time.sleep(0.05)
        reading = seven.read()
        assert (reading.state, reading.reason, reading.runs) == (CanaryState.REFUSED, "unreachable", 1)
        assert reading.message
        assert reading.success is False
        assert three.stop()
        assert seven.stop()
        assert three.read().state is CanaryState.STOPPED
        assert (three.memory_fd, seven.memory_fd) == (-1, -1)


class FakePool:
    """Objects in memory; the next operation fails with ``fail``."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.fail = 0

    def _maybe(self) -> None:
        number, self.fail = self.fail, 0
        if number:
            raise OSError(number, "no")

    def write_full(self, oid: str, data: bytes) -> None:
        self._maybe()
        self.held[oid] = data

    def read(self, oid: str, length: int) -> bytes:
        self._maybe()
        if oid not in self.held:
            raise FileNotFoundError(errno.ENOENT, "gone", oid)
        return self.held[oid][:length]

    def remove(self, oid: str) -> None:
        self._maybe()
        if self.held.pop(oid, None) is None:
            raise FileNotFoundError(errno.ENOENT, "gone", oid)


Bench = tuple[FakePool, Worker, Canary]


@pytest.fixture
def bench() -> Iterator[Bench]:
    _, osds = canaries()
    pool = FakePool()
    order = osds[0].plan.order() | {"targets": [(osd.memory_fd, osd.plan.target) for osd in osds]}
    worker = Worker(Order(json.loads(json.dumps(order))))
    worker.pool = cast(Any, pool)
    yield pool, worker, osds[0]
    for osd in osds:
        osd.stop(1.0)


def counted(canary: Canary) -> list[tuple[int, int]]:
    return [(each.latency.count - each.charged, sum(each.errors.values())) for each in canary.read().workloads]


class TestLanes:
    def test_a_write_and_its_removal(self, bench: Bench) -> None:
        pool, worker, osd = bench
        lane = WriteLane(worker, 3)
        lane.arrive("w", "r")
        assert (len(pool.held["w"]), lane.objects) == (4096, {"w"})
        lane.arrive("w", "r")
        assert (pool.held, lane.objects, counted(osd)) == ({}, set(), [(1, 0), (0, 0), (1, 0)])

    def test_a_failed_write_leaves_nothing(self, bench: Bench) -> None:
        pool, worker, osd = bench
        lane = WriteLane(worker, 3)
        pool.fail = errno.EDQUOT
        lane.arrive("w", "r")
        assert (pool.held, lane.objects, counted(osd)) == ({}, set(), [(0, 1), (0, 0), (0, 0)])

    def test_a_new_name_takes_the_old_object_away(self, bench: Bench) -> None:
        pool, worker, _ = bench
        lane = WriteLane(worker, 3)
        lane.arrive("old", "r")
        lane.arrive("new", "r")
        assert set(pool.held) == {"new"}
        reads = ReadLane(worker, 3)
        reads.arrive("w", "old-read")
        reads.arrive("w", "new-read")
        assert set(pool.held) == {"new", "new-read"}

    def test_reads_check_what_they_read(self, bench: Bench) -> None:
        pool, worker, osd = bench
        lane = ReadLane(worker, 3)
        lane.arrive("w", "r")
        assert counted(osd)[1] == (1, 0)
        pool.held["r"] = bytes(4096)
        lane.arrive("w", "r")
        assert counted(osd)[1] == (1, 1)
        lane.arrive("w", "r")  # written anew
        pool.held["r"] = b"short"
        lane.arrive("w", "r")
        assert counted(osd)[1] == (2, 2)
        del pool.held["r"]
        lane.arrive("w", "r")
        lane.arrive("w", "r")
        assert counted(osd)[1] == (4, 2)

    def test_a_connection_that_was_shut_out_ends_the_worker(self, bench: Bench) -> None:
        pool, worker, _ = bench
        lane = WriteLane(worker, 3)
        pool.fail = errno.ESHUTDOWN
        with pytest.raises(ProbeRefused) as refused:
            lane.arrive("w", "r")
        assert refused.value.reason == "blocklisted"

    def test_who_leaves_makes_no_more(self, bench: Bench) -> None:
        pool, worker, _ = bench
        lane = WriteLane(worker, 3)
        assert lane.leave() == ()
        late = threading.Thread(target=lane.arrive, args=("w", "r"), daemon=True)
        late.start()
        late.join(0.3)
        assert pool.held == {}


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EIO, "EIO"),
        (errno.EDQUOT, "EDQUOT"),
        (errno.ETIMEDOUT, "ETIMEDOUT"),
        (errno.ESHUTDOWN, "blocklisted"),
        (errno.EPERM, "other"),
        (0, "other"),
    ],
)
def test_kinds_of_errors(number: int, kind: str) -> None:
    assert ERRORS[error_index(OSError(number, "x"), ERRORS)] == kind
    assert ERRORS[error_index(None, ERRORS)] == "short"
    order = Order(json.loads(json.dumps(target(OSDS[0]).order() | {"targets": []})))
    assert refused_by(OSError(number, "x"), order).reason


def test_no_more_kinds_than_the_memory_has_words_for() -> None:
    assert len(ERRORS) <= canary_memory.ERROR_WORDS
