"""The RBD probes with a scripted rbd and fio: what they are told, what they refuse, how a layout goes on."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from plumbline.config.model import CephConfig
from plumbline.config.probes.ceph import RbdBenchConfig, RbdFioConfig
from plumbline.config.types import Duration, Size
from plumbline.config.workloads import BlockWorkload, Pattern, WorkloadCatalogue, load_catalogue
from plumbline.core.process import Completed
from plumbline.core.roots import Roots
from plumbline.errors import ProbeRefused
from plumbline.probes.rbd import rbd_image
from plumbline.probes.rbd.rbd_bench import RbdBenchProbe, bench_argv
from plumbline.probes.rbd.rbd_commands import Commands
from plumbline.probes.rbd.rbd_fio import RbdFioProbe, measure_argv
from plumbline.probes.rbd.rbd_image import layout_argv
from plumbline.probes.run.kinds import plan_probe
from plumbline.probes.run.model import Host, Progress, Run
from plumbline.probes.run.result import Outcome
from plumbline.probes.run.tool import FIO, RBD

pytestmark = pytest.mark.usefixtures("private_files")

FIXTURES = Path(__file__).parents[3] / "fixtures"
REPORT = (FIXTURES / "ceph-16.2" / "fio-rbd-randwrite.json").read_bytes().replace(b'"randwrite-4k"', b'"plumbline"')
BENCH = (FIXTURES / "ceph-16.2" / "rbd-bench-write.txt").read_bytes()
MIB = 1 << 20
WATCHED = [{"address": "127.0.0.1:0/7", "client": 41}]
FAR = [{"address": "192.0.2.7:0/7", "client": 42}]


@pytest.fixture
def here(tmp_path: Path) -> Host:
    conf, keyring = tmp_path / "ceph.conf", tmp_path / "keyring"
    conf.write_text("[global]\nmon_host = 192.0.2.1\n")
    keyring.write_text("[client.plumbline]\n key = x\n")
    mixed = BlockWorkload(
        id="mixed", layer="rbd", pattern=Pattern.RANDRW, block_size=8192, iodepth=4, jobs=2, rwmix_read=75
    )
    buffered = replace_workload(mixed, id="buffered", direct=False, pattern=Pattern.READ, rwmix_read=50)
    return Host(
        storage=tmp_path,
        roots=Roots.under(tmp_path),
        catalogue=WorkloadCatalogue({**load_catalogue().by_id, "mixed": mixed, "buffered": buffered}),
        ceph=CephConfig(conf=str(conf), keyring=str(keyring)),
        environment={},
        disk_below=lambda _path: None,
        disks=tuple,
        osd_disks=dict,
    )


def replace_workload(workload: BlockWorkload, **changes: object) -> BlockWorkload:
    return replace(workload, **changes)


def fio_probe(here: Host, **changes: object) -> RbdFioProbe:
    settings = {"name": "a", "image_size": Size(128 * MIB)} | changes
    (probe,) = plan_probe(RbdFioConfig(**settings), here).periodic
    assert isinstance(probe, RbdFioProbe)
    return named(probe)


def bench_probe(here: Host, **changes: object) -> RbdBenchProbe:
    settings = {"name": "b", "image_size": Size(64 * MIB), "total": Size(8 * MIB)} | changes
    (probe,) = plan_probe(RbdBenchConfig(**settings), here).periodic
    assert isinstance(probe, RbdBenchProbe)
    return named(probe)


P = TypeVar("P", RbdFioProbe, RbdBenchProbe)


def named(probe: P) -> P:
    """On a host of a known name, with tools that are there."""

    def there(_name: str) -> str:
        return "/dev/null"

    image = replace(probe.plan.image, host="node-1")
    return replace(
        probe, plan=replace(probe.plan, image=image), tool=replace(FIO, which=there), rbd=replace(RBD, which=there)
    )


@dataclass
class Cluster:
    """A scripted ``rbd`` and ``fio``: one image, or none."""

    size: int | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    info: dict[str, object] = field(default_factory=dict)
    watchers: list[list[dict[str, object]]] = field(default_factory=list)
    """At each look; the last for ever."""
    written: bool = False
    fails: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Verb → exit status and what is said."""
    measured: Completed | None = None
    asked: list[tuple[str, ...]] = field(default_factory=list)
    layouts: list[tuple[str, ...]] = field(default_factory=list)
    on_layout: Callable[[], None] = lambda: None

    def run(self, argv: Sequence[str], **_more: object) -> Completed:
        words = tuple(argv)
        if "--version" in words:
            return answer(
                words, b"ceph version 16.2.15 (618f) pacific (stable)\n" if words[0] == "rbd" else b"fio-3.33"
            )
        if "fio" in words:
            return self._fio(words)
        verbs = ("info", "create", "image-meta", "status", "diff", "config", "bench")
        at = next(index for index, word in enumerate(words) if word in verbs)
        asked = words[at:]
        self.asked.append(asked)
        if asked[0] in self.fails:
            code, said = self.fails[asked[0]]
            return Completed(words, code, stderr=said.encode(), timed_out=code == -1)
        return answer(words, getattr(self, "_" + asked[0].replace("-", "_"))(asked), missing=self.size is None)

    def _fio(self, words: tuple[str, ...]) -> Completed:
        if "--name=layout" in words:
            self.layouts.append(words)
            self.on_layout()
            return answer(words, b"")
        return replace(self.measured, argv=words) if self.measured else answer(words, REPORT)

    def _info(self, _asked: tuple[str, ...]) -> bytes | None:
        return None if self.size is None else json.dumps({"size": self.size, **self.info}).encode()

    def _create(self, asked: tuple[str, ...]) -> bytes:
        self.size = int(asked[2].removesuffix("B"))
        return b""

    def _image_meta(self, asked: tuple[str, ...]) -> bytes:
        if asked[1] == "list":
            return json.dumps(self.metadata).encode() if self.metadata else b""
        self.metadata[asked[3]] = asked[4]
        return b""

    def _status(self, _asked: tuple[str, ...]) -> bytes:
        now = self.watchers.pop(0) if len(self.watchers) > 1 else next(iter(self.watchers), [])
        return json.dumps({"watchers": now}).encode()

    def _diff(self, _asked: tuple[str, ...]) -> bytes:
        return b'[{"offset":0,"length":4194304,"exists":"true"}]' if self.written else b"[]"

    def _config(self, asked: tuple[str, ...]) -> bytes:
        self.metadata[f"conf_{asked[4]}"] = asked[5]
        return b""

    def _bench(self, _asked: tuple[str, ...]) -> bytes:
        return BENCH

    def verbs(self) -> list[str]:
        return [" ".join(asked[:2]) if asked[0] == "image-meta" else asked[0] for asked in self.asked]


