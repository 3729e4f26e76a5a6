"""fio on raw disks with the real fio: what it opens, and that nothing but its figures comes of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from plumbline.config.workloads import load_catalogue
from plumbline.core.process import Completed, ProcessRunner
from plumbline.errors import ProbeRefused
from plumbline.probes.disk.fio_raw import RawFioPlan, argv, run_raw_fio
from plumbline.probes.disk.raw_device import open_device
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import Outcome, ProbeResult
from support.loops import Loops, checksum

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]
CATALOGUE = load_catalogue()


def plan(device: str, workload: str = "randread-4k-qd1-j1", **changes: object) -> RawFioPlan:
    values: dict[str, object] = {
        "probe": f"raw/{device}",
        "workload": CATALOGUE.by_id[workload],
        "device": device,
        "device_class": "ssd",
        "dev": "/dev",
        "sys": "/sys",
        "runtime_s": 1.0,
        "timeout_s": 60.0,
    }
    return RawFioPlan(**(values | changes))  # type: ignore[arg-type]


def run(of: RawFioPlan, runner: ProcessRunner | None = None) -> ProbeResult:
    return run_raw_fio(of, Run(runner or ProcessRunner(os.environ), time.time, threading.Event()))


@pytest.mark.parametrize(
    "workload", ["randread-4k-qd1-j1", "randread-4k-qd16-j1", "read-4k-qd4-j4", "read-4m-qd4-j4", "randread-4m-qd4-j4"]
)
def test_every_workload_that_reads(loops: Loops, workload: str) -> None:
    name = loops.disk(64)
    before = checksum(name)
    of = plan(name, workload)
    result = run(of)
    assert (result.outcome, result.message) == (Outcome.SUCCESS, "")
    (reads,) = result.operations
    assert reads.operation == "read"
    assert reads.iops is not None
    assert reads.throughput == pytest.approx(reads.iops * of.workload.block_size, rel=0.02)
    assert 0 < reads.latency["p50"] <= reads.latency["p99"] <= reads.latency["max"] < 60
    assert reads.bins
    assert checksum(name) == before


def test_what_fio_has_open_is_read_only(loops: Loops) -> None:
    """Looked up while it runs: each descriptor of the disk in each of its processes."""
    name = loops.disk()
    seen: set[tuple[str, int]] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            for child in psutil.Process().children(recursive=True):
                with contextlib.suppress(OSError, psutil.Error):
                    if child.name() != "fio":
                        continue
                    directory = Path(f"/proc/{child.pid}")
                    for link in (directory / "fd").iterdir():
                        if str(link.readlink()) == f"/dev/{name}":
                            said = (directory / "fdinfo" / link.name).read_text("ascii")
                            seen.add((link.name, int(said.split("flags:")[1].split()[0], 8)))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        assert run(plan(name, runtime_s=2.0)).outcome is Outcome.SUCCESS
    finally:
        over.set()
        looking.join()
    assert len({number for number, _ in seen}) >= 2  # ours that it inherited, and its own
    assert all(flags & os.O_ACCMODE == os.O_RDONLY for _, flags in seen)


class Changed:
    """The real runner; the command is changed as a mistake of ours might."""

    def __init__(self, **replaced: str) -> None:
        self._replaced, self._inner = replaced, ProcessRunner(os.environ)

    def run(self, command: Sequence[str], **more: object) -> Completed:
        words = [self._replaced.get(word.lstrip("-").partition("=")[0], word) for word in command]
        return self._inner.run([word for word in words if word], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["write", "randwrite", "randrw", "trim", "trimwrite"])
def test_fio_itself_refuses_to_write(loops: Loops, pattern: str) -> None:
    """Were a pattern that writes ever to slip through, ``--readonly`` is still there."""
    name = loops.disk()
    before = checksum(name)
    result = run(plan(name), Changed(rw=f"--rw={pattern}"))  # type: ignore[arg-type]
    assert result.outcome is Outcome.FAILURE
    assert "read-only" in result.message
    assert checksum(name) == before


def test_the_disk_that_was_checked_is_read_whatever_its_name_means_by_then(loops: Loops, tmp_path: Path) -> None:
    """The node is swapped for another disk's between our check and fio's start."""
    name, other = loops.disk(8), loops.disk(32)
    dev = tmp_path / "dev"
    dev.mkdir()
    os.mknod(dev / name, 0o60600, os.stat(f"/dev/{name}").st_rdev)  # noqa: PTH116

    class Swaps(ProcessRunner):
        def run(self, command: Sequence[str], **more: object) -> Completed:  # type: ignore[override]
            if "--readonly" in command:
                (dev / name).unlink()
                os.mknod(dev / name, 0o60600, os.stat(f"/dev/{other}").st_rdev)  # noqa: PTH116
            return super().run(command, **more)  # type: ignore[arg-type]

    def read(of: str) -> int:
        return int(Path(f"/sys/block/{of}/stat").read_text("ascii").split()[0])

    before = read(name), read(other)
    assert run(plan(name, dev=str(dev)), Swaps(os.environ)).outcome is Outcome.SUCCESS
    assert read(name) > before[0]
    assert read(other) == before[1]
    with pytest.raises(ProbeRefused) as caught:
        run(plan(name, dev=str(dev)))
    assert caught.value.reason == "not-the-disk"


def test_a_disk_that_is_gone_is_a_refusal(loops: Loops) -> None:
    with pytest.raises(ProbeRefused) as caught:
        run(plan("sdzzz"))
    assert caught.value.reason == "device-gone"


def test_a_cap_is_kept(loops: Loops) -> None:
    result = run(plan(loops.disk(), rate_iops=40, runtime_s=2.0))
    assert result.operations[0].iops == pytest.approx(40, rel=0.1)


def test_a_run_that_takes_too_long_ends_and_leaves_nothing(loops: Loops, tmp_path: Path) -> None:
    name = loops.disk()
    before = sorted(path.name for path in tmp_path.iterdir()), len(list(Path("/proc/self/fd").iterdir()))
    result = run(plan(name, runtime_s=30.0, timeout_s=1.5))
    assert result.outcome is Outcome.TIMEOUT
    assert (sorted(path.name for path in tmp_path.iterdir()), len(list(Path("/proc/self/fd").iterdir()))) == before
    assert not [child for child in psutil.Process().children(recursive=True) if child.name() == "fio"]


def test_a_stopped_run_is_no_result(loops: Loops) -> None:
    runner = ProcessRunner(os.environ)
    threading.Timer(1.0, runner.stop).start()
    with pytest.raises(ProbeRefused) as caught:
        run(plan(loops.disk(), runtime_s=30.0), runner)
    assert caught.value.reason == "stopped"


def test_sequential_jobs_read_a_share_each(loops: Loops) -> None:
    name = loops.disk(64)
    of = plan(name, "read-4m-qd4-j4")
    device = open_device(name, dev="/dev", sys="/sys", block_bytes=of.workload.block_size)
    device.close()
    words = argv(of, device, report="x")
    assert {"--size=16777216", "--offset_increment=16777216", "--numjobs=4"} <= set(words)
    assert not [word for word in words if name in word]  # fio never hears its name
