"""The fio probe with the real fio on a real disk: small files, one-second runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from plumbline.config.probes.disk import FioConfig
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import Completed, ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.fio.fio import run_fio
from plumbline.probes.fio.fio_job import FioPlan
from plumbline.probes.run.guard import prepare_directory
from plumbline.probes.run.histogram import OperationTotals, quantile
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import Outcome, ProbeResult
from support.filesystems import Mounts, shut_down
from support.filesystems import run as run_command

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
MIB = 1 << 20
FACTOR = 2 ** (1 / 8) * (1 + 1 / 128)
"""Between neighbouring edges, and the width of fio's own bins."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a disk, also where the temporary directory is in memory."""
    try:
        prepare_directory(tmp_path / "try", size_bytes=MIB).close()
    except ProbeRefused as refusal:
        if refusal.reason != "memory-filesystem":
            raise
        with tempfile.TemporaryDirectory(dir="/var/tmp") as elsewhere:
            yield Path(elsewhere)
    else:
        yield tmp_path


def plan(directory: Path, workload: str, **changes: object) -> FioPlan:
    settings = {"runtime": Duration(1), "timeout": Duration(60), "file_size": Size(16 * MIB)} | changes
    config = FioConfig(name="fio-a", workload=workload, **settings)
    found = load_catalogue().get(workload, where="test", key="workload")
    return FioPlan.of(config, found, directory=directory, device_class="ssd")


def run(of: FioPlan, runner: object = None) -> ProbeResult:
    return run_fio(of, Run(runner or ProcessRunner(os.environ), time.time, threading.Event()))


def left(of: FioPlan) -> list[str]:
    return sorted(path.name for path in of.directory.iterdir())


