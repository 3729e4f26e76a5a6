"""The canary on disks that hang, fill up, or break: real ones, on loop devices."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from plumbline.config.workloads import BlockWorkload, Pattern, Sync
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.canary_worker import FILE_NAME
from plumbline.probes.canary.target import FileTarget
from plumbline.probes.run import guard
from plumbline.probes.run.histogram import quantile
from plumbline.probes.run.reading import CanaryReading, CanaryState
from support.canaries import healthy, until
from support.filesystems import MIB, Mounts, run, shut_down

READ = BlockWorkload(id="randread-4k-qd1-j1", layer="disk", pattern=Pattern.RANDREAD, block_size=4096)
WRITE = BlockWorkload(
    id="randwrite-4k-qd1-j1-dsync", layer="disk", pattern=Pattern.RANDWRITE, block_size=4096, sync=Sync.DSYNC
)
pytestmark = pytest.mark.needs_root


@pytest.fixture
def canaries(mounts: Mounts) -> Iterator[list[Canary]]:
    """Ends them before their file systems go."""
    started: list[Canary] = []
    yield started
    for one in started:
        if not one.stop():
            for point in list(mounts.frozen):
                mounts.thaw(point)
            until(one, lambda reading: reading.state is CanaryState.STOPPED)


def start(canaries: list[Canary], directory: Path, *workloads: BlockWorkload, rate: float = 100.0) -> Canary:
    one = Canary(
        FileTarget(
            name="canary",
            directory=directory,
            file_size_bytes=MIB,
            workloads=tuple((workload, ()) for workload in workloads or (READ, WRITE)),
            device_class="ssd",
            rate=rate,
            max_busy_ratio=1.0,
            stuck_after_s=0.5,
        )
    )
    canaries.append(one)
    one.start()
    return one


def count(reading: CanaryReading) -> int:
    return sum(each.latency.count for each in reading.workloads)


class TestFrozen:
    """A frozen file system is the worst a disk can do: writers wait where no signal reaches them."""

    def test_the_daemon_sees_it_without_waiting(self, mounts: Mounts, canaries: list[Canary]) -> None:
        point = mounts.ext4(160)
        one = start(canaries, point / "canary", WRITE)
        until(one, healthy)
        mounts.freeze(point)
        stuck = until(one, lambda reading: reading.in_flight_s > 1.5)
        assert (stuck.state, stuck.success, stuck.reason) == (CanaryState.RUNNING, False, "stuck")
        assert stuck.workloads[0].in_flight_s == stuck.in_flight_s
        assert one.pid is not None
        assert psutil.Process(one.pid).status() == psutil.STATUS_DISK_SLEEP
        began = time.perf_counter()
        for _ in range(20):
            one.read()
            one.poll()
        assert time.perf_counter() - began < 0.2
        assert one.read().workloads[0].latency.count == stuck.workloads[0].latency.count

        mounts.thaw(point)
        again = until(one, healthy)
        (before,), (after,) = stuck.workloads, again.workloads
        assert again.runs == 1
        # 100 arrivals a second for at least 1.5 s: one executed, the others charged what was left of the hang
        assert after.charged - before.charged > 100
        half_a_second = after.latency.edges.index(0.5243)
        assert after.latency.count - after.latency.cumulative[half_a_second] > 60
        assert after.latency.sum - before.latency.sum > 100 * 0.5

    def test_no_burst_follows(self, mounts: Mounts, canaries: list[Canary]) -> None:
        point = mounts.ext4(160)
        one = start(canaries, point / "canary", WRITE, rate=20.0)
        until(one, healthy)
        mounts.freeze(point)
        until(one, lambda reading: reading.in_flight_s > 2.0)
        mounts.thaw(point)
        began = until(one, lambda reading: reading.in_flight_s < 1)
        time.sleep(1)
        executed = (count(one.read()) - one.read().workloads[0].charged) - (count(began) - began.workloads[0].charged)
        assert executed < 20 + 5 * 20**0.5

    def test_stop_gives_up_in_time_and_says_so(self, mounts: Mounts, canaries: list[Canary]) -> None:
        point = mounts.ext4(160)
        one = start(canaries, point / "canary", WRITE)
        until(one, healthy)
        mounts.freeze(point)
        until(one, lambda reading: reading.in_flight_s > 0.3)
        pid = one.pid
        began = time.monotonic()
        assert one.stop(timeout=1.0) is False
        assert time.monotonic() - began < 10  # it is frozen until we thaw it
        reading = one.read()
        assert (reading.state, reading.success, reading.reason) == (CanaryState.UNKILLABLE, False, "unkillable")
        assert f"worker {pid} hangs in the kernel" in reading.message
        assert reading.in_flight_s > 1.0
        for _ in range(5):
            one.poll()
        assert (one.pid, one.read().runs) == (pid, 1)

        # another one, as after a reload, leaves the file alone
        second = start(canaries, point / "canary", WRITE)
        assert until(second, lambda reading: reading.skips["locked"] > 0).reason == "locked"

        mounts.thaw(point)
        until(one, lambda reading: reading.state is CanaryState.STOPPED)
        assert one.pid is None
        until(second, healthy)

    def test_preparations_that_hang_are_seen(self, mounts: Mounts, canaries: list[Canary]) -> None:
        point = mounts.ext4(160)
        mounts.freeze(point)
        one = start(canaries, point / "canary", READ)
        reading = until(one, lambda reading: reading.in_flight_s > 1.0)
        assert (reading.state, reading.success, reading.reason) == (CanaryState.PREPARING, False, "stuck")
        mounts.thaw(point)
        until(one, healthy)


def test_a_throttled_disk(mounts: Mounts, canaries: list[Canary]) -> None:
    """Five reads a second are let through: reads become slow, and arrivals keep their pace all the same."""
    hierarchy = Path("/sys/fs/cgroup/blkio")
    if not (hierarchy / "blkio.throttle.read_iops_device").exists():
        pytest.skip("no blkio hierarchy (control groups, version 1) on this host")
    point = mounts.ext4(160)
    one = start(canaries, point / "canary", READ)
    before = until(one, healthy).workloads[0]
    group = hierarchy / f"plumbline-test-{os.getpid()}"
    group.mkdir()
    try:
        device = point.stat().st_dev
        (group / "blkio.throttle.read_iops_device").write_text(f"{os.major(device)}:{os.minor(device)} 5", "ascii")
        (group / "cgroup.procs").write_text(str(one.pid), "ascii")
        began = time.monotonic()
        time.sleep(4)
        reading = one.read()
        passed = time.monotonic() - began
    finally:
        assert one.stop()
        group.rmdir()
    (reads,) = reading.workloads
    executed = (reads.latency.count - reads.charged) - (before.latency.count - before.charged)
    arrived = reads.latency.count - before.latency.count
    assert reading.success is True
    assert 2 * passed < executed < 20 * passed
    assert arrived / passed == pytest.approx(100, rel=0.3)
    median = quantile(reads.latency, 0.5)
    assert median is not None
    assert median > 0.02


class TestBroken:
    def test_a_thin_disk_that_runs_full(self, mounts: Mounts, canaries: list[Canary], tmp_path: Path) -> None:
        """The image lies on a full file system and has lost the canary's blocks: writes fail, reads do not."""
        pool = mounts.mount("pool", "-t", "tmpfs", "-o", "size=192m", "none")
        point = mounts.ext4(160, image=pool / "thin.img")
        with guard.prepare_directory(point / "canary", size_bytes=MIB) as directory:
            os.close(directory.open_file(FILE_NAME, MIB, direct=True, dsync=False))
        for start_block, length in extents(point / "canary" / FILE_NAME):
            run(
                "fallocate",
                "--punch-hole",
                "-o",
                str(start_block * 4096),
                "-l",
                str(length * 4096),
                pool / "thin.img",
            )
        fill(pool / "filler")
        one = start(canaries, point / "canary")
        failing = until(one, lambda reading: any(sum(each.errors.values()) > 3 for each in reading.workloads))
        reads, writes = failing.workloads
        assert failing.success is False
        assert sum(reads.errors.values()) == 0
        assert writes.errors["ENOSPC"] + writes.errors["EIO"] == sum(writes.errors.values())
        assert writes.last_success_ts is None
        (pool / "filler").unlink()
        well = until(one, healthy)
        assert well.workloads[1].errors["ENOSPC"] + well.workloads[1].errors["EIO"] > 3

    def test_a_file_system_that_died_can_be_mounted_anew(
        self, mounts: Mounts, canaries: list[Canary], tmp_path: Path
    ) -> None:
        """ext4 shut down answers EIO for ever. The worker lets go of it, so that it can be unmounted and repaired."""
        image = tmp_path / "disk.img"
        point = mounts.ext4(160, image=image)
        one = start(canaries, point / "canary")
        until(one, healthy)
        shut_down(point)
        gone = until(one, lambda reading: reading.state is CanaryState.REFUSED)
        assert (gone.reason, gone.success) == ("io-error", False)
        assert sum(each.errors["EIO"] for each in gone.workloads) >= 20
        until(one, lambda reading: one.pid is None)
        mounts.unmount(point)
        mounts.mount("disk", "-o", "loop", image)
        again = until(one, healthy, 30)
        assert again.runs >= 2
        assert count(again) > count(gone)

    def test_a_file_system_that_became_read_only(self, mounts: Mounts, canaries: list[Canary]) -> None:
        point = mounts.ext4(160)
        guard.prepare_directory(point / "canary", size_bytes=MIB).close()
        run("mount", "-o", "remount,ro", point)
        one = start(canaries, point / "canary")
        refused = until(one, lambda reading: reading.skips["read-only"] > 0)
        assert (refused.success, refused.reason) == (False, "read-only")
        run("mount", "-o", "remount,rw", point)
        until(one, healthy)

    def test_a_file_system_that_turns_read_only_under_it(
        self, mounts: Mounts, canaries: list[Canary], tmp_path: Path
    ) -> None:
        """The kernel found it damaged. The worker lets go of it, so that it can be repaired and mounted again."""
        image = tmp_path / "disk.img"
        point = mounts.ext4(160, image=image)
        run("mount", "-o", "remount,errors=remount-ro", point)
        one = start(canaries, point / "canary")
        until(one, healthy)
        device = Path(run("findmnt", "-no", "SOURCE", point).strip()).name
        (Path("/sys/fs/ext4") / device / "trigger_fs_error").write_text("a fault of a test", "ascii")
        failing = until(one, lambda reading: reading.success is False)
        assert failing.workloads[1].errors
        until(one, lambda reading: reading.state is CanaryState.REFUSED and one.pid is None)
        mounts.unmount(point)
        subprocess.run(["e2fsck", "-fy", image], check=False, capture_output=True)
        mounts.mount("disk", "-o", "loop", image)
        until(one, healthy)

    def test_a_quota_that_is_reached(self, mounts: Mounts, canaries: list[Canary], tmp_path: Path) -> None:
        """A group's limit on btrfs, met while the disk has room: said as what it is, and over when there is room."""
        image = tmp_path / "btrfs.img"
        with image.open("wb") as file:
            file.truncate(256 * MIB)
        if shutil.which("mkfs.btrfs") is None:
            pytest.skip("no mkfs.btrfs (Debian package btrfs-progs)")
        run("mkfs.btrfs", "-q", image)
        point = mounts.mount("btrfs", "-o", "loop", image)
        run("btrfs", "quota", "enable", point)
        run("btrfs", "subvolume", "create", point / "limited")
        run("btrfs", "qgroup", "limit", "256K", point / "limited")
        one = start(canaries, point / "limited" / "canary")
        refused = until(one, lambda reading: reading.state is CanaryState.REFUSED)
        assert refused.success is False
        assert "quota" in refused.message.lower()
        run("btrfs", "qgroup", "limit", "none", point / "limited")
        until(one, healthy)


def extents(path: Path) -> list[tuple[int, int]]:
    """First block and number of blocks (of 4 KiB) of each piece of the file on its device."""
    lines = run("filefrag", "-v", "-b4096", path).splitlines()
    found = [re.match(r"\s*\d+:\s*\d+\.\.\s*\d+:\s*(\d+)\.\.\s*\d+:\s*(\d+):", line) for line in lines]
    pieces = [(int(match[1]), int(match[2])) for match in found if match]
    assert sum(length for _, length in pieces) * 4096 == path.stat().st_size
    return pieces


def fill(path: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        path.write_bytes(bytes(512 * MIB))
