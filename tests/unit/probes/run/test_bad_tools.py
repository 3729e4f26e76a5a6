"""Every program that Plumbline starts, in the place of which something else answers: hangs, floods, dies, lies.

The real runner starts real processes; whatever words a caller wants to run, a script of the test's runs instead. So
each caller's own reading of what came back is what is tested: a refusal, a failure or a timeout, never a traceback,
and no process left. In tests/unit/core/test_runner.py stands what the runner itself promises.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from plumbline.background.ceph import CephMapWatch
from plumbline.background.storage import ZpoolStatus
from plumbline.config.model import CephConfig, Config
from plumbline.config.probes.ceph import OsdBenchConfig, RadosBenchConfig, RbdBenchConfig
from plumbline.config.probes.disk import FioConfig
from plumbline.config.probes.network import IperfConfig
from plumbline.config.types import Duration, Endpoint, Size
from plumbline.config.workloads import load_catalogue
from plumbline.core import process
from plumbline.core.process import Completed, ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import PlumblineError
from plumbline.probes.fio.fio import run_fio
from plumbline.probes.fio.fio_job import FioPlan
from plumbline.probes.network.iperf3 import IperfProbe
from plumbline.probes.network.peer import Peer
from plumbline.probes.run.guard import prepare_directory
from plumbline.probes.run.kinds import plan_probe
from plumbline.probes.run.model import Host, PeriodicProbe, Run
from plumbline.probes.run.result import Outcome, ProbeResult
from plumbline.probes.run.tool import FIO, IPERF3
from plumbline.sources.ceph.cluster_osds import ClusterOsds, Osd
from plumbline.sources.disk.smartctl import read_smartctl

FIXTURES = Path(__file__).parents[3] / "fixtures"
CATALOGUE = load_catalogue()
SLEEP_S = 86_123
"""How long what hangs would hang; the number finds its process again."""
PATIENCE_S = 0.3
"""For each command, instead of the caller's own timeout."""
VERSIONS = {"fio": "fio-3.33", "iperf3": "iperf 3.12 (cJSON 1.7.15)", "zpool": ""}
CEPH_VERSION = "ceph version 16.2.15 (618f440892089921c3e944a991122ddc44e60516) pacific (stable)"

BEHAVIOURS: Mapping[str, str] = {
    "hangs": f"exec sleep {SLEEP_S}",
    "hangs and ignores SIGTERM": f"trap '' TERM; sleep {SLEEP_S}; sleep {SLEEP_S}",
    "floods stdout": "exec cat /dev/zero",
    "floods stderr": "exec cat /dev/zero >&2",
    "is killed": "kill -9 $$",
    "exits 137": "exit 137",
    "says nothing": "exit 0",
    "prints garbage": 'printf "\\000\\377{]\\n\\n\\033[2J"; head -c 5000 /dev/urandom; exit 0',
    "prints too many brackets": "head -c 100000 /dev/zero | tr '\\000' '['; exit 0",
    "prints an endless number": "printf '{\"jobs\": '; head -c 20000 /dev/zero | tr '\\000' '9'; printf '}'; exit 0",
    "closes its outputs and sleeps": f"exec >&- 2>&-; exec sleep {SLEEP_S}",
    "leaves a child with the pipe": f"sleep {SLEEP_S} & echo '{{}}'; exit 0",
    "prints figures of wrong types": "cat $ANSWER; exit 0",
    "prints half of its answer": "head -c $(($(wc -c <$ANSWER) / 2)) $ANSWER; exit 0",
}


