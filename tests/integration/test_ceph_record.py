"""`plumbline baseline record` over every layer of a real cluster, as the confined user, and killed in the middle."""

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

from plumbline.baseline.record import consistency
from plumbline.baseline.site import LoadedSite, read_site
from plumbline.config.model import CephConfig
from plumbline.config.workloads import LAYERS
from plumbline.core.storage_names import WORK_FILE
from support.ceph_cluster import CephCluster, missing
from support.ceph_probes import set_up
from support.daemon import eventually, running
from support.disks import disk_folder

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.skipif(bool(missing("fio")), reason="Ceph or fio is not installed"),
]
WITHIN_S = 900.0
BUSY = {"max_load_per_cpu": 1000, "max_device_busy": 1.0, "timeout": "60s"}
IMAGE = {"image_size": "16MiB", **BUSY}
PROBES: list[dict[str, object]] = [
    {"type": "rtt", "name": "rtt", "targets": ["127.0.0.1"], "packets": 50, "gap": "5ms", **BUSY},
    {"type": "canary", "name": "canary", "device_class": "hdd", "file_size": "16MiB"},
    {"type": "fio", "name": "disk", "workload": "randread-4k-qd16-j1", "file_size": "16MiB", **BUSY},
    {"type": "osd-bench", "name": "osd", "osds": ["osd.0", "osd.1"], "workload": "osd-bench-4k", **BUSY},
    {"type": "rados-canary", "name": "objects", "osds": ["all"], "rate": 4},  # at 1 a second of it may hold no removal
    {"type": "rados-bench", "name": "bench-write", "max_objects": 16, **BUSY},
    {"type": "rados-bench", "name": "bench-seq", "workload": "rados-seq-4m-t16", "max_objects": 16, **BUSY},
    {"type": "rbd-fio", "name": "rbd-write", **IMAGE},
    {"type": "rbd-fio", "name": "rbd-read", "workload": "rbd-randread-4k-qd1-j1", **IMAGE},
    {"type": "rbd-bench", "name": "rbd-bench", "total": "1MiB", **IMAGE},
    {"type": "filesystem", "name": "files", "directory": "…", "workload": "fs-metadata-1k", **BUSY},
]
STEPS = ["rtt/127.0.0.1", "canary", "disk", "osd/osd.0", "osd/osd.1", "objects", "bench-write", "bench-seq",
         "rbd-write", "rbd-read", "rbd-bench", "files"]  # fmt: skip
OPTIONS = ("--runs", "2", "--run-duration", "1s", "--latency-target", "200ms")