def answer(words: tuple[str, ...], output: bytes | None, *, missing: bool = False) -> Completed:
    if output is None or (missing and output == b""):
        return Completed(words, 2, stderr=b"rbd: error opening image x: (2) No such file or directory")
    return Completed(words, 0, stdout=output)


def run_in(cluster: Cluster, stages: list[str] | None = None) -> Run:
    def progress(each: Progress) -> None:
        if stages is not None:
            stages.append(each.stage)

    return Run(cluster, lambda: 1000.0, threading.Event(), progress=progress)


def ours(**metadata: str) -> dict[str, str]:
    return {"plumbline.owner": "node-1/a", "plumbline.laid-out": str(128 * MIB), "conf_rbd_cache": "false"} | metadata


def refusal(probe: RbdFioProbe | RbdBenchProbe, cluster: Cluster) -> ProbeRefused:
    with pytest.raises(ProbeRefused) as raised:
        probe.run(run_in(cluster))
    return raised.value


def test_what_fio_is_told(here: Host) -> None:
    probe = fio_probe(here, workload="mixed", rate_iops=100, runtime=Duration(5))
    assert measure_argv(probe.plan) == (
        "env", f"CEPH_CONF={here.ceph.conf}", f"CEPH_KEYRING={here.ceph.keyring}", "fio", "--name=plumbline",
        "--ioengine=rbd", "--clientname=plumbline", "--pool=plumbline-rbd", "--rbdname=plumbline-node-1-a",
        "--thread=1", "--refill_buffers=1", "--exitall_on_error=1", "--eta=never", "--group_reporting=1",
        "--size=134217728", "--numjobs=2", "--rw=randrw", "--bs=8192", "--iodepth=4", "--rwmixread=75",
        "--rate_iops=75,25", "--time_based=1", "--runtime=5000ms", "--randrepeat=0", "--lat_percentiles=1",
        "--clat_percentiles=0", "--percentile_list=50:95:99:99.9", "--output-format=json+",
    )  # fmt: skip


