"""The canary with its real worker on the disk below the temporary directory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from plumbline.config.model import GatesConfig
from plumbline.config.probes.disk import CanaryConfig
from plumbline.config.workloads import BlockWorkload, Pattern, Sync
from plumbline.core.roots import Roots
from plumbline.core.units import si
from plumbline.errors import ProbeRefused
from plumbline.probes.canary import canary
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.canary_worker import FILE_NAME
from plumbline.probes.canary.job import CanaryJob
from plumbline.probes.canary.target import FileTarget
from plumbline.probes.run import guard
from plumbline.probes.run.histogram import latency_edges, quantile
from plumbline.probes.run.model import Progress
from plumbline.probes.run.reading import CanaryReading, CanaryState, WorkloadReading
from plumbline.probes.run.single_run import FASTER, RunOnce
from support.canaries import until

READ = BlockWorkload(id="randread-4k-qd1-j1", layer="disk", pattern=Pattern.RANDREAD, block_size=4096)
WRITE = BlockWorkload(
    id="randwrite-4k-qd1-j1-dsync", layer="disk", pattern=Pattern.RANDWRITE, block_size=4096, sync=Sync.DSYNC
)
MIB = 2**20


def plan(where: Path, **changes: object) -> FileTarget:
    values: dict[str, object] = {
        "name": "canary",
        "directory": where,
        "file_size_bytes": MIB,
        "workloads": ((READ, ()), (WRITE, ())),
        "device_class": "ssd",
        "rate": 100.0,
        "max_busy_ratio": 1.0,
    }
    return FileTarget(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where a canary may work; skipped where the temporary directory has no O_DIRECT."""
    try:
        guard.prepare_directory(tmp_path / "trial", size_bytes=MIB).close()
    except ProbeRefused as refusal:
        pytest.skip(str(refusal))
    return tmp_path / "canary"


Start = Callable[..., Canary]


@pytest.fixture
def start(directory: Path) -> Iterator[Start]:
    """Starts canaries, and ends what is left of them."""
    started: list[Canary] = []

    def start(**changes: object) -> Canary:
        one = Canary(plan(directory, **changes))
        started.append(one)
        one.start()
        return one

    yield start
    for one in started:
        assert one.stop()


def executed(each: WorkloadReading) -> int:
    """Operations that were really done: charged arrivals write nothing."""
    return each.latency.count - each.charged


def counts(reading: CanaryReading) -> dict[str, int]:
    return {each.operation: each.latency.count for each in reading.workloads}


def working(count: int) -> Callable[[CanaryReading], bool]:
    """Each operation was done once: a charge to one that was not yet is in its count, too."""
    return lambda reading: (
        reading.state is CanaryState.RUNNING
        and min(counts(reading).values()) >= count
        and min(executed(each) for each in reading.workloads) > 0
    )


def descriptors() -> list[Path]:
    return sorted(link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink())


