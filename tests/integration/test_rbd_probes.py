"""The RBD probes on a real cluster, as the user `plumbline ceph setup` makes and no other."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.commands.ceph.admin import requirements
from plumbline.config.model import CephConfig, GatesConfig
from plumbline.config.probes.ceph import RbdBenchConfig, RbdFioConfig
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import BlockWorkload, Pattern, RbdBench, WorkloadCatalogue, load_catalogue
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.core.scheduler import splay
from plumbline.errors import ProbeRefused
from plumbline.probes.ceph.cluster import CephGuard
from plumbline.probes.ceph.osd_lookup import ask_pool_class
from plumbline.probes.rbd.rbd_bench import RbdBenchProbe
from plumbline.probes.rbd.rbd_fio import RbdFioProbe
from plumbline.probes.run.engine import Gates, run_probe
from plumbline.probes.run.gates import HeavyLock
from plumbline.probes.run.kinds import plan_probe
from plumbline.probes.run.model import Host, Progress, Run
from plumbline.probes.run.result import Outcome
from support.ceph_cluster import CephCluster, missing
from support.daemon import eventually, running

pytestmark = [
    pytest.mark.integration,
    pytest.mark.ceph,
    pytest.mark.skipif(bool(missing("fio")), reason="Ceph or fio is not installed"),
]
POOL, FOREIGN, USER = "plumbline-rbd", "foreign-rbd", "client.plumbline"
MIB = 1 << 20
SIZE = 8 * MIB
LONG_S = 100.0
"""Of a run, on a machine busy with other tests."""


@pytest.fixture(scope="module")
def config(shared_ceph: CephCluster) -> Iterator[CephConfig]:
    made = CephConfig(conf=str(shared_ceph.conf), timeout=Duration(20))
    for pool in (POOL, FOREIGN):
        shared_ceph.add_pool(pool, application="rbd")
        shared_ceph.run("rbd", "pool", "init", pool)
    shared_ceph.run("rbd", "create", "--size", "4M", f"{FOREIGN}/plumbline-host-a")
    shared_ceph.add_user(USER, requirements(made, groups=8).users[USER][1])
    yield made
    left = shared_ceph.run("rados", "-p", POOL, "ls").split()
    assert set(left) <= {"rbd_directory", "rbd_info", "rbd_trash"}, "objects were left behind"
    shared_ceph.remove_user(USER)
    shared_ceph.remove_pool(POOL)
    shared_ceph.remove_pool(FOREIGN)


@pytest.fixture
def here(ceph: CephCluster, config: CephConfig, tmp_path: Path) -> Iterator[Host]:
    yield host(config, tmp_path)
    ceph.heal()
    for image in images(ceph):
        eventually(lambda image=image: not watchers(ceph, image), within_s=90)
        ceph.run("rbd", "rm", "--no-progress", f"{POOL}/{image}")


def host(config: CephConfig, folder: Path) -> Host:
    catalogue = WorkloadCatalogue(
        {
            **load_catalogue().by_id,
            "four": BlockWorkload(
                id="four", layer="rbd", pattern=Pattern.RANDRW, block_size=4096, jobs=4, iodepth=2, rwmix_read=75
            ),
            "bench-rand": RbdBench(
                id="bench-rand", layer="rbd", operation="read", io_size=8192, threads=4, random=True
            ),
            "bench-both": RbdBench(
                id="bench-both", layer="rbd", operation="readwrite", io_size=8192, threads=4, random=True
            ),
        }
    )
    return Host(
        storage=folder,
        roots=Roots.under(Path("/")),
        catalogue=catalogue,
        ceph=config,
        environment=os.environ,
        disk_below=lambda _path: None,
        disks=tuple,
        osd_disks=dict,
    )


def fio_probe(here: Host, **changes: object) -> RbdFioProbe:
    settings = {"image_size": Size(SIZE), "runtime": Duration(1), "timeout": Duration(LONG_S)} | changes
    (probe,) = plan_probe(RbdFioConfig(name="a", **settings), here).periodic
    assert isinstance(probe, RbdFioProbe)
    return probe


def a_run(stages: list[str] | None = None, stopping: threading.Event | None = None) -> Run:
    def progress(each: Progress) -> None:
        if stages is not None:
            stages.append(each.stage)

    stopping = stopping or threading.Event()
    return Run(ProcessRunner(os.environ).within(stopping), time.time, stopping, progress=progress)


def images(ceph: CephCluster) -> list[str]:
    return sorted(json.loads(ceph.run("rbd", "ls", POOL, "--format", "json")))


def watchers(ceph: CephCluster, image: str) -> list[object]:
    return list(json.loads(ceph.run("rbd", "status", f"{POOL}/{image}", "--format", "json"))["watchers"])


def checksum(ceph: CephCluster, spec: str) -> str:
    done = subprocess.run(
        ("rbd", "export", "--no-progress", spec, "-"), capture_output=True, env=ceph.environment, check=True
    )
    return hashlib.sha256(done.stdout).hexdigest()


def marks(ceph: CephCluster, spec: str) -> dict[str, str]:
    return dict(json.loads(ceph.run("rbd", "image-meta", "list", spec, "--format", "json") or "{}"))


def processes(image: str) -> list[str]:
    """Command lines that name the image."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if image in line:
            found.append(line)
    return found


