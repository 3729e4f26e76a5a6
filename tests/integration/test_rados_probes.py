"""RADOS' probes against a real cluster, as the confined user: the canary over all OSDs, `rados bench`, `osd bench`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from plumbline.config.model import CephConfig
from plumbline.config.probes.ceph import OsdBenchConfig, RadosBenchConfig, RadosCanaryConfig
from plumbline.config.types import Duration
from plumbline.config.workloads import load_catalogue
from plumbline.core import process
from plumbline.core.process import ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import ProbeRefused
from plumbline.probes.ceph.osd_lookup import ask_cluster
from plumbline.probes.rados import osd_bench, rados_bench
from plumbline.probes.run.histogram import quantile
from plumbline.probes.run.kinds import plan_probe
from plumbline.probes.run.model import ContinuousProbe, Host, Progress, Run
from plumbline.probes.run.reading import CanaryReading, CanaryState, WorkloadReading
from plumbline.probes.run.result import Outcome
from support.ceph_cluster import CephCluster
from support.daemon import eventually
from support.throttling import below, throttled

pytestmark = [pytest.mark.integration, pytest.mark.ceph]

POOL, ALONE, NAMESPACE, USER = "plumbline-rados", "plumbline-alone", "plumbline", "client.plumbline"
OSD_CAPS = ", ".join(f"allow rwx pool={pool} namespace={NAMESPACE}" for pool in (POOL, ALONE))
CAPS = {"mon": "allow service mon r, allow service osd r", "osd": OSD_CAPS}
WITHIN_S = 120.0


@pytest.fixture(scope="module")
def keyring(shared_ceph: CephCluster) -> Iterator[Path]:
    shared_ceph.add_pool(POOL)
    shared_ceph.add_pool(ALONE, size=1)
    yield shared_ceph.add_user(USER, CAPS)
    shared_ceph.remove_user(USER)
    shared_ceph.remove_pool(POOL)
    shared_ceph.remove_pool(ALONE)


@pytest.fixture
def host(ceph: CephCluster, keyring: Path, tmp_path: Path) -> Host:
    config = CephConfig(conf=str(ceph.conf), keyring=str(keyring), pool=POOL, timeout=Duration(20.0))
    environment = dict(os.environ)
    (tmp_path / "run").mkdir()
    return Host(
        storage=tmp_path,
        roots=Roots.under(tmp_path),
        catalogue=load_catalogue(),
        ceph=config,
        environment=environment,
        disk_below=lambda _path: None,
        disks=lambda: (),
        osd_disks=dict,
        cluster_osds=lambda: ask_cluster(config, environment),
    )


def objects(ceph: CephCluster, pool: str = POOL) -> set[str]:
    """All of the pool, whatever namespace they are in."""
    lines = ceph.run("rados", "-p", pool, "--all", "ls").splitlines()
    return {line.partition("\t")[2] for line in lines}


class Canaries:
    """All OSDs' canaries of one probe, as the daemon runs them."""

    def __init__(self, host: Host, **changes: object) -> None:
        values: dict[str, object] = {"name": "rados-canary", "rate": 9.0, "stuck_after": Duration(4.0)}
        self.config = RadosCanaryConfig(**(values | changes))  # type: ignore[arg-type]
        self.jobs = plan_probe(self.config, host).continuous
        self.canaries: list[ContinuousProbe] = [job.make({}) for job in self.jobs]
        for canary in self.canaries:
            canary.start()

    def read(self) -> dict[str, CanaryReading]:
        for canary in self.canaries:
            canary.poll()
        return {reading.target: reading for reading in (canary.read() for canary in self.canaries)}

    def until(self, reached: Callable[[dict[str, CanaryReading]], bool], within_s: float = WITHIN_S) -> None:
        deadline = time.monotonic() + within_s
        while not reached(readings := self.read()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not reached in {within_s} s: {readings}")
            time.sleep(0.1)

    def grow(self, count: int, *osds: str, operation: str = "") -> None:
        """Wait for so many more operations of each kind on each of these OSDs."""
        before = self.read()

        def grown(now: dict[str, CanaryReading]) -> bool:
            return all(
                done(new) >= done(old) + count
                for osd in osds or now
                for new, old in zip(now[osd].workloads, before[osd].workloads, strict=True)
                if operation in ("", new.operation)
            )

        self.until(grown)

    def stop(self) -> None:
        for canary in self.canaries:
            assert canary.stop(timeout=10.0)
            assert canary.pid is None


def done(each: WorkloadReading) -> int:
    """Operations that were really done."""
    return each.latency.count - each.charged


@pytest.fixture
def start(ceph: CephCluster, host: Host) -> Iterator[Callable[..., Canaries]]:
    """Starts canaries; ends them afterwards, and looks what they left."""
    started: list[Canaries] = []

    def start(**changes: object) -> Canaries:
        started.append(Canaries(host, **changes))
        return started[-1]

    def left() -> set[str]:
        return {name for pool in (POOL, ALONE) for name in objects(ceph, pool) if "osd." in name}

    yield start
    for each in started:
        each.stop()
    ceph.heal()
    if left():  # a worker has a second to remove its objects; what a busy cluster kept, the next start takes
        again = Canaries(host)
        again.grow(1)
        again.stop()
    assert left() == set()


class TestTheCanary:
    @pytest.mark.smoke
    def test_reaches_every_osd_of_this_host(self, ceph: CephCluster, start: Callable[..., Canaries]) -> None:
        canaries = start()
        assert [job.name for job in canaries.jobs] == [f"rados-canary/osd.{number}" for number in range(3)]
        assert {job.identities()[0].device_class for job in canaries.jobs} == {"hdd"}
        canaries.grow(20)
        for osd, reading in canaries.read().items():
            assert (reading.state, reading.reason, reading.success) == (CanaryState.RUNNING, "", True)
            assert [each.operation for each in reading.workloads] == ["write", "read", "remove"]
            assert reading.device_class == "hdd"
            assert reading.outdated is False
            assert all(not any(each.errors.values()) for each in reading.workloads), osd
            assert all(0 < (quantile(each.latency, 0.5) or 0) < 10 for each in reading.workloads)
        found = objects(ceph)
        assert {name.split("/")[3] for name in found} == {"osd.0", "osd.1", "osd.2"}
        for name in found:
            assert name.startswith(f"plumbline/{socket.gethostname()}/rados-canary/osd.")
            mapped = ceph.ceph_json("osd", "map", POOL, name, NAMESPACE)
            assert f"osd.{mapped['acting_primary']}" == name.split("/")[3]

    def test_costs_little(self, start: Callable[..., Canaries]) -> None:
        canaries = start(rate=1.0)
        canaries.grow(1)
        worker = psutil.Process(canaries.canaries[0].pid or 0)
        before = worker.cpu_times()
        time.sleep(20)
        after = worker.cpu_times()
        cpu = (after.user + after.system - before.user - before.system) / 20
        memory = worker.memory_full_info()
        print(f"worker: {cpu:.2%} of a CPU, RSS {memory.rss >> 20} MiB, its own {memory.uss >> 20} MiB")
        assert cpu < 0.05
        assert memory.rss < 100 << 20

    def test_removes_what_a_killed_one_left(self, ceph: CephCluster, start: Callable[..., Canaries]) -> None:
        foreign = {f"plumbline/{socket.gethostname()}/other/osd.0/1", "plumbline/elsewhere/rados-canary/osd.0/1"}
        for name in foreign:
            ceph.run("rados", "-p", POOL, "-N", NAMESPACE, "put", name, ceph.conf)
        canaries = start()
        canaries.grow(2)
        os.kill(canaries.canaries[0].pid or 0, signal.SIGKILL)
        assert {name.split("/")[2] for name in objects(ceph) - foreign} == {"rados-canary"}  # it left some
        canaries.until(lambda now: all(reading.runs == 2 for reading in now.values()))
        canaries.grow(2)
        for canary in canaries.canaries:
            canary.stop(timeout=10.0)
        assert objects(ceph) == foreign
        for name in foreign:
            ceph.run("rados", "-p", POOL, "-N", NAMESPACE, "rm", name)

    def test_a_frozen_osd_is_stuck_and_the_others_go_on(
        self, ceph: CephCluster, start: Callable[..., Canaries]
    ) -> None:
        canaries = start()
        canaries.grow(3)
        ceph.freeze_osd(0)
        canaries.until(lambda now: now["osd.0"].workloads[1].in_flight_s > 4)
        now = canaries.read()
        assert (now["osd.0"].reason, now["osd.0"].success) == ("stuck", False)
        assert "osd.0: an operation hangs" in now["osd.0"].message
        for other in ("osd.1", "osd.2"):  # reads are the primary's alone
            assert now[other].workloads[1].in_flight_s < 4
        canaries.grow(3, "osd.1", "osd.2", operation="read")
        ceph.thaw_osd(0)
        canaries.until(lambda now: all(reading.success for reading in now.values()))

    def test_a_slow_disk_shows_in_its_own_osd_alone(self, ceph: CephCluster, start: Callable[..., Canaries]) -> None:
        canaries = start(pool=ALONE)
        canaries.grow(30, operation="write")
        with throttled(below(ceph.folder), [ceph.pid("osd.1")], write_iops_device=6):
            canaries.grow(1, "osd.1", operation="write")  # begun before
            before = canaries.read()
            canaries.grow(12, operation="write")
            after = canaries.read()
        medians = {osd: recent_mean(before[osd].workloads[0], after[osd].workloads[0]) for osd in after}
        print({osd: f"{value * 1000:.1f} ms" for osd, value in medians.items()})
        assert medians["osd.1"] > 4 * max(medians["osd.0"], medians["osd.2"])

    def test_objects_are_chosen_anew_when_the_map_changes(
        self, ceph: CephCluster, start: Callable[..., Canaries]
    ) -> None:
        canaries = start()
        canaries.grow(2)
        ceph.ceph("osd", "out", "2")
        canaries.until(lambda now: now["osd.2"].reason == "out")
        reading = canaries.read()["osd.2"]
        assert (reading.success, reading.skips["out"]) == (False, 1)
        assert len(reading.workloads) == 3  # the series stay
        ceph.wait_clean()
        canaries.grow(3, "osd.0", "osd.1")
        ceph.ceph("osd", "in", "2")
        canaries.until(lambda now: bool(now["osd.2"].success))
        ceph.wait_clean()
        time.sleep(12)  # one look at the map more
        canaries.grow(3)
        for name in objects(ceph):
            mapped = ceph.ceph_json("osd", "map", POOL, name, NAMESPACE)
            assert f"osd.{mapped['acting_primary']}" == name.split("/")[3]

    def test_a_dead_osd_is_down(self, ceph: CephCluster, start: Callable[..., Canaries]) -> None:
        canaries = start()
        canaries.grow(2)
        ceph.kill_osd(1)
        canaries.until(lambda now: now["osd.1"].reason == "down")
        canaries.grow(3, "osd.0", "osd.2")
        ceph.start_osd(1)
        canaries.until(lambda now: all(reading.success for reading in now.values()))

    def test_a_full_pool_is_counted_by_its_errno(self, ceph: CephCluster, start: Callable[..., Canaries]) -> None:
        canaries = start()
        canaries.grow(2)
        ceph.ceph("osd", "pool", "set-quota", POOL, "max_objects", "1")
        canaries.until(lambda now: all(reading.workloads[0].errors["EDQUOT"] > 2 for reading in now.values()))
        now = canaries.read()
        assert all((reading.success, reading.reason) == (False, "errors") for reading in now.values())
        assert "EDQUOT" in now["osd.0"].message
        canaries.grow(3, operation="read")
        ceph.ceph("osd", "pool", "set-quota", POOL, "max_objects", "0")
        canaries.until(lambda now: all(reading.success for reading in now.values()))

    def test_without_monitors_operations_go_on(self, ceph: CephCluster, start: Callable[..., Canaries]) -> None:
        canaries = start()
        canaries.grow(2)
        ceph.kill_mon()
        canaries.grow(10)
        assert all(reading.success for reading in canaries.read().values())

    def test_what_cannot_begin_says_why(self, ceph: CephCluster, host: Host, start: Callable[..., Canaries]) -> None:
        foreign_key = replace(host.ceph, keyring=str(ceph.keyring("osd.0")))
        wrong = Canaries(replace(host, ceph=foreign_key, cluster_osds=lambda: None))
        elsewhere = Canaries(host, pool="nowhere")
        try:
            wrong.until(lambda now: all(reading.state is CanaryState.REFUSED for reading in now.values()))
            elsewhere.until(lambda now: all(reading.state is CanaryState.REFUSED for reading in now.values()))
            (reading,) = wrong.read().values()  # the cluster did not tell its OSDs either
            assert (reading.probe, reading.reason, reading.success) == ("rados-canary", "unreachable", False)
            assert "client.plumbline" in reading.message
            reading = elsewhere.read()["osd.1"]
            assert (reading.reason, reading.success) == ("no-pool", False)
            assert reading.skips["no-pool"] >= 1
        finally:
            for each in (*wrong.canaries, *elsewhere.canaries):
                assert each.stop()

    def test_osds_that_were_not_known_are_noticed(self, host: Host, start: Callable[..., Canaries]) -> None:
        unknown = Canaries(replace(host, cluster_osds=lambda: None))
        try:
            assert [job.name for job in unknown.jobs] == ["rados-canary"]
            unknown.until(lambda now: all(reading.outdated for reading in now.values()))
        finally:
            assert unknown.canaries[0].stop()


def recent_mean(before: WorkloadReading, after: WorkloadReading) -> float:
    return (after.latency.sum - before.latency.sum) / (after.latency.count - before.latency.count)


def bench(host: Host, workload: str = "rados-write-4m-t16", **changes: object) -> rados_bench.RadosBenchProbe:
    values: dict[str, object] = {"name": "bench", "workload": workload, "runtime": Duration(2.0), "max_objects": 24}
    config = RadosBenchConfig(**(values | {"timeout": Duration(90.0)} | changes))  # type: ignore[arg-type]
    (probe,) = plan_probe(config, host).periodic
    assert isinstance(probe, rados_bench.RadosBenchProbe)
    return probe


def run(stopping: threading.Event | None = None, progress: Callable[[Progress], None] = lambda _: None) -> Run:
    stopping = stopping or threading.Event()
    return Run(ProcessRunner(dict(os.environ)).within(stopping), time.time, stopping, progress=progress)


class TestRadosBench:
    @pytest.mark.parametrize(
        ("workload", "operation"),
        [("rados-write-4m-t16", "write"), ("rados-seq-4m-t16", "read"), ("rados-rand-4m-t16", "read")],
    )
    def test_measures_and_leaves_nothing(self, ceph: CephCluster, host: Host, workload: str, operation: str) -> None:
        before = objects(ceph)
        result = bench(host, workload).run(run())
        assert (result.outcome, result.message) == (Outcome.SUCCESS, "")
        (figures,) = result.operations
        assert figures.operation == operation
        assert figures.iops is not None
        assert figures.throughput == pytest.approx(figures.iops * 4 * 2**20, rel=0.05)
        assert 0 < figures.latency["mean"] <= figures.latency["max"]
        assert set(figures.latency) == {"mean", "max"}
        assert (result.device_class, result.tool_version) == ("hdd", ceph.release)
        assert objects(ceph) == before

    def test_stopped_under_way_it_leaves_nothing(self, ceph: CephCluster, host: Host) -> None:
        before, stopping = objects(ceph), threading.Event()
        threading.Thread(target=lambda: (wait_for_objects(ceph, before), stopping.set()), daemon=True).start()
        with pytest.raises(ProbeRefused) as refused:
            bench(host, runtime=Duration(60.0), max_objects=100_000).run(run(stopping))
        assert refused.value.reason == "stopped"
        assert objects(ceph) == before

    def test_what_a_killed_daemon_left_is_removed(self, ceph: CephCluster, host: Host) -> None:
        foreign = {"benchmark_data_elsewhere_1_object0", "keep", f"benchmark_data_{socket.gethostname()}_x_object0"}
        for name in foreign:
            ceph.run("rados", "-p", POOL, "-N", NAMESPACE, "put", name, ceph.conf)
        before, probe = objects(ceph), bench(host, runtime=Duration(60.0), max_objects=100_000)
        launch = Path(process.__file__).with_name("launch.py")
        parent = (
            "import os, subprocess, sys; subprocess.run([sys.executable, '-I', '-S', sys.argv[1], "
            "str(os.getpid()), 'drop', *sys.argv[2:]])"
        )
        daemon = subprocess.Popen(
            [sys.executable, "-c", parent, str(launch), *probe.argv("write")], stdout=subprocess.DEVNULL
        )
        wait_for_objects(ceph, before)
        (child,) = psutil.Process(daemon.pid).children()
        probe.clean_up(run())  # while it runs it is somebody's
        assert objects(ceph) > before
        daemon.kill()
        daemon.wait()
        child.wait(30)
        assert objects(ceph) > before  # it left some
        probe.clean_up(run())
        assert objects(ceph) == before
        for name in foreign:
            ceph.run("rados", "-p", POOL, "-N", NAMESPACE, "rm", name)

    def test_a_full_pool_ends_it(self, ceph: CephCluster, host: Host) -> None:
        ceph.run("rados", "-p", POOL, "-N", NAMESPACE, "put", "full", ceph.conf)
        ceph.ceph("osd", "pool", "set-quota", POOL, "max_objects", "1")
        try:
            eventually(lambda: "POOL_FULL" in ceph.ceph("health", "detail"), within_s=WITHIN_S)
            before = objects(ceph)
            result = bench(host, timeout=Duration(30.0)).run(run())
            assert result.outcome is Outcome.FAILURE
            assert "rados bench write" in result.message
            assert result.operations == ()
            assert objects(ceph) == before
        finally:
            ceph.ceph("osd", "pool", "set-quota", POOL, "max_objects", "0")
            ceph.run("rados", "-p", POOL, "-N", NAMESPACE, "rm", "full")
            eventually(lambda: "POOL_FULL" not in ceph.ceph("health", "detail"), within_s=WITHIN_S)

    def test_without_a_key_it_is_refused(self, ceph: CephCluster, host: Host) -> None:
        wrong = replace(host, ceph=replace(host.ceph, keyring=str(ceph.keyring("osd.0"))))
        with pytest.raises(ProbeRefused) as refused:
            bench(wrong).run(run())
        assert refused.value.reason == "no-key"


def wait_for_objects(ceph: CephCluster, before: set[str]) -> None:
    eventually(lambda: len(objects(ceph) - before) > 3, within_s=WITHIN_S)


def osd_benches(host: Host, workload: str = "osd-bench-4k") -> tuple[osd_bench.OsdBenchProbe, ...]:
    config = OsdBenchConfig(name="osd-bench", workload=workload, timeout=Duration(120.0))
    probes = plan_probe(config, host).periodic
    return tuple(probe for probe in probes if isinstance(probe, osd_bench.OsdBenchProbe))


class TestOsdBench:
    def test_the_confined_user_may_not(self, host: Host, keyring: Path) -> None:
        bold = replace(host.ceph, osd_bench_user="plumbline", osd_bench_keyring=str(keyring))
        probe, *others = osd_benches(replace(host, ceph=bold))
        assert len(others) == 2
        with pytest.raises(ProbeRefused) as refused:
            probe.run(run())
        assert refused.value.reason == "permission"
        assert "osd.0: the user lacks the permission for a bench" in str(refused.value)

    def test_by_the_admin_socket(self, ceph: CephCluster, host: Host) -> None:
        (host.storage / "run" / "ceph").symlink_to(ceph.folder / "run")
        for number, probe in enumerate(osd_benches(host)):
            assert "daemon" in probe.argv("bench")
            result = probe.run(run())
            assert (result.outcome, result.message, result.device_class) == (Outcome.SUCCESS, "", "hdd")
            assert result.probe == f"osd-bench/osd.{number}"
            (figures,) = result.operations
            assert figures.iops == pytest.approx((figures.throughput or 0) / 4096)

    def test_by_a_user_who_may(self, ceph: CephCluster, host: Host) -> None:
        may = replace(host.ceph, osd_bench_user="admin", osd_bench_keyring=str(ceph.keyring("client.admin")))
        probe = osd_benches(replace(host, ceph=may), "osd-bench-4m")[2]
        assert "tell" in probe.argv("bench")
        result = probe.run(run())
        assert result.outcome is Outcome.SUCCESS
        assert (result.operations[0].throughput or 0) > 2**20

    def test_what_is_beyond_cephs_limits_is_refused_by_ceph(self, ceph: CephCluster, host: Host) -> None:
        (host.storage / "run" / "ceph").symlink_to(ceph.folder / "run")
        probe = osd_benches(host)[0]
        result = replace(probe, workload=replace(probe.workload, total_bytes=2**30)).run(run())
        assert result.outcome is Outcome.FAILURE
        assert "osd.0 bench" in result.message

    def test_a_stopped_osd_is_no_hang(self, ceph: CephCluster, host: Host) -> None:
        may = replace(host.ceph, osd_bench_user="admin", osd_bench_keyring=str(ceph.keyring("client.admin")))
        probe = osd_benches(replace(host, ceph=may))[1]
        ceph.kill_osd(1)
        result = probe.run(run())
        assert result.outcome is not Outcome.SUCCESS
        assert "osd.1 cache drop" in result.message
