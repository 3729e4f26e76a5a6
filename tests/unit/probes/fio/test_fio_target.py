"""IOPS at a latency: what a search is made of, and which depth its proofs leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.config.model import CephConfig
from plumbline.config.probes.ceph import RbdFioConfig
from plumbline.config.probes.disk import FioConfig
from plumbline.config.types import Duration
from plumbline.config.workloads import load_catalogue
from plumbline.probes.ceph.ceph_access import CephAccess
from plumbline.probes.disk import fio_raw
from plumbline.probes.disk.fio_probe import FioProbe
from plumbline.probes.disk.fio_raw import RawFioPlan
from plumbline.probes.disk.raw_device import RawDevice
from plumbline.probes.fio import fio_job, fio_target
from plumbline.probes.fio.fio_job import FioPlan, LatencySearch
from plumbline.probes.rbd import rbd_fio
from plumbline.probes.rbd.rbd_fio import RbdFioPlan, RbdFioProbe
from plumbline.probes.rbd.rbd_image import ImagePlan
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult

CATALOGUE = load_catalogue()


def in_directory(workload: str = "randread-4k-qd16-j1", name: str = "a", directory: str = "/x", rate=None) -> FioProbe:
    config = FioConfig(name=name, workload=workload, runtime=Duration(10.0), timeout=Duration(60.0), rate_iops=rate)
    plan = FioPlan.of(config, CATALOGUE.by_id[workload], directory=Path(directory), device_class="ssd")
    return FioProbe(config, plan, "sda")


def on_disk(workload: str = "randread-4k-qd1-j1") -> FioProbe:
    load = CATALOGUE.by_id[workload]
    plan = RawFioPlan(
        probe="raw/sdb", workload=load, device="sdb", device_class="hdd", dev="/dev", sys="/sys", runtime_s=10.0,
        timeout_s=60.0, rate_iops=20,
    )  # fmt: skip
    return FioProbe(FioConfig(name="raw", workload=workload, devices=("sdb",)), plan, "sdb")


def on_image(workload: str = "rbd-randwrite-4k-qd1-j1") -> RbdFioProbe:
    load = CATALOGUE.by_id[workload]
    image = ImagePlan(
        access=CephAccess.of(CephConfig()), pool="p", probe="rbd", host="h", size_bytes=2**24, cache=False
    )
    plan = RbdFioPlan(workload=load, image=image, device_class="ssd", runtime_s=10.0, timeout_s=60.0)
    return RbdFioProbe(RbdFioConfig(name="rbd", workload=workload), plan)


Answer = Callable[[int, LatencySearch | None], OperationResult]


def run(answer: Answer, probe: FioProbe | None = None) -> tuple[ProbeResult, list[tuple[int, bool]]]:
    """The outcome, and (depth, whether it searched) of each run that was made."""
    made: list[tuple[int, bool]] = []

    def one(of: FioProbe) -> ProbeResult:
        depth, search = of.plan.workload.iodepth, of.plan.search
        made.append((depth, search is not None))
        return ProbeResult(
            probe="a", layer="disk", device_class="ssd", workload="w", config_hash="", tool="fio", tool_version="3.33",
            started=0.0, duration=1.0, outcome=Outcome.SUCCESS, operations=(answer(depth, search),),
        )  # fmt: skip

    return fio_target.find(probe or in_directory(), 0.002, 99.0, one), made


def disk_that_keeps(deepest: int, *, fio_says: int) -> Answer:
    """99 of 100 operations are quick while no more than ``deepest`` are in flight, 98 above."""

    def answer(depth: int, search: LatencySearch | None) -> OperationResult:
        slow = 10 if depth <= deepest else 20
        return OperationResult(
            operation="read", iops=1000.0 * depth, bins=((0.001, 1000 - slow), (0.003, slow)),
            queue_depth=fio_says if search else None,
        )  # fmt: skip

    return answer


@pytest.mark.parametrize(
    ("deepest", "fio_says", "depths", "found"),
    [
        (40, 32, [32], 32),
        (30, 32, [32, 24], 24),
        (20, 32, [32, 24, 16], 16),
        (1, 40, [40, 30, 20, 10, 5, 1], 1),
        (0, 4, [4, 3, 2, 1], 0),
        (0, 1, [1], 0),
    ],
)
def test_a_depth_counts_when_a_whole_run_proves_it(deepest: int, fio_says: int, depths: list[int], found: int):
    result, made = run(disk_that_keeps(deepest, fio_says=fio_says))
    assert made == [(fio_target.DEEPEST, True), *((depth, False) for depth in depths)]
    (operation,) = result.operations
    assert operation.queue_depth == found
    assert operation.iops == 1000.0 * depths[-1]


def test_where_fio_fails_at_its_search_plain_runs_find_the_depth_by_halves():
    keeps, made = disk_that_keeps(20, fio_says=1), []

    def one(of: FioProbe) -> ProbeResult:
        depth, search = of.plan.workload.iodepth, of.plan.search
        made.append(depth)
        return ProbeResult(
            probe="a", layer="disk", device_class="ssd", workload="w", config_hash="", tool="fio", tool_version="3.33",
            started=0.0, duration=1.0, outcome=Outcome.FAILURE if search else Outcome.SUCCESS,
            operations=() if search else (keeps(depth, None),), message="corrupted" if search else "",
        )  # fmt: skip

    assert fio_target.find(in_directory(), 0.002, 99.0, one).operations[0].queue_depth == 16
    assert made == [128, 128, 64, 32, 16]


def test_a_disk_that_fails_is_no_result():
    def one(_of: object) -> ProbeResult:
        return ProbeResult(
            probe="a", layer="disk", device_class="ssd", workload="w", config_hash="", tool="fio", tool_version="3.33",
            started=0.0, duration=1.0, outcome=Outcome.FAILURE, message="disk gone",
        )  # fmt: skip

    assert fio_target.find(in_directory(), 0.002, 99.0, one).message == "disk gone"


def test_the_share_is_counted_and_not_interpolated():
    result = OperationResult(operation="read", bins=((0.001, 99), (0.002, 1)))
    assert fio_target.keeps(result, 0.001, 99.0)
    assert not fio_target.keeps(result, 0.001, 99.5)
    assert fio_target.keeps(result, 0.002, 100.0)
    assert not fio_target.keeps(OperationResult(operation="read"), 1.0, 99.0)


def test_fio_is_told_the_target_and_nothing_of_a_cap():
    options = LatencySearch(0.002, 99.0, 1.0).options()
    assert options == ("--latency_target=2000us", "--latency_window=1000000us", "--latency_percentile=99")
    device = RawDevice("sdb", -1, "8:16", 2**40)
    for probe, argv in (
        (in_directory(rate=50), lambda plan: fio_job.measure_argv(plan, (3,), "/r")),
        (on_disk(), lambda plan: fio_raw.argv(plan, device, report="/r")),
        (on_image(), rbd_fio.measure_argv),
    ):
        plans = []

        def one(of, plans=plans) -> ProbeResult:
            plans.append(of.plan)
            return run(disk_that_keeps(8, fio_says=8))[0]

        fio_target.find(probe, 0.002, 99.0, one)
        search, proof = (argv(plan) for plan in plans[:2])
        assert set(options) <= set(search)
        assert not any(word.startswith("--latency_") for word in proof)
        for words in (search, proof):
            assert not any(word.startswith("--rate") for word in words)
        assert "--iodepth=128" in search
        assert "--iodepth=8" in proof
        assert plans[0].workload.jobs == plans[1].workload.jobs == 1
        assert len([word for word in search if word.startswith("--name=")]) == 1
        assert ("--readonly" in search) == (plans[0].workload.operations == ("read",))
        assert ("--runtime=20000ms" in search, "--runtime=10000ms" in proof) == (True, True)


def test_the_daemons_own_run_searches_nothing():
    assert not any("latency_target" in word for word in fio_job.measure_argv(in_directory().plan, (3,), "/r"))


def test_one_search_for_each_place_and_kind_of_operation():
    place = fio_target.place_of
    assert place(in_directory()) == place(in_directory("randread-4k-qd1-j1", name="b", rate=50))
    assert place(in_directory()) != place(in_directory(directory="/y"))
    assert place(in_directory()) != place(in_directory("randwrite-4k-qd16-j1"))
    assert place(in_directory("randwrite-4k-qd1-j1")) != place(in_directory("randwrite-4k-qd1-j1-dsync"))
    assert place(on_disk()) != place(in_directory("randread-4k-qd1-j1"))
    assert place(on_image())
    for workload in ("read-4k-qd1-j1", "write-4k-qd4-j4"):
        assert place(in_directory(workload)) is None
