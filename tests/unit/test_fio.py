"""The fio probe: its refusals, and every way a run can end, with stand-ins for fio itself.

The stand-ins are shell scripts run by the real runner; only what no script can do (a process that outlives SIGKILL,
a stop at an exact moment) comes from a runner that answers from a list. Real fio runs are in tests/integration.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from plumbline.config_types import Duration, Size
from plumbline.errors import ProbeRefused
from plumbline.probe_config import FioConfig
from plumbline.probes.fio import FioPlan, FioTool, run_fio
from plumbline.probes.gates import HeavyLock
from plumbline.probes.guard import prepare_directory
from plumbline.probes.result import Outcome, ProbeResult
from plumbline.probes.runner import Completed, ProcessRunner
from plumbline.workloads import load_catalogue

FIXTURES = Path(__file__).parent.parent / "fixtures" / "fio"
MIB = 1 << 20
NOW = 1_700_000_000.0


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


def plan(directory: Path, workload: str = "randwrite-4k-qd1-j1", **changes: object) -> FioPlan:
    settings = {"runtime": Duration(2), "timeout": Duration(10), "file_size": Size(MIB)} | changes
    config = FioConfig(name="fio-a", workload=workload, **settings)
    found = load_catalogue().get(workload, where="test", key="workload")
    return FioPlan.of(config, found, directory=directory, device_class="ssd")


def lay_out(of: FioPlan) -> None:
    """What an earlier run left: a marked directory with data files."""
    with prepare_directory(of.directory, size_bytes=of.total_bytes) as directory:
        for number in range(of.workload.jobs):
            os.close(directory.open_file(f"fio.{number}", of.file_size, direct=False, dsync=False))


def left(of: FioPlan) -> list[str]:
    return sorted(path.name for path in of.directory.iterdir())


class Script:
    """A shell script in fio's place: ``--version`` works, the rest is up to the test."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "bin" / "fio"
        self.path.parent.mkdir()
        self.runner = ProcessRunner({"PATH": f"{self.path.parent}:{os.environ['PATH']}"})
        self.tool = FioTool(which=lambda name: shutil.which(name, path=str(self.path.parent)))

    def write(self, body: str, version: str = "fio-3.99") -> None:
        self.path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} && exit\n{body}\n')
        self.path.chmod(0o755)

    def run(self, of: FioPlan, body: str, **more: object) -> ProbeResult:
        self.write(body)
        return run_fio(of, runner=self.runner, tool=self.tool, clock=lambda: NOW, **more)


@pytest.fixture
def fio(disk: Path) -> Script:
    return Script(disk)


class Answers:
    """A runner that answers from a list: the version, then what the test wants."""

    def __init__(self, *answers: Completed) -> None:
        self.answers = [Completed(("fio",), 0, b"fio-3.33\n"), *answers]
        self.timeouts: list[float] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd_fd: int | None = None,
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = 0,
    ) -> Completed:
        self.timeouts.append(timeout_s)
        if "--name=layout" in argv:
            jobs = next(int(word.split("=")[1]) for word in argv if word.startswith("--numjobs="))
            for number in range(jobs):
                os.close(os.open(f"fio-partial.{number}", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=cwd_fd))
        return self.answers.pop(0)


# --- refusals: nothing is touched


def test_fio_is_not_installed(disk: Path):
    of = plan(disk / "probe")
    tool = FioTool(which=lambda _: None)
    with pytest.raises(ProbeRefused) as caught:
        run_fio(of, runner=Answers(), tool=tool, clock=lambda: NOW)
    assert caught.value.reason == "tool-missing"
    assert str(caught.value) == "fio is not installed; on Debian: apt-get install fio"
    assert not of.directory.exists()


def test_fio_that_does_not_start(disk: Path, fio: Script):
    fio.path.write_text("#!/bin/sh\necho libaio.so.1: cannot open shared object file >&2; exit 127\n")
    fio.path.chmod(0o755)
    with pytest.raises(ProbeRefused, match=r"--version failed: libaio.so.1: cannot open shared") as caught:
        fio.tool.version(fio.runner)
    assert caught.value.reason == "tool-missing"


