"""``plumbline ceph top --prometheus`` on a real Prometheus: what the daemon exports of many OSDs, and rules beside it.

The rules that this reads are stand-ins of the same names and labels, each a figure: what they compute is their own
tests' matter.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import COMMAND, eventually, running
from support.osd_fleet import osd_fleet
from support.programs import need
from support.prometheus import CLUSTER, Prometheus, prometheus

pytestmark = pytest.mark.integration
WRITE = {"operation": "write"}
FIGURES: list[tuple[str, float, dict[str, str]]] = [
    ("plumbline:osd:info", 1, {"device_class": "hdd", "hostname": "storage9"}),
    ("plumbline:osd_operations:rate5m", 40, WRITE),
    ("plumbline:osd_latency:mean5m", 0.050, WRITE | {"part": "total"}),
    ("plumbline:osd_latency:mean5m", 0.001, WRITE | {"part": "queue"}),
    ("plumbline:osd_latency:mean5m", 0.045, WRITE | {"part": "commit_wait"}),
    ("plumbline:osd_store_latency:mean5m", 0.040, {"part": "commit"}),
    ("plumbline:osd_latency:p99_seconds", 0.300, WRITE),
    ("plumbline:osd_suspect:info", 1, {"verdict": "disk"}),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    need("prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "rules").mkdir()
    rules = [
        {"record": name, "expr": f"vector({value})", "labels": {"ceph_daemon": "osd.3", "cluster": CLUSTER, **labels}}
        for name, value, labels in FIGURES
    ]
    (folder / "rules" / "osd.yaml").write_text(json.dumps({"groups": [{"name": "osd", "rules": rules}]}))
    with tempfile.TemporaryDirectory(prefix="plumbline-osds-") as sockets:
        config = {"probes": [], "ceph": {"admin_sockets": [f"{sockets}/*.asok"]}}
        with (
            osd_fleet(Path(sockets), 8, peers=7),
            running(folder, config=config) as daemon,
            prometheus(folder, target=daemon.url.removeprefix("http://"), rules=folder / "rules") as started,
        ):
            eventually(lambda: started.query("plumbline:osd_suspect:info"), within_s=60)
            eventually(lambda: len(started.query("plumbline_osd_socket_up")) == 8, within_s=60)
            yield started


def top(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """On a host without OSDs."""
    config = folder / "none.yaml"
    config.write_text(json.dumps({"ceph": {"admin_sockets": [f"{folder}/*.asok"]}}))
    argv = [*COMMAND, "ceph", "top", "--config.file", config, *flags]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def test_all_osds_of_the_cluster(server: Prometheus, tmp_path: Path) -> None:
    said = top(tmp_path, "--prometheus", server.url, "--json")
    assert said.returncode == 0, said.stderr
    osds = {each["daemon"]: each for each in json.loads(said.stdout)["osds"]}
    assert set(osds) == {f"osd.{number}" for number in range(8)}
    third = osds["osd.3"]
    assert (third["host"], third["device_class"], third["operations_per_s"]) == ("storage9", "hdd", 40)
    assert (third["queue_s"], third["store_s"], third["p99_s"]) == (0.001, 0.040, 0.300)
    assert third["peers_s"] == pytest.approx(0.005)
    # scraped from the daemon, which read it from the sockets
    assert third["blocked"] == 2
    assert 0 < third["heartbeat_median_s"] <= third["heartbeat_worst_s"] < 1
    assert osds["osd.4"]["operations_per_s"] is None


def test_as_text(server: Prometheus, tmp_path: Path) -> None:
    lines = top(tmp_path, "--prometheus", server.url, "--cluster", CLUSTER).stdout.splitlines()
    assert lines[0] == "8 OSDs, 40 operations/s; Prometheus, last 5 min"
    assert lines[2].startswith("osd.3")


def test_one_clear_line_on_errors(server: Prometheus, tmp_path: Path) -> None:
    for flags, said in (
        (("--prometheus", server.url, "--cluster", "other"), f"no OSD of a cluster 'other'; there are: {CLUSTER}"),
        (("--prometheus", f"{server.url}/nowhere"), "HTTP 404 Not Found; is this a Prometheus server?"),
        (("--prometheus", "http://127.0.0.1:9"), "http://127.0.0.1:9: [Errno 111] Connection refused"),
        (("--cluster", "x"), "selects a cluster of --prometheus, which is missing"),
        (("--interval", "soon", "--prometheus", server.url), "--interval = 'soon': "),
    ):
        done = top(tmp_path, *flags)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert said in done.stderr
        assert done.stderr.startswith("plumbline: ")
        assert done.stderr.count("\n") == 1
