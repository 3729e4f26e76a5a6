"""The canary on real mounts: ext4 and xfs on loop devices, and FUSE whose process is stopped and killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from plumbline.config.probes.filesystem import FilesystemCanaryConfig
from plumbline.config.types import Size
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.canary_worker import FILE_NAME
from plumbline.probes.canary.target import OWN_DIRECTORY
from plumbline.probes.filesystem.filesystem_canary import MountTarget, build
from plumbline.probes.run.guard import MARKER
from plumbline.probes.run.histogram import quantile
from plumbline.probes.run.reading import CanaryReading, CanaryState
from support.bindfs import Fuse
from support.canaries import healthy, until
from support.daemon import COMMAND, alive, eventually, run, running
from support.filesystems import MIB, Mounts, skip_without_root
from support.filesystems import run as command

pytestmark = pytest.mark.needs_root
HERE = Roots.under(Path("/"))
CATALOGUE = load_catalogue()
OURS = {MARKER, FILE_NAME}


@pytest.fixture(autouse=True)
def _root() -> None:
    skip_without_root("mounts file systems")


@pytest.fixture
def canaries() -> Iterator[list[Canary]]:
    """Ends them before their file systems go: name the fixture of those first."""
    started: list[Canary] = []
    yield started
    for one in started:
        one.stop()


def start(canaries: list[Canary], directory: Path, workload: str = "fs-ops-4k", *, filesystem: str = "") -> Canary:
    found = CATALOGUE.by_id[workload]
    one = Canary(
        MountTarget(
            name="mount",
            workloads=((found, ()),),  # type: ignore[arg-type]
            device_class="x",
            rate=50.0,
            stuck_after_s=1.0,
            max_busy_ratio=1.0,
            directory=directory,
            file_size_bytes=MIB,
            filesystem=filesystem,
            direct=found.direct,  # type: ignore[union-attr]
            sys=HERE.sys,
        )
    )
    canaries.append(one)
    one.start()
    return one


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def refused(one: Canary, reason: str) -> CanaryReading:
    return until(one, lambda reading: (reading.state, reading.reason) == (CanaryState.REFUSED, reason))


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
@pytest.mark.parametrize("workload", ["fs-ops-4k", "fs-ops-4k-buffered"])
def test_writes_and_reads(mounts: Mounts, canaries: list[Canary], filesystem: str, workload: str) -> None:
    point = mounts.xfs() if filesystem == "xfs" else mounts.ext4(200)
    one = start(canaries, point / "canary", workload, filesystem=filesystem)
    reading = until(one, lambda reading: all(each.latency.count > 20 for each in reading.workloads))
    assert (reading.success, reading.reason, reading.kind) == (True, "", "filesystem-canary")
    assert [(each.layer, each.workload, each.operation) for each in reading.workloads] == [
        ("filesystem", workload, "write"),
        ("filesystem", workload, "read"),
    ]
    for each in reading.workloads:
        assert not any(each.errors.values())
        assert 0 < quantile(each.latency, 0.5) < 60
    assert names(point / "canary") == OURS
    assert (point / "canary" / FILE_NAME).stat().st_size == MIB
    assert one.stop()
    assert names(point / "canary") == OURS  # for the next start, as the disk's


def test_a_write_waits_for_what_a_neighbour_has_left_in_the_cache(
    mounts: Mounts, canaries: list[Canary], tmp_path: Path
) -> None:
    """The journal writes every file's new blocks before it commits: with nodelalloc blocks are new when written, not
    when the kernel gets round to writing them, so that the wait does not depend on when that is."""
    image = tmp_path / "ordered.img"
    with image.open("wb") as file:
        file.truncate(700 * MIB)
    command("mkfs.ext4", "-q", image)
    point = mounts.mount("ordered", "-o", "loop,nodiscard,nodelalloc", image)
    one = start(canaries, point / "canary")
    idle = until(one, lambda reading: reading.workloads[0].latency.count > 30)
    median = quantile(idle.workloads[0].latency, 0.5)
    assert median is not None
    block = os.urandom(MIB)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with (point / "neighbour").open("wb") as file:
            for _ in range(400):
                file.write(block)
                one.poll()
        reading = one.read()
        slowest = quantile(reading.workloads[0].latency, 1.0)
        assert slowest is not None
        if slowest > 10 * median:
            break
    else:
        pytest.fail(f"the slowest write took {slowest} s, an idle one {median} s")
    assert one.read().success


def test_what_should_be_mounted_and_is_not(mounts: Mounts, canaries: list[Canary]) -> None:
    point = mounts.ext4(200)
    mounts.unmount(point)
    reading = refused(start(canaries, point / "canary", filesystem="xfs"), "not-mounted")
    assert "not on xfs" in reading.message
    assert reading.success is False
    assert not names(point)  # nothing went to the file system below


def test_mounted_after_the_plan_was_made(mounts: Mounts, canaries: list[Canary], tmp_path: Path) -> None:
    """Its class is not known then; once it works, a new plan is asked for, and that knows the class."""
    point = mounts.ext4(200)
    command("umount", point)
    config = FilesystemCanaryConfig(name="mount", directory=str(point), file_size=Size(MIB), rate=50)
    host = SimpleNamespace(roots=HERE, storage=tmp_path, disk_below=lambda _: None)

    def planned() -> Canary:
        (job,) = build(config, CATALOGUE.by_id["fs-ops-4k"], host).continuous  # type: ignore[arg-type]
        one = job.make({})
        assert isinstance(one, Canary)
        canaries.append(one)
        one.start()
        return one

    one = planned()
    reading = refused(one, "not-mounted")
    assert (reading.device_class, reading.outdated) == ("unknown", False)
    command("mount", "-o", "loop,nodiscard", point.with_suffix(".img"), point)
    until(one, lambda reading: reading.outdated)
    assert one.stop()
    reading = until(planned(), healthy)
    assert (reading.device_class, reading.outdated) == ("ext4", False)


def test_the_root_file_system_needs_its_name(canaries: list[Canary]) -> None:
    reading = refused(start(canaries, Path("/plumbline-no-such/canary")), "missing")
    assert "create the parent" in reading.message
    reading = refused(start(canaries, Path("/plumbline-no-such")), "not-mounted")
    assert "root file system" in reading.message
    assert not Path("/plumbline-no-such").exists()


def test_a_bind_mount_of_the_root_needs_its_name_too(mounts: Mounts, canaries: list[Canary], tmp_path: Path) -> None:
    """As systemd makes one of each path in ``ReadWritePaths=``."""
    if tmp_path.stat().st_dev != Path("/").stat().st_dev:
        pytest.skip(f"{tmp_path} is not on the root file system")
    (tmp_path / "empty").mkdir()
    point = mounts.mount("bound", "--bind", tmp_path / "empty")
    reading = refused(start(canaries, point / "canary"), "not-mounted")
    assert "root file system" in reading.message
    assert not names(point)


def test_what_is_not_ours_stays_as_it_is(mounts: Mounts, canaries: list[Canary]) -> None:
    point = mounts.ext4(200)
    (point / "theirs").mkdir()
    (point / "theirs" / FILE_NAME).write_text("words")
    refused(start(canaries, point / "theirs"), "not-ours")
    assert (point / "theirs" / FILE_NAME).read_text() == "words"
    assert names(point / "theirs") == {FILE_NAME}


def test_unmounted_while_it_works(mounts: Mounts, canaries: list[Canary]) -> None:
    """``umount -l`` takes the name away; the canary lets go, and leaves nothing in the directory below."""
    point = mounts.ext4(200)
    one = start(canaries, point / "canary", filesystem="ext4")
    until(one, healthy)
    command("umount", "-l", point)
    reading = until(one, lambda reading: reading.state is CanaryState.REFUSED)
    assert reading.reason == "not-mounted"
    eventually(lambda: not command("losetup", "-j", point.with_suffix(".img")))  # nobody holds it
    assert not (point / "canary").exists()
    command("mount", "-o", "loop,nodiscard", point.with_suffix(".img"), point)
    assert until(one, healthy).runs > 1


class TestHung:
    def test_the_daemon_sees_it_without_waiting(self, fuse: Fuse, canaries: list[Canary]) -> None:
        one = start(canaries, fuse.point / "canary")
        until(one, healthy)
        fuse.hang()
        stuck = until(one, lambda reading: reading.in_flight_s > 2)
        assert (stuck.state, stuck.success, stuck.reason) == (CanaryState.RUNNING, False, "stuck")
        began = time.perf_counter()
        for _ in range(20):
            one.read()
            one.poll()
        assert time.perf_counter() - began < 1
        fuse.go_on()
        again = until(one, healthy)
        assert again.runs == 1
        charged = sum(each.charged for each in again.workloads) - sum(each.charged for each in stuck.workloads)
        assert charged > 30  # 50 arrivals a second for at least 2 s: the hang is in the figures

    def test_stop_does_not_wait_for_it(self, fuse: Fuse, canaries: list[Canary]) -> None:
        one = start(canaries, fuse.point / "canary")
        until(one, healthy)
        pid = one.pid
        assert pid is not None
        fuse.hang()
        until(one, lambda reading: reading.in_flight_s > 1)
        began = time.monotonic()
        assert one.stop(timeout=5)  # whoever waits for FUSE can be killed
        assert time.monotonic() - began < 6
        eventually(lambda: not alive(pid))

    def test_before_it_starts(self, fuse: Fuse, canaries: list[Canary]) -> None:
        fuse.hang()
        one = start(canaries, fuse.point / "canary")
        reading = until(one, lambda reading: reading.in_flight_s > 1.5)
        assert (reading.state, reading.success, reading.reason) == (CanaryState.PREPARING, False, "stuck")
        fuse.go_on()
        until(one, healthy)

    def test_without_its_process(self, fuse: Fuse, canaries: list[Canary]) -> None:
        """Errors at first; then it lets go, and says that the mount is dead."""
        one = start(canaries, fuse.point / "canary")
        until(one, healthy)
        fuse.process.kill()
        fuse.process.wait(30)
        reading = until(one, lambda reading: reading.reason == "mount-dead")
        assert reading.success is False
        assert sum(sum(each.errors.values()) for each in reading.workloads) >= 20
        assert "umount -l" in reading.message
        eventually(lambda: subprocess.run(["umount", fuse.point], check=False, capture_output=True).returncode == 0)


def test_killed_workers_leave_what_the_next_one_reuses(fuse: Fuse, canaries: list[Canary]) -> None:
    one = start(canaries, fuse.point / "canary")
    before = until(one, healthy)
    assert one.pid is not None
    os.kill(one.pid, signal.SIGKILL)
    after = until(one, lambda reading: reading.runs == 2 and healthy(reading))
    assert all(b.latency.count >= a.latency.count for a, b in zip(before.workloads, after.workloads, strict=True))
    assert names(fuse.behind / "canary") == OURS


def test_in_the_daemon(fuse: Fuse, tmp_path: Path) -> None:
    """Start, scrape while the mount hangs, end; a run on demand beside it; and everything goes with uninstall."""
    folder = tmp_path / "daemon"
    folder.mkdir()
    canary = {"type": "filesystem-canary", "name": "mount", "directory": str(fuse.point)}
    config = {"probes": [canary | {"stuck_after": "1s", "rate": 20}]}
    labels = {"probe": "mount"}
    mine = fuse.behind / socket.gethostname()
    with running(folder, config=config) as daemon:
        eventually(lambda: daemon.metrics().get("plumbline_probe_success", **labels) == 1)
        found = daemon.metrics()
        place = labels | {"layer": "filesystem", "workload": "fs-ops-4k", "operation": "write"}
        assert found.get("plumbline_canary_latency_seconds_count", **place, device_class="fuse") > 0
        assert names(mine) == OURS
        with subprocess.Popen([*COMMAND, "probe", "run", "mount", *flags(folder)], stderr=subprocess.DEVNULL) as beside:
            eventually(lambda: (mine / OWN_DIRECTORY).is_dir() and names(mine / OWN_DIRECTORY) == OURS)
            beside.send_signal(signal.SIGINT)
        fuse.hang()
        eventually(lambda: daemon.metrics().get("plumbline_probe_in_flight_seconds", **labels) > 2)
        began = time.monotonic()
        assert daemon.metrics().get("plumbline_probe_success", **labels) == 0
        assert time.monotonic() - began < 5
        code, took = daemon.stop()
        assert code == 0
        assert took < 10
    fuse.go_on()
    removed = run("uninstall", "--apply", *flags(folder))
    assert removed.returncode == 0, removed.stderr
    assert not mine.exists()


def flags(folder: Path) -> tuple[str | Path, ...]:
    return "--config.file", folder / "plumbline.yaml", "--storage.path", folder / "state"
