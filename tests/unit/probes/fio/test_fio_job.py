"""The plan of a fio run, and its command lines word by word."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from plumbline.config.probes.disk import FioConfig
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import load_catalogue
from plumbline.probes.fio.fio_job import FioPlan, LatencySearch, layout_pace, measure_argv

MIB = 1 << 20


def plan(workload: str = "randwrite-4k-qd1-j1", **changes: object) -> FioPlan:
    settings = {"runtime": Duration(2), "timeout": Duration(10), "file_size": Size(MIB)} | changes
    config = FioConfig(name="fio-a", workload=workload, **settings)
    found = load_catalogue().get(workload, where="test", key="workload")
    return FioPlan.of(config, found, directory=Path("/var/a:b"), device_class="ssd")


def argv(of: FioPlan) -> tuple[str, ...]:
    return measure_argv(of, [7, 9, 10, 71][: of.workload.jobs], "/proc/self/fd/5")


def test_measured_run_of_a_capped_durable_write():
    assert argv(plan("randwrite-4k-qd1-j1-dsync", rate_iops=50)) == (
        "fio",
        "--ioengine=psync",
        "--rw=randwrite",
        "--bs=4096",
        "--iodepth=1",
        "--direct=1",
        "--rate_iops=50",
        "--time_based=1",
        "--runtime=2000ms",
        "--thread=1",
        "--group_reporting=1",
        "--exitall_on_error=1",
        "--allow_file_create=0",
        "--randrepeat=0",
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        "--percentile_list=50:95:99:99.9",
        "--output-format=json+",
        "--output=/proc/self/fd/5",
        "--eta=never",
        "--size=1048576",
        "--refill_buffers=1",
        "--allow_mounted_write=0",
        "--unlink=0",
        "--sync=dsync",
        "--overwrite=1",
        "--name=plumbline",
        "--filename=/proc/self/fd/7",
    )


def test_the_course_is_reported_of_durable_writes_at_full_speed_only():
    journal = "write-4k-qd1-j1-dsync"
    assert "--status-interval=1" in argv(plan(journal))
    search = structs.replace(plan(journal), search=LatencySearch(0.001, 99, 1))
    long = plan(journal, runtime=Duration(121), timeout=Duration(200))
    for other in (plan(journal, rate_iops=50), plan("write-4k-qd1-j1"), search, long):
        assert "--status-interval=1" not in argv(other)


def test_a_read_cannot_write():
    words = argv(plan("randread-4k-qd16-j1"))
    assert {"--rw=randread", "--readonly", "--iodepth=16", "--ioengine=libaio"} <= set(words)
    assert "--overwrite=1" not in words


def test_mixed_workload_and_its_cap_split_by_direction():
    mixed = plan("randrw75-4k-qd16-j4", rate_iops=100)
    assert {"--rw=randrw", "--rwmixread=75", "--rate_iops=75,25"} <= set(argv(mixed))
    smallest = argv(plan("randrw75-4k-qd16-j4", rate_iops=1))
    assert "--rate_iops=1,1" in smallest  # 0 would be no cap


def test_a_job_for_each_file():
    words = argv(plan("randrw75-4k-qd16-j4"))
    jobs = [word for fd in (7, 9, 10, 71) for word in ("--name=plumbline", f"--filename=/proc/self/fd/{fd}")]
    assert list(words[-8:]) == jobs


def test_layout_is_gentle_and_hurries_where_the_timeout_asks_for_it():
    assert layout_pace(plan("randrw75-4k-qd16-j4", file_size=Size(64 * MIB), timeout=Duration(60))) == 32 * MIB
    assert layout_pace(plan(file_size=Size(1024 * MIB), timeout=Duration(18))) == 128 * MIB  # 1 GiB in half of the 16 s


def test_files_are_whole_blocks():
    assert plan(file_size=Size(MIB + 4096 + 1)).file_size == MIB + 4096


def test_a_capped_run_is_another_experiment():
    assert plan(rate_iops=50).config_hash != plan().config_hash