@dataclass(frozen=True, slots=True)
class Here:
    """The command line with one configuration of all layers."""

    ceph: CephCluster
    folder: Path

    @property
    def storage(self) -> Path:
        return self.folder / "state"

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "plumbline.yaml").read_text())
        return found

    def start(self, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "plumbline", "baseline", "record", *OPTIONS, *more,
             "--config.file", str(self.folder / "plumbline.yaml"), "--storage.path", str(self.storage)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip

    def record(self, *more: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*more)
        out, err = process.communicate(timeout=WITHIN_S)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def kept(self) -> list[str]:
        """Of each finished run its step."""
        file = self.storage / WORK_FILE
        return [run["step"] for run in json.loads(file.read_bytes())["runs"]] if file.exists() else []

    def written(self) -> LoadedSite:
        return read_site(self.storage / "baseline.yaml", host=os.uname().nodename)

    def objects(self) -> set[str]:
        """What lies in the pool for objects, whatever namespace it is in."""
        lines = self.ceph.run("rados", "-p", CephConfig().pool, "--all", "ls").splitlines()
        return {line.partition("\t")[2] for line in lines}


@pytest.fixture(scope="module")
def here(shared_ceph: CephCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    with disk_folder(tmp_path_factory) as folder, set_up(shared_ceph, timeout_s=20.0, osd_bench=True) as config:
        ceph = {
            "conf": config.conf, "keyring": config.keyring, "timeout": "20s",
            "osd_bench_user": config.osd_bench_user, "osd_bench_keyring": config.osd_bench_keyring,
        }  # fmt: skip
        found = ["findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(folder)]
        kind = subprocess.run(found, capture_output=True, text=True, check=True).stdout.strip()
        files = {"directory": str(folder / "files"), "filesystem": kind}
        probes = [{**each, **files} if each["name"] == "files" else each for each in PROBES]
        (folder / "plumbline.yaml").write_text(json.dumps({"ceph": ceph, "probes": probes}))
        yield Here(shared_ceph, folder)


def starts(output: str) -> list[str]:
    """The steps whose runs were begun, each as often as it was."""
    return [line.partition(": ")[2].partition(", run ")[0] for line in output.splitlines() if ", run " in line]


def test_every_layer_bottom_up_killed_in_the_middle_and_gone_on_with(ceph: CephCluster, here: Here) -> None:
    before = here.objects()
    process = here.start("--force")
    eventually(lambda: "bench-write" in here.kept() or process.poll() is not None, within_s=WITHIN_S)
    process.kill()
    process.communicate(timeout=60)
    kept = here.kept()
    assert "bench-write" in kept
    assert not (here.storage / "baseline.yaml").exists()

    done = here.record("--force")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"continuing with {len(kept)} finished runs" in done.stderr
    made = kept + starts(done.stdout)
    plain = [step for step in made if ": IOPS at" not in step]
    assert sorted(plain) == sorted(STEPS * 2), "each of them twice, and none in vain"
    assert made.count("rbd-read: IOPS at 200 ms") == 1

    loaded = here.written()
    layers = list(dict.fromkeys(entry.layer for entry in loaded.entries))
    assert layers == ["network", "disk", "osd", "rados", "rbd", "filesystem"]
    assert layers == sorted(layers, key=LAYERS.index)
    by = {(entry.workload, entry.operation): entry for entry in loaded.file.entries}
    for operation in ("write", "read", "remove"):
        assert by["rados-ops-4k", operation].targets == ("osd.0", "osd.1", "osd.2")
    assert by["osd-bench-4k", "write"].targets == ("osd.0", "osd.1")
    assert by["osd-bench-4k", "write"].throughput_of_runs
    assert by["rados-write-4m-t16", "write"].mean_of_runs
    assert {operation for workload, operation in by if workload == "fs-metadata-1k"} == {"create", "stat", "unlink"}
    for key in (("rbd-randwrite-4k-qd1-j1", "write"), ("rbd-randread-4k-qd1-j1", "read")):
        found = by[key].iops_at_latency
        assert found is None or found.iops.value > 0
        assert found is not None or "even one operation at a time" in by[key].note
    assert all(entry.runs == 2 for entry in loaded.file.entries)
    assert {"rados", "rbd", "ceph", "fio", "plumbline"} <= set(loaded.file.tools)
    assert here.objects() - before <= {"heavy-probe"}, "the cluster's lock is an object; nothing else may stay"


def test_the_file_judges_what_the_daemon_measures(ceph: CephCluster, here: Here) -> None:
    """After the recording above."""
    loaded = here.written()
    with running(here.folder, config=here.config) as daemon:

        def judged() -> set[tuple[str, str]]:
            series = daemon.metrics().series("plumbline_baseline_applicable", source="measured")
            return {(each.labels["workload"], each.labels["operation"]) for each in series if each.value == 1}

        eventually(lambda: judged() == {(entry.workload, entry.operation) for entry in loaded.entries}, within_s=120)
        missing_ones = daemon.metrics().series("plumbline_baseline_missing")
        assert {each.value for each in missing_ones} == {0}


def test_a_cache_of_this_cluster_is_refused_by_the_figures_it_gave(ceph: CephCluster, here: Here) -> None:
    """The images of 16 MiB lie in the OSDs' memory, and the file called a rotating disk's does not: if the figures of
    this very cluster can't be true, the command says which."""
    loaded = here.written()
    measured = consistency.with_workloads(loaded.entries)
    findings = consistency.check(measured, consistency.Place(holds_osds=False))
    accepted = [note for note in loaded.file.notes if note.startswith("accepted by --force: ") and " p50 " in note]
    quick = [each for each in findings if "rotating disk takes 2 ms" in each.why]
    reads = [each for each in measured if each.entry.operation == "read" and each.entry.device_class == "hdd"]
    slowest_that_no_disk_has = [
        each for each in reads if each.workload.id.endswith("randread-4k-qd1-j1") and (each.p50 or 1) < 0.001
    ]
    assert len(quick) == len(slowest_that_no_disk_has)
    assert len(accepted) == len(findings)
    if findings:
        again = here.record("--layer", "disk", "--layer", "rbd", "--output", str(here.folder / "other.yaml"))
        assert again.returncode == 1
        assert "Nothing was written" in again.stderr
        assert not (here.folder / "other.yaml").exists()


def test_an_unfit_cluster_keeps_its_layers_out_and_nothing_is_written(ceph: CephCluster, here: Here) -> None:
    ceph.ceph("osd", "set", "noout")
    try:
        only = ("--probe", "rtt", "--probe", "rbd-write", "--restart")
        done = here.record(*only, "--output", str(here.folder / "unfit.yaml"))
    finally:
        ceph.ceph("osd", "unset", "noout")
    assert done.returncode == 1
    assert "of 3 measured nothing: rbd-write: " in done.stderr
    assert "noout" in done.stderr
    assert not (here.folder / "unfit.yaml").exists()