class TestOperations:
    def test_before_it_started(self, directory: Path) -> None:
        one = Canary(plan(directory))
        reading = one.read()
        assert (reading.state, reading.success, reading.runs) == (CanaryState.IDLE, None, 0)
        assert counts(reading) == {"read": 0, "write": 0}
        assert reading.last_completion_ts is None
        assert set(reading.skips.values()) == {0}
        assert one.stop()
        assert not directory.exists()

    def test_are_counted_with_latency(self, start: Start) -> None:
        reading = until(start(), working(20))
        assert reading.success is True
        assert (reading.reason, reading.message) == ("", "")
        for each in reading.workloads:
            assert each.latency.cumulative[-1] <= each.latency.count
            assert list(each.latency.cumulative) == sorted(each.latency.cumulative)
            median = quantile(each.latency, 0.5)
            assert median is not None
            assert 1e-6 < median < 10
            assert each.latency.sum > 0
            assert set(each.errors.values()) == {0}
            assert each.last_completion_ts == pytest.approx(time.time(), abs=5)
            assert each.last_success_ts == each.last_completion_ts
        assert reading.workloads[1].config_hash == WRITE.config_hash()

    def test_stay_in_their_file(self, start: Start, directory: Path) -> None:
        until(start(), working(5))
        assert sorted(path.name for path in directory.iterdir()) == [guard.MARKER, FILE_NAME]
        assert (directory / FILE_NAME).stat().st_size == MIB

    def test_write_other_bytes_each_time(self, start: Start, directory: Path) -> None:
        one = start(workloads=((WRITE, ()),), file_size_bytes=MIB)
        until(one, working(1))
        before = (directory / FILE_NAME).read_bytes()
        done = one.read().workloads[0]
        until(one, lambda now: executed(now.workloads[0]) >= executed(done) + 20)
        after = (directory / FILE_NAME).read_bytes()
        changed = [at for at in range(0, MIB, 4096) if before[at : at + 4096] != after[at : at + 4096]]
        assert len(changed) >= 15
        assert len({after[at : at + 4096] for at in range(0, MIB, 4096)}) == MIB // 4096

    def test_keep_their_pace(self, start: Start) -> None:
        one = start(rate=50.0)
        before = sum(counts(until(one, working(1))).values())
        began = time.monotonic()
        time.sleep(4)
        rate = (sum(counts(one.read()).values()) - before) / (time.monotonic() - began)
        # five standard deviations; a busy machine wakes the worker late, so slower is possible, faster never
        assert 5 < rate < 50 * 1.35

    def test_of_a_mixed_workload_are_told_apart(self, start: Start) -> None:
        mixed = BlockWorkload(id="randrw-4k", layer="disk", pattern=Pattern.RANDRW, block_size=4096, rwmix_read=75)
        reading = until(start(workloads=((mixed, ()),)), lambda reading: sum(counts(reading).values()) > 100)
        assert 0.55 < counts(reading)["read"] / sum(counts(reading).values()) < 0.95

    def test_have_the_bounds_as_edges(self, start: Start) -> None:
        one = start(workloads=((READ, ((0.00031, 0.1234567891),)), (WRITE, ())))
        reads, writes = one.read().workloads
        assert reads.bounds == (0.00031, 0.123456789)
        assert set(reads.bounds) < set(reads.latency.edges)
        assert writes.latency.edges == latency_edges()
        assert one.read().workloads[0].latency.edges is reads.latency.edges

    def test_are_capped_by_load(self, start: Start) -> None:
        """A disk that answered in no time at all would keep the full rate; any real one is held to its share."""
        one = start(max_busy_ratio=1e-6)
        reading = until(one, lambda reading: reading.rate_per_s < 100)
        assert reading.rate_per_s == 0.2


