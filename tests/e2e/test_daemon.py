"""The installed daemon from outside: start, scrape, reload, refuse, stop; one collector broken, the rest stays."""

from __future__ import annotations

import gzip
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import plumbline
from support.daemon import PLUMBLINE, Daemon, eventually, running
from support.programs import need

OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with the embedded defaults for all tests that only look."""
    with running(tmp_path_factory.mktemp("daemon")) as started:
        yield started


def children(pid: int) -> list[int]:
    found = [int(word) for file in Path(f"/proc/{pid}/task").glob("*/children") for word in file.read_text().split()]
    return found + [grandchild for child in found for grandchild in children(child)]


def test_what_is_tested_is_the_installed_wheel() -> None:
    assert "site-packages" in Path(plumbline.__file__).parts
    assert PLUMBLINE.exists()


def test_the_hosts_own_numbers_are_shown(daemon: Daemon) -> None:
    metrics = daemon.metrics()

    processed = sum(
        value for series, value in metrics.items() if series.startswith("plumbline_softnet_processed_total")
    )
    assert processed > 0
    assert metrics['plumbline_nic_up{device="lo"}'] in (0, 1)
    assert any(series.startswith("plumbline_build_info{") for series in metrics)


def test_every_collector_succeeds_here(daemon: Daemon) -> None:
    success = {
        series: value for series, value in daemon.metrics().items() if series.startswith("plumbline_collector_success")
    }

    assert len(success) >= 10
    assert set(success.values()) == {1}


@pytest.mark.parametrize("headers", [{}, OPENMETRICS], ids=["text", "openmetrics"])
def test_promtool_finds_no_fault(daemon: Daemon, headers: dict[str, str]) -> None:
    promtool = need("promtool")
    _, body = daemon.get("/metrics", headers)
    if headers:
        # promtool knows the text format only; the OpenMetrics one ends as its specification says
        assert body.endswith(b"# EOF\n")
        return

    done = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True, timeout=60, check=False)

    assert (done.returncode, done.stderr.decode()) == (0, "")


def test_the_canary_measures_without_root_or_configuration(daemon: Daemon) -> None:
    def counted(prefix: str) -> list[str]:
        return [series for series, value in daemon.metrics().items() if series.startswith(prefix) and value > 0]

    refused = 'plumbline_probe_skipped_total{probe="canary"'
    eventually(lambda: bool(counted("plumbline_canary_latency_seconds_count") or counted(refused)))

    if reasons := counted(refused):
        pytest.skip(f"the canary can't run on this machine's temporary directory: {reasons}")


def test_gzip_only_for_who_asks(daemon: Daemon) -> None:
    with urllib.request.urlopen(daemon.url + "/metrics", timeout=10) as plain:
        assert plain.headers["Content-Encoding"] is None
    _, body = daemon.get("/metrics", {"Accept-Encoding": "gzip"})
    assert b"plumbline_build_info" in gzip.decompress(body)


def test_name_filter(daemon: Daemon) -> None:
    _, body = daemon.get("/metrics?name[]=plumbline_build_info")

    names = {re.split(r"[ {]", line)[0] for line in body.decode().splitlines() if line and not line.startswith("#")}
    assert names == {"plumbline_build_info"}


@pytest.mark.parametrize(("path", "status"), [("/-/healthy", 200), ("/-/ready", 200), ("/", 200), ("/nothing", 404)])
def test_pages(daemon: Daemon, path: str, status: int) -> None:
    assert daemon.get(path)[0] == status


def test_a_port_in_use_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [PLUMBLINE, "serve", "--storage.path", tmp_path / "state", "--web.listen-address", address],
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert address.split(":")[1] in done.stderr.splitlines()[-1]


def test_a_bad_configuration_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    config = tmp_path / "plumbline.yaml"
    config.write_text("probes: []\n")
    with running(tmp_path, "--config.file", config) as daemon:
        assert daemon.metrics()["plumbline_config_last_reload_successful"] == 1

        config.write_text("probs: []\n")
        daemon.signal(signal.SIGHUP)
        eventually(lambda: daemon.metrics()["plumbline_config_last_reload_successful"] == 0)
        assert f"{config}: probs: no such key" in daemon.said()

        config.write_text("probes: []\ncollectors: {softnet: false}\n")
        daemon.signal(signal.SIGHUP)
        eventually(lambda: daemon.metrics()["plumbline_config_last_reload_successful"] == 1)
        eventually(lambda: not any(series.startswith("plumbline_softnet") for series in daemon.metrics()))


def test_a_changed_file_reloads_by_itself(tmp_path: Path) -> None:
    config = tmp_path / "plumbline.yaml"
    config.write_text("probes: []\n")
    with running(tmp_path, "--config.file", config) as daemon:
        config.write_text("probes: []\ncollectors: {softnet: false}\n")
        eventually(lambda: not any(series.startswith("plumbline_softnet") for series in daemon.metrics()))


def test_a_bad_configuration_at_the_start_ends_it_with_one_line(tmp_path: Path) -> None:
    config = tmp_path / "plumbline.yaml"
    config.write_text("web: {listen_adress: x}\n")

    done = subprocess.run(
        [PLUMBLINE, "serve", "--storage.path", tmp_path / "state", "--config.file", config],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"{config}: web.listen_adress: no such key" in done.stderr


def test_one_broken_collector_leaves_the_rest(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    (proc / "net").mkdir(parents=True)
    (proc / "net" / "softnet_stat").write_text("this is no softnet_stat\n")
    for name in ("diskstats", "loadavg"):
        shutil.copyfile(Path("/proc") / name, proc / name)
    config = tmp_path / "plumbline.yaml"
    config.write_text("probes: []\n")
    with running(tmp_path, "--config.file", config, "--path.procfs", proc) as daemon:
        metrics = daemon.metrics()

    assert metrics['plumbline_collector_success{collector="softnet"}'] == 0
    assert metrics['plumbline_collector_success{collector="disk"}'] == 1
    assert metrics['plumbline_collector_success{collector="link"}'] == 1
    assert not any(series.startswith("plumbline_softnet") for series in metrics)
    assert any(series.startswith("plumbline_nic_packets_total") for series in metrics)


def test_sigterm_stops_it_within_two_seconds_and_leaves_no_process(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        offspring = children(daemon.process.pid)
        daemon.get("/metrics")
        asked = time.monotonic()
        daemon.signal(signal.SIGTERM)
        assert daemon.process.wait(10) == 0
        took = time.monotonic() - asked

    assert took < 2
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in offspring), within_s=5)
