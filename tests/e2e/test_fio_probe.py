"""The periodic fio probe inside the daemon: its figures appear, survive a restart, and its run ends with the daemon."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from plumbline.core.scheduler import splay
from support.daemon import STOP_WITHIN_S, Daemon, alive, command_line, eventually, running

WORKLOAD = "randwrite-4k-qd1-j1"


def probe(*, interval: int, runtime: int, timeout: int) -> dict[str, object]:
    """A probe that starts within a second: its name is one that this host's splay puts there."""
    host = os.uname().nodename
    name = next(name for n in itertools.count() if splay(host, name := f"fio-{n}", min(interval, 300.0)) < 1)
    return {
        "type": "fio", "name": name, "workload": WORKLOAD, "rate_iops": 50, "file_size": "1MiB", "device_class": "ssd",
        "interval": f"{interval}s", "runtime": f"{runtime}s", "timeout": f"{timeout}s",
        # the machine may be busy with other tests
        "max_load_per_cpu": 1000, "max_device_busy": 1.0,
    }  # fmt: skip


def runs(daemon: Daemon, name: str) -> float:
    return daemon.metrics().get("plumbline_probe_runs_total", probe=name, result="success") or 0.0


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_run_and_what_is_left_of_it_after_a_restart(folder: Path) -> None:
    each = probe(interval=10, runtime=1, timeout=5)
    name = str(each["name"])
    place = {"probe": name, "layer": "disk", "device_class": "ssd", "workload": WORKLOAD, "operation": "write"}
    with running(folder, config={"probes": [each]}) as daemon:
        assert "has not run yet" in daemon.page()
        eventually(lambda: runs(daemon, name) >= 1)
        metrics = daemon.metrics()

        assert metrics.get("plumbline_probe_success", probe=name) == 1
        assert metrics.get("plumbline_probe_interval_seconds", probe=name) == 10
        assert 1 <= (metrics.get("plumbline_probe_duration_seconds", probe=name) or 0) < 10
        finished = metrics.get("plumbline_probe_last_success_timestamp_seconds", probe=name)
        assert finished == metrics.get("plumbline_probe_last_run_timestamp_seconds", probe=name)
        assert time.time() - (finished or 0) < 10
        assert metrics.get("plumbline_probe_iops", **place) == pytest.approx(50, rel=0.2)
        throughput = metrics.get("plumbline_probe_throughput_bytes_per_second", **place)
        assert throughput == pytest.approx(50 * 4096, rel=0.2)
        latency = {
            sample.labels["statistic"]: sample.value
            for sample in metrics.series("plumbline_probe_latency_seconds", **place)
        }
        assert set(latency) == {"mean", "p50", "p95", "p99", "p999", "max"}
        assert 0 < latency["p50"] <= latency["p99"] <= latency["max"] < 10
        (info,) = metrics.series("plumbline_probe_info", probe=name)
        assert (info.labels["probe_type"], info.labels["tool"], info.labels["workload"]) == ("fio", "fio", WORKLOAD)
        assert info.labels["tool_version"].startswith("3.")
        assert info.labels["config_hash"]
        assert "has not run yet" not in daemon.page()

    with running(folder, config={"probes": [each]}) as again:
        metrics = again.metrics()
        assert runs(again, name) >= 1
        assert metrics.series("plumbline_probe_latency_seconds", **place)
        # other parameters: the figures are of another experiment
        again.reload({"probes": [{**each, "rate_iops": 40}]})
        assert again.metrics().series("plumbline_probe_latency_seconds", probe=name) == []


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_stop_in_mid_run_ends_fio(folder: Path) -> None:
    each = probe(interval=300, runtime=60, timeout=120)
    with running(folder, config={"probes": [each]}) as daemon:

        def fio() -> list[int]:
            return [pid for pid in daemon.children() if command_line(pid).startswith("fio ")]

        measuring = eventually(lambda: [pid for pid in fio() if "--name=plumbline" in command_line(pid)])
        in_flight = daemon.metrics().get("plumbline_probe_in_flight_seconds", probe=str(each["name"]))
        code, took = daemon.stop()

    assert 0 < (in_flight or 0) < 30
    assert (code, took < STOP_WITHIN_S) == (0, True), took
    assert [pid for pid in measuring if alive(pid)] == []


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_daemon_killed_in_mid_run_takes_fio_along_and_the_next_tidies_up(folder: Path) -> None:
    each = probe(interval=300, runtime=60, timeout=120)
    name = str(each["name"])
    with running(folder, config={"probes": [each]}) as daemon:
        measuring = eventually(lambda: measured_by(daemon))
        assert daemon.metrics().labels("plumbline_probe_info", "vantage") <= {"host", "vm", "container"}
        assert daemon.metrics().get("plumbline_probe_timeout_seconds", probe=name) == 120
        daemon.stop(signal.SIGKILL)
    eventually(lambda: not any(map(alive, measuring)))
    place = folder / "state" / name
    (place / "fio-partial.0").touch()  # as if it had been killed while laying out

    with running(folder, config={"probes": [{**each, "runtime": "1s"}]}) as again:
        eventually(lambda: runs(again, name) >= 1)
        metrics = again.metrics()
        count = metrics.get("plumbline_probe_operation_latency_seconds_count", probe=name, operation="write")
        assert (count or 0) >= 30
    assert sorted(file.name for file in place.iterdir()) == [".plumbline-probe", "fio.0"]


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_probe_that_leaves_the_configuration_in_mid_run_ends(folder: Path) -> None:
    each = probe(interval=300, runtime=60, timeout=120)
    with running(folder, config={"probes": [each]}) as daemon:
        measuring = eventually(lambda: measured_by(daemon))
        daemon.reload({"probes": []})
        eventually(lambda: not any(map(alive, measuring)))
        assert daemon.metrics().series("plumbline_probe_runs_total") == []


def measured_by(daemon: Daemon) -> list[int]:
    def is_fio(line: str) -> bool:
        return line.startswith("fio ") and "--name=plumbline" in line

    return [pid for pid in daemon.children() if is_fio(command_line(pid))]


def test_without_fio_the_probe_is_skipped_and_says_so(folder: Path) -> None:
    each = probe(interval=10, runtime=1, timeout=5)
    name = str(each["name"])
    environment = {**os.environ, "PATH": str(folder)}
    with running(folder, config={"probes": [each]}, environment=environment) as daemon:
        eventually(
            lambda: daemon.metrics().get("plumbline_probe_runs_skipped_total", probe=name, reason="tool-missing")
        )
        metrics, page = daemon.metrics(), daemon.page()

    assert metrics.total("plumbline_probe_runs_total", probe=name) == 0
    assert metrics.series("plumbline_probe_latency_seconds", probe=name) == []
    assert metrics.get("plumbline_probe_success", probe=name) is None
    assert "fio" in page
    assert "install" in page
    assert {each.value for each in metrics.series("plumbline_collector_success")} == {1}
