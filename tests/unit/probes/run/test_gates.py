"""Gates: closed with the figure that closed them, and the lock on real files."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.core.roots import Roots
from plumbline.errors import ParseError, ProbeRefused, StateError, Unavailable
from plumbline.probes.run.gates import HeavyLock, check_device_busy, check_load, parse_loadavg
from plumbline.probes.run.state import open_storage


def readings(*pairs: tuple[float, float]) -> Callable[[], tuple[float, float]]:
    left = list(pairs)
    return lambda: left.pop(0)


def busy(*pairs: tuple[float, float], limit: float = 0.5) -> list[float]:
    waits: list[float] = []
    check_device_busy(readings(*pairs), device="sda", limit=limit, wait=waits.append, window_s=2.0)
    return waits


def test_device_that_is_busy_up_to_the_limit_may_be_measured():
    assert busy((7000, 10.0), (8000, 12.0)) == [2.0]


def test_busy_device():
    with pytest.raises(ProbeRefused) as caught:
        busy((7000, 10.0), (8500, 12.0))
    assert caught.value.reason == "device-busy"
    assert str(caught.value) == (
        "sda was busy for 75% of the last 2.0 s, the limit is 50%;"
        " raise max_device_busy of this probe if that is its normal state"
    )


def test_the_time_that_really_passed_counts_not_the_one_asked_for():
    assert busy((7000, 10.0), (8500, 20.0)) == [2.0]


@pytest.mark.parametrize("second", [(10, 12.0), (7000, 10.0)])
def test_counter_or_clock_that_did_not_advance_is_unknown_not_idle(second: tuple[float, float]):
    with pytest.raises(ProbeRefused, match="sda: its busy time went backwards"):
        busy((7000, 10.0), second)


def test_a_device_that_is_gone():
    def read() -> tuple[float, float]:
        raise Unavailable("/proc/diskstats: has no sda")

    with pytest.raises(ProbeRefused, match="sda: how busy it is can't be read: /proc/diskstats: has no sda") as caught:
        check_device_busy(read, device="sda", limit=0.5, wait=lambda _: None)
    assert caught.value.reason == "device-busy"


def test_a_refusal_of_the_reading_keeps_its_reason():
    def read() -> tuple[float, float]:
        raise ProbeRefused("device-gone", "sda: no longer in /proc/diskstats")

    with pytest.raises(ProbeRefused, match="sda: no longer in") as caught:
        check_device_busy(read, device="sda", limit=0.5, wait=lambda _: None)
    assert caught.value.reason == "device-gone"


def host(tmp_path: Path, loadavg: str | None) -> Roots:
    (tmp_path / "proc").mkdir()
    if loadavg is not None:
        (tmp_path / "proc" / "loadavg").write_text(loadavg)
    return Roots.under(tmp_path)


def test_load_up_to_the_limit(tmp_path: Path):
    check_load(host(tmp_path, "8.00 0.18 0.12 1/80 11206\n"), limit=2.0, cpus=4)


def test_load_above_the_limit(tmp_path: Path):
    with pytest.raises(ProbeRefused) as caught:
        check_load(host(tmp_path, "9.00 0.18 0.12 1/80 11206\n"), limit=2.0, cpus=4)
    assert caught.value.reason == "load"
    assert str(caught.value) == (
        "the load average is 9.00 on 4 CPUs (2.25 each), the limit is 2 each;"
        " raise max_load_per_cpu of this probe if that is this node's normal state"
    )


@pytest.mark.parametrize("loadavg", [None, "", "high"])
def test_unknown_load_closes_the_gate(tmp_path: Path, loadavg: str | None):
    with pytest.raises(ProbeRefused, match="the load of this node is unknown") as caught:
        check_load(host(tmp_path, loadavg), limit=2.0, cpus=4)
    assert caught.value.reason == "load"


def test_loadavg():
    assert parse_loadavg("0.20 0.18 0.12 1/80 11206\n") == 0.2
    for text in ("", "\n", "-1.0 0", "nan", "1e3", "1.", ".5", "٣.0"):
        with pytest.raises(ParseError, match=r"/proc/loadavg:1: expected a load average, found"):
            parse_loadavg(text)


def test_one_holder_at_a_time(tmp_path: Path):
    path = tmp_path / "heavy.lock"
    with HeavyLock(path).hold("first"):
        with pytest.raises(ProbeRefused) as caught, HeavyLock(path).hold("second"):
            pytest.fail("both hold it")
        assert caught.value.reason == "locked"
        assert str(caught.value) == f"{path}: held by first, pid {os.getpid()}; the next run will try again"
    with HeavyLock(path).hold("second"):
        assert path.read_text() == f"second, pid {os.getpid()}\n"


def test_a_copy_of_a_process_that_is_just_being_started_is_waited_for(tmp_path: Path):
    """Between its fork and its exec it has the descriptor, too."""
    path = tmp_path / "heavy.lock"
    with HeavyLock(path).hold("cleaning up") as descriptor:
        copy = os.dup(descriptor)
    later = threading.Timer(0.1, os.close, [copy])
    later.start()
    with HeavyLock(path).hold("the run"):
        pass
    later.join()


def test_released_when_the_holder_fails(tmp_path: Path):
    lock = HeavyLock(tmp_path / "heavy.lock")
    with pytest.raises(RuntimeError), lock.hold("first"):
        raise RuntimeError
    with lock.hold("second"):
        pass


def test_a_command_that_outlives_us_keeps_the_lock(tmp_path: Path):
    lock = HeavyLock(tmp_path / "heavy.lock")
    with lock.hold("fio-a") as descriptor:
        hung = subprocess.Popen(["sleep", "60"], pass_fds=(descriptor,))
    try:
        with pytest.raises(ProbeRefused, match="held by fio-a, pid"), lock.hold("fio-b"):
            pytest.fail("the lock was free")
    finally:
        hung.kill()
        hung.wait()
    with lock.hold("fio-b"):
        pass


def test_lock_whose_holder_cannot_be_written_holds_all_the_same(tmp_path: Path):
    """As on a full disk: here the kernel lets this process write no byte more to any file."""
    open_storage(tmp_path / "storage").close()
    lock = HeavyLock(tmp_path / "storage" / "heavy.lock")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with lock.hold("fio-a"), pytest.raises(ProbeRefused, match="held by another probe"), lock.hold("fio-b"):
            pytest.fail("the lock was free")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with lock.hold("fio-b"):
        assert "fio-b" in (tmp_path / "storage" / "heavy.lock").read_text("utf-8")


def test_lock_that_cannot_be_opened(tmp_path: Path):
    with pytest.raises(StateError, match="can't be opened: No such file or directory; check its owner"):
        HeavyLock(tmp_path / "gone" / "heavy.lock").hold("a").__enter__()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="is a symbolic link"):
        HeavyLock(tmp_path / "link").hold("a").__enter__()
    assert not (tmp_path / "elsewhere").exists()