class Imposter:
    """Runs the test's script whatever it is asked to run; only the question for the version is answered as usual."""

    def __init__(self, folder: Path, behaviour: str, answer: bytes, version: str) -> None:
        self.script, self._version = folder / "imposter", version
        (folder / "answer").write_bytes(answer)
        body = BEHAVIOURS[behaviour]
        # fio writes its report to a file
        report = 'for word; do case $word in --output=*) exec >"${word#--output=}";; esac; done\n'
        floods = "floods" in behaviour
        self.script.write_text(f"#!/bin/sh\nANSWER={folder / 'answer'}\n{'' if floods else report}{body}\n")
        self.script.chmod(0o755)
        self._runner = ProcessRunner(os.environ)
        self.biggest = 0

    def run(self, argv: Sequence[str], *, timeout_s: float, **more: Any) -> Completed:
        if any(word in ("--version", "version") for word in argv[1:]):
            return Completed(tuple(argv), 0, self._version.encode() + b"\n")
        done = self._runner.run((str(self.script), *argv[1:]), timeout_s=min(timeout_s, PATIENCE_S), **more)
        self.biggest = max(self.biggest, len(done.stdout) + len(done.stderr))
        return done

    def holds(self, argv: Sequence[str]) -> bool:
        return self._runner.holds(argv)

    def stuck(self) -> tuple[int, ...]:
        return self._runner.stuck()

    def stop(self) -> None:
        self._runner.stop()

    def within(self, _stopping: object) -> Imposter:
        return self


def wrong_types(found: Any) -> Any:
    """The same shape with every value of another type."""
    match found:
        case dict():
            return {name: wrong_types(value) for name, value in found.items()}
        case list():
            return [wrong_types(value) for value in found]
        case bool() | None:
            return {"x": []}
        case int() | float():
            return "nine"
        case _:
            return -(10**30)


def a_run(imposter: Imposter) -> Run:
    return Run(imposter, time.time, threading.Event())


def host(folder: Path) -> Host:
    conf, keyring = folder / "ceph.conf", folder / "keyring"
    conf.write_text("[global]\nmon_host = 127.0.0.1\n")
    keyring.write_text("[client.plumbline]\n key = AAAA\n[client.bench]\n key = AAAA\n")
    osds = ClusterOsds({0: Osd(0, "hdd", "a", "")}, {os.uname().nodename: [0]})
    return Host(
        storage=folder,
        roots=Roots.under(folder),
        catalogue=CATALOGUE,
        ceph=CephConfig(conf=str(conf), keyring=str(keyring), osd_bench_user="bench", osd_bench_keyring=str(keyring)),
        environment={},
        disk_below=lambda _path: None,
        disks=lambda: (),
        osd_disks=dict,
        cluster_osds=lambda: osds,
    )


def probes_of(plan: Any) -> PeriodicProbe:
    return next(iter(plan.periodic))  # type: ignore[no-any-return]


def fio(imposter: Imposter, folder: Path) -> ProbeResult:
    workload = CATALOGUE.get("randread-4k-qd1-j1", where="", key="")
    config = FioConfig(
        name="fio", workload=workload.id, runtime=Duration(2), timeout=Duration(10), file_size=Size(1 << 20)
    )
    plan = FioPlan.of(config, workload, directory=folder / "probe", device_class="ssd")  # type: ignore[arg-type]
    with prepare_directory(plan.directory, size_bytes=plan.total_bytes) as directory:
        os.close(directory.open_file("fio.0", plan.file_size, direct=False, dsync=False))
    return run_fio(plan, Run(imposter, time.time, threading.Event()), replace(FIO, which=lambda _: "/bin/true"))


def iperf3(imposter: Imposter, _folder: Path) -> ProbeResult:
    config = IperfConfig(name="net", targets=(Endpoint("10.0.0.2"),), runtime=Duration(2.0))
    workload = CATALOGUE.by_id["tcp-throughput-s1"]
    peer = Peer(config.targets[0], config.bind, "eth0", "10g")
    return IperfProbe(config, workload, peer, replace(IPERF3, which=lambda _: "/x")).run(a_run(imposter))


def rados(imposter: Imposter, folder: Path) -> ProbeResult:
    config = RadosBenchConfig(
        name="bench", workload="rados-write-4m-t16", runtime=Duration(10.0), timeout=Duration(60.0)
    )
    return probes_of(plan_probe(config, host(folder))).run(a_run(imposter))