def test_a_read_can_only_read(here: Host) -> None:
    assert "--readonly" in measure_argv(fio_probe(here, workload="rbd-randread-4k-qd1-j1").plan)
    assert "--readonly" not in measure_argv(fio_probe(here).plan)


def test_what_lays_an_image_out(here: Host) -> None:
    argv = layout_argv(fio_probe(here).plan.image, 64 * MIB, 32 * MIB, bytes_per_s=33e6)
    assert {"--rw=write", "--bs=4194304", "--offset=67108864", "--size=33554432", "--rate=33000000"} <= set(argv)
    small = layout_argv(fio_probe(here).plan.image, 0, MIB, bytes_per_s=1.0)
    assert {"--bs=1048576", "--rate=1048576"} <= set(small)


def test_what_rbd_bench_is_told(here: Host) -> None:
    argv = bench_argv(bench_probe(here, total=Size(1 << 40)).plan)
    assert argv[:5] == ("rbd", "--conf", here.ceph.conf, "--name", "client.plumbline")
    assert argv[argv.index("bench") :] == (
        "bench", "--io-type", "write", "--io-size", "4096", "--io-threads", "16", "--io-total", str(64 * MIB),
        "--io-pattern", "seq", "plumbline-rbd/plumbline-node-1-b",
    )  # fmt: skip


def test_no_name_reaches_into_another_pool(here: Host) -> None:
    image = replace(fio_probe(here).plan.image, host="a/b@c")
    assert image.spec == "plumbline-rbd/plumbline-a-b-c-a"


def test_the_first_run_makes_marks_and_fills(here: Host) -> None:
    cluster, stages = Cluster(), []
    result = fio_probe(here).run(run_in(cluster, stages))
    assert (result.outcome, result.message, result.tool_version) == (Outcome.SUCCESS, "", "3.33")
    assert cluster.size == 128 * MIB
    assert cluster.metadata == ours()
    assert cluster.verbs() == [
        "info", "create", "info", "image-meta list", "status", "diff", "image-meta set", "config",
        "image-meta set", "image-meta set",
    ]  # fmt: skip
    assert cluster.asked[1][3:5] == ("--image-feature", "layering")
    assert [next(word for word in words if word.startswith("--offset")) for words in cluster.layouts] == [
        "--offset=0", "--offset=67108864",
    ]  # fmt: skip
    assert stages[0] == "creating plumbline-rbd/plumbline-node-1-a"
    assert stages[-1] == "measuring"
    (operation,) = result.operations
    assert operation.operation == "write"
    assert 0 < operation.latency["mean"] < operation.latency["max"]


def test_the_next_run_only_looks_and_measures(here: Host) -> None:
    cluster = Cluster(size=128 * MIB, metadata=ours())
    assert fio_probe(here).run(run_in(cluster)).outcome is Outcome.SUCCESS
    assert cluster.verbs() == ["info", "image-meta list", "status"]
    assert cluster.layouts == []


def test_a_layout_goes_on_where_it_stopped(here: Host) -> None:
    cluster = Cluster(size=128 * MIB, metadata=ours(**{"plumbline.laid-out": str(64 * MIB)}))
    assert fio_probe(here).run(run_in(cluster)).outcome is Outcome.SUCCESS
    (words,) = cluster.layouts
    assert "--offset=67108864" in words
    assert cluster.metadata == ours()


@pytest.mark.parametrize("said", ["", "half", "-1", "٣", "9" * 30])
def test_a_spoiled_note_of_the_layout_begins_it_anew(here: Host, said: str) -> None:
    cluster = Cluster(size=128 * MIB, metadata=ours(**{"plumbline.laid-out": said}))
    assert fio_probe(here).run(run_in(cluster)).outcome is Outcome.SUCCESS
    assert len(cluster.layouts) == 2


