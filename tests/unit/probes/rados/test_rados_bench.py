"""`rados bench` and `osd bench` with programs of ours: commands, outcomes, refusals, what is removed."""

from __future__ import annotations

import json
import shutil
import socket as sockets
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.config.model import CephConfig
from plumbline.config.probes.ceph import OsdBenchConfig, RadosBenchConfig
from plumbline.config.types import Duration, FieldError
from plumbline.config.workloads import load_catalogue
from plumbline.core.process import Completed, ProcessRunner
from plumbline.core.roots import Roots
from plumbline.errors import ProbeRefused
from plumbline.probes.ceph.osd_lookup import remember
from plumbline.probes.rados import osd_bench, rados_bench
from plumbline.probes.rados.osd_choice import look_up, only_class
from plumbline.probes.run.kinds import plan_probe
from plumbline.probes.run.model import Host, Run
from plumbline.probes.run.result import Outcome
from plumbline.sources.ceph.cluster_osds import ClusterOsds, Osd

pytestmark = pytest.mark.usefixtures("private_files")

CEPH = Path(__file__).parents[3] / "fixtures" / "ceph-16.2"
OSDS = ClusterOsds(
    {0: Osd(0, "hdd", "a", ""), 1: Osd(1, "ssd", "a", ""), 2: Osd(2, "hdd", "b", "down")},
    {sockets.gethostname(): [0, 1]},
)
Answer = Callable[[Sequence[str]], Completed]


class Programs:
    """A runner whose programs say what a test wants."""

    def __init__(self, answer: Answer) -> None:
        self.ran: list[tuple[str, ...]] = []
        self._answer = answer

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        self.ran.append(tuple(argv))
        if tuple(argv[1:]) == ("--version",):
            return Completed(tuple(argv), 0, b"ceph version 16.2.15 (618f4) pacific (stable)\n")
        return self._answer(argv)


def said(argv: Sequence[str], code: int | None = 0, out: bytes = b"", err: bytes = b"", **how: bool) -> Completed:
    return Completed(tuple(argv), code, out, err, 2.0, **how)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    conf, keyring = tmp_path / "ceph.conf", tmp_path / "keyring"
    conf.write_text("[global]\nmon_host = 127.0.0.1\n")
    keyring.write_text("[client.plumbline]\n key = AAAA\n[client.bench]\n key = AAAA\n")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    return Host(
        storage=tmp_path,
        roots=Roots.under(tmp_path),
        catalogue=load_catalogue(),
        ceph=CephConfig(conf=str(conf), keyring=str(keyring), osd_bench_user="bench", osd_bench_keyring=str(keyring)),
        environment={},
        disk_below=lambda _path: None,
        disks=lambda: (),
        osd_disks=lambda: {"sdb": "osd.4"},
        cluster_osds=lambda: OSDS,
    )


def a_run(programs: Programs) -> Run:
    return Run(programs, lambda: 1000.0, threading.Event())


class TestWhichOsds:
    def test_as_the_cluster_says(self, host: Host) -> None:
        assert [(osd.number, osd.device_class) for osd in look_up(["host"], None, host)] == [(0, "hdd"), (1, "ssd")]
        assert [osd.number for osd in look_up(["all"], None, host)] == [0, 1, 2]
        assert [osd.device_class for osd in look_up(["osd.2", "osd.9"], "ec-hdd", host)] == ["ec-hdd"]

    def test_as_it_said_last(self, host: Host) -> None:
        silent = replace(host, cluster_osds=lambda: None)
        assert [(osd.number, osd.device) for osd in look_up(["host"], None, silent)] == [(4, "sdb")]
        assert [osd.number for osd in look_up(["osd.7"], None, silent)] == [7]
        remember(host.storage, OSDS)
        assert [(osd.number, osd.crush_class) for osd in look_up(["host"], None, silent)] == [(0, "hdd"), (1, "ssd")]
        (host.storage / "ceph-osds.json").write_text("[1]")
        assert [osd.number for osd in look_up(["host"], None, silent)] == [4]

    def test_one_class_or_none(self, host: Host) -> None:
        assert only_class(host) == "unknown"
        assert only_class(replace(host, cluster_osds=lambda: ClusterOsds({0: OSDS.by_number[0]}, {}))) == "hdd"

    @pytest.mark.parametrize("words", [[], ["osd"], ["osd.-1"], ["osd.01"], ["3"], ["all"]])
    def test_what_names_none(self, words: list[str]) -> None:
        with pytest.raises(FieldError, match=r"osd\.N, or host") as caught:
            OsdBenchConfig(name="probe", osds=tuple(words))
        assert caught.value.field == "osds"