def refusal(probe: RbdFioProbe | RbdBenchProbe, run: Run | None = None) -> ProbeRefused:
    with pytest.raises(ProbeRefused) as raised:
        probe.run(run or a_run())
    return raised.value


def test_an_image_is_made_marked_filled_and_measured(ceph: CephCluster, here: Host) -> None:
    probe, stages = fio_probe(here), []
    result = probe.run(a_run(stages))

    assert (result.outcome, result.message) == (Outcome.SUCCESS, "")
    (write,) = result.operations
    assert set(write.latency) == {"mean", "p50", "p95", "p99", "p999", "max"}
    assert 0 < write.latency["p50"] <= write.latency["p99"] <= write.latency["max"] < LONG_S
    assert sum(count for _, count in write.bins) > 0
    assert write.iops is not None
    assert write.throughput == pytest.approx(write.iops * 4096, rel=0.01)
    assert (result.layer, result.tool, result.workload) == ("rbd", "fio", "rbd-randwrite-4k-qd1-j1")

    image = probe.plan.image
    assert images(ceph) == [image.name]
    assert marks(ceph, image.spec) == {
        "plumbline.owner": f"{os.uname().nodename}/a",
        "plumbline.laid-out": str(SIZE),
        "conf_rbd_cache": "false",
    }
    used = json.loads(ceph.run("rbd", "diff", image.spec, "--whole-object", "--format", "json"))
    assert sum(each["length"] for each in used) == SIZE
    assert watchers(ceph, image.name) == []
    assert processes(image.name) == []

    again: list[str] = []
    assert probe.run(a_run(again)).outcome is Outcome.SUCCESS
    assert "laying out the image" in stages
    assert again == ["measuring"]
    assert images(ceph) == [image.name]


def test_a_write_is_not_confirmed_from_this_nodes_memory(ceph: CephCluster, here: Host) -> None:
    """With librbd's cache as Ceph's defaults have it, a frozen OSD would not be noticed for thousands of writes."""
    probe = fio_probe(here, runtime=Duration(3))
    assert probe.run(a_run()).outcome is Outcome.SUCCESS
    timer = threading.Timer(1.5, lambda: [ceph.freeze_osd(number) for number in range(3)])
    thaw = threading.Timer(3.5, lambda: [ceph.thaw_osd(number) for number in range(3)])
    began = threading.Event()
    run = replace(a_run(), progress=lambda each: began.set() if each.stage == "measuring" else None)

    def break_it() -> None:
        began.wait(LONG_S)
        timer.start()
        thaw.start()

    threading.Thread(target=break_it, daemon=True).start()
    result = probe.run(run)
    thaw.join()
    assert result.outcome is Outcome.SUCCESS
    assert result.operations[0].latency["max"] > 1.0


def test_several_jobs_and_both_directions(here: Host) -> None:
    result = fio_probe(here, workload="four").run(a_run())
    assert (result.outcome, result.message) == (Outcome.SUCCESS, "")
    read, write = result.operations
    assert (read.operation, write.operation) == ("read", "write")
    assert (read.iops or 0) > (write.iops or 0) > 0


def test_a_cap_holds(here: Host) -> None:
    result = fio_probe(here, rate_iops=20, runtime=Duration(2), workload="rbd-randread-4k-qd1-j1").run(a_run())
    assert result.operations[0].iops == pytest.approx(20, rel=0.3)