def ceph_tell(imposter: Imposter, folder: Path) -> ProbeResult:
    config = OsdBenchConfig(name="osd-bench", workload="osd-bench-4k", osds=("osd.0",))
    return probes_of(plan_probe(config, host(folder))).run(a_run(imposter))


def rbd(imposter: Imposter, folder: Path) -> ProbeResult:
    config = RbdBenchConfig(name="rbd", timeout=Duration(20.0), image_size=Size(64 << 20), total=Size(8 << 20))
    return probes_of(plan_probe(config, host(folder))).run(a_run(imposter))


def smartctl(imposter: Imposter, _folder: Path) -> object:
    return read_smartctl(Path("/dev/null"), "sata", "smartctl", imposter, timeout_s=PATIENCE_S)


def zpool(imposter: Imposter, _folder: Path) -> object:
    return ZpoolStatus(Roots.under(FIXTURES / "arrays-storage-node"), imposter).read()


def ceph_map(imposter: Imposter, folder: Path) -> object:
    here = host(folder)
    config = Config(ceph=CephConfig(conf=here.ceph.conf, keyring=here.ceph.keyring, map="always"))
    watch = CephMapWatch(lambda: config, roots=here.roots, environment={}, runner=imposter)
    watch.map.refresh()
    return watch.map.value


CALLERS: Mapping[str, tuple[Callable[[Imposter, Path], object], Path | None]] = {
    "fio": (fio, FIXTURES / "fio/randread-4k-qd16-j1.json"),
    "iperf3": (iperf3, FIXTURES / "iperf3/transmit-s1.json"),
    "rados": (rados, None),
    "ceph tell": (ceph_tell, None),
    "rbd": (rbd, None),
    "smartctl": (smartctl, FIXTURES / "disk-health/sata-ssd.json"),
    "zpool": (zpool, None),
    "ceph's map": (ceph_map, None),
}
"""Who starts programs → the call, and a right answer of the program."""


def answer_of(sample: Path | None) -> bytes:
    known = json.loads(sample.read_bytes()) if sample else {"elapsed_sec": 1.5, "pools": {"a": [1, "x", None]}}
    return json.dumps(wrong_types(known)).encode()


def sleepers() -> list[int]:
    """Processes of the scripts that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(SLEEP_S).encode() in words:
            found.append(int(entry.parent.name))
    return found


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_TERM_GRACE_S", 0.1)
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}")


@pytest.fixture
def disk() -> Iterator[Path]:
    """Not in memory, where fio's guard refuses."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_whatever_a_program_does_it_is_a_failure_and_ends(behaviour: str, disk: Path) -> None:
    with ThreadPoolExecutor(len(CALLERS)) as pool:
        results = {caller: pool.submit(one, caller, behaviour, disk) for caller in CALLERS}
    for caller, result in results.items():
        assert result.exception() is None, (caller, result.exception())
    assert sleepers() == []


def one(caller: str, behaviour: str, disk: Path) -> None:
    """One caller meets one behaviour."""
    call, sample = CALLERS[caller]
    folder = disk / caller.replace(" ", "-")
    folder.mkdir()
    imposter = Imposter(folder, behaviour, answer_of(sample), VERSIONS.get(caller, CEPH_VERSION))
    began = time.monotonic()
    said = ""
    try:
        came = call(imposter, folder)
    except PlumblineError as refusal:
        came, said = None, str(refusal)
    if isinstance(came, ProbeResult):
        assert came.outcome in (Outcome.FAILURE, Outcome.TIMEOUT), came
        assert came.operations == ()
        said = came.message
    else:
        assert came in ((), None), came  # a program that says nothing of no pool
    assert "\n" not in said
    assert len(said) < 2000
    assert time.monotonic() - began < 60
    assert imposter.biggest <= 64 << 20
    assert imposter.stuck() == ()