def test_a_layout_that_takes_all_the_time_leaves_the_rest_to_the_next_run(
    here: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(rbd_image, "Commands", functools.partial(Commands, clock=lambda: now[0]))
    cluster = Cluster(size=128 * MIB, metadata=ours(**{"plumbline.laid-out": "0"}))
    cluster.on_layout = lambda: now.__setitem__(0, now[0] + 55)
    result = fio_probe(here).run(run_in(cluster))
    assert result.outcome is Outcome.TIMEOUT
    assert "wrote 64 of 128 MiB; the next run continues" in result.message
    assert cluster.metadata["plumbline.laid-out"] == str(64 * MIB)
    assert result.duration == 55


def test_the_cache_is_as_the_workload_says(here: Host) -> None:
    cluster = Cluster(size=128 * MIB, metadata=ours())
    fio_probe(here, workload="buffered").run(run_in(cluster))
    assert cluster.metadata["conf_rbd_cache"] == "true"
    left = Cluster()
    bench_probe(here).run(run_in(left))
    assert "conf_rbd_cache" not in left.metadata


def test_a_bench_has_no_latency(here: Host) -> None:
    result = bench_probe(here).run(run_in(Cluster()))
    assert (result.outcome, result.message, result.tool_version) == (Outcome.SUCCESS, "", "16.2.15")
    (operation,) = result.operations
    assert (operation.operation, operation.iops, operation.latency) == ("write", 2666.67, {})


@pytest.mark.parametrize(
    ("cluster", "reason", "said"),
    [
        (Cluster(size=128 * MIB, metadata=ours(**{"plumbline.owner": "node-2/a"})), "not-ours", "'node-2/a'"),
        (Cluster(size=128 * MIB, written=True), "not-ours", "holds data and lacks our mark"),
        (Cluster(size=128 * MIB, info={"snapshot_count": 1}), "not-ours", "lacks our mark"),
        (Cluster(size=128 * MIB, info={"parent": {"pool": "x"}}), "not-ours", "lacks our mark"),
        (Cluster(size=64 * MIB), "not-ours", "lacks our mark"),
        (Cluster(size=64 * MIB, metadata=ours()), "other-size", "set image_size back, or remove the image"),
        (Cluster(size=128 * MIB, metadata=ours(), watchers=[FAR]), "in-use", "client.42 at 192.0.2.7:0/7 has it open"),
        (Cluster(fails={"info": (2, "rbd: error opening pool 'p': (2) No such")}), "no-pool", "plumbline ceph setup"),
        (Cluster(fails={"info": (1, "rbd: error opening image x: (1) Operation")}), "permission", "client.plumbline"),
        (Cluster(fails={"info": (110, "rbd: couldn't connect to the cluster!")}), "unreachable", "no answer in time"),
        (Cluster(fails={"info": (13, "rbd: couldn't connect to the cluster!")}), "permission", "refuse the key"),
        (Cluster(fails={"info": (-1, "")}), "unreachable", "rbd info: no answer in time"),
        (Cluster(fails={"create": (122, "rbd: create error: (122) Disk quota")}), "full", "raise its quota"),
        (Cluster(fails={"create": (30, "rbd: create error: (30) what")}), "rbd-failed", "(exit status 30)"),
        (Cluster(size=128 * MIB, info={"size": "much"}), "rbd-failed", "rbd info: unexpected output"),
    ],
)  # fmt: skip
def test_refusals_touch_nothing(here: Host, cluster: Cluster, reason: str, said: str) -> None:
    size, metadata = cluster.size, dict(cluster.metadata)
    refused = refusal(fio_probe(here), cluster)
    assert refused.reason == reason
    assert said in str(refused)
    assert (cluster.size, cluster.metadata, cluster.layouts) == (size, metadata, [])


def test_our_own_killed_run_is_waited_for(here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(size=128 * MIB, metadata=ours(), watchers=[WATCHED, WATCHED, []])
    monkeypatch.setattr("plumbline.probes.rbd.rbd_image._LOOK_AGAIN_S", 0.01)
    stages: list[str] = []
    assert fio_probe(here).run(run_in(cluster, stages)).outcome is Outcome.SUCCESS
    assert stages.count("waiting for the end of an earlier run: client.41 at 127.0.0.1:0/7") == 2


def test_one_of_this_host_that_stays_is_refused(here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbline.probes.rbd.rbd_image._LOOK_AGAIN_S", 0.01)
    monkeypatch.setattr("plumbline.probes.rbd.rbd_image._WATCH_ENDS_S", 0.05)
    cluster = Cluster(size=128 * MIB, metadata=ours(), watchers=[WATCHED])
    assert refusal(fio_probe(here), cluster).reason == "in-use"


@pytest.mark.parametrize(
    ("ended", "outcome", "said"),
    [
        (Completed((), 1, stderr=b"rados_connect failed.\nfio_rbd_connect failed."), Outcome.FAILURE, "rados_connect"),
        (Completed((), -9, timed_out=True), Outcome.TIMEOUT, "not finished within 60 s"),
        (Completed((), None, timed_out=True), Outcome.TIMEOUT, "not finished within 60 s"),
        (Completed((), 0, stdout=b"nothing"), Outcome.FAILURE, "holds no JSON document"),
        (Completed((), -15, truncated=True, stdout=b"a lot"), Outcome.FAILURE, "writing too much"),
        (Completed((), 0, stdout=REPORT.replace(b'"error" : 0', b'"error" : 28')), Outcome.FAILURE, "No space left"),
        (
            Completed((), 1, stdout=b"fio: io_u error on file rbd: Input/output error\n{\n}\n", stderr=b"x"),
            Outcome.FAILURE,
            "fio: io_u error on file rbd",
        ),
    ],
)
def test_what_began_and_went_wrong_is_a_result(here: Host, ended: Completed, outcome: Outcome, said: str) -> None:
    result = fio_probe(here).run(run_in(Cluster(size=128 * MIB, metadata=ours(), measured=ended)))
    assert result.outcome is outcome
    assert said in result.message
    assert result.operations == ()


def test_a_fio_without_the_engine_is_a_missing_tool(here: Host) -> None:
    lacking = Completed((), 1, stderr=b"fio: engine rbd not loadable\nfio: failed to load engine")
    refused = refusal(fio_probe(here), Cluster(size=128 * MIB, metadata=ours(), measured=lacking))
    assert refused.reason == "tool-missing"


def test_without_rbd_nothing_is_asked(here: Host) -> None:
    cluster = Cluster()
    for probe in (fio_probe(here), bench_probe(here)):
        refused = refusal(replace(probe, rbd=replace(RBD, which=lambda _name: None)), cluster)
        assert refused.reason == "tool-missing"
        assert "install the package ceph-common" in str(refused)
    assert cluster.asked == []


def test_a_stopped_command_ends_the_run(here: Host) -> None:
    cluster = Cluster(size=128 * MIB, metadata=ours(), measured=Completed((), -15, cancelled=True))
    assert refusal(fio_probe(here), cluster).reason == "stopped"


def test_a_node_without_a_cluster_or_a_key_asks_nobody(here: Host) -> None:
    Path(here.ceph.keyring or "").unlink()
    cluster = Cluster()
    assert refusal(fio_probe(here), cluster).reason == "no-key"
    Path(here.ceph.conf).unlink()
    assert refusal(fio_probe(here), cluster).reason == "no-cluster"
    assert cluster.asked == []


def test_identity(here: Host) -> None:
    identity = fio_probe(here, rate_iops=50).identity
    assert (identity.probe, identity.kind, identity.layer, identity.tool) == ("a", "rbd-fio", "rbd", "fio")
    assert identity.cluster
    assert identity.operations == ("write",)
    assert identity.config_hash != fio_probe(here).identity.config_hash
    assert fio_probe(here).identity == fio_probe(here).identity
    assert fio_probe(here, device_class="ec-hdd").identity.device_class == "ec-hdd"
    assert bench_probe(here).identity.kind == "rbd-bench"
    assert fio_probe(here).identity.device_class == "unknown"
    told = replace(here, pool_class={"plumbline-rbd": "nvme"}.get)
    assert fio_probe(told).identity.device_class == bench_probe(told).identity.device_class == "nvme"