@pytest.mark.parametrize("workload", ["rbd-bench-write-4k-t16", "bench-rand", "bench-both"])
def test_rbds_own_bench(ceph: CephCluster, here: Host, workload: str) -> None:
    settings = RbdBenchConfig(
        name="b", workload=workload, image_size=Size(SIZE), total=Size(2 * MIB), timeout=Duration(LONG_S)
    )
    (probe,) = plan_probe(settings, here).periodic
    result = probe.run(a_run())
    assert (result.outcome, result.message, result.tool) == (Outcome.SUCCESS, "", "rbd")
    (operation,) = result.operations
    assert operation.latency == {}
    assert (operation.throughput or 0) > (operation.iops or 0) > 0
    assert result.tool_version[0].isdigit()
    assert len(images(ceph)) == 1


def test_an_image_with_data_and_no_mark_is_not_touched(ceph: CephCluster, here: Host, tmp_path: Path) -> None:
    probe = fio_probe(here)
    spec = probe.plan.image.spec
    (tmp_path / "data").write_bytes(os.urandom(SIZE))
    ceph.run("rbd", "import", "--no-progress", tmp_path / "data", spec)
    before = checksum(ceph, spec)
    refused = refusal(probe)
    assert refused.reason == "not-ours"
    assert spec in str(refused)
    assert "lacks our mark" in str(refused)
    assert checksum(ceph, spec) == before == hashlib.sha256((tmp_path / "data").read_bytes()).hexdigest()
    assert marks(ceph, spec) == {}


def test_anothers_mark_is_respected(ceph: CephCluster, here: Host) -> None:
    probe = fio_probe(here)
    spec = probe.plan.image.spec
    ceph.run("rbd", "create", "--size", f"{SIZE}B", spec)
    ceph.run("rbd", "image-meta", "set", spec, "plumbline.owner", "other-host/a")
    before = marks(ceph, spec)
    refused = refusal(probe)
    assert refused.reason == "not-ours"
    assert "other-host/a" in str(refused)
    assert marks(ceph, spec) == before


def test_a_snapshot_makes_a_blank_image_somebodys(ceph: CephCluster, here: Host) -> None:
    probe = fio_probe(here)
    spec = probe.plan.image.spec
    ceph.run("rbd", "create", "--size", f"{SIZE}B", spec)
    ceph.run("rbd", "snap", "create", "--no-progress", f"{spec}@mine")
    assert refusal(probe).reason == "not-ours"
    ceph.run("rbd", "snap", "rm", "--no-progress", f"{spec}@mine")


def test_what_a_death_between_making_and_marking_leaves_is_taken(ceph: CephCluster, here: Host) -> None:
    probe = fio_probe(here)
    ceph.run("rbd", "create", "--size", f"{SIZE}B", "--image-feature", "layering", probe.plan.image.spec)
    assert probe.run(a_run()).outcome is Outcome.SUCCESS
    assert marks(ceph, probe.plan.image.spec)["plumbline.owner"].endswith("/a")


def test_another_size_says_what_to_do(ceph: CephCluster, here: Host) -> None:
    assert fio_probe(here).run(a_run()).outcome is Outcome.SUCCESS
    refused = refusal(fio_probe(here, image_size=Size(2 * SIZE)))
    assert refused.reason == "other-size"
    spec = fio_probe(here).plan.image.spec
    assert f"rbd --conf {ceph.conf} --name client.plumbline rm {spec}" in str(refused)
    assert json.loads(ceph.run("rbd", "info", spec, "--format", "json"))["size"] == SIZE


