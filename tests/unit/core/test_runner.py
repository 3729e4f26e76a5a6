"""The runner with real commands: how they end, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import plumbline
from plumbline.core.process import ProcessRunner
from plumbline.errors import Unavailable
from support.daemon import alive
from support.descriptors import open_descriptors
from support.programs import need

ENV = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "SECRET": "not for probes", "LANG": "de_DE.UTF-8"}


@pytest.fixture
def runner() -> ProcessRunner:
    return ProcessRunner(ENV)


def eventually(true: Callable[[], bool], within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_both_outputs_and_the_exit_status(runner: ProcessRunner):
    done = runner.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=10)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    assert (done.timed_out, done.cancelled, done.truncated) == (False, False, False)
    assert done.argv == ("sh", "-c", "echo out; echo err >&2; exit 3")
    assert 0 < done.duration_s < 10


def test_environment_is_small_and_in_english(runner: ProcessRunner):
    done = runner.run(["env"], timeout_s=10)
    assert sorted(done.stdout.decode().splitlines()) == ["HOME=/nowhere", "LC_ALL=C", f"PATH={ENV['PATH']}"]


def test_priorities_signals_session_and_umask(runner: ProcessRunner):
    script = (
        "import os,signal,ctypes;"
        "c=ctypes.CDLL(None);n=ctypes.c_int();c.prctl(2,ctypes.byref(n),0,0,0);"
        "print(os.nice(0),n.value,os.getsid(0)==os.getpid()==os.getpgid(0),oct(os.umask(0)),"
        "signal.pthread_sigmask(0,())==set(),open('/proc/self/status').read().split('SigIgn:')[1].split()[0])"
    )
    # Python ignores SIGPIPE and SIGXFSZ by itself once it runs: those two bits are its own
    done = runner.run([sys.executable, "-I", "-S", "-c", script], timeout_s=10)
    # relative to ours (a test run may itself be nice), and 19 is the kernel's end of the scale
    nice = str(min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)).encode()
    assert done.stdout.split()[:5] == [nice, b"9", b"True", b"0o77", b"True"]
    ignored = runner.run(["grep", "SigIgn", "/proc/self/status"], timeout_s=10)
    # 32 and 33 belong to the C library (signal(7)): whoever started us may have ignored them, nobody can undo that.
    # SIGINT and SIGQUIT are ignored by what a shell runs in the background, SIGHUP by what nohup runs
    by_others = 0b11 << 31 | sum(1 << number - 1 for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT))
    assert int(ignored.stdout.split()[1], 16) & ~by_others == 0


def test_io_priority_is_the_lowest_of_best_effort(runner: ProcessRunner):
    assert runner.run(["ionice"], timeout_s=10).stdout == b"best-effort: prio 7\n"


def test_no_stdin(runner: ProcessRunner):
    assert runner.run(["cat"], timeout_s=10).returncode == 0


def test_killed_by_a_signal(runner: ProcessRunner):
    assert runner.run(["sh", "-c", "kill -KILL $$"], timeout_s=10).returncode == -9
    assert runner.run(["sh", "-c", "exit 137"], timeout_s=10).returncode == 137


def test_a_command_that_is_not_there(runner: ProcessRunner):
    done = runner.run(["no-such-command"], timeout_s=10)
    assert done.returncode == 127
    assert done.stderr == b"no-such-command: can't be executed: No such file or directory\n"


def test_a_command_that_no_process_can_have(runner: ProcessRunner):
    with pytest.raises(Unavailable, match="true: can't be started: embedded null byte"):
        runner.run(["true", "a\0b"], timeout_s=10)


def test_timeout(runner: ProcessRunner):
    before = time.monotonic()
    done = runner.run(["sleep", "60"], timeout_s=0.3)
    assert done.timed_out
    assert done.returncode == -signal.SIGTERM
    assert time.monotonic() - before < 20


def test_a_process_tree_is_gone_after_a_timeout(runner: ProcessRunner, tmp_path: Path):
    pids = tmp_path / "pids"
    child = f"(sleep 60 & echo $! >> {pids}; wait) & echo $! >> {pids}"
    script = f"trap '' TERM; {child}; echo $$ >> {pids}; wait"
    done = runner.run(["sh", "-c", script], timeout_s=2)
    assert done.timed_out
    assert done.returncode == -signal.SIGKILL  # it ignored SIGTERM
    numbers = [int(line) for line in pids.read_text().split()]
    assert len(numbers) == 3
    assert eventually(lambda: not any(map(alive, numbers)))


def test_children_that_outlive_the_command_are_gone_too(runner: ProcessRunner):
    before = time.monotonic()
    done = runner.run(["sh", "-c", "sleep 60 & echo $!"], timeout_s=30)
    assert (done.returncode, done.timed_out) == (0, False)
    assert time.monotonic() - before < 20  # although the child holds the pipes open
    assert eventually(lambda: not alive(int(done.stdout)))


def test_a_grandchild_in_another_session_cannot_hold_us_up(runner: ProcessRunner):
    before = time.monotonic()
    # -f returns at once; the pause lets the grandchild say its pid first, however busy the machine is
    done = runner.run(["sh", "-c", "setsid -f sh -c 'echo $$; exec sleep 60'; sleep 3"], timeout_s=30)
    try:
        assert time.monotonic() - before < 20
        assert done.returncode == 0
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_flood_is_cut_and_ended(runner: ProcessRunner, stream: str):
    before = time.monotonic()
    done = runner.run(["sh", "-c", f"yes flood {stream}"], timeout_s=30, max_output_bytes=10_000)
    assert done.truncated
    assert not done.timed_out
    assert len(done.stderr if stream else done.stdout) == 10_000
    assert time.monotonic() - before < 10


def test_output_up_to_the_cap_is_no_flood(runner: ProcessRunner):
    done = runner.run(["head", "-c", "100000", "/dev/zero"], timeout_s=10, max_output_bytes=100_000)
    assert (done.returncode, len(done.stdout), done.truncated) == (0, 100_000, False)


def test_stop_ends_a_run_at_once_and_begins_no_other(runner: ProcessRunner):
    stopped_at: list[float] = []

    def stop() -> None:
        stopped_at.append(time.monotonic())
        runner.stop()

    timer = threading.Timer(0.3, stop)
    timer.start()
    done = runner.run(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], timeout_s=30)
    assert time.monotonic() - stopped_at[0] < 10  # and not its timeout
    assert done.cancelled
    assert not done.timed_out
    timer.join()
    again = runner.run(["true"], timeout_s=30)
    assert again.cancelled
    assert again.returncode is None


def test_the_command_dies_with_a_daemon_that_is_killed(tmp_path: Path):
    pid_file = tmp_path / "pid"
    daemon = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os,sys;from plumbline.core.process import ProcessRunner;"
            "ProcessRunner(os.environ).run(['sh','-c',f'echo $$ > {sys.argv[1]}; exec sleep 60'],timeout_s=60)",
            str(pid_file),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert eventually(lambda: pid_file.exists() and pid_file.read_text().endswith("\n"), 20)
        pid = int(pid_file.read_text())
        assert alive(pid)
    finally:
        daemon.kill()
        daemon.wait()
    assert eventually(lambda: not alive(pid))


def test_nothing_of_a_command_outlives_a_process_that_ends_beside_it(tmp_path: Path):
    pid_file = tmp_path / "pid"
    script = """if True:
        import os, sys, threading, time
        from plumbline.core.process import ProcessRunner
        command = ['sh', '-c', f"trap '' TERM; sleep 60 & echo $! > {sys.argv[1]}; wait"]
        run = ProcessRunner(os.environ).run
        threading.Thread(target=run, args=(command,), kwargs={'timeout_s': 60}, daemon=True).start()
        while not os.path.exists(sys.argv[1]) or not os.path.getsize(sys.argv[1]):
            time.sleep(0.02)
    """
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script, str(pid_file)], env=paths, check=True, timeout=60)
    grandchild = int(pid_file.read_text())
    assert eventually(lambda: not alive(grandchild), 2)


def test_no_descriptor_and_no_zombie_is_left(runner: ProcessRunner):
    def state() -> tuple[int, str]:
        children = Path("/proc/self/task", str(threading.get_native_id()), "children").read_text()
        return open_descriptors(), children

    runner.run(["true"], timeout_s=10)
    before = state()
    runner.run(["true"], timeout_s=10)
    runner.run(["sleep", "60"], timeout_s=0.1)
    runner.run(["yes"], timeout_s=10, max_output_bytes=10)
    assert state() == before


def test_several_at_once(runner: ProcessRunner):
    results: dict[int, bytes] = {}

    def one(number: int) -> None:
        results[number] = runner.run(["sh", "-c", f"sleep 0.2; echo {number}"], timeout_s=20).stdout

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: f"{number}\n".encode() for number in range(4)}


@pytest.mark.needs_root
def test_a_process_that_outlives_sigkill_is_reported_and_reaped_later(runner: ProcessRunner, tmp_path: Path):
    """A freezer cgroup (v1) holds a process so that SIGKILL waits, as a hung disk does."""
    freezer = Path("/sys/fs/cgroup/freezer")
    if os.geteuid() != 0 or not (freezer / "cgroup.procs").exists():
        pytest.skip("needs root and a version 1 freezer cgroup")
    group = freezer / f"plumbline-test-{os.getpid()}"
    group.mkdir()
    try:
        script = f"echo $$ > {group}/cgroup.procs; echo FROZEN > {group}/freezer.state; sleep 60"
        before = time.monotonic()
        done = runner.run(["sh", "-c", script], timeout_s=2)
        took = time.monotonic() - before
        frozen = [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
        assert done.timed_out
        assert done.returncode is None
        assert runner.stuck()
        assert took < 20
        assert len(frozen) == 1
        assert runner.holds(["sh", "-c", script])
        assert not runner.holds(["sh", "-c", "another"])
    finally:
        (group / "freezer.state").write_text("THAWED")
        assert eventually(lambda: not any(alive(int(pid)) for pid in (group / "cgroup.procs").read_text().split()))
        assert eventually(lambda: not runner.stuck())  # reaps what was abandoned
        assert not runner.holds(["sh", "-c", script])
        group.rmdir()
    assert not Path(f"/proc/{frozen[0]}").exists()


@pytest.mark.parametrize("keep", [False, True])
def test_ambient_capabilities_reach_a_command_only_when_asked_for(keep: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to give itself ambient capabilities as somebody else")
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); from plumbline.core.process import ProcessRunner;"
        f"done = ProcessRunner(os.environ, keep_capabilities={keep}).run(['cat', '/proc/self/status'], timeout_s=60);"
        "print(done.stdout.decode(), done.stderr.decode())"
    )
    package = Path(plumbline.__file__).parents[1]
    # the second one lets nobody start this Python, wherever it stands
    capability = ("--inh-caps", "+sys_rawio,+dac_override", "--ambient-caps", "+sys_rawio,+dac_override")
    both = 1 << 17 | 1 << 1
    done = subprocess.run(
        [need("setpriv"), "--reuid", "65534", "--clear-groups", *capability, sys.executable, "-c", script, package],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if "CapAmb" not in done.stdout:
        pytest.skip(f"nobody can't run this Python: {done.stderr[-200:]}")
    sets = dict(line.split() for line in done.stdout.splitlines() if line.startswith(("CapAmb", "CapEff")))
    assert (int(sets["CapAmb:"], 16), int(sets["CapEff:"], 16)) == ((both, both) if keep else (0, 0))
