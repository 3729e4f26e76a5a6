"""The installed daemon as it comes: no root, no configuration; every page, in every form a client may ask for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import plumbline
from plumbline.collectors.registry import NAMES
from support.daemon import COMMAND, Daemon, eventually, running
from support.programs import need
from support.promtool import complaints
from support.scraped import Scrape

OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0"}
NOBODY = 65534


@pytest.fixture(scope="module")
def daemon(module_folder: Path) -> Iterator[Daemon]:
    """One daemon with the embedded defaults for all tests that only look."""
    with running(module_folder) as started:
        eventually(lambda: started.metrics().get("plumbline_probe_success", probe="canary") == 1)
        yield started


def test_what_is_tested_is_the_installed_wheel() -> None:
    if os.environ.get("PYTHONPATH"):
        pytest.skip("PYTHONPATH is set: the source tree may be meant")
    assert "site-packages" in Path(plumbline.__file__).parts


def test_it_prints_where_the_pages_are(daemon: Daemon) -> None:
    assert daemon.first_line == (
        f"plumbline {plumbline.__version__}: status page {daemon.url}/  metrics {daemon.url}/metrics\n"
    )


def test_every_collector_succeeds_here(daemon: Daemon) -> None:
    metrics = daemon.metrics()

    assert {each.labels["collector"]: each.value for each in metrics.series("plumbline_collector_success")} == (
        dict.fromkeys(NAMES, 1)
    )
    for family in ("available", "duration_seconds"):
        assert metrics.labels(f"plumbline_collector_{family}", "collector") == set(NAMES)
    assert metrics.total("plumbline_collector_items_skipped_total") == 0


def test_the_numbers_are_this_hosts(daemon: Daemon) -> None:
    def softnet() -> int:
        return sum(int(line.split()[0], 16) for line in Path("/proc/net/softnet_stat").read_text().splitlines())

    before = softnet()
    metrics = daemon.metrics()

    assert before <= metrics.total("plumbline_softnet_packets_processed_total") <= softnet()
    links = {line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}
    assert "lo" in links & metrics.labels("plumbline_nic_up", "device")
    assert metrics.get("plumbline_nic_mtu_bytes", device="lo") == int(Path("/sys/class/net/lo/mtu").read_text())
    for disk in metrics.labels("plumbline_disk_size_bytes", "device"):
        sectors = int(Path(f"/sys/block/{disk.replace('/', '!')}/size").read_text())
        assert metrics.get("plumbline_disk_size_bytes", device=disk) == 512 * sectors
    assert metrics.get("process_start_time_seconds") == pytest.approx(time.time(), abs=120)
    assert metrics.get("plumbline_build_info", version=plumbline.__version__) == 1


def test_the_canary_measures_without_root_or_configuration(daemon: Daemon) -> None:
    def counts() -> dict[str, float]:
        series = daemon.metrics().series("plumbline_canary_latency_seconds_count", probe="canary")
        return {each.labels["operation"]: each.value for each in series}

    before = counts()
    assert set(before) == {"read", "write"}
    eventually(lambda: all(count > before[operation] for operation, count in counts().items()))
    metrics = daemon.metrics()
    assert metrics.total("plumbline_canary_errors_total") == 0
    assert 0 < metrics.get("plumbline_canary_latency_seconds_sum", operation="read") < 60  # type: ignore[operator]
    assert time.time() - metrics.get("plumbline_probe_last_success_timestamp_seconds", probe="canary") < 10  # type: ignore[operator]


def test_without_a_baseline_it_says_so_and_judges_nothing(daemon: Daemon) -> None:
    metrics = daemon.metrics()

    missing = metrics.series("plumbline_baseline_missing")
    assert {each.labels["probe"] for each in missing} == {"canary", "fio-randwrite-4k"}
    assert {each.value for each in missing} == {1}
    assert metrics.total("plumbline_baseline_applicable") == 0
    assert "baseline" in daemon.page()


def test_promtool_finds_no_fault(daemon: Daemon) -> None:
    assert complaints(daemon.get("/metrics?profile=full").body) == []


def test_openmetrics_says_the_same(daemon: Daemon) -> None:
    text, open_metrics = daemon.get("/metrics?profile=full"), daemon.get("/metrics?profile=full", OPENMETRICS)

    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert open_metrics.text.endswith("# EOF\n")
    one, other = Scrape.of_text(text.text), Scrape.of_openmetrics(open_metrics.text)
    assert one.names() == other.names()
    for name in ("plumbline_nic_info", "plumbline_disk_size_bytes", "plumbline_probe_info"):
        assert sorted(map(repr, one.series(name))) == sorted(map(repr, other.series(name)))


def test_gzip_only_for_who_asks(daemon: Daemon) -> None:
    plain = daemon.get("/metrics")
    packed = daemon.get("/metrics", {"Accept-Encoding": "gzip"})

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.body) / 4
    assert Scrape.of_text(packed.text).names() == Scrape.of_text(plain.text).names()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?name[]=plumbline_build_info", {"plumbline_build_info"}),
        ("?name[]=plumbline_nic_up&name[]=process_open_fds", {"plumbline_nic_up", "process_open_fds"}),
        ("?name[]=plumbline_canary_latency_seconds_count", {"plumbline_canary_latency_seconds_count"}),
        ("?name[]=no_such_metric", set()),
    ],
)
def test_name_filter(daemon: Daemon, query: str, names: set[str]) -> None:
    assert daemon.metrics(query).names() == names


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/-/ready"])
def test_pages_and_their_heads(daemon: Daemon, path: str) -> None:
    whole, head = daemon.get(path), daemon.get(path, method="HEAD")

    assert (whole.status, head.status) == (200, 200)
    assert whole.body
    assert head.body == b""
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert int(head.headers["content-length"]) > 0


def test_other_requests(daemon: Daemon) -> None:
    missing = daemon.get("/nothing")
    posted = daemon.get("/metrics", method="POST")

    assert (missing.status, posted.status) == (404, 405)
    assert "/metrics" in missing.text
    assert posted.headers["allow"] == "GET, HEAD"


def test_the_status_page_shows_this_host(daemon: Daemon) -> None:
    page = daemon.page()
    metrics = daemon.metrics()

    assert f"Plumbline on {os.uname().nodename}" in page
    for disk in metrics.labels("plumbline_disk_ios_total", "device"):
        assert disk in page
    assert "randread-4k-qd1-j1" in page
    assert "randwrite-4k-qd1-j1-dsync" in page
    assert "softnet" in page


def test_a_user_without_rights_gets_it_all(module_folder: Path) -> None:
    command, environment = _as_nobody()
    with tempfile.TemporaryDirectory(dir=module_folder.parent if os.geteuid() else "/var/tmp") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        with running(folder, command=command, environment=environment) as daemon:
            assert Path(f"/proc/{daemon.pid}").stat().st_uid != 0
            eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe="canary") == 1)
            metrics = daemon.metrics()

            assert {each.value for each in metrics.series("plumbline_collector_success")} == {1}
            assert metrics.series("plumbline_nic_drops_total", device="lo")
            assert metrics.series("plumbline_disk_ios_total")
            assert daemon.stop()[0] == 0


def _as_nobody() -> tuple[list[str], dict[str, str]]:
    """How to run plumbline without root: as we are, or as the user nobody, with an interpreter that one may use."""
    environment = dict(os.environ)
    if os.geteuid() != 0:
        return list(COMMAND), environment
    roots = [str(Path(module.__file__).parents[1]) for module in (plumbline, pytest) if module.__file__]
    environment |= {"PYTHONPATH": os.pathsep.join(roots), "PYTHONDONTWRITEBYTECODE": "1"}
    dropped = [need("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all", "--"]
    # a child too, as the canary's worker is one
    attempt = "import plumbline.daemon.daemon, subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)"
    for python in (sys.executable, shutil.which("python3", path="/usr/bin")):
        if python is None:
            continue
        tried = subprocess.run([*dropped, python, "-c", attempt], env=environment, capture_output=True, check=False)
        if tried.returncode == 0:
            return [*dropped, python, "-m", "plumbline"], environment
    pytest.skip(f"the user nobody can't run this interpreter or its packages: {sys.executable}")


def test_the_first_line_comes_when_the_pages_do(folder: Path) -> None:
    with running(folder, config={"probes": []}) as daemon:
        assert daemon.get("/-/ready").status == 200
        assert re.search(r"plumbline_nic_up\{", daemon.get("/metrics").text)