def test_an_image_that_somebody_has_open(ceph: CephCluster, here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.probes.rbd.rbd_image._WATCH_ENDS_S", 3.0)
    probe = fio_probe(here)
    assert probe.run(a_run()).outcome is Outcome.SUCCESS
    name = probe.plan.image.name
    other = subprocess.Popen(
        ("fio", "--name=other", "--ioengine=rbd", "--clientname=admin", f"--pool={POOL}", f"--rbdname={name}",
         "--rw=randread", "--bs=4k", "--thread=1", "--rate_iops=5", "--time_based=1", "--runtime=300"),
        env=ceph.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        eventually(lambda: watchers(ceph, name), within_s=60)
        before = checksum(ceph, probe.plan.image.spec)
        refused = refusal(probe)
        assert refused.reason == "in-use"
        assert "has it open" in str(refused)
        assert checksum(ceph, probe.plan.image.spec) == before
    finally:
        other.terminate()
        other.wait(60)
    assert probe.run(a_run()).outcome is Outcome.SUCCESS


def test_a_foreign_pool_is_out_of_reach(ceph: CephCluster, here: Host) -> None:
    before = ceph.run("rbd", "ls", FOREIGN)
    refused = refusal(fio_probe(here, pool=FOREIGN))
    assert refused.reason == "permission"
    assert "plumbline ceph setup" in str(refused)
    assert ceph.run("rbd", "ls", FOREIGN) == before


def test_no_such_pool(here: Host) -> None:
    assert refusal(fio_probe(here, pool="nowhere")).reason == "no-pool"


def test_the_class_of_the_devices_below(ceph: CephCluster, here: Host) -> None:
    (known,) = ceph.ceph_json("osd", "crush", "class", "ls")
    assert ask_pool_class(POOL, here.ceph, os.environ) == known
    assert ask_pool_class("nowhere", here.ceph, os.environ) is None


def test_a_wrong_key(ceph: CephCluster, here: Host, tmp_path: Path) -> None:
    keyring = tmp_path / "keyring"
    keyring.write_text(f"[{USER}]\n key = AQAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAA==\n")
    keyring.chmod(0o600)
    wrong = replace(here, ceph=CephConfig(conf=str(ceph.conf), keyring=str(keyring), timeout=Duration(5)))
    assert refusal(fio_probe(wrong)).reason == "permission"


def test_a_run_that_is_stopped_leaves_no_process(ceph: CephCluster, here: Host) -> None:
    probe = fio_probe(here, runtime=Duration(60))
    stopping, stages = threading.Event(), []

    def stop_it() -> None:
        eventually(lambda: "measuring" in stages and processes(probe.plan.image.name), within_s=LONG_S)
        stopping.set()

    threading.Thread(target=stop_it, daemon=True).start()
    assert refusal(probe, a_run(stages, stopping)).reason == "stopped"
    assert processes(probe.plan.image.name) == []


CHILD = """
import os, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from integration.test_rbd_probes import a_run, fio_probe, host
from plumbline.config.model import CephConfig
from plumbline.config.types import Duration
here = host(CephConfig(conf=sys.argv[1], timeout=Duration(20)), Path(sys.argv[2]))
fio_probe(here, runtime=Duration(90)).run(a_run())
"""


def test_sigkill_of_the_parent_leaves_nothing_and_the_next_run_works(
    ceph: CephCluster, here: Host, tmp_path: Path
) -> None:
    name = fio_probe(here).plan.image.name
    shut_out = ceph.ceph("osd", "blocklist", "ls")
    tests = str(Path(__file__).parent.parent)
    child = subprocess.Popen((sys.executable, "-c", CHILD, str(ceph.conf), str(tmp_path), tests))
    try:
        eventually(lambda: any("--numjobs" in line for line in processes(name)), within_s=LONG_S)
        eventually(lambda: watchers(ceph, name), within_s=LONG_S)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(30)
    eventually(lambda: not processes(name), within_s=10)
    stages: list[str] = []
    result = fio_probe(here).run(a_run(stages))
    assert (result.outcome, result.message) == (Outcome.SUCCESS, "")
    assert images(ceph) == [name]
    assert watchers(ceph, name) == []
    assert ceph.ceph("osd", "blocklist", "ls") == shut_out


def test_no_monitor_is_a_bounded_refusal(ceph: CephCluster, here: Host) -> None:
    quick = replace(here, ceph=CephConfig(conf=str(ceph.conf), timeout=Duration(3)))
    assert fio_probe(quick).run(a_run()).outcome is Outcome.SUCCESS
    ceph.kill_mon()
    began = time.monotonic()
    refused = refusal(fio_probe(quick))
    assert refused.reason == "unreachable"
    assert time.monotonic() - began < 60


def test_osds_that_hang_under_way_end_with_the_timeout(ceph: CephCluster, here: Host) -> None:
    probe = fio_probe(here, runtime=Duration(5), timeout=Duration(20))
    assert probe.run(a_run()).outcome is Outcome.SUCCESS
    stages: list[str] = []

    def freeze() -> None:
        eventually(lambda: "measuring" in stages, within_s=LONG_S)
        time.sleep(1)
        for number in range(3):
            ceph.freeze_osd(number)

    threading.Thread(target=freeze, daemon=True).start()
    began = time.monotonic()
    result = probe.run(a_run(stages))
    assert result.outcome is Outcome.TIMEOUT
    assert "not finished within 20 s" in result.message
    assert time.monotonic() - began < 60
    assert processes(probe.plan.image.name) == []


def test_a_full_pool_closes_the_gate_and_bounds_a_run(ceph: CephCluster, here: Host, tmp_path: Path) -> None:
    ceph.ceph("osd", "pool", "set-quota", POOL, "max_bytes", str(4 * MIB))
    guard = CephGuard(here.ceph, GatesConfig(), host="test")
    try:
        filling = fio_probe(here, image_size=Size(64 * MIB))
        with contextlib.suppress(ProbeRefused):  # how it ends is a matter of when the monitors notice
            filling.run(a_run())

        def full() -> bool:
            try:
                guard.check()
            except ProbeRefused as refused:
                return refused.reason == "full"
            return False

        eventually(full, within_s=90)
        assert gated(filling, tmp_path, guard).reason == "full"

        began = time.monotonic()
        held_back = fio_probe(here, image_size=Size(64 * MIB), timeout=Duration(15))
        with contextlib.suppress(ProbeRefused):
            assert held_back.run(a_run()).outcome is not Outcome.SUCCESS
        assert time.monotonic() - began < 60
        assert processes(held_back.plan.image.name) == []
    finally:
        guard.close()
        ceph.ceph("osd", "pool", "set-quota", POOL, "max_bytes", "0")
        eventually(lambda: ceph.health() == "HEALTH_OK", within_s=120)


def gated(probe: RbdFioProbe, folder: Path, guard: CephGuard, stages: list[str] | None = None) -> ProbeRefused:
    """What ends a run with the cluster's gates, asked before and every second."""
    with pytest.raises(ProbeRefused) as raised:
        run_probe(
            probe,
            runner=ProcessRunner(os.environ),
            host_lock=HeavyLock(folder / "lock"),
            cluster=None,
            gates=Gates(throughout=[guard.check]),
            clock=time.time,
            stopping=threading.Event(),
            progress=lambda each: [] if stages is None else stages.append(each.stage),
            look_again_s=1.0,
        )
    return raised.value


def test_an_osd_stopped_under_way_ends_the_run(ceph: CephCluster, here: Host, tmp_path: Path) -> None:
    probe = fio_probe(here, runtime=Duration(80), timeout=Duration(200))
    guard = CephGuard(here.ceph, GatesConfig(), host="test")
    stages: list[str] = []

    def stop_one() -> None:
        eventually(lambda: "measuring" in stages, within_s=LONG_S)
        time.sleep(1)
        ceph.stop_osd(2)

    threading.Thread(target=stop_one, daemon=True).start()
    try:
        refused = gated(probe, tmp_path, guard, stages)
    finally:
        guard.close()
    assert refused.reason == "recovery"
    assert "stopped during the run" in str(refused)
    assert processes(probe.plan.image.name) == []


def test_the_daemon_runs_it_under_the_clusters_lock(ceph: CephCluster, here: Host, tmp_path: Path) -> None:
    name = next(name for n in itertools.count() if splay(os.uname().nodename, name := f"rbd-{n}", 300.0) < 1)
    ceph.add_pool(here.ceph.pool)
    each = {
        "type": "rbd-fio", "name": name, "image_size": "8MiB", "runtime": "1s", "timeout": f"{LONG_S:g}s",
        "interval": "1h", "max_load_per_cpu": 1000, "max_device_busy": 1.0,
    }  # fmt: skip
    try:
        with running(tmp_path, config={"probes": [each], "ceph": {"conf": str(ceph.conf), "timeout": "20s"}}) as daemon:
            eventually(lambda: daemon.metrics().get("plumbline_probe_success", probe=name) == 1, within_s=LONG_S)
            metrics = daemon.metrics()
            (device_class,) = ceph.ceph_json("osd", "crush", "class", "ls")
            place = {"probe": name, "layer": "rbd", "device_class": device_class, "operation": "write"}
            told = {
                each.labels["statistic"]: each.value
                for each in metrics.series("plumbline_probe_latency_seconds", **place)
            }
            assert set(told) == {"mean", "p50", "p95", "p99", "p999", "max"}
            assert 0 < told["p50"] <= told["max"]
            assert (metrics.get("plumbline_probe_iops", **place) or 0) > 0
    finally:
        ceph.remove_pool(here.ceph.pool)
