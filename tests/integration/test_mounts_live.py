"""Real mounts that hang, die or are missing: FUSE whose process is stopped and killed, xfs on a loop device."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from plumbline.background.mounts import ANSWER_WITHIN_S, MountWatch
from plumbline.config.probes.filesystem import FilesystemConfig
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import load_catalogue
from plumbline.core.isolated import argv_of
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import ProbeRefused
from plumbline.probes.filesystem.filesystem import FilesystemProbe
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import Outcome, ProbeResult
from support.bindfs import Fuse
from support.daemon import eventually
from support.filesystems import Mounts, run, skip_without_root

pytestmark = pytest.mark.needs_root
HERE = Roots.under(Path("/"))
CATALOGUE = load_catalogue()


@pytest.fixture(autouse=True)
def _root() -> None:
    skip_without_root("mounts file systems")


def probe(directory: Path, workload: str, **changes: object) -> FilesystemProbe:
    settings = {"runtime": Duration(1), "timeout": Duration(60), "file_size": Size(4 << 20)} | changes
    config = FilesystemConfig(name="fs", directory=str(directory), workload=workload, **settings)
    found = CATALOGUE.by_id[workload]
    return FilesystemProbe(config, found, device_class="x", filesystem="", device="", roots=HERE)


def go(which: FilesystemProbe, stopping: threading.Event | None = None) -> ProbeResult:
    stopping = stopping or threading.Event()
    runner = ProcessRunner(os.environ).within(stopping)
    return which.run(Run(runner=runner, clock=time.time, stopping=stopping))


def workers() -> list[str]:
    """Processes of ours that ask or use a mount."""
    said = run("ps", "-eo", "pid,ppid,args").splitlines()
    return [line for line in said if "plumbline.probes." in line and f" {os.getpid()} " in f" {line.split()[1]} "]


@pytest.mark.parametrize(
    "workload",
    ["fs-metadata-1k", "fs-randwrite-4k-qd1-j1", "fs-write-4m-qd1-j1", "fs-randwrite-4k-qd1-j1-dsync-buffered"],
)
def test_on_xfs(mounts: Mounts, workload: str) -> None:
    if workload != "fs-metadata-1k" and shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    point = mounts.xfs()
    which = probe(point / "probe", workload, filesystem="xfs")
    result = go(which)
    assert (result.outcome, result.message) == (Outcome.SUCCESS, "")
    assert tuple(each.operation for each in result.operations) == which.workload.operations
    for each in result.operations:
        assert each.iops > 0
        assert 0 < each.latency["p50"] <= each.latency["max"] < 60
    left = sorted(path.name for path in (point / "probe").iterdir())
    assert left == ([".plumbline-probe"] if workload == "fs-metadata-1k" else [".plumbline-probe", "fio.0"])


def test_what_should_be_mounted_and_is_not(mounts: Mounts) -> None:
    point = mounts.xfs()
    which = probe(point / "probe", "fs-metadata-1k", filesystem="xfs")
    assert go(which).outcome is Outcome.SUCCESS
    mounts.unmount(point)
    with pytest.raises(ProbeRefused, match="not on xfs") as refusal:
        go(which)
    assert refusal.value.reason == "not-mounted"
    assert not any(point.iterdir())  # nothing went to the file system below


def test_the_root_file_system_needs_its_name() -> None:
    with pytest.raises(ProbeRefused) as refusal:
        go(probe(Path("/plumbline-no-such"), "fs-metadata-1k"))
    assert refusal.value.reason == "not-mounted"
    assert not Path("/plumbline-no-such").exists()


def test_files_of_an_earlier_life_are_removed_and_foreign_ones_left(mounts: Mounts) -> None:
    point = mounts.xfs()
    which = probe(point / "probe", "fs-metadata-1k")
    assert go(which).outcome is Outcome.SUCCESS
    folder = point / "probe" / "metadata"
    folder.mkdir(mode=0o700)
    for number in range(50):
        (folder / f"plumbline-{number:06d}").touch()
    runner = ProcessRunner(os.environ)
    which.clean_up(Run(runner=runner, clock=time.time, stopping=threading.Event()))
    assert not folder.exists()
    folder.mkdir(mode=0o700)
    (folder / "thesis.tex").touch()
    with pytest.raises(ProbeRefused) as refusal:
        go(which)
    assert refusal.value.reason == "not-ours"
    assert (folder / "thesis.tex").exists()


def test_works_through_fuse(fuse: Fuse) -> None:
    result = go(probe(fuse.point / "probe", "fs-metadata-1k"))
    assert (result.outcome, result.message) == (Outcome.SUCCESS, "")


@pytest.mark.parametrize("workload", ["fs-metadata-1k", "fs-randwrite-4k-qd1-j1-buffered"])
def test_a_mount_that_hangs_is_refused_and_not_waited_for(fuse: Fuse, workload: str) -> None:
    fuse.hang()
    began = time.monotonic()
    with pytest.raises(ProbeRefused) as refusal:
        go(probe(fuse.point / "probe", workload))
    assert refusal.value.reason == "mount-dead"
    assert "fuse" in str(refusal.value)
    assert time.monotonic() - began < 30


def test_a_mount_without_its_process_is_refused(fuse: Fuse) -> None:
    fuse.process.kill()
    fuse.process.wait(30)
    with pytest.raises(ProbeRefused, match="Transport endpoint is not connected") as refusal:
        go(probe(fuse.point / "probe", "fs-metadata-1k"))
    assert refusal.value.reason == "mount-dead"


def test_a_mount_that_hangs_under_way_ends_in_a_timeout(fuse: Fuse) -> None:
    """Stopped when the first file is there; the worker is killed and the result says so."""
    folder = fuse.point.parent / "behind" / "probe" / "metadata"
    hung = threading.Thread(
        target=lambda: (
            eventually(lambda: folder.is_dir() and any(folder.iterdir()), within_s=60, every_s=0.001),
            fuse.process.send_signal(signal.SIGSTOP),
        )
    )
    hung.start()
    result = go(probe(fuse.point / "probe", "fs-metadata-1k", timeout=Duration(5)))
    hung.join()
    assert result.outcome is Outcome.TIMEOUT
    assert "kept it from ending" in result.message
    fuse.go_on()
    eventually(lambda: not workers(), within_s=60)
    result = go(probe(fuse.point / "probe", "fs-metadata-1k"))  # and it sweeps before
    assert (result.outcome, result.message) == (Outcome.SUCCESS, "")
    assert not folder.exists()


def test_stopped_under_way(fuse: Fuse) -> None:
    folder = fuse.point.parent / "behind" / "probe" / "metadata"
    stopping = threading.Event()
    stopper = threading.Thread(
        target=lambda: (eventually(folder.is_dir, within_s=60, every_s=0.001), stopping.set()),
    )
    stopper.start()
    with pytest.raises(ProbeRefused) as refusal:
        go(probe(fuse.point / "probe", "fs-metadata-1k"), stopping)
    stopper.join()
    assert refusal.value.reason == "stopped"
    eventually(lambda: not workers(), within_s=60)


def test_a_host_short_of_cpu_says_nothing_of_a_mount(fuse: Fuse, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check gives way to everything, within its session and among sessions, on a CPU that is busy."""
    cpu = str(min(os.sched_getaffinity(0)))
    last = 'echo 19 >/proc/self/autogroup; exec taskset -c "$0" chrt --idle 0 "$@"'
    monkeypatch.setattr("plumbline.background.mounts.argv_of", lambda *words: ("sh", "-c", last, cpu, *argv_of(*words)))
    watch = MountWatch(HERE)
    loop = ["taskset", "-c", cpu, "sh", "-c", "while :; do :; done"]
    busy = [subprocess.Popen(loop, start_new_session=True) for _ in range(8)]
    try:
        watch.refresh(threading.Event())
        (state,) = (each for each in watch.states if each.mount_point == str(fuse.point))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert state.up is None


def test_the_watch_tells_up_from_dead_and_asks_once_at_a_time(fuse: Fuse) -> None:
    watch, never = MountWatch(HERE), threading.Event()

    def state() -> tuple[bool | None, float]:
        watch.refresh(never)
        (found,) = [each for each in watch.states if each.mount_point == str(fuse.point)]
        return found.up, found.in_flight_s

    eventually(lambda: state() == (True, 0.0), within_s=60)
    fuse.hang()
    began = time.monotonic()
    assert state()[0] is not True or time.monotonic() - began < ANSWER_WITHIN_S
    assert time.monotonic() - began < ANSWER_WITHIN_S + 20
    assert eventually(lambda: state()[0] is False, within_s=60)
    assert len([line for line in workers() if str(fuse.point) in line]) <= 1
    fuse.go_on()
    eventually(lambda: state() == (True, 0.0), within_s=60)
    fuse.process.kill()
    fuse.process.wait(30)
    assert state() == (False, 0.0)
