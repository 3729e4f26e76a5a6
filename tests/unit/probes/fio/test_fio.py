"""The fio probe: its refusals, and every way a run can end, with stand-ins for fio itself.

The stand-ins are shell scripts run by the real runner; only what no script can do (a process that outlives SIGKILL,
a stop at an exact moment) comes from a runner that answers from a list. Real fio runs are in tests/integration.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.config.probes.disk import FioConfig
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import Completed, ProcessRunner
from plumbline.core.storage_names import MARKER, MARKER_TEXT
from plumbline.errors import ProbeRefused
from plumbline.probes.fio.fio import remove_surplus, run_fio
from plumbline.probes.fio.fio_job import FioPlan
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.guard import prepare_directory
from plumbline.probes.run.model import Run
from plumbline.probes.run.result import Outcome, ProbeResult
from plumbline.probes.run.tool import FIO

FIXTURES = Path(__file__).parents[3] / "fixtures" / "fio"
MIB = 1 << 20
NOW = 1_700_000_000.0
LAID_OUT = b'{"kind": "done"}'


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
        self.tool = replace(FIO, which=lambda name: shutil.which(name, path=str(self.path.parent)))

    def write(self, body: str, version: str = "fio-3.99") -> None:
        report = "for word; do case $word in --output=*) report=${word#--output=};; esac; done"
        self.path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version} && exit\n{report}\n{body}\n')
        self.path.chmod(0o755)

    def run(self, of: FioPlan, body: str, **more: object) -> ProbeResult:
        self.write(body)
        return run_fio(of, Run(self.runner, lambda: NOW, threading.Event(), **more), self.tool)


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
        keep_fds: Sequence[int] = (),
        max_output_bytes: int = 0,
    ) -> Completed:
        self.timeouts.append(timeout_s)
        answer = self.answers.pop(0)
        if "plumbline.probes.fio.fio_files" in argv and answer.stdout == LAID_OUT:
            ProcessRunner(os.environ).run(argv, timeout_s=60.0, keep_fds=keep_fds)
        return answer


# --- refusals: nothing is touched


def test_fio_is_not_installed(disk: Path):
    of = plan(disk / "probe")
    tool = replace(FIO, which=lambda _: None)
    with pytest.raises(ProbeRefused) as caught:
        run_fio(of, Run(Answers(), lambda: NOW, threading.Event()), tool)
    assert caught.value.reason == "tool-missing"
    assert str(caught.value) == "fio is not installed: install the package fio; in a container: build the image with it"
    assert not of.directory.exists()


def test_fio_that_does_not_start(disk: Path, fio: Script):
    fio.path.write_text("#!/bin/sh\necho libaio.so.1: cannot open shared object file >&2; exit 127\n")
    fio.path.chmod(0o755)
    with pytest.raises(ProbeRefused, match=r"--version failed: libaio.so.1: cannot open shared") as caught:
        fio.tool.version(fio.runner)
    assert caught.value.reason == "tool-missing"


def test_the_version_is_of_the_program_that_is_there_now(fio: Script):
    for version in ("3.1", "3.2-19-gb9ea"):
        fio.write("", version=f"fio-{version}")
        assert fio.tool.version(fio.runner) == version


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
    with pytest.raises(ProbeRefused, match=r"fio\.0: (is a symbolic link|has 2 names|is not a regular file)") as caught:
        fio.run(of, "echo x > fio.0")
    assert caught.value.reason == ("symlink" if kind == "link" else "not-ours")
    assert victim.read_bytes() == b"x" * MIB


def test_stopped_by_the_daemon_is_neither_success_nor_failure(disk: Path):
    of = plan(disk / "probe")
    lay_out(of)
    runner = Answers(Completed(("fio",), -15, cancelled=True))
    with pytest.raises(ProbeRefused) as caught:
        run_fio(of, Run(runner, lambda: NOW, threading.Event()), replace(FIO, which=lambda _: "/bin/sh"))
    assert caught.value.reason == "stopped"
    assert left(of) == [".plumbline-probe", "fio.0"]


# --- how a run ends


def test_a_good_run(disk: Path, fio: Script):
    of = plan(disk / "probe", "randrw75-4k-qd16-j4")
    lay_out(of)
    result = fio.run(of, f"cat {FIXTURES}/randrw75-4k-qd16-j4.json >$report")
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
            f"cat {FIXTURES}/file-missing.json >$report; exit 1",
            "fio: file creation disallowed by allow_file_create=0 (exit status 1)",
        ),
        (f"cat {FIXTURES}/terminated.json >$report; exit 128", "fio: terminating on signal 15 (exit status 128)"),
        (
            f"cat {FIXTURES}/enospc.json >$report",  # with exit status 0
            "fio: io_u error on file fio.0: No space left on device: write offset=11272192, buflen=65536",
        ),
        ("exit 137", "fio: no message (exit status 137)"),
        ("kill -KILL $$", "fio: no message (signal 9)"),
        ("exit 0", "fio: holds no JSON document"),
        ("echo garbage >$report", "fio: holds no JSON document, only: garbage"),
        (
            f"head -c 3000 {FIXTURES}/terminated.json >$report",
            "fio:3: not what fio writes: Input data was truncated",
        ),
        (
            f"cat {FIXTURES}/randread-4k-qd16-j1.json >$report",  # reads, where writes were asked for
            "fio finished without a single operation; give it a longer runtime",
        ),
        ("echo fio: bad $(echo $report | sed s/[0-9].*/99/) >&2; exit 1", "fio: bad /proc/self/fd/99 (exit status 1)"),
    ],
)
def test_failures_say_why(disk: Path, fio: Script, body: str, message: str):
    of = plan(disk / "probe")
    lay_out(of)
    result = fio.run(of, body)
    assert (result.outcome, result.message) == (Outcome.FAILURE, message)
    assert result.operations == ()
    assert left(of) == [".plumbline-probe", "fio.0"]


def test_a_flood(disk: Path, fio: Script):
    of = plan(disk / "probe")
    lay_out(of)
    result = fio.run(of, "yes fio: same error again >&2")
    assert result.outcome is Outcome.FAILURE
    assert result.message == "fio: wrote too much output and was stopped; first line: fio: same error again"


def test_a_flood_of_what_is_not_to_be_seen(disk: Path, fio: Script):
    of = plan(disk / "probe")
    lay_out(of)
    result = fio.run(of, "cat /dev/zero")
    assert result.outcome is Outcome.FAILURE
    assert result.message.startswith(r"fio: wrote too much output and was stopped; first line: \x00\x00\x00")
    assert len(result.message) < 400


def test_a_hang(disk: Path, fio: Script):
    of = plan(disk / "probe", runtime=Duration(1), timeout=Duration(1.1))
    lay_out(of)
    result = fio.run(of, "echo half >$report; sleep 60")
    assert result.outcome is Outcome.TIMEOUT
    assert result.message == "fio: not finished in time; is the device slow, or the timeout of 1.1 s too short?"
    assert result.operations == ()
    assert 1.1 <= result.duration < 6
    assert left(of) == [".plumbline-probe", "fio.0"]


def run_answers(of: FioPlan, *answers: Completed) -> tuple[ProbeResult, list[float]]:
    runner = Answers(*answers)
    tool = replace(FIO, which=lambda _: "/bin/sh")
    return run_fio(of, Run(runner, lambda: NOW, threading.Event()), tool), runner.timeouts


def test_a_process_that_outlives_sigkill(disk: Path):
    of = plan(disk / "probe")
    lay_out(of)
    result, _ = run_answers(of, Completed(("fio",), None, timed_out=True, duration_s=14.0))
    assert result.outcome is Outcome.TIMEOUT
    assert "did not even end on SIGKILL: the device below hangs" in result.message
    assert result.duration == 14.0


def test_layout_counts_into_the_timeout(disk: Path):
    of = plan(disk / "probe")
    done = Completed(("fio",), 0, LAID_OUT, duration_s=3.0)
    result, timeouts = run_answers(of, done, Completed(("fio",), 1, duration_s=2.5))
    assert timeouts == [20.0, 10.0, 7.0]  # version, layout, measured run
    assert result.duration == 5.5


def test_layout_that_takes_all_the_time_is_used_by_the_next_run(disk: Path):
    of = plan(disk / "probe")
    result, _ = run_answers(of, Completed(("fio",), 0, LAID_OUT, duration_s=8.5))
    assert (result.outcome, result.message) == (
        Outcome.TIMEOUT,
        "laying out the files took the whole timeout; the next run measures",
    )
    assert left(of) == [".plumbline-probe", "fio.0"]


def test_layout_that_fails_leaves_nothing(disk: Path):
    of = plan(disk / "probe")
    said = b'{"kind": "refused", "reason": "io-error", "message": "/x: Input/output error; see the kernel\'s log"}'
    result, _ = run_answers(of, Completed(("fio",), 0, said))
    assert (result.outcome, result.message) == (
        Outcome.FAILURE,
        "laying out the files: /x: Input/output error; see the kernel's log",
    )
    assert left(of) == [".plumbline-probe"]


def test_layout_without_the_space_is_refused_and_leaves_nothing(disk: Path):
    of = plan(disk / "probe")
    said = b'{"kind": "refused", "reason": "no-space", "message": "60 MiB free, 64 MiB needed"}'
    with pytest.raises(ProbeRefused, match="60 MiB free") as caught:
        run_answers(of, Completed(("fio",), 0, said))
    assert caught.value.reason == "no-space"
    assert left(of) == [".plumbline-probe"]


def test_layout_that_hangs_is_left_alone(disk: Path):
    """Whatever touched its files would hang beside it."""
    of = plan(disk / "probe")
    result, _ = run_answers(of, Completed(("fio",), None, timed_out=True))
    assert result.outcome is Outcome.TIMEOUT
    assert left(of) == [".plumbline-probe", "fio.0"]


def test_a_file_half_laid_out_or_with_holes_is_not_measured(disk: Path):
    of = plan(disk / "probe", "randrw75-4k-qd16-j4")
    lay_out(of)
    os.truncate(of.directory / "fio.0", MIB // 2)
    os.truncate(of.directory / "fio.2", 0)
    os.truncate(of.directory / "fio.2", MIB)
    whole = (of.directory / "fio.1").read_bytes()
    result, timeouts = run_answers(of, Completed(("fio",), 0, LAID_OUT), Completed(("fio",), 1))
    assert len(timeouts) == 3
    assert result.message == "fio: no message (exit status 1)"
    assert (of.directory / "fio.1").read_bytes() == whole
    for name in of.files:
        found = (of.directory / name).stat()
        assert (found.st_size, found.st_blocks * 512 >= MIB) == (MIB, True)


def test_files_of_jobs_that_are_no_more_go_with_the_next_start(disk: Path):
    lay_out(plan(disk / "probe", "randrw75-4k-qd16-j4"))
    of = plan(disk / "probe")
    (of.directory / "fio.json").write_text("a report of an earlier release")
    (of.directory / "fio-partial.1").write_bytes(b"x" * 4096)
    for name in ("fio.٣", "fio.json.mine", "fio.", "fio.5x"):
        (of.directory / name).write_text("somebody's")
    (of.directory / "fio.7").mkdir()
    (disk / "victim").write_text("somebody's")
    (of.directory / "fio.8").hardlink_to(disk / "victim")
    (of.directory / "fio.9").symlink_to(disk / "victim")
    remove_surplus(of)
    kept = [".plumbline-probe", "fio.", "fio.0", "fio.5x", "fio.7", "fio.8", "fio.9", "fio.json.mine", "fio.٣"]
    assert left(of) == sorted(kept)


@pytest.mark.parametrize("marked", [False, True])
def test_a_clean_up_makes_nothing(disk: Path, marked: bool):
    of = plan(disk / "probe")
    if marked:
        prepare_directory(of.directory, size_bytes=MIB).close()
    remove_surplus(of)
    assert of.directory.exists() is marked


def test_a_directory_named_as_the_report_of_earlier_releases_is_no_trouble(disk: Path, fio: Script):
    of = plan(disk / "probe", "randread-4k-qd16-j1")
    lay_out(of)
    (of.directory / "fio.json").mkdir()
    remove_surplus(of)
    assert fio.run(of, f"cat {FIXTURES}/randread-4k-qd16-j1.json >$report").message == ""
    assert left(of) == [".plumbline-probe", "fio.0", "fio.json"]


def test_a_longer_file_is_used_and_a_shorter_one_is_not(disk: Path, fio: Script):
    longer, shorter = plan(disk / "probe", file_size=Size(2 * MIB)), plan(disk / "probe")
    lay_out(longer)
    assert fio.run(shorter, "echo measured >&2; exit 1").message == "fio: measured (exit status 1)"
    bigger = plan(disk / "probe", file_size=Size(3 * MIB))
    fio.run(bigger, "exit 1")
    assert (bigger.directory / "fio.0").stat().st_size == 3 * MIB


def test_data_is_for_us_alone_and_the_report_in_no_file(disk: Path, fio: Script):
    of = plan(disk / "probe")
    lay_out(of)
    assert stat.S_IMODE(of.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((of.directory / "fio.0").stat().st_mode) == 0o600
    said = fio.run(of, "readlink $report >&2; exit 1").message
    assert said == "fio: /memfd:plumbline-fio (deleted) (exit status 1)"


def test_messages_name_the_file(disk: Path, fio: Script):
    of = plan(disk / "probe")
    lay_out(of)
    body = "for word; do case $word in --filename=*) echo fio: bad ${word#*=} >&2;; esac; done; exit 1"
    assert fio.run(of, body).message == "fio: bad fio.0 (exit status 1)"


def test_its_directory_is_made_only_in_a_marked_storage_path(fio: Script, disk: Path) -> None:
    storage = disk / "storage"
    storage.mkdir(mode=0o700)
    (storage / "thesis.tex").write_text("mine")
    of = replace(plan(storage / "fio-a"), in_storage=True)
    with pytest.raises(ProbeRefused, match="is not, or no longer, a storage path of Plumbline") as refusal:
        fio.run(of, "exit 1")
    assert refusal.value.reason == "not-ours"
    assert [path.name for path in storage.iterdir()] == ["thesis.tex"]
    (storage / MARKER).write_bytes(MARKER_TEXT)
    assert fio.run(of, "exit 1").outcome is Outcome.FAILURE
    assert (storage / "fio-a").is_dir()