def bench(host: Host, workload: str = "rados-write-4m-t16") -> rados_bench.RadosBenchProbe:
    config = RadosBenchConfig(name="bench", workload=workload, runtime=Duration(10.0), timeout=Duration(60.0))
    (probe,) = plan_probe(config, host).periodic
    assert isinstance(probe, rados_bench.RadosBenchProbe)
    return probe


class TestRadosBench:
    @pytest.fixture(autouse=True)
    def swept(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
        swept: list[tuple[str, ...]] = []

        def run(_self: object, argv: Sequence[str], **_: object) -> Completed:
            swept.append(tuple(argv))
            return said(argv, 0, b'{"removed": 3, "left": 0}\n')

        monkeypatch.setattr(ProcessRunner, "run", run)
        return swept

    def test_a_read_writes_first(self, host: Host, swept: list[tuple[str, ...]]) -> None:
        def answer(argv: Sequence[str]) -> Completed:
            name = "rados-bench-write.json" if "write" in argv else "rados-bench-seq.json"
            return said(argv, 0, (CEPH / name).read_bytes())

        programs = Programs(answer)
        result = bench(host, "rados-seq-4m-t16").run(a_run(programs))
        assert result.outcome is Outcome.SUCCESS
        assert result.operations[0].latency == {"mean": 0.002015, "max": 0.020146}
        _, write, seq = programs.ran
        assert write[write.index("--max-objects") :][:2] == ("--max-objects", "256")
        assert "--no-cleanup" in write
        assert "--no-cleanup" not in seq
        for argv in (write, seq):
            assert argv[argv.index("-N") + 1] == "plumbline"
            assert argv[argv.index("--run-name") + 1] == f"plumbline-{sockets.gethostname()}-bench"
        facts = json.loads(swept[-1][-1])
        assert (facts["task"], facts["pool"], facts["namespace"]) == ("sweep", "plumbline-probe", "plumbline")
        assert facts["prefix"] == f"benchmark_data_{sockets.gethostname()[:29]}_"

    @pytest.mark.parametrize(
        ("how", "outcome", "message"),
        [
            ({"code": 1, "err": b"error during benchmark: (110) Connection timed out\n"}, "failure", "timed out"),
            ({"code": -9, "timed_out": True}, "timeout", "not finished within 60 s"),
            ({"code": 0, "out": b"hints = 1\n"}, "failure", "no JSON document"),
            ({"code": -11}, "failure", "signal 11"),
        ],
    )
    def test_what_went_wrong(
        self, host: Host, swept: list[tuple[str, ...]], how: dict[str, object], outcome: str, message: str
    ) -> None:
        result = bench(host).run(a_run(Programs(lambda argv: said(argv, **how))))  # type: ignore[arg-type]
        assert result.outcome == outcome
        assert message in result.message
        assert result.operations == ()
        assert len(swept) == 1

    def test_stopped_its_objects_are_removed_all_the_same(self, host: Host, swept: list[tuple[str, ...]]) -> None:
        with pytest.raises(ProbeRefused) as refused:
            bench(host).run(a_run(Programs(lambda argv: said(argv, None, cancelled=True))))
        assert refused.value.reason == "stopped"
        assert len(swept) == 1

    def test_what_is_left_is_a_failure(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ProcessRunner, "run", lambda _self, argv, **_: said(argv, 0, b'{"removed": 3, "left": 2}'))
        result = bench(host).run(
            a_run(Programs(lambda argv: said(argv, 0, (CEPH / "rados-bench-write.json").read_bytes())))
        )
        assert result.outcome is Outcome.FAILURE
        assert "were not removed" in result.message

    def test_without_a_key_or_a_program(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        programs = Programs(said)
        Path(host.ceph.keyring or "").write_text("[client.admin]\n")
        with pytest.raises(ProbeRefused) as refused:
            bench(host).run(a_run(programs))
        assert refused.value.reason == "no-key"
        Path(host.ceph.keyring or "").write_text("[client.plumbline]\n")
        monkeypatch.setattr(shutil, "which", lambda _name: None)
        with pytest.raises(ProbeRefused) as refused:
            bench(host).run(a_run(programs))
        assert refused.value.reason == "tool-missing"
        assert programs.ran == []


def osd_benches(host: Host) -> list[osd_bench.OsdBenchProbe]:
    config = OsdBenchConfig(name="osd-bench", workload="osd-bench-4k")
    return [each for each in plan_probe(config, host).periodic if isinstance(each, osd_bench.OsdBenchProbe)]


class TestOsdBench:
    def test_one_probe_an_osd(self, host: Host) -> None:
        programs = Programs(lambda argv: said(argv, 0, (CEPH / "osd-bench-4k.json").read_bytes()))
        first, second = osd_benches(host)
        assert (second.identity.probe, second.identity.target) == ("osd-bench/osd.1", "osd.1")
        assert (first.identity.device_class, second.identity.device_class) == ("hdd", "ssd")
        result = first.run(a_run(programs))
        assert result.operations[0].iops == 12438.803935198061
        assert [argv[-3:] for argv in programs.ran[1:2]] == [("osd.0", "cache", "drop")]
        assert programs.ran[2][programs.ran[2].index("--name") + 1] == "client.bench"
        assert programs.ran[2][-6:] == ("osd.0", "bench", "12288000", "4096", "4194304", "100")

    def test_the_right_is_missing(self, host: Host) -> None:
        denied = b"Error EACCES: problem getting command descriptions from osd.0\n"
        with pytest.raises(ProbeRefused) as refused:
            osd_benches(host)[0].run(a_run(Programs(lambda argv: said(argv, 13, b"", denied))))
        assert refused.value.reason == "permission"
        assert "ceph setup --osd-bench" in str(refused.value)

    def test_no_user_who_may(self, host: Host) -> None:
        programs = Programs(said)
        plain = replace(host, ceph=CephConfig(conf=host.ceph.conf, keyring=host.ceph.keyring))
        with pytest.raises(ProbeRefused) as refused:
            osd_benches(plain)[0].run(a_run(programs))
        assert (refused.value.reason, programs.ran) == ("no-bench-user", [])

    def test_cephs_own_limits(self, host: Host) -> None:
        def answer(argv: Sequence[str]) -> Completed:
            over = (CEPH / "osd-bench-refused.txt").read_bytes()
            return said(argv, 22, b"", over) if "bench" in argv else said(argv)

        result = osd_benches(host)[0].run(a_run(Programs(answer)))
        assert result.outcome is Outcome.FAILURE
        assert "'count' values greater than 12288000" in result.message

    def test_by_the_admin_socket(self, host: Host) -> None:
        place = host.storage / "run" / "ceph" / "5a1b"
        place.mkdir(parents=True)
        with sockets.socket(sockets.AF_UNIX) as one:
            one.bind(str(place / "ceph-osd.1.asok"))
            first, second = osd_benches(host)
            assert "tell" in first.argv("bench")
            assert second.argv("bench")[-3:] == ("daemon", str(place / "ceph-osd.1.asok"), "bench")
