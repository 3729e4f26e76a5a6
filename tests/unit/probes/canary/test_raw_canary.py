"""The canary on raw disks with its real worker: on loop devices, some of which hang or go away."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from plumbline.collectors import canary as collector
from plumbline.config.model import CephConfig, Config, GatesConfig
from plumbline.config.probes.disk import FioConfig, RawCanaryConfig
from plumbline.config.workloads import load_catalogue
from plumbline.core.roots import Roots
from plumbline.probes.canary.canary import Canary
from plumbline.probes.canary.job import CanaryJob
from plumbline.probes.canary.pool import WorkerPool
from plumbline.probes.disk.canaries import DeviceTarget
from plumbline.probes.run.histogram import quantile
from plumbline.probes.run.kinds import plan_probe
from plumbline.probes.run.model import Host
from plumbline.probes.run.plan import make_plan
from plumbline.probes.run.reading import CanaryReading, CanaryState
from plumbline.probes.run.single_run import FASTER, RunOnce
from plumbline.sources.disk.block import BlockDevice
from support.canaries import healthy, until
from support.descriptors import open_descriptors
from support.filesystems import run
from support.loops import Loops, checksum
from support.throttling import named, throttled

CATALOGUE = load_catalogue()
READ = CATALOGUE.by_id["randread-4k-qd1-j1"]


def plan(name: str, **changes: object) -> DeviceTarget:
    values: dict[str, object] = {
        "name": f"raw/{name}",
        "target": name,
        "workloads": ((READ, ()),),
        "device_class": "ssd",
        "dev": Path("/dev"),
        "sys": Path("/sys"),
        "rate": 50.0,
        "max_busy_ratio": 1.0,
        "stuck_after_s": 0.5,
    }
    return DeviceTarget(**(values | changes))  # type: ignore[arg-type]


Start = Callable[..., list[Canary]]


@pytest.fixture
def start(loops: Loops) -> Iterator[Start]:
    """Starts canaries that share a worker, and ends what is left of them."""
    started: list[Canary] = []

    def start(*names: str, **changes: object) -> list[Canary]:
        pool = WorkerPool()
        made = [Canary(plan(name, **changes), pool=pool, device=name) for name in names]
        started.extend(made)
        for one in made:
            one.start()
        return made

    yield start
    for one in started:
        one.stop()
    for one in started:
        until(one, lambda reading: reading.state is CanaryState.STOPPED)


def executed(reading: CanaryReading) -> int:
    (reads,) = reading.workloads
    return reads.latency.count - reads.charged


def worker(one: Canary) -> psutil.Process:
    assert one.pid is not None
    return psutil.Process(one.pid)


@pytest.mark.needs_root
class TestReads:
    def test_every_disk_of_a_pool_has_its_own_figures_and_stays_as_it_was(self, loops: Loops, start: Start) -> None:
        names = [loops.disk() for _ in range(3)]
        before = [checksum(name) for name in names]
        canaries = start(*names)
        readings = [until(one, lambda reading: executed(reading) >= 20) for one in canaries]
        assert len({one.pid for one in canaries}) == 1
        for name, reading in zip(names, readings, strict=True):
            assert (reading.probe, reading.kind, reading.target) == (f"raw/{name}", "raw-canary", name)
            assert (reading.success, reading.reason, reading.runs) == (True, "", 1)
            (reads,) = reading.workloads
            assert (reads.operation, reads.layer, reads.config_hash) == ("read", "disk", READ.config_hash())
            assert set(reads.errors.values()) == {0}
            assert 0 < (quantile(reads.latency, 0.5) or 0) < 10
        assert [checksum(name) for name in names] == before

    def test_the_workers_only_descriptors_of_disks_are_read_only(self, loops: Loops, start: Start) -> None:
        names = [loops.disk(), loops.disk()]
        canaries = start(*names)
        for one in canaries:
            until(one, healthy)
        directory = Path(f"/proc/{canaries[0].pid}")
        found = {}
        for link in (directory / "fd").iterdir():
            target = os.readlink(link)  # noqa: PTH115
            if target.startswith("/dev/loop"):
                found[target] = int(
                    (directory / "fdinfo" / link.name).read_text("ascii").split("flags:")[1].split()[0], 8
                )
        assert set(found) == {f"/dev/{name}" for name in names}
        for flags in found.values():
            assert flags & os.O_ACCMODE == os.O_RDONLY
            assert flags & os.O_DIRECT

    def test_places_are_spread_over_the_whole_disk(self, loops: Loops, start: Start) -> None:
        """Seen by strace: reads of one block each, at multiples of it, in every quarter."""
        if not Path("/usr/bin/strace").exists():
            pytest.skip("needs strace")
        name = loops.disk()
        (one,) = start(name, rate=100.0)
        until(one, healthy)
        done = subprocess.run(
            ["timeout", "4", "strace", "-f", "-e", "trace=/^p?(read|write).*", "-p", str(one.pid)],
            check=False,
            capture_output=True,
            text=True,
        )
        calls = re.findall(r"(p?(?:read|write)\w*)\(\d+, (.*)", done.stderr)
        if not calls:
            pytest.skip(f"strace can't attach here: {done.stderr[:200]}")
        assert {call for call, _ in calls} <= {"preadv", "preadv2"}
        places = [int(match[1]) for _, rest in calls if (match := re.search(r"iov_len=4096}\], 1, (\d+)[,)]", rest))]
        assert len(places) > 30
        assert all(place % 4096 == 0 for place in places)
        assert {place * 4 // (8 << 20) for place in places} == {0, 1, 2, 3}

    def test_the_share_of_a_disks_time_is_capped(self, loops: Loops, start: Start) -> None:
        (one,) = start(loops.disk(), max_busy_ratio=1e-6, rate=100.0)
        assert until(one, lambda reading: reading.rate_per_s < 100).rate_per_s == 0.2

    def test_fresh_counts_for_a_baseline(self, loops: Loops, tmp_path: Path) -> None:
        once = RunOnce(
            storage=tmp_path, roots=Roots.under(Path("/")), environment=os.environ, rules=GatesConfig(),
            cluster=None, stopping=threading.Event(),
        )  # fmt: skip
        config, planned = RawCanaryConfig(name="raw"), plan(loops.disk(), rate=100.0 / FASTER)
        job = CanaryJob(config, planned, planned.target)
        (reading,) = once.canaries("raw", [job], run_s=1.0, bounds={}, progress=lambda _progress: None)
        assert reading.success is True
        assert 20 < executed(reading) < 180


@pytest.mark.needs_root
class TestTrouble:
    def test_a_slow_disk_moves_its_own_histogram_only(self, loops: Loops, start: Start) -> None:
        slow, other, third = canaries = start(*(loops.disk() for _ in range(3)))
        for one in canaries:
            until(one, lambda reading: executed(reading) >= 20)
        before = [one.read().workloads[0] for one in canaries]
        assert slow.pid is not None
        with throttled(named(str(slow.plan.target)), [slow.pid], read_iops_device=4):
            time.sleep(5)
            after = [one.read().workloads[0] for one in canaries]
        above = []
        for old, new in zip(before, after, strict=True):
            edge = new.latency.edges.index(0.06554)
            arrived = new.latency.count - old.latency.count
            quick = new.latency.cumulative[edge] - old.latency.cumulative[edge]
            assert arrived > 5 * 50 * 0.5  # arrivals keep their pace: a disk that is slow is charged for them
            above.append(1 - quick / arrived)
        assert above[0] > 0.5
        assert above[1] < 0.1
        assert above[2] < 0.1
        assert other.read().success is third.read().success is True

    def test_a_disk_that_hangs_holds_up_no_other_and_no_daemon(self, loops: Loops, start: Start) -> None:
        """One byte a second: a read of 4096 takes more than an hour."""
        hung, other = start(loops.disk(), loops.disk())
        for one in (hung, other):
            until(one, healthy)
        pid = hung.pid
        assert pid is not None
        with throttled(named(str(hung.plan.target)), [pid], read_bps_device=1):
            stuck = until(hung, lambda reading: reading.in_flight_s > 1.5)
            assert (stuck.state, stuck.success, stuck.reason) == (CanaryState.RUNNING, False, "stuck")
            assert stuck.message.startswith(f"/dev/{hung.plan.target}: an operation hangs for ")
            before = executed(other.read())
            until(other, lambda reading: executed(reading) >= before + 50)
            assert other.read().success is True
            began = time.perf_counter()
            for _ in range(20):
                hung.read()
                hung.poll()
            assert time.perf_counter() - began < 0.2

            # its disk is taken from the configuration: the thread stays in the kernel, the others go on
            assert hung.stop(0.3) is False
            assert hung.read().state is CanaryState.UNKILLABLE
            assert hung.pid == pid
            before = executed(other.read())
            until(other, lambda reading: executed(reading) >= before + 20)
        until(hung, lambda reading: reading.state is CanaryState.STOPPED)
        assert hung.pid is None
        assert other.pid == pid

    def test_a_pool_that_hangs_is_left_behind_and_said(self, loops: Loops, start: Start) -> None:
        hung, other = start(loops.disk(), loops.disk())
        for one in (hung, other):
            until(one, healthy)
        pid = hung.pid
        assert pid is not None
        with throttled(named(str(hung.plan.target)), [pid], read_bps_device=1):
            until(hung, lambda reading: reading.in_flight_s > 0.5)
            ended: dict[Canary, bool] = {}
            stopping = [
                threading.Thread(target=lambda one=one: ended.setdefault(one, one.stop(1.0))) for one in (hung, other)
            ]
            began = time.monotonic()
            for thread in stopping:  # side by side, as the daemon ends
                thread.start()
            for thread in stopping:
                thread.join()
            assert time.monotonic() - began < 5
            assert ended[hung] is False
            assert hung.read().state is CanaryState.UNKILLABLE
        until(hung, lambda reading: reading.state is CanaryState.STOPPED)
        assert not psutil.pid_exists(pid)

    def test_a_disk_that_goes_and_comes_back(self, loops: Loops, start: Start, tmp_path: Path) -> None:
        """Its node and its place in sysfs are ours here: a loop device never leaves while it is open."""
        there, going = loops.disk(), loops.disk()
        dev, sysfs = tmp_path / "dev", tmp_path / "sys"
        dev.mkdir()
        (sysfs / "block").mkdir(parents=True)
        for name in (there, going):
            os.mknod(dev / name, 0o60600, os.stat(f"/dev/{name}").st_rdev)  # noqa: PTH116
            (sysfs / "block" / name).symlink_to(f"/sys/block/{name}")
        (dev / going).rename(dev / "away")
        (sysfs / "block" / going).rename(sysfs / "away")
        other, gone = start(there, going, dev=dev, sys=sysfs)
        until(other, healthy)
        refused = until(gone, lambda reading: reading.skips["device-gone"] > 0)
        assert (refused.state, refused.success, refused.reason) == (CanaryState.REFUSED, False, "device-gone")
        assert refused.message.startswith(f"{dev}/{going}: the kernel has no such disk; ")
        until(gone, lambda reading: reading.skips["device-gone"] >= 2)
        (sysfs / "away").rename(sysfs / "block" / going)
        (dev / "away").rename(dev / going)
        well = until(gone, healthy)
        assert (well.reason, well.runs) == ("", 1)

    def test_a_disk_taken_away_under_it(self, loops: Loops, start: Start, tmp_path: Path) -> None:
        """Its backing file is cut: every read fails. The disk is let go of and opened anew when it is whole again."""
        image = tmp_path / "cut.img"
        image.write_bytes(os.urandom(8 << 20))
        ill, other = start(loops.disk(image=image), loops.disk(), rate=100.0)
        for one in (ill, other):
            until(one, healthy)
        os.truncate(image, 0)
        failing = until(ill, lambda reading: reading.skips["io-error"] > 0)
        assert failing.success is False
        assert sum(failing.workloads[0].errors.values()) >= 20
        assert other.read().success is True
        with image.open("r+b") as file:
            file.write(os.urandom(8 << 20))
        until(ill, healthy)

    def test_a_disk_that_others_take_into_use_under_it(self, loops: Loops, start: Start, tmp_path: Path) -> None:
        """Who formats, mounts, unmounts or claims the disk for himself is not kept from it, and the canary reads on."""
        name = loops.disk(32)
        (one,) = start(name, rate=100.0)
        until(one, healthy)
        run("mkfs.ext4", "-q", "-F", f"/dev/{name}")
        point = tmp_path / "point"
        point.mkdir()
        run("mount", f"/dev/{name}", point)
        try:
            (point / "theirs").write_bytes(b"theirs" * 1000)
            before = executed(one.read())
            mounted = until(one, lambda reading: executed(reading) > before + 20)
            assert (mounted.success, mounted.runs) == (True, 1)
        finally:
            run("umount", point)
        claimed = os.open(f"/dev/{name}", os.O_RDWR | os.O_EXCL)  # as LVM, md and Ceph claim a disk
        try:
            before = executed(one.read())
            held = until(one, lambda reading: executed(reading) > before + 20)
            assert (held.success, held.runs) == (True, 1)
        finally:
            os.close(claimed)
        run("e2fsck", "-fn", f"/dev/{name}")
        run("mount", "-o", "ro", f"/dev/{name}", point)
        try:
            assert (point / "theirs").read_bytes() == b"theirs" * 1000
        finally:
            run("umount", point)

    def test_one_is_taken_away_and_the_others_go_on(self, loops: Loops, start: Start) -> None:
        first, second = start(loops.disk(), loops.disk())
        for one in (first, second):
            until(one, healthy)
        pid = second.pid
        assert first.stop()
        assert (first.pid, first.read().state) == (None, CanaryState.STOPPED)
        count = first.read().workloads[0].latency.count
        before = executed(second.read())
        until(second, lambda reading: executed(reading) >= before + 20)
        assert first.read().workloads[0].latency.count == count
        assert (second.pid, second.read().runs) == (pid, 1)
        assert second.stop()
        assert pid is not None
        assert not psutil.pid_exists(pid)

    def test_one_that_comes_later_is_taken_in(self, loops: Loops) -> None:
        pool = WorkerPool()
        first = Canary(plan(loops.disk()), pool=pool)
        first.start()
        counted = executed(until(first, lambda reading: executed(reading) >= 5))
        second = Canary(plan(loops.disk()), pool=pool)
        second.start()
        try:
            until(second, healthy)
            until(first, lambda reading: executed(reading) > counted + 5)
            assert first.pid == second.pid
        finally:
            assert first.stop()
            assert second.stop()

    def test_a_worker_that_dies_is_started_again_for_all(self, loops: Loops, start: Start) -> None:
        first, second = start(loops.disk(), loops.disk())
        before = [until(one, lambda reading: executed(reading) >= 5) for one in (first, second)]
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        dead = until(first, lambda reading: reading.state is CanaryState.RESTARTING, 5)
        assert (dead.success, dead.reason, dead.in_flight_s) == (False, "died", 0.0)
        for one, old in zip((first, second), before, strict=True):
            after = until(one, lambda reading: reading.state is CanaryState.RUNNING and healthy(reading))
            assert after.runs == 2
            assert executed(after) >= executed(old)

    def test_nothing_outlives_a_daemon_that_is_killed(self, loops: Loops) -> None:
        daemon = (
            "import sys, time\n"
            "from pathlib import Path\n"
            "from plumbline.probes.canary.canary import Canary\n"
            "from plumbline.probes.disk.canaries import DeviceTarget\n"
            "from plumbline.probes.canary.pool import WorkerPool\n"
            "from plumbline.config.workloads import load_catalogue\n"
            "work, pool = load_catalogue().by_id['randread-4k-qd1-j1'], WorkerPool()\n"
            "made = [Canary(DeviceTarget(name=n, target=n, workloads=((work, ()),), device_class='ssd',\n"
            "        dev=Path('/dev'), sys=Path('/sys')), pool=pool) for n in sys.argv[1:]]\n"
            "[one.start() for one in made]\n"
            "while not all(one.read().workloads[0].latency.count for one in made): time.sleep(0.02)\n"
            "print(made[0].pid, flush=True)\n"
            "time.sleep(60)\n"
        )
        names = [loops.disk(), loops.disk()]
        with subprocess.Popen([sys.executable, "-c", daemon, *names], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            left = psutil.Process(int(process.stdout.readline()))
            process.kill()
            process.wait()
            assert left.wait(10) is None or not left.is_running()

    def test_no_descriptor_is_left(self, loops: Loops) -> None:
        def once() -> None:
            pool = WorkerPool()
            made = [Canary(plan(name), pool=pool) for name in names]
            for one in made:
                one.start()
            for one in made:
                until(one, healthy)
            assert all(one.stop() for one in made)

        names = [loops.disk(), loops.disk()]
        once()
        before = open_descriptors()
        once()
        assert open_descriptors() <= before


@pytest.mark.needs_root
def test_twelve_disks_cost_little(loops: Loops, start: Start) -> None:
    """One process of a few MiB, polite in every thread; CPU as a share of what is measured with it."""
    canaries = start(*(loops.disk(1) for _ in range(12)), rate=10.0)
    for one in canaries:
        until(one, healthy)
    process = worker(canaries[0])
    before, began = process.cpu_times(), time.monotonic()
    time.sleep(5)
    spent = sum(process.cpu_times()[:2]) - sum(before[:2])
    assert spent / (time.monotonic() - began) < 0.1  # 2 % on an idle machine
    private = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text("ascii"), re.MULTILINE)
    assert private is not None
    assert int(private[1]) < 10 * 1024
    threads = [int(path.name) for path in Path(f"/proc/{process.pid}/task").iterdir()]
    assert len(threads) == 13
    for thread in threads:
        said = subprocess.run(["ionice", "-p", str(thread)], check=True, capture_output=True, text=True).stdout
        assert said.strip() == "best-effort: prio 7"
        nice = int(Path(f"/proc/{process.pid}/task/{thread}/stat").read_text("ascii").rpartition(")")[2].split()[16])
        assert nice >= min(19, 10 + os.getpriority(os.PRIO_PROCESS, 0))


# --- from the configuration to disks


def disk(name: str, *lower: str, device_class: str | None = "hdd") -> BlockDevice:
    return BlockDevice(name, 8, 0, 1 << 40, device_class=device_class, lower=lower)


def host(disks: tuple[BlockDevice, ...], osds: dict[str, str]) -> Host:
    return Host(
        storage=Path("/nowhere"),
        roots=Roots.under(Path("/")),
        catalogue=CATALOGUE,
        ceph=CephConfig(),
        environment={},
        disk_below=lambda _path: None,
        disks=lambda: disks,
        osd_disks=lambda: osds,
    )


STORAGE = host(
    (
        disk("sda"),
        disk("sdb"),
        disk("dm-0", "sdb"),  # an OSD's volume
        disk("sdc"),
        disk("sdd"),
        disk("dm-1", "sdc", "sdd"),  # multipath
        disk("dm-2", "dm-1"),  # and a volume on it, encrypted
        disk("dm-3", "dm-2"),
        disk("nvme0n1", device_class="nvme"),
        disk("dm-9"),  # its disk was pulled
        disk("cciss/c0d0"),
    ),
    {
        "sdb": "osd.1",
        "dm-0": "osd.1",
        "sdc": "osd.2",
        "sdd": "osd.2",
        "dm-1": "osd.2",
        "dm-2": "osd.2",
        "dm-3": "osd.2",
        "nvme0n1": "osd.3,osd.4",
        "dm-9": "osd.5",
    },
)


def jobs(*devices: str, of: Host = STORAGE, **changes: object) -> list[tuple[str, str, str]]:
    config = RawCanaryConfig(name="raw", devices=devices, **changes)  # type: ignore[arg-type]
    made = plan_probe(config, of)
    identities = [(job.name, job.identities()[0]) for job in made.continuous]
    return [(name, each.target, each.device_class) for name, each in identities]


class TestPlanning:
    def test_the_osds_of_a_host_are_their_whole_physical_disks(self) -> None:
        assert jobs("osd") == [
            ("raw/nvme0n1", "nvme0n1", "nvme"),
            ("raw/sdb", "sdb", "hdd"),
            ("raw/sdc", "sdc", "hdd"),
            ("raw/sdd", "sdd", "hdd"),
        ]

    def test_named_ones_beside_them_each_once(self) -> None:
        assert [name for name, *_ in jobs("osd", "sda", "sdb", "dm-3", "cciss!c0d0")] == [
            "raw/cciss/c0d0",
            "raw/nvme0n1",
            "raw/sda",
            "raw/sdb",
            "raw/sdc",
            "raw/sdd",
        ]

    def test_one_that_is_not_there_is_waited_for(self) -> None:
        assert jobs("sdx") == [("raw/sdx", "sdx", "unknown")]
        assert jobs("sdx", device_class="ec-hdd") == [("raw/sdx", "sdx", "ec-hdd")]

    def test_a_host_without_osds_has_none(self) -> None:
        assert jobs("osd", of=host((disk("sda"),), {})) == []

    def test_sixteen_share_a_worker(self) -> None:
        many = host(tuple(disk(f"sd{i:03}") for i in range(40)), {f"sd{i:03}": f"osd.{i}" for i in range(40)})
        made = plan_probe(RawCanaryConfig(name="raw"), many).continuous
        pools = [id(job.pool) for job in made if isinstance(job, CanaryJob)]
        assert [pools.count(each) for each in dict.fromkeys(pools)] == [16, 16, 8]

    def test_fio_has_a_probe_for_each(self) -> None:
        config = FioConfig(name="raw-fio", workload="randread-4k-qd16-j1", devices=("osd",))
        made = plan_probe(config, STORAGE).periodic
        assert [(probe.identity.probe, probe.identity.target, probe.identity.device) for probe in made] == [
            (f"raw-fio/{name}", name, name) for name in ("nvme0n1", "sdb", "sdc", "sdd")
        ]
        assert {probe.heavy for probe in made} == {True}

    def test_plans_of_the_same_disks_are_equal(self, tmp_path: Path) -> None:
        """So a reload, or another disk, leaves them alone."""
        config = Config(probes=(RawCanaryConfig(name="raw", devices=("sda", "sdb")),))

        def made() -> object:
            return make_plan(config, storage=tmp_path, roots=Roots.under(tmp_path), environment={})

        assert made() == made()


@pytest.mark.needs_root
def test_the_scrape_says_which_disk_it_is(loops: Loops, start: Start) -> None:
    name = loops.disk()
    (one,) = start(name)
    reading = until(one, healthy)
    samples = {
        (spec.name, labels): value for spec, labels, value in collector.samples(collector.CanariesReading((reading,)))
    }
    assert samples["plumbline_probe_target_info", (f"raw/{name}", name, name)] == 1
    assert samples["plumbline_probe_runs_skipped_total", (f"raw/{name}", "device-gone")] == 0
    (info,) = [labels for spec, labels in samples if spec == "plumbline_probe_info"]
    assert info[:3] == (f"raw/{name}", "raw-canary", "plumbline")
