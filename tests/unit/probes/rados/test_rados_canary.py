"""The RADOS canary without a cluster: what the daemon makes of the worker's memory, and lanes with a pool of ours."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from plumbline.collectors import canary as collector
from plumbline.config.workloads import RadosOps
from plumbline.errors import ProbeRefused
from plumbline.probes.canary import memory as canary_memory
from plumbline.probes.canary.memory import WorkerMemory
from plumbline.probes.canary.process import Trouble
from plumbline.probes.ceph.librados import Access
from plumbline.probes.rados.rados_canary import OsdCanary, OsdPlan, RadosCanaries, RadosCanaryPlan
from plumbline.probes.rados.rados_canary_worker import (
    ERRORS,
    NOTES,
    OSDS_CHANGED,
    Order,
    ReadLane,
    Worker,
    WriteLane,
    error_index,
    refused_by,
)
from plumbline.probes.run.reading import CanaryState

OPS = RadosOps(id="rados-ops-4k", layer="rados", object_size=4096)


def plan(**changes: object) -> RadosCanaryPlan:
    values: dict[str, object] = {
        "name": "rados-canary",
        "access": Access("client.plumbline", "/nonexistent/ceph.conf"),
        "pool": "probe",
        "namespace": "plumbline",
        "prefix": "plumbline/h/rados-canary",
        "host": "h",
        "words": ("host",),
        "workload": OPS,
        "rate": 100.0,
        "stuck_after_s": 5.0,
        "osds": (OsdPlan(3, "hdd", "hdd"), OsdPlan(7, "ssd", "fast", bounds=((0.001,), (), ()))),
    }
    return RadosCanaryPlan(**(values | changes))  # type: ignore[arg-type]


class Pretended:
    """Canaries whose worker is this test: it writes their memory."""

    def __init__(self) -> None:
        self.canaries = RadosCanaries(plan(), clock=lambda: 100.0, wall=lambda: 1000.0)
        self.canaries._worker = cast(Any, object())
        self.memory = WorkerMemory(self.canaries._memory_fd)
        self.osds: list[OsdCanary] = [OsdCanary(self.canaries, osd) for osd in self.canaries.plan.osds]
        self.memory.say(canary_memory.RUNNING)

    def done(self, stream: int, latency_ns: int = 10**6, wall_ns: int = 999 * 10**9) -> None:
        each = self.memory.streams[stream]
        each.count(next(i for i, edge in enumerate(each.edges_ns) if edge >= latency_ns), latency_ns, wall_ns)


class TestReading:
    def test_each_osd_has_its_own(self) -> None:
        pretended = Pretended()
        for stream in range(3):
            pretended.done(stream)
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
        samples = list(collector.samples([three, seven]))
        targets = {labels for spec, labels, _ in samples if spec.name == "plumbline_probe_target_info"}
        assert targets == {("rados-canary/osd.3", "osd.3", ""), ("rados-canary/osd.7", "osd.7", "")}

    def test_one_is_stuck_alone(self) -> None:
        pretended = Pretended()
        pretended.memory.streams[4].started(90 * 10**9)
        three, seven = (osd.read() for osd in pretended.osds)
        assert (three.reason, three.in_flight_s) == ("", 0.0)
        assert (seven.reason, seven.in_flight_s, seven.success) == ("stuck", 10.0, False)

    def test_one_is_not_served(self) -> None:
        pretended = Pretended()
        for stream in pretended.memory.streams[:3]:
            stream.note(NOTES.index("out"))
        pretended.osds[0].read()
        three, seven = (osd.read() for osd in pretended.osds)
        assert (three.reason, three.success, three.message) == ("out", False, "osd.3: the OSD is out")
        assert len(three.workloads) == 3
        assert seven.reason == ""
        assert {"down", "out", "gone", "no-primary", "no-pool"} <= three.skips.keys()

    def test_why_one_was_not_served_is_known_afterwards(self) -> None:
        pretended = Pretended()
        for stream in pretended.memory.streams[:3]:
            stream.note(NOTES.index("no-primary"))
        pretended.canaries._worker = None
        assert all(osd.stop() for osd in pretended.osds)
        three, seven = (osd.read() for osd in pretended.osds)
        assert (three.state, three.reason) == (CanaryState.STOPPED, "no-primary")
        assert "pg_num is too low" in three.message
        assert seven.reason == ""

    def test_errors_by_their_number(self) -> None:
        pretended = Pretended()
        pretended.memory.streams[0].count_error(ERRORS.index("EDQUOT"), 999 * 10**9)
        reading = pretended.osds[0].read()
        assert reading.workloads[0].errors == dict.fromkeys(ERRORS, 0) | {"EDQUOT": 1}
        assert (reading.reason, reading.success) == ("errors", False)
        assert reading.message == "osd.3: the last write failed; the most frequent error is EDQUOT"

    def test_other_osds_than_planned(self) -> None:
        pretended = Pretended()
        pretended.memory.say(canary_memory.RUNNING, f"{OSDS_CHANGED}\nosd.9: new")
        reading = pretended.osds[0].read()
        assert (reading.outdated, reading.reason) == (True, "")

    def test_one_that_tries_again_is_not_well_and_says_why(self) -> None:
        """Else it would be well for every other second, as long as its last operations are young."""
        pretended = Pretended()
        for stream in range(3):
            pretended.done(stream)
        osd = pretended.osds[0]
        assert osd.read().success is True
        pretended.canaries._trouble = Trouble(CanaryState.REFUSED, "unreachable", "no monitor answered")
        pretended.memory.say(canary_memory.PREPARING)
        reading = osd.read()
        assert (reading.state, reading.reason, reading.success) == (CanaryState.PREPARING, "preparing", False)
        assert (
            reading.message
            == "the worker is connecting and choosing its objects; the previous worker: no monitor answered"
        )
        pretended.memory.say(canary_memory.RUNNING)
        assert (osd.read().reason, osd.read().success) == ("", True)

    def test_without_a_cluster_it_says_why(self) -> None:
        canaries = RadosCanaries(plan())
        three, seven = (OsdCanary(canaries, osd) for osd in canaries.plan.osds)
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
        assert canaries.stopped


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


@pytest.fixture
def bench() -> Iterator[tuple[FakePool, Worker, RadosCanaries]]:
    canaries = RadosCanaries(plan())
    pool = FakePool()
    worker = Worker(WorkerMemory(canaries._memory_fd), Order(json.loads(canaries.plan.order())))
    worker.pool = cast(Any, pool)
    yield pool, worker, canaries
    canaries.stop(1.0)


def counted(canaries: RadosCanaries) -> list[tuple[int, int]]:
    reading = OsdCanary(canaries, canaries.plan.osds[0]).read()
    return [(each.latency.count - each.charged, sum(each.errors.values())) for each in reading.workloads]


Bench = tuple[FakePool, Worker, RadosCanaries]


class TestLanes:
    def test_a_write_and_its_removal(self, bench: Bench) -> None:
        pool, worker, canaries = bench
        streams = worker.memory.streams
        lane = WriteLane(worker, 3, (streams[0], streams[2]))
        lane.arrive("w", "r")
        assert (len(pool.held["w"]), lane.objects) == (4096, {"w"})
        lane.arrive("w", "r")
        assert (pool.held, lane.objects, counted(canaries)) == ({}, set(), [(1, 0), (0, 0), (1, 0)])

    def test_a_failed_write_leaves_nothing(self, bench: Bench) -> None:
        pool, worker, canaries = bench
        lane = WriteLane(worker, 3, (worker.memory.streams[0], worker.memory.streams[2]))
        pool.fail = errno.EDQUOT
        lane.arrive("w", "r")
        assert (pool.held, lane.objects, counted(canaries)) == ({}, set(), [(0, 1), (0, 0), (0, 0)])

    def test_a_new_name_takes_the_old_object_away(self, bench: Bench) -> None:
        pool, worker, _ = bench
        lane = WriteLane(worker, 3, (worker.memory.streams[0], worker.memory.streams[2]))
        lane.arrive("old", "r")
        lane.arrive("new", "r")
        assert set(pool.held) == {"new"}
        reads = ReadLane(worker, 3, (worker.memory.streams[1],))
        reads.arrive("w", "old-read")
        reads.arrive("w", "new-read")
        assert set(pool.held) == {"new", "new-read"}

    def test_reads_check_what_they_read(self, bench: Bench) -> None:
        pool, worker, canaries = bench
        lane = ReadLane(worker, 3, (worker.memory.streams[1],))
        lane.arrive("w", "r")
        assert counted(canaries)[1] == (1, 0)
        pool.held["r"] = bytes(4096)
        lane.arrive("w", "r")
        assert counted(canaries)[1] == (1, 1)
        lane.arrive("w", "r")  # written anew
        pool.held["r"] = b"short"
        lane.arrive("w", "r")
        assert counted(canaries)[1] == (2, 2)
        del pool.held["r"]
        lane.arrive("w", "r")
        lane.arrive("w", "r")
        assert counted(canaries)[1] == (4, 2)

    def test_a_connection_that_was_shut_out_ends_the_worker(self, bench: Bench) -> None:
        pool, worker, _ = bench
        lane = WriteLane(worker, 3, (worker.memory.streams[0], worker.memory.streams[2]))
        pool.fail = errno.ESHUTDOWN
        with pytest.raises(ProbeRefused) as refused:
            lane.arrive("w", "r")
        assert refused.value.reason == "blocklisted"

    def test_who_leaves_makes_no_more(self, bench: Bench) -> None:
        pool, worker, _ = bench
        lane = WriteLane(worker, 3, (worker.memory.streams[0], worker.memory.streams[2]))
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
        (errno.EPERM, "other"),
        (0, "other"),
    ],
)
def test_kinds_of_errors(number: int, kind: str) -> None:
    assert ERRORS[error_index(OSError(number, "x"), ERRORS)] == kind
    assert ERRORS[error_index(None, ERRORS)] == "short"
    assert refused_by(OSError(number, "x"), Order(json.loads(plan().order()))).reason


def test_as_many_kinds_as_the_memory_has_words_for() -> None:
    assert len(ERRORS) == len(canary_memory.ERRORS)