def test_version_is_asked_again_only_when_the_program_changed(fio: Script):
    fio.write("", version="fio-3.1")
    assert fio.tool.version(fio.runner) == "3.1"
    kept = fio.path.stat()
    fio.write("", version="fio-3.2")
    os.utime(fio.path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert fio.tool.version(fio.runner) == "3.1"
    os.utime(fio.path, ns=(kept.st_atime_ns, kept.st_mtime_ns + 1))
    assert fio.tool.version(fio.runner) == "3.2"


def test_a_directory_that_is_not_ours(disk: Path, fio: Script):
    (disk / "probe").mkdir(mode=0o700)
    (disk / "probe" / "fio.0").write_text("somebody's")
    with pytest.raises(ProbeRefused) as caught:
        fio.run(plan(disk / "probe"), "exit 1")
    assert caught.value.reason == "not-ours"
    assert (disk / "probe" / "fio.0").read_text() == "somebody's"


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="/dev/shm is no file system of its own")
def test_a_file_system_in_memory(fio: Script):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        with pytest.raises(ProbeRefused) as caught:
            fio.run(plan(Path(memory) / "probe"), "exit 1")
        assert caught.value.reason == "memory-filesystem"
        assert list(Path(memory).iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
def test_a_data_file_that_is_not_a_plain_one(disk: Path, fio: Script, kind: str):
    of = plan(disk / "probe")
    lay_out(of)
    data, victim = of.directory / "fio.0", disk / "victim"
    victim.write_bytes(b"x" * MIB)
    data.unlink()
    if kind == "link":
        data.symlink_to(victim)
    elif kind == "hard link":
        data.hardlink_to(victim)
    else:
        os.mkfifo(data)
    with pytest.raises(ProbeRefused, match=r"fio\.0: is not a plain file of this user") as caught:
        fio.run(of, "echo x > fio.0")
    assert caught.value.reason == "not-ours"
    assert victim.read_bytes() == b"x" * MIB


def test_stopped_by_the_daemon_is_neither_success_nor_failure(disk: Path):
    of = plan(disk / "probe")
    lay_out(of)
    runner = Answers(Completed(("fio",), -15, cancelled=True))
    with pytest.raises(ProbeRefused) as caught:
        run_fio(of, runner=runner, tool=FioTool(which=lambda _: "/bin/sh"), clock=lambda: NOW)
    assert caught.value.reason == "stopped"
    assert left(of) == [".plumbline-probe", "fio.0"]


# --- how a run ends


def test_a_good_run(disk: Path, fio: Script):
    of = plan(disk / "probe", "randrw75-4k-qd16-j4")
    lay_out(of)
    result = fio.run(of, f"cp {FIXTURES}/randrw75-4k-qd16-j4.json fio.json")
    assert (result.outcome, result.message, result.started) == (Outcome.SUCCESS, "", NOW)
    assert (result.probe, result.layer, result.device_class) == ("fio-a", "disk", "ssd")
    assert (result.workload, result.config_hash) == ("randrw75-4k-qd16-j4", of.config_hash)
    assert (result.tool, result.tool_version) == ("fio", "3.99")
    assert [each.operation for each in result.operations] == ["read", "write"]
    for each in result.operations:
        assert set(each.latency) == {"mean", "p50", "p95", "p99", "p999", "max"}
    assert 0 < result.duration < 10
    assert left(of) == [".plumbline-probe", "fio.0", "fio.1", "fio.2", "fio.3"]


def test_the_command_holds_the_lock(disk: Path, fio: Script):
    of = plan(disk / "probe")
    lay_out(of)
    with HeavyLock(disk / "heavy.lock").hold("fio-a") as lock:
        body = f"flock -n {disk}/heavy.lock true; echo $? >&2; ls -l /proc/$$/fd | grep -c heavy >&2; exit 9"
        assert fio.run(of, body, keep_fds=[lock]).message == "fio: 1 (exit status 9)"
        result = fio.run(of, "ls -l /proc/$$/fd | grep -c heavy >&2; exit 9", keep_fds=[lock])
    assert result.message == "fio: 1 (exit status 9)"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("echo fio: engine libaio not loadable >&2; exit 1", "fio: engine libaio not loadable (exit status 1)"),
        (
            f"cp {FIXTURES}/file-missing.json fio.json; exit 1",
            "fio: file creation disallowed by allow_file_create=0 (exit status 1)",
        ),
        (f"cp {FIXTURES}/terminated.json fio.json; exit 128", "fio: terminating on signal 15 (exit status 128)"),
        (
            f"cp {FIXTURES}/enospc.json fio.json",  # with exit status 0
            "fio: io_u error on file fio.0: No space left on device: write offset=11272192, buflen=65536",
        ),
        ("exit 137", "fio: no message (exit status 137)"),
        ("kill -KILL $$", "fio: no message (signal 9)"),
        ("exit 0", "fio.json: holds no JSON document"),
        ("echo garbage > fio.json", "fio.json: holds no JSON document, only: garbage"),
        (
            f"head -c 3000 {FIXTURES}/terminated.json > fio.json",
            "fio.json:2: not what fio writes: Input data was truncated",
        ),
        (
            f"cp {FIXTURES}/randread-4k-qd16-j1.json fio.json",  # reads, where writes were asked for
            "fio finished without one operation; give it a longer runtime",
        ),
        ("ln -s /etc/passwd fio.json", "{directory}/fio.json: Too many levels of symbolic links"),
    ],
)
def test_failures_say_why(disk: Path, fio: Script, body: str, message: str):
    of = plan(disk / "probe")
    lay_out(of)
    result = fio.run(of, body)
    assert (result.outcome, result.message) == (Outcome.FAILURE, message.format(directory=of.directory))
    assert result.operations == ()
    assert left(of) == [".plumbline-probe", "fio.0"]