class Recorder:
    """The real runner, and what it was asked to run."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.inner = ProcessRunner(os.environ)

    def run(self, argv: Sequence[str], **more: object) -> Completed:
        layout = "plumbline.probes.fio.fio_files" in argv
        self.jobs.append("layout" if layout else "measure" if "--name=plumbline" in argv else argv[1])
        return self.inner.run(argv, **more)


@pytest.mark.parametrize(
    ("workload", "files"),
    [
        ("randwrite-4k-qd1-j1", 1),
        ("randwrite-4k-qd1-j1-dsync", 1),
        ("randread-4k-qd16-j1", 1),
        ("randrw75-4k-qd16-j4", 4),
        ("write-4m-qd4-j4", 4),
    ],
)
def test_workload(disk: Path, workload: str, files: int):
    of = plan(disk / "probe", workload)
    result = run(of)
    assert (result.outcome, result.message) == (Outcome.SUCCESS, "")
    assert result.duration > 1
    assert [each.operation for each in result.operations] == list(of.workload.operations)
    for each in result.operations:
        assert each.iops > 0
        # fio truncates both figures
        assert each.throughput == pytest.approx(each.iops * of.workload.block_size, rel=0.01)
        assert list(each.latency) == ["mean", "p50", "p95", "p99", "p999", "max"]
        assert 0 < each.latency["p50"] <= each.latency["p99"] <= each.latency["max"] < 60
    assert left(of) == [".plumbline-probe", *(f"fio.{number}" for number in range(files))]
    for number in range(files):
        found = (of.directory / f"fio.{number}").stat()
        assert found.st_size == 16 * MIB
        assert found.st_blocks * 512 >= 16 * MIB
        assert found.st_mode & 0o777 == 0o600


def test_a_journal_reports_its_course(disk: Path):
    (write,) = run(plan(disk / "probe", "write-4k-qd1-j1-dsync", runtime=Duration(3))).operations
    assert len(write.rates) in (2, 3)  # the last second may end just before the run
    assert min(write.rates) >= 0
    assert write.iops > 0
    assert left(plan(disk / "probe", "write-4k-qd1-j1-dsync")) == [".plumbline-probe", "fio.0"]


def test_files_are_laid_out_once_and_shared_by_smaller_runs(disk: Path):
    recorder = Recorder()
    assert run(plan(disk / "probe", "randread-4k-qd16-j1"), recorder).outcome is Outcome.SUCCESS
    inode = (disk / "probe" / "fio.0").stat().st_ino
    smaller = plan(disk / "probe", "randwrite-4k-qd1-j1", file_size=Size(4 * MIB), rate_iops=20.0)
    result = run(smaller, recorder)
    assert result.outcome is Outcome.SUCCESS
    assert recorder.jobs == ["--version", "layout", "measure", "--version", "measure"]
    found = (disk / "probe" / "fio.0").stat()
    assert (found.st_ino, found.st_size) == (inode, 16 * MIB)


def test_a_cap_is_kept(disk: Path):
    result = run(plan(disk / "probe", "randread-4k-qd1-j1", rate_iops=40.0, file_size=Size(MIB), runtime=Duration(2)))
    assert result.operations[0].iops == pytest.approx(40, rel=0.1)


def test_a_directory_with_a_colon(disk: Path):
    of = plan(disk / "pci-0000:3b:00.0", "randwrite-4k-qd1-j1", file_size=Size(MIB))
    assert run(of).outcome is Outcome.SUCCESS
    assert left(of) == [".plumbline-probe", "fio.0"]
    assert sorted(path.name for path in disk.iterdir() if path.name.startswith("pci")) == ["pci-0000:3b:00.0"]


def test_stop_in_mid_run(disk: Path):
    of = plan(disk / "probe", "randwrite-4k-qd1-j1", file_size=Size(MIB), runtime=Duration(30), rate_iops=10.0)
    runner = ProcessRunner(os.environ)
    stopped_at: list[float] = []

    def stop_when_it_measures() -> None:
        deadline = time.monotonic() + 20
        while not (of.directory / "fio.0").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        stopped_at.append(time.monotonic())
        runner.stop()

    thread = threading.Thread(target=stop_when_it_measures)
    thread.start()
    with pytest.raises(ProbeRefused) as caught:
        run(of, runner)
    assert time.monotonic() - stopped_at[0] < 1
    thread.join()
    assert caught.value.reason == "stopped"
    assert left(of) == [".plumbline-probe", "fio.0"]


def test_a_fio_that_runs_too_long_is_ended(disk: Path):
    class Endless(Recorder):
        def run(self, argv: Sequence[str], **more: object) -> Completed:
            return super().run(["--runtime=60s" if word.startswith("--runtime") else word for word in argv], **more)

    of = plan(disk / "probe", "randread-4k-qd1-j1", file_size=Size(MIB), rate_iops=10.0, timeout=Duration(2.5))
    result = run(of, Endless())
    assert result.outcome is Outcome.TIMEOUT
    assert result.message.startswith("fio: not finished in time; is the device slow")
    assert result.operations == ()
    assert result.duration < 8
    assert left(of) == [".plumbline-probe", "fio.0"]


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An ext4 on a loop device, of 96 MiB where the test wants no other."""
    if os.geteuid() != 0:
        pytest.skip("mounts a loop device: needs root")
    image, point = tmp_path / "image", tmp_path / "small"
    point.mkdir()
    image.touch()
    os.truncate(image, getattr(request, "param", 96) * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
    command = ["mount", "-o", "loop", str(image), str(point)]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no loop mounts here: {mounted.stderr.strip()}")
    yield point
    subprocess.run(["umount", str(point)], check=True)
    image.unlink()


@pytest.mark.needs_root
def test_a_disk_without_the_space_is_refused(small_disk: Path):
    of = plan(small_disk / "probe", "randwrite-4k-qd1-j1", file_size=Size(32 * MIB))
    with pytest.raises(ProbeRefused) as caught:
        run(of)
    assert caught.value.reason == "no-space"
    assert not of.directory.exists()


@pytest.mark.needs_root
def test_a_disk_that_fills_up_during_the_layout(small_disk: Path):
    class SomebodyElseIsFaster(Recorder):
        def run(self, argv: Sequence[str], **more: object) -> Completed:
            if "plumbline.probes.fio.fio_files" in argv:
                with (small_disk / "other").open("wb", buffering=0) as file:
                    free = os.fstatvfs(file.fileno())
                    os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - 2 * MIB)
            return super().run(argv, **more)

    of = plan(small_disk / "probe", "randwrite-4k-qd1-j1", file_size=Size(8 * MIB))
    with pytest.raises(ProbeRefused, match=r"[12] MiB free, 64 MiB needed") as caught:
        run(of, SomebodyElseIsFaster())
    assert caught.value.reason == "no-space"
    assert left(of) == [".plumbline-probe"]