class TestWorker:
    def test_is_a_small_polite_process_of_its_own(self, start: Start) -> None:
        one = start()
        until(one, working(1))
        assert one.pid is not None
        process = psutil.Process(one.pid)
        assert os.getsid(one.pid) == one.pid != os.getsid(0)
        assert process.nice() == min(19, 10 + os.getpriority(os.PRIO_PROCESS, 0))  # 19: the end of the scale
        assert process.ionice() == (psutil.IOPRIO_CLASS_BE, 7)
        assert process.environ() == {"LC_ALL": "C"}
        assert Path(f"/proc/{one.pid}/fd/0").readlink() == Path("/dev/null")
        assert process.cwd() == "/"
        private = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{one.pid}/status").read_text("ascii"), re.MULTILINE)
        assert private is not None
        assert int(private[1]) < 8 * 1024

    def test_ends_at_once_when_told(self, start: Start) -> None:
        one = start()
        until(one, working(1))
        pid = one.pid
        began = time.monotonic()
        assert one.stop()
        assert time.monotonic() - began < 10
        assert pid is not None
        assert not psutil.pid_exists(pid)
        assert one.read().state is CanaryState.STOPPED
        assert min(counts(one.read()).values()) >= 1
        one.poll()
        assert one.pid is None

    def test_leaves_no_descriptor(self, directory: Path) -> None:
        def once() -> None:
            one = Canary(plan(directory))
            one.start()
            until(one, working(1))
            assert one.stop()

        once()
        before = descriptors()
        once()
        assert descriptors() == before

    def test_is_started_again_and_counts_go_on(self, start: Start) -> None:
        one = start()
        before = until(one, working(5))
        assert one.pid is not None
        os.kill(one.pid, signal.SIGKILL)
        dead = until(one, lambda reading: reading.state is CanaryState.RESTARTING, 2)
        assert (dead.success, dead.reason, dead.in_flight_s) == (False, "died", 0.0)
        assert "signal 9" in dead.message
        after = until(one, lambda reading: reading.state is CanaryState.RUNNING)
        assert after.runs == 2
        assert all(counts(after)[operation] >= count for operation, count in counts(before).items())
        until(one, working(counts(after)["read"] + 5))

    def test_is_started_again_ever_more_seldom(self, directory: Path) -> None:
        """A worker that dies at once: 1, 2, 4 … 60 s between the starts, on a clock of the test's own."""
        now = 0.0
        one = Canary(plan(directory), clock=lambda: now, interpreter="/bin/false")
        one.start()
        started = [0.0]
        deadline = time.monotonic() + 20
        while len(started) < 10 and time.monotonic() < deadline:
            if one.pid is not None:
                os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
            one.poll()
            if one.read().runs > len(started):
                started.append(now)
            else:
                now += 0.5
        gaps = [round(after - before, 1) for before, after in pairwise(started)]
        assert gaps == [1, 2, 4, 8, 16, 32, 60, 60, 60]
        assert one.stop()

    def test_that_can_not_be_started_is_said(self, directory: Path) -> None:
        one = Canary(plan(directory), interpreter="/nowhere/python")
        one.start()
        reading = one.read()
        assert (reading.state, reading.success) == (CanaryState.RESTARTING, False)
        assert reading.message == "/nowhere/python: can't be started: No such file or directory"
        assert one.stop()

    def test_says_what_it_died_of(self, directory: Path, tmp_path: Path) -> None:
        broken = tmp_path / "python"
        broken.write_text("#!/bin/sh\necho 'SystemError: out of luck' >&2\nexit 1\n", "ascii")
        broken.chmod(0o755)
        one = Canary(plan(directory), interpreter=str(broken))
        one.start()
        reading = until(one, lambda reading: reading.state is CanaryState.RESTARTING, 5)
        assert reading.message == "the worker ended with status 1: SystemError: out of luck"
        assert one.stop()

    @pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
    def test_does_not_outlive_the_daemon(self, directory: Path, end: signal.Signals) -> None:
        daemon = (
            "import sys, threading, time\n"
            "from pathlib import Path\n"
            "from plumbline.probes.canary.canary import Canary\n"
            "from plumbline.probes.canary.target import FileTarget\n"
            "from plumbline.config.workloads import load_catalogue\n"
            "work = load_catalogue().by_id['randread-4k-qd1-j1']\n"
            "one = Canary(FileTarget(name='c', directory=Path(sys.argv[1]), file_size_bytes=2**20,\n"
            "             workloads=((work, ()),), device_class='ssd'))\n"
            "thread = threading.Thread(target=one.start); thread.start(); thread.join()\n"
            "while not one.read().workloads[0].latency.count: time.sleep(0.02)\n"
            "print(one.pid, flush=True)\n"
            "time.sleep(60)\n"
        )
        with subprocess.Popen([sys.executable, "-c", daemon, directory], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            worker = psutil.Process(int(process.stdout.readline()))
            process.send_signal(end)
            process.wait()
            assert worker.wait(2) is None or not worker.is_running()

    def test_that_is_stopped_by_a_signal_is_not_taken_for_healthy(self, start: Start) -> None:
        one = start(stuck_after_s=0.2)
        until(one, working(1))
        assert one.pid is not None
        os.kill(one.pid, signal.SIGSTOP)
        silent = until(one, lambda reading: reading.success is False, 30)
        assert silent.state is CanaryState.RUNNING
        os.kill(one.pid, signal.SIGCONT)
        until(one, lambda reading: reading.success is True, 30)
        os.kill(one.pid, signal.SIGSTOP)
        assert one.stop()

    def test_is_alone_on_its_file(self, start: Start) -> None:
        until(start(), working(1))
        second = start()
        reading = until(second, lambda reading: reading.skips["locked"] > 0)
        assert (reading.reason, reading.skips["locked"], reading.success) == ("locked", 1, False)
        assert "another probe is using it" in reading.message


class TestTrouble:
    def test_memory_below(self, start: Start) -> None:
        memory = Path("/dev/shm")
        if not memory.is_dir() or not os.access(memory, os.W_OK):
            pytest.skip("no tmpfs at /dev/shm")
        one = start(directory=memory / "plumbline-test-canary")
        reading = until(one, lambda reading: reading.skips["memory-filesystem"] > 0)
        assert (reading.reason, reading.success) == ("memory-filesystem", False)
        assert reading.skips["memory-filesystem"] == 1
        assert not (memory / "plumbline-test-canary").exists()

    def test_a_refusal_is_taken_back_when_its_cause_goes(
        self, start: Start, directory: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO")
        directory.mkdir()
        (directory / "cat.jpg").write_bytes(b"meow")
        one = start()
        until(one, lambda reading: reading.skips["not-ours"] == 2)
        (directory / "cat.jpg").unlink()
        reading = until(one, lambda reading: reading.success is True)
        assert reading.reason == ""
        one.poll()
        said = [record.getMessage() for record in caplog.records]
        assert len(said) == 2  # not one for every try
        assert said[0].startswith(f"canary canary: not-ours: {directory}: is not empty and has no .plumbline-probe; ")
        assert said[1] == "canary canary: works again"

    def test_a_file_removed_while_it_runs(self, start: Start, directory: Path) -> None:
        one = start()
        until(one, working(1))
        (directory / FILE_NAME).unlink()
        until(one, lambda reading: reading.reason == "file-lost", 30)
        reading = until(one, working(counts(one.read())["read"] + 5))
        assert reading.skips["file-lost"] == 1
        assert (directory / FILE_NAME).stat().st_size == MIB

    def test_a_file_cut_while_it_runs(self, start: Start, directory: Path) -> None:
        one = start()
        until(one, working(1))
        os.truncate(directory / FILE_NAME, 0)
        until(one, lambda reading: reading.reason == "file-lost", 30)
        until(one, working(counts(one.read())["read"] + 5))
        assert (directory / FILE_NAME).stat().st_size == MIB

    def test_a_directory_removed_while_it_runs(self, start: Start, directory: Path) -> None:
        one = start()
        until(one, working(1))
        (directory / FILE_NAME).unlink()
        (directory / guard.MARKER).unlink()
        directory.rmdir()
        until(one, lambda reading: reading.reason == "file-lost", 30)
        until(one, working(counts(one.read())["read"] + 5))
        assert (directory / guard.MARKER).is_file()


def measure(
    one: FileTarget, run_s: float, progress: Callable[[Progress], None] = lambda _progress: None
) -> CanaryReading:
    once = RunOnce(
        storage=one.directory.parent, roots=Roots.under(Path("/")), environment=os.environ, rules=GatesConfig(),
        cluster=None, stopping=threading.Event(),
    )  # fmt: skip
    job = CanaryJob(CanaryConfig(name=one.name), replace(one, rate=one.wanted_rate / FASTER), "")
    (reading,) = once.canaries(one.name, [job], run_s=run_s, bounds={}, progress=progress)
    return reading


class TestMeasure:
    def test_gives_fresh_counts(self, directory: Path) -> None:
        seen: list[Progress] = []
        first = measure(plan(directory), 1.0, seen.append)
        again = measure(plan(directory), 0.5)
        assert sum(counts(first).values()) == pytest.approx(100, abs=50)
        assert 50 - 36 <= sum(counts(again).values()) < sum(counts(first).values()) + 10, "the first run's are in it"
        assert first.success is True
        medians = {each.operation: quantile(each.latency, 0.5) for each in first.workloads}
        assert seen[-1].figures == ", ".join(f"{name} p50 {si(s, 's')}" for name, s in medians.items() if s is not None)

    def test_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "cat.jpg").write_bytes(b"meow")
        with pytest.raises(ProbeRefused) as caught:
            measure(plan(tmp_path), 1.0)
        assert caught.value.reason == "not-ours"

    def test_does_not_go_on_after_a_worker_died(self, directory: Path) -> None:
        def kill(progress: Progress) -> None:
            if progress.stage == "measuring":
                for child in psutil.Process().children():
                    child.kill()

        with pytest.raises(ProbeRefused) as caught:
            measure(plan(directory), 5.0, kill)
        assert caught.value.reason == "died"


@pytest.mark.parametrize(
    ("device_class", "rate", "wanted"),
    [("hdd", None, 1.0), ("nvme", None, 10.0), ("virtual", None, 10.0), ("hdd", 7.0, 7.0), ("ssd", 1e9, 100.0),
     ("ssd", 1e-9, 0.001)],
)  # fmt: skip
def test_the_rate_that_is_wanted(tmp_path: Path, device_class: str, rate: float | None, wanted: float) -> None:
    assert plan(tmp_path, device_class=device_class, rate=rate).wanted_rate == wanted


def test_the_worker_loads_light_modules_only() -> None:
    """Its memory is the canary's price on every node: what would double it must not come back unnoticed."""
    root = str(Path(canary.__file__).parents[3])
    script = (
        "import sys; sys.path.append(sys.argv[1]); import plumbline.probes.canary.canary_worker; "
        "print(*{'typing', 'dataclasses', 'pathlib', 'contextlib', 'ctypes', 'subprocess', 'json', 're', 'yaml'}"
        " & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script, root], check=True, capture_output=True, text=True)
    assert done.stdout == "\n"