def test_a_flood(disk: Path, fio: Script):
    of = plan(disk / "probe")
    lay_out(of)
    result = fio.run(of, "yes fio: same error again >&2")
    assert result.outcome is Outcome.FAILURE
    assert result.message == "fio: ended for writing too much, first: fio: same error again"


def test_a_flood_of_what_is_not_to_be_seen(disk: Path, fio: Script):
    of = plan(disk / "probe")
    lay_out(of)
    result = fio.run(of, "cat /dev/zero")
    assert result.outcome is Outcome.FAILURE
    assert result.message.startswith(r"fio: ended for writing too much, first: \x00\x00\x00")
    assert len(result.message) < 400


def test_a_hang(disk: Path, fio: Script):
    of = plan(disk / "probe", runtime=Duration(0.2), timeout=Duration(0.5))
    lay_out(of)
    result = fio.run(of, "echo half > fio.json; sleep 60")
    assert result.outcome is Outcome.TIMEOUT
    assert result.message == "fio: not finished in time; is the device slow, or the timeout of 0.5 s too short?"
    assert result.operations == ()
    assert 0.5 <= result.duration < 5
    assert left(of) == [".plumbline-probe", "fio.0"]


def run_answers(of: FioPlan, *answers: Completed) -> tuple[ProbeResult, list[float]]:
    runner = Answers(*answers)
    tool = FioTool(which=lambda _: "/bin/sh")
    return run_fio(of, runner=runner, tool=tool, clock=lambda: NOW), runner.timeouts


def test_a_process_that_outlives_sigkill(disk: Path):
    of = plan(disk / "probe")
    lay_out(of)
    result, _ = run_answers(of, Completed(("fio",), None, timed_out=True, duration_s=14.0))
    assert result.outcome is Outcome.TIMEOUT
    assert "did not even end on SIGKILL: the device below hangs" in result.message
    assert result.duration == 14.0


def test_layout_counts_into_the_timeout(disk: Path):
    of = plan(disk / "probe")
    done = Completed(("fio",), 0, duration_s=3.0)
    result, timeouts = run_answers(of, done, Completed(("fio",), 1, duration_s=2.5))
    assert timeouts == [10.0, 10.0, 7.0]  # version, layout, measured run
    assert result.duration == 5.5


def test_layout_that_takes_all_the_time_is_used_by_the_next_run(disk: Path):
    of = plan(disk / "probe")
    result, _ = run_answers(of, Completed(("fio",), 0, duration_s=8.5))
    assert (result.outcome, result.message) == (
        Outcome.TIMEOUT,
        "laying out the files took all the time; the next run measures",
    )
    assert left(of) == [".plumbline-probe", "fio.0"]


def test_layout_that_fails_leaves_nothing(disk: Path):
    of = plan(disk / "probe")
    failed = Completed(("fio",), 1, b"layout: (g=0)\n", b"fio: io_u error: No space left on device\n", 0.5)
    result, _ = run_answers(of, failed)
    assert (result.outcome, result.message) == (
        Outcome.FAILURE,
        "laying out the files: io_u error: No space left on device (exit status 1)",
    )
    assert left(of) == [".plumbline-probe"]


def test_what_a_killed_daemon_left_is_removed_and_not_measured(disk: Path, fio: Script):
    of = plan(disk / "probe")
    lay_out(of)
    (of.directory / "fio.0").rename(of.directory / "fio-partial.0")
    (of.directory / "fio.json").write_text("old")
    result = fio.run(of, "ls >&2; exit 1")
    assert result.message == "laying out the files: no message (exit status 1)"
    assert left(of) == [".plumbline-probe"]


def test_a_longer_file_is_used_and_a_shorter_one_is_not(disk: Path, fio: Script):
    longer, shorter = plan(disk / "probe", file_size=Size(2 * MIB)), plan(disk / "probe")
    lay_out(longer)
    assert fio.run(shorter, "echo measured >&2; exit 1").message == "fio: measured (exit status 1)"
    bigger = plan(disk / "probe", file_size=Size(3 * MIB))
    assert fio.run(bigger, "exit 1").message.startswith("laying out the files")


def test_report_and_data_are_for_us_alone(disk: Path, fio: Script):
    of = plan(disk / "probe")
    lay_out(of)
    assert stat.S_IMODE(of.directory.stat().st_mode) == 0o700
    assert fio.run(of, "touch x; stat -c %a x >&2; rm x; exit 1").message == "fio: 600 (exit status 1)"
