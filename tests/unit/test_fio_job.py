"""The plan of a fio run, and its command lines word by word."""

from __future__ import annotations

from pathlib import Path

from plumbline.config_types import Duration, Size
from plumbline.probe_config import FioConfig
from plumbline.probes.fio_job import FioPlan, layout_argv, measure_argv
from plumbline.workloads import load_catalogue

MIB = 1 << 20


def plan(workload: str = "randwrite-4k-qd1-j1", **changes: object) -> FioPlan:
    settings = {"runtime": Duration(2), "timeout": Duration(10), "file_size": Size(MIB)} | changes
    config = FioConfig(name="fio-a", workload=workload, **settings)
    found = load_catalogue().get(workload, where="test", key="workload")
    return FioPlan.of(config, found, directory=Path("/var/a:b"), device_class="ssd")


def test_measured_run_of_a_capped_durable_write():
    assert measure_argv(plan("randwrite-4k-qd1-j1-dsync", rate_iops=50)) == (
        "fio",
        "--name=plumbline",
        "--filename_format=fio.$jobnum",
        "--size=1048576",
        "--numjobs=1",
        "--ioengine=psync",
        "--thread=1",
        "--group_reporting=1",
        "--refill_buffers=1",
        "--exitall_on_error=1",
        "--allow_mounted_write=0",
        "--unlink=0",
        "--eta=never",
        "--rw=randwrite",
        "--bs=4096",
        "--iodepth=1",
        "--direct=1",
        "--sync=dsync",
        "--rate_iops=50",
        "--time_based=1",
        "--runtime=2000ms",
        "--overwrite=1",
        "--allow_file_create=0",
        "--randrepeat=0",
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        "--percentile_list=50:95:99:99.9",
        "--output-format=json+",
        "--output=fio.json",
    )


def test_a_read_cannot_write():
    argv = measure_argv(plan("randread-4k-qd16-j1"))
    assert {"--rw=randread", "--readonly", "--iodepth=16", "--ioengine=libaio"} <= set(argv)
    assert "--overwrite=1" not in argv


def test_mixed_workload_and_its_cap_split_by_direction():
    mixed = plan("randrw75-4k-qd16-j4", rate_iops=100)
    assert {"--rw=randrw", "--rwmixread=75", "--rate_iops=75,25", "--numjobs=4"} <= set(measure_argv(mixed))
    smallest = measure_argv(plan("randrw75-4k-qd16-j4", rate_iops=1))
    assert "--rate_iops=1,1" in smallest  # 0 would be no cap


def test_layout_writes_everything_once_at_a_gentle_pace():
    argv = layout_argv(plan("randrw75-4k-qd16-j4", file_size=Size(64 * MIB), timeout=Duration(60)))
    assert {
        "--name=layout",
        "--filename_format=fio-partial.$jobnum",
        "--rw=write",
        "--bs=1048576",
        "--ioengine=psync",
        "--end_fsync=1",
        "--rate=8388608",  # 32 MiB/s for all four
    } <= set(argv)
    assert not any(word.startswith("--output") for word in argv)


def test_layout_hurries_where_the_timeout_asks_for_it():
    argv = layout_argv(plan(file_size=Size(1024 * MIB), timeout=Duration(18)))
    assert "--rate=134217728" in argv  # 1 GiB in half of the 16 s


def test_files_are_whole_blocks_and_laid_out_in_blocks_that_fit():
    odd = plan(file_size=Size(MIB + 4096 + 1))
    assert odd.file_size == MIB + 4096
    assert "--bs=4096" in layout_argv(odd)


def test_no_word_of_the_command_line_holds_the_directory():
    # fio splits file names at colons
    of = plan()
    assert not any("a:b" in word for word in (*measure_argv(of), *layout_argv(of)))


def test_a_capped_run_is_another_experiment():
    assert plan(rate_iops=50).config_hash != plan().config_hash
