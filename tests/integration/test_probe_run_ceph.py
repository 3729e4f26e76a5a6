"""`plumbline probe run` on a real cluster, as the confined user: every kind that loads Ceph, and what stays behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.model import CephConfig
from support.ceph_cluster import CephCluster, missing
from support.ceph_probes import set_up
from support.daemon import STOP_WITHIN_S, eventually, running

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.skipif(bool(missing("fio")), reason="Ceph or fio is not installed"),
]
BUSY = {"max_load_per_cpu": 1000, "max_device_busy": 1.0, "timeout": "60s"}
IMAGE = {"image_size": "16MiB", **BUSY}
PROBES: list[dict[str, object]] = [
    {"type": "rados-canary", "name": "objects"},
    {"type": "rados-bench", "name": "bench-write", "runtime": "1s", "max_objects": 16, **BUSY},
    {"type": "rados-bench", "name": "bench-seq", "workload": "rados-seq-4m-t16", "runtime": "1s", "max_objects": 16,
     **BUSY},
    {"type": "osd-bench", "name": "osd", "osds": ["osd.1"], "workload": "osd-bench-4k", **BUSY},
    {"type": "rbd-fio", "name": "rbd-write", "runtime": "1s", **IMAGE},
    {"type": "rbd-fio", "name": "rbd-read", "workload": "rbd-randread-4k-qd1-j1", "runtime": "1s", **IMAGE},
    {"type": "rbd-bench", "name": "rbd-bench", "total": "1MiB", **IMAGE},
]  # fmt: skip
BASELINE = """\
schema_version: 1
entries:
- {workload: rbd-randwrite-4k-qd1-j1, device_class: hdd, latency: {p50: 1s, p99: 2s}, tolerance_ratio: 1.5}
- {workload: rados-ops-4k, operation: read, device_class: hdd, latency: {p50: 1ns, p99: 2ns}, tolerance_ratio: 1.5}
"""


@dataclass(frozen=True, slots=True)
class Here:
    """The command line with one configuration of all kinds."""

    ceph: CephCluster
    config: Path
    storage: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        flags = ("--config.file", str(self.config), "--storage.path", str(self.storage))
        return subprocess.run(
            [sys.executable, "-m", "plumbline", *words, *flags],
            capture_output=True, text=True, timeout=240, check=False,
            env={**os.environ, "COLUMNS": "160"},
        )  # fmt: skip

    def reports(self, *names: str) -> tuple[int, dict[str, dict[str, Any]]]:
        done = self.run("probe", "run", "--json", *names)
        assert done.stdout, done.stderr
        return done.returncode, {each["probe"]: each for each in json.loads(done.stdout)["runs"]}

    def objects(self) -> set[str]:
        """What lies in the pool for objects, whatever namespace it is in."""
        lines = self.ceph.run("rados", "-p", CephConfig().pool, "--all", "ls").splitlines()
        return {line.partition("\t")[2] for line in lines}


@pytest.fixture(scope="module")
def here(shared_ceph: CephCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    folder = tmp_path_factory.mktemp("probe-run")
    with set_up(shared_ceph, timeout_s=20.0, osd_bench=True) as config:
        (folder / "site.yaml").write_text(BASELINE)
        ceph = {
            "conf": config.conf, "keyring": config.keyring, "timeout": "20s",
            "osd_bench_user": config.osd_bench_user, "osd_bench_keyring": config.osd_bench_keyring,
        }  # fmt: skip
        whole = {"ceph": ceph, "probes": PROBES, "baseline": {"files": [str(folder / "site.yaml")]}}
        (folder / "plumbline.yaml").write_text(json.dumps(whole))
        yield Here(shared_ceph, folder / "plumbline.yaml", folder / "state")


def figures(report: dict[str, Any]) -> dict[str, set[str]]:
    """Operation → names of what was measured."""
    assert (report["outcome"], report["message"]) == ("success", "")
    for operation in report["operations"]:
        assert all(figure["measured"] > 0 for figure in operation["figures"])
    return {each["operation"]: {figure["name"] for figure in each["figures"]} for each in report["operations"]}


def test_every_periodic_kind_gives_its_figures_and_leaves_nothing(ceph: CephCluster, here: Here) -> None:
    before, names = here.objects(), [str(each["name"]) for each in PROBES[1:]]
    code, found = here.reports(*names)
    assert code == 0, found
    rates = {"iops", "throughput"}
    percentiles = {f"latency.{name}" for name in ("mean", "p50", "p95", "p99", "p999", "max")}
    assert figures(found["rbd-write"]) == {"write": percentiles | rates}
    assert figures(found["rbd-read"]) == {"read": percentiles | rates}
    assert figures(found["rbd-bench"]) == {"write": rates}
    assert figures(found["osd/osd.1"]) == {"write": rates}
    assert figures(found["bench-write"])["write"] >= rates | {"latency.mean", "latency.max"}
    assert figures(found["bench-seq"])["read"] >= rates | {"latency.mean", "latency.max"}
    assert here.objects() - before <= {"heavy-probe"}, "the cluster's lock is an object; nothing else may stay"


def test_a_person_sees_percentiles_beside_the_baseline(ceph: CephCluster, here: Here) -> None:
    done = here.run("probe", "run", "rbd-write")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {words[1]: words for line in done.stdout.splitlines() if (words := line.split())[:1] == ["write"]}
    assert rows["p50"][4:6] == ["1", "s"]
    assert rows["p99"][4:6] == ["2", "s"]
    assert "faster" in rows["p50"]
    assert "site:" in rows["p99"]


def test_the_canary_looks_at_all_osds_at_once(ceph: CephCluster, here: Here) -> None:
    before = here.objects()
    done = here.run("probe", "run", "objects")
    assert done.returncode == 0, done.stdout + done.stderr
    for number in range(3):
        assert f"objects/osd.{number}: rados-ops-4k on rados hdd osd.{number}" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    for operation in ("write", "read", "remove"):
        for figure in ("p50", "p99"):
            assert len([words for words in lines if words[:2] == [operation, figure]]) == 3
    assert "slower" in done.stdout
    assert here.objects() == before


def test_an_unfit_cluster_is_left_alone(ceph: CephCluster, here: Here) -> None:
    ceph.ceph("osd", "set", "noout")
    try:
        code, found = here.reports("rbd-write", "bench-write")
    finally:
        ceph.ceph("osd", "unset", "noout")
    assert code == 3
    assert {each["outcome"] for each in found.values()} == {"refused"}
    assert {each["reason"] for each in found.values()} <= {"maintenance", "health"}
    assert "noout" in found["rbd-write"]["message"]


def test_the_daemons_canary_is_on_its_page_and_leaves_nothing(ceph: CephCluster, here: Here, tmp_path: Path) -> None:
    before = here.objects()
    config = {**json.loads(here.config.read_text()), "probes": PROBES[:1]}
    with running(tmp_path, config=config) as daemon:

        def all_work() -> bool:
            metrics = daemon.metrics()
            return all(metrics.get("plumbline_probe_success", probe=f"objects/osd.{n}") == 1 for n in range(3))

        eventually(all_work, within_s=120)
        metrics = daemon.metrics()
        assert metrics.get("plumbline_collector_success", collector="canary") == 1
        assert metrics.get("plumbline_ceph_reachable") == 1
        for number in range(3):
            each = {"probe": f"objects/osd.{number}", "layer": "rados", "operation": "write"}
            assert metrics.get("plumbline_canary_latency_seconds_count", **each)
            assert f"objects/osd.{number}" in daemon.page()
        code, took_s = daemon.stop()
        assert code == 0
        assert took_s < STOP_WITHIN_S
    if here.objects() != before:  # it has a second for that at its end; what a busy cluster kept, the next start takes
        with running(tmp_path, config=config) as daemon:
            eventually(all_work, within_s=120)
            daemon.stop()
    assert here.objects() == before