@pytest.mark.needs_root
@pytest.mark.parametrize("small_disk", [260], indirect=True)
def test_fewer_and_larger_files_need_their_own_space(small_disk: Path):
    """Files that are there count only as far as they are overwritten: what came on top once filled the disk."""
    before = plan(small_disk / "probe", "randrw75-4k-qd16-j4", file_size=Size(16 * MIB))
    assert run(before).outcome is Outcome.SUCCESS
    free = os.statvfs(small_disk)
    with (small_disk / "other").open("wb", buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - 71 * MIB)
    of = plan(small_disk / "probe", "randwrite-4k-qd1-j1", file_size=Size(64 * MIB))
    with pytest.raises(ProbeRefused, match=r"7[01] MiB free, 160 MiB needed") as caught:
        run(of)
    assert caught.value.reason == "no-space"
    assert left(of) == [".plumbline-probe", "fio.0", "fio.1", "fio.2", "fio.3"]
    free = os.statvfs(small_disk)
    assert free.f_bavail * free.f_frsize > 70 * MIB


def test_the_histogram_of_a_run_says_what_fio_says(disk: Path) -> None:
    """fio's bins are 1/128 wide and the standard edges 2^(1/8): a percentile is off by one bucket, 9.1 %, at most."""
    made = run(plan(disk / "probe", "randread-4k-qd16-j1", runtime=Duration(2)))
    (operation,) = made.operations
    totals = OperationTotals().plus(operation.bins)
    histogram = totals.histogram()
    assert histogram.count == sum(count for _, count in operation.bins) > 500
    # a bin's middle stands for all of it
    assert histogram.sum / histogram.count == pytest.approx(operation.latency["mean"], rel=0.008)
    for statistic, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        folded = quantile(histogram, q)
        assert folded is not None
        assert 1 / FACTOR <= folded / operation.latency[statistic] <= FACTOR, statistic


@pytest.mark.parametrize(
    ("workload", "places"),
    [
        ("fs-backread-4k-qd1-j1", [2, 1, 0, 254, 253]),
        ("fs-strideread-4k-qd1-j1", [0, 17, 34, 51]),
    ],
)
def test_iozones_two_ways_to_read(disk: Path, workload: str, places: list[int]) -> None:
    """By fio's own log of where it read, in a file of 256 blocks. Backwards it goes on from the last but one."""
    load = load_catalogue().get(workload, where="test", key="workload")
    argv = ["fio", "--name=x", f"--rw={load.rw}", "--bs=4096", "--size=1m", "--time_based", "--runtime=1"]
    log = ["--write_lat_log=log", "--log_offset=1", "--ioengine=psync"]
    subprocess.run([*argv, *log], cwd=disk, check=True, capture_output=True)
    rows = (disk / "log_lat.1.log").read_text().splitlines()
    read = [int(row.split(",")[4]) // 4096 for row in rows]
    first = read.index(places[0])
    assert read[first : first + len(places)] == places
    assert run(plan(disk / "probe", workload)).outcome is Outcome.SUCCESS


@pytest.mark.needs_root
@pytest.mark.parametrize("fault", ["dies", "turns-read-only"])
def test_a_file_system_that_fails_under_a_run(mounts: Mounts, fault: str) -> None:
    """A failure of one line, no files left open: it can be unmounted at once."""
    point = mounts.ext4(160)
    of = plan(point / "probe", "randwrite-4k-qd1-j1-dsync", runtime=Duration(20))
    assert run(plan(point / "probe", "randwrite-4k-qd1-j1-dsync")).outcome is Outcome.SUCCESS  # laid out
    found: list[object] = []

    def measured() -> None:
        try:
            found.append(run(of))
        except ProbeRefused as refusal:
            found.append(refusal)

    beside = threading.Thread(target=measured)
    beside.start()
    time.sleep(2)
    if fault == "dies":
        shut_down(point)
    else:
        run_command("mount", "-o", "remount,errors=remount-ro", point)
        device = Path(run_command("findmnt", "-no", "SOURCE", point).strip()).name
        (Path("/sys/fs/ext4") / device / "trigger_fs_error").write_text("a fault of a test", "ascii")
    beside.join(60)
    assert not beside.is_alive()
    (result,) = found
    message = result.message if isinstance(result, ProbeResult) else str(result)
    assert not isinstance(result, ProbeResult) or result.outcome is Outcome.FAILURE
    assert message
    assert "\n" not in message
    mounts.unmount(point)
