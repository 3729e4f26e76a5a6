"""``plumbline probe``: beside a daemon, without one, stopped in the middle; what it refuses, and how it says so."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plumbline.core.storage_names import HEAVY_LOCK, MARKER
from plumbline.probes.run.gates import HeavyLock
from support.daemon import COMMAND, alive, command_line, eventually, running, write_config

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")]
WORKLOAD = "randwrite-4k-qd1-j1"


def fio(name: str = "fio-a", **changes: object) -> dict[str, object]:
    return {
        "type": "fio", "name": name, "workload": WORKLOAD, "file_size": "1MiB", "device_class": "ssd",
        "runtime": "1s", "timeout": "60s", "max_load_per_cpu": 1000, "max_device_busy": 1.0,
    } | changes  # fmt: skip


def plumbline(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [*COMMAND, "probe", *arguments, "--config.file", folder / "plumbline.yaml",
            "--storage.path", folder / "state"]  # fmt: skip
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def run(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = plumbline(folder, "run", *arguments, "--json")
    return done.returncode, json.loads(done.stdout)


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    argv = [*COMMAND, "probe", "run", *arguments, "--config.file", folder / "plumbline.yaml",
            "--storage.path", folder / "state"]  # fmt: skip
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def fio_below(pid: int) -> list[int]:
    found = []
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        if command_line(child).startswith("fio ") and "--name=plumbline" in command_line(child):
            found.append(child)
    return found


def test_a_run_without_a_daemon_beside_the_documented_baseline(folder: Path) -> None:
    write_config(folder, {"probes": [fio(workload="randread-4k-qd16-j1")]})
    code, said = run(folder, "fio-a")
    (report,) = said["runs"]
    (operation,) = report["operations"]
    figures = {each["name"]: each for each in operation["figures"]}
    assert (code, report["outcome"], report["workload"]) == (0, "success", "randread-4k-qd16-j1")
    assert (operation["operation"], operation["baseline"], operation["judges"]) == (
        "read", "documented: unnoba-2020", False,
    )  # fmt: skip
    assert 0 < figures["latency.p50"]["measured"] <= figures["latency.p99"]["measured"] < 10
    mean, iops = figures["latency.mean"], figures["iops"]
    assert mean["ratio"] == pytest.approx(mean["measured"] / mean["baseline"])
    assert iops["ratio"] == pytest.approx(iops["baseline"] / iops["measured"])
    # nothing is left but the data file, and no state is claimed to be the daemon's
    assert sorted(path.name for path in (folder / "state").iterdir()) == [MARKER, "fio-a", HEAVY_LOCK]

    table = plumbline(folder, "run", "fio-a")
    assert table.returncode == 0
    assert "documented: unnoba-2020 (shown only)" in table.stdout
    assert "p99" in table.stdout


def test_beside_a_daemon_whose_memory_it_reads(folder: Path) -> None:
    canary = {"type": "canary", "name": "canary", "file_size": "1MiB"}
    config = {"probes": [canary, fio(), fio("night", at="Sun 03:00", interval="7d")]}
    write_config(folder, config)
    assert "no daemon runs" in plumbline(folder, "list").stdout
    with running(folder, config=config) as daemon:
        assert run(folder, "fio-a", "--force")[0] == 0
        listed = json.loads(plumbline(folder, "list", "--json").stdout)
        assert daemon.metrics().total("plumbline_probe_runs_total", probe="night") == 0
    rows = {row["probe"]: row for row in listed["probes"]}
    assert listed["daemon"] is True
    assert (rows["night"]["schedule"], rows["fio-a"]["schedule"]) == ("Sun 03:00", "every 6h")
    assert 0 < rows["night"]["next_start"] - time.time() <= 7 * 86400 + 1800
    assert rows["canary"]["schedule"] == "continuous"


def test_a_lock_is_never_forced(folder: Path) -> None:
    write_config(folder, {"probes": [fio()]})
    (folder / "state").mkdir()
    with HeavyLock(folder / "state" / HEAVY_LOCK).hold("fio-night"):
        done = plumbline(folder, "run", "fio-a", "--force")
        assert done.returncode == 3
        assert len(done.stdout.splitlines()) == 1
        assert "fio-a: refused (locked): " in done.stdout
        assert "held by fio-night" in done.stdout


def test_the_guard_is_never_forced(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "precious").write_text("x")
    write_config(folder, {"probes": [fio(directory=str(folder / "mine"))]})
    code, said = run(folder, "fio-a", "--force")
    assert (code, said["runs"][0]["outcome"]) == (3, "refused")
    assert sorted(path.name for path in (folder / "mine").iterdir()) == ["precious"]


def test_a_busy_node_refuses_and_force_goes_past_it(folder: Path) -> None:
    write_config(folder, {"probes": [fio(max_load_per_cpu=0.5)]})
    (folder / "proc").mkdir()
    for name in ("diskstats", "mounts"):
        shutil.copy(f"/proc/{name}", folder / "proc" / name)
    (folder / "proc" / "loadavg").write_text("9999.00 0.10 0.10 1/80 11206\n")
    code, said = run(folder, "fio-a", "--path.procfs", str(folder / "proc"))
    assert (code, said["runs"][0]["outcome"], said["runs"][0]["reason"]) == (3, "refused", "load")
    code, said = run(folder, "fio-a", "--path.procfs", str(folder / "proc"), "--force")
    assert (code, said["runs"][0]["outcome"]) == (0, "success")


def test_quiet_hours_are_never_forced(folder: Path) -> None:
    write_config(folder, {"probes": [fio()], "gates": {"quiet_hours": ["daily 00:00-12:00", "daily 12:00-00:00"]}})
    code, said = run(folder, "fio-a", "--force")
    assert (code, said["runs"][0]["reason"]) == (3, "quiet-hours")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_in_the_middle_nothing_is_left_and_the_lock_is_free(folder: Path, number: signal.Signals) -> None:
    write_config(folder, {"probes": [fio(runtime="40s"), fio("fio-b")]})
    with started(folder, "fio-a", "fio-b") as process:
        below = eventually(lambda: fio_below(process.pid))
        process.send_signal(number)
        out, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, "")
    assert "fio-a: stopped (stopped): stopped on request" in out
    assert "fio-b" not in out
    assert not any(map(alive, below))
    assert sorted(path.name for path in (folder / "state" / "fio-a").iterdir()) == [".plumbline-probe", "fio.0"]
    assert run(folder, "fio-b")[0] == 0


def test_killed_in_the_middle_fio_dies_with_it_and_the_next_run_tidies_up(folder: Path) -> None:
    write_config(folder, {"probes": [fio(runtime="40s")]})
    with started(folder, "fio-a") as process:
        below = eventually(lambda: fio_below(process.pid))
        process.kill()
        process.wait()
    eventually(lambda: not any(map(alive, below)))
    data = folder / "state" / "fio-a" / "fio.0"
    whole = data.stat().st_size
    os.truncate(data, whole // 2)  # as if it had been killed while laying out
    write_config(folder, {"probes": [fio()]})
    assert run(folder, "fio-a")[0] == 0
    assert data.stat().st_size == whole
    assert sorted(path.name for path in data.parent.iterdir()) == [".plumbline-probe", "fio.0"]


def test_a_failure_is_one(folder: Path) -> None:
    write_config(folder, {"probes": [fio(workload="randread-4k-qd1-j1")]})
    directory = folder / "state" / "fio-a"
    assert run(folder, "fio-a")[0] == 0
    fake = folder / "bin"
    fake.mkdir()
    (fake / "fio").write_text('#!/bin/sh\n[ "$1" = --version ] && { echo fio-3.33; exit; }\necho broken >&2; exit 3\n')
    (fake / "fio").chmod(0o755)
    argv = [*COMMAND, "probe", "run", "fio-a", "--config.file", folder / "plumbline.yaml", "--storage.path",
            folder / "state"]  # fmt: skip
    environment = {**os.environ, "PATH": f"{fake}:{os.environ['PATH']}"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1] == "fio-a: failure: fio: broken (exit status 3)"
    assert directory.is_dir()


def test_what_the_configuration_does_not_allow(folder: Path) -> None:
    write_config(folder, {"probes": [fio()]})
    done = plumbline(folder, "run", "fio-z")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("plumbline: probe = 'fio-z': no such probe is configured and enabled; there are: fio-a\n")
    (folder / "plumbline.yaml").write_text("probes: [{type: fio}]\n")
    assert plumbline(folder, "run", "fio-a").returncode == 3


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user: needs root")
def test_the_daemons_directory_is_left_to_its_user(folder: Path) -> None:
    write_config(folder, {"probes": [fio()]})
    (folder / "state").mkdir()
    os.chown(folder / "state", 65534, 65534)
    done = plumbline(folder, "run", "fio-a")
    assert done.returncode == 3
    assert "belongs to user 65534 and this is user 0: run it as the daemon's user" in done.stderr
    assert list((folder / "state").iterdir()) == []
