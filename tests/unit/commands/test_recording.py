"""From a plan to the steps of a recording: what is chosen, what is left out, what makes a run the same experiment."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.record.consistency import Place
from plumbline.baseline.record.level import Level
from plumbline.baseline.record.statistics import EntryRecord
from plumbline.baseline.site import SiteEntry
from plumbline.commands import node as node_module
from plumbline.commands import recording, recording_steps
from plumbline.commands.node import Node
from plumbline.commands.recording_steps import Request, Steps, choose, figures_of, parameters, with_run_duration
from plumbline.config.model import Config
from plumbline.config.probes.ceph import OsdBenchConfig, RadosBenchConfig, RbdFioConfig
from plumbline.config.probes.disk import CanaryConfig, FioConfig
from plumbline.config.probes.network import IperfConfig, PathMtuConfig, RttConfig
from plumbline.config.types import Duration, Endpoint, Size
from plumbline.core.histogram import HistogramValue
from plumbline.core.roots import Roots
from plumbline.errors import BaselineError, ProbeRefused, UnknownName
from plumbline.probes.run import plan as planning
from plumbline.probes.run.plan import ProbingPlan, make_plan
from plumbline.probes.run.reading import CanaryReading, CanaryState, WorkloadReading
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.sources.net.routes import read_lower_ports

PROBES = (
    FioConfig(name="deep", workload="randread-4k-qd16-j1"),
    FioConfig(name="single", workload="randread-4k-qd1-j1", directory="/x"),
    FioConfig(name="capped", workload="randread-4k-qd16-j1", directory="/x", rate_iops=50),
    FioConfig(name="stream", workload="read-4k-qd1-j1", directory="/x"),
    CanaryConfig(name="canary"),
    PathMtuConfig(name="mtu", targets=(Endpoint.parse("127.0.0.1"),)),
    RttConfig(
        name="rtt",
        targets=(
            Endpoint.parse("127.0.0.1"),
            Endpoint.parse("127.0.0.2"),
        ),
    ),
)


def planned(folder: Path, *probes: object) -> ProbingPlan:
    return make_plan(Config(probes=probes or PROBES), storage=folder, roots=Roots.under(folder), environment={})


def names(folder: Path, **wanted: object) -> list[str]:
    return sorted(map(recording_steps.name_of, choose(planned(folder), Request(**wanted))[0]))


def test_all_that_has_figures_is_recorded_and_the_rest_is_named(tmp_path: Path):
    items, left_out = choose(planned(tmp_path), Request())
    assert len(items) == 7
    (path_mtu,) = left_out.items()
    assert path_mtu[0] == "mtu/127.0.0.1"
    assert path_mtu[1].startswith("a path MTU needs no baseline")
    assert planning.recordable(planned(tmp_path)) == frozenset(map(recording_steps.name_of, items))


def test_layers_and_probes_are_chosen_by_name_with_or_without_the_target(tmp_path: Path):
    rtt = ["rtt/127.0.0.1", "rtt/127.0.0.2"]
    assert names(tmp_path, layers=("network",)) == rtt
    assert names(tmp_path, probes=("rtt", "canary")) == ["canary", *rtt]
    assert names(tmp_path, probes=("rtt/127.0.0.2",)) == rtt[1:]
    assert names(tmp_path, probes=("rtt", "canary"), layers=("disk",)) == ["canary"]
    assert names(tmp_path, probes=("rtt",), without=("rtt/127.0.0.2",)) == rtt[:1]
    assert choose(planned(tmp_path), Request(probes=("rtt",), without=("rtt",)))[1] == dict.fromkeys(
        rtt, "on request (--without)"
    )
    for flag in ("probes", "without"):
        with pytest.raises(UnknownName, match=r"record = 'rt': no such probe; there are: canary, capped, deep, .*"):
            names(tmp_path, **{flag: ("rt",)})


class Engine:
    """Answers like :class:`RunOnce`: refusals first, then a result."""

    def __init__(self, *refusals: str) -> None:
        self.refusals = list(refusals)
        self.forced: list[bool] = []

    def periodic(self, probe, *, force, progress) -> ProbeResult:
        self.forced.append(force)
        if self.refusals:
            raise ProbeRefused(self.refusals.pop(0), "not now")
        identity = probe.identity
        operations = tuple(OperationResult(operation=each, iops=9.0, throughput=9.0) for each in identity.operations)
        return ProbeResult(
            probe=identity.probe, layer=identity.layer, device_class="x", workload=identity.workload, config_hash="",
            tool="fio", tool_version="3.33", started=0.0, duration=1.0, outcome=Outcome.SUCCESS, operations=operations,
        )  # fmt: skip

    def canaries(self, name, jobs, *, run_s, bounds, progress, see) -> list[CanaryReading]:
        reading = WorkloadReading(
            layer="disk", workload="w", operation="read", config_hash="", bounds=(), charged=0, errors={"EIO": 2},
            latency=HistogramValue((1.0,), [3], 3, 0.1), in_flight_s=0.0, last_completion_ts=None, last_success_ts=None,
        )  # fmt: skip
        return [
            CanaryReading(
                probe=job.name, device_class="x", state=CanaryState.RUNNING, reason="", message="", in_flight_s=0.0,
                workloads=(reading,), rate_per_s=1.0, runs=1, skips={}, success=False,
            )
            for job in jobs
        ]  # fmt: skip


def test_one_note_says_what_the_recording_was_too_short_for():
    def record(level: Level | None) -> EntryRecord:
        return EntryRecord((), SiteEntry(workload="w", device_class="ssd"), (), (), level)

    def notes(*levels: Level | None) -> list[str]:
        return recording._notes(Request(), list(map(record, levels)))

    assert notes(None, Level(5400.0, {"1m": 0.0, "5m": 0.0, "30m": 0.0})) == []
    assert notes(None, Level(60.0), Level(200.0, {"1m": 0.1})) == [
        "spread of medians left out, because a canary was measured for 1 min and not three times the span: 1m (3 min), "
        "5m (15 min), 30m (1 h 30 min); --run-duration 18m records all"
    ]


def steps(folder: Path, request: Request, engine: Engine | None = None, stopping: threading.Event | None = None):
    items, _ = choose(planned(folder), request)
    made = Steps(engine or Engine(), request, roots=Roots.under(folder), stopping=stopping or threading.Event())
    return {step.name: step for step in made.of(items)}


def tell(_stage: str, _figures: str) -> None:
    """Nobody watches."""


def test_a_search_for_each_place_on_the_shallowest_probe_there_and_only_when_asked_for(tmp_path: Path):
    assert not any(step.last for step in steps(tmp_path, Request()).values())
    found = steps(tmp_path, Request(latency_target_s=0.002))
    searches = {name: step for name, step in found.items() if step.last}
    assert set(searches) == {"deep: IOPS at 2 ms", "single: IOPS at 2 ms"}
    assert {(step.runs, step.layer) for step in searches.values()} == {(1, "disk")}


def test_what_a_cap_allowed_is_no_figure(tmp_path: Path):
    found = steps(tmp_path, Request())
    (capped,) = found["capped"].measure(tell).figures
    (free,) = found["single"].measure(tell).figures
    assert (capped.iops, capped.throughput) == (None, None)
    assert (free.iops, free.throughput) == (9.0, 9.0)


def test_a_run_waits_for_what_passes_and_for_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recording_steps, "_AGAIN_S", 0.01)
    engine = Engine("locked", "device-busy", "load")
    said: list[str] = []
    steps(tmp_path, Request(), engine)["single"].measure(lambda stage, _figures: said.append(stage))
    assert said == ["waiting: not now"] * 3
    assert engine.forced == [False] * 4
    for reason in ("health", "not-ours", "quiet-hours", "recovery"):
        with pytest.raises(ProbeRefused):
            steps(tmp_path, Request(), Engine(reason))["single"].measure(tell)
    monkeypatch.setattr(recording_steps, "WAIT_S", 0.0)
    with pytest.raises(ProbeRefused):
        steps(tmp_path, Request(), Engine("locked"))["single"].measure(tell)


def test_a_stop_ends_the_waiting(tmp_path: Path):
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(ProbeRefused) as refused:
        steps(tmp_path, Request(), Engine("locked"), stopping)["single"].measure(tell)
    assert refused.value.reason == "stopped"


def test_a_canary_whose_operations_fail_is_no_baseline(tmp_path: Path):
    with pytest.raises(BaselineError, match="canary: failed operations: 2 EIO"):
        steps(tmp_path, Request())["canary"].measure(tell)


def test_a_run_that_failed_is_no_figure():
    result = ProbeResult(
        probe="p", layer="disk", device_class="x", workload="w", config_hash="", tool="fio", tool_version="",
        started=0.0, duration=1.0, outcome=Outcome.TIMEOUT, message="too slow",
    )  # fmt: skip
    assert list(figures_of(result, capped=False)) == []
    with pytest.raises(BaselineError, match="p: timeout: too slow"):
        recording_steps._check(result)


def test_the_hash_of_a_step_changes_with_what_is_measured_and_not_with_when(tmp_path: Path):
    def of(**changes: object) -> str:
        config = FioConfig(**{"name": "a", "workload": "randread-4k-qd16-j1", **changes})
        return parameters(planned(tmp_path, config).periodic, 1.0)

    plain = of()
    for same in ({"interval": Duration(7200.0)}, {"timeout": Duration(99.0)}, {"max_load_per_cpu": 9.0}):
        assert of(**same) == plain
    for other in (
        {"runtime": Duration(3.0)},
        {"file_size": Size(2**20)},
        {"directory": "/y"},
        {"workload": "randread-4k-qd1-j1"},
        {"rate_iops": 9},
        {"device_class": "ssd"},
        {"name": "b"},
    ):
        assert of(**other) != plain


def test_another_length_of_runs_changes_nothing_that_is_compared(tmp_path: Path):
    config = Config(
        probes=(
            FioConfig(name="fio", workload="randread-4k-qd16-j1", timeout=Duration(30.0)),
            IperfConfig(name="net", targets=(Endpoint.parse("127.0.0.1"),)),
            RadosBenchConfig(name="bench"),
            RbdFioConfig(name="rbd"),
            OsdBenchConfig(name="osd", osds=("osd.1",)),
            CanaryConfig(name="canary"),
            FioConfig(name="often", workload="randread-4k-qd16-j1", interval=Duration(120.0)),
        )
    )
    assert with_run_duration(config, None) is config
    short = {probe.name: probe for probe in with_run_duration(config, 0.5).probes}
    assert [short[name].runtime for name in ("fio", "net", "bench", "rbd")] == [1.0, 1.0, 1.0, 1.0]
    assert short["fio"].timeout == 30
    long = {probe.name: probe for probe in with_run_duration(config, 60.0).probes}
    assert long["fio"].timeout > 60
    assert long["often"].interval == 2 * long["often"].timeout > 120
    assert long["osd"] == config.probes[4]
    changed = planned(tmp_path, *with_run_duration(config, 0.5).probes[:2])
    before = planned(tmp_path, *config.probes[:2])
    assert [each.config_hash for each in changed.identities()] == [each.config_hash for each in before.identities()]


def test_the_ports_at_the_bottom_of_a_stack(tmp_path: Path):
    for upper, lower in (("bond0.100", "bond0"), ("bond0", "ens1"), ("bond0", "ens2"), ("br0", "ens3")):
        (tmp_path / "sys/class/net" / upper / f"lower_{lower}").mkdir(parents=True)
    roots = Roots.under(tmp_path)
    assert [read_lower_ports(device, roots) for device in ("bond0.100", "bond0", "br0", "ens1", "gone")] == [
        2, 2, 1, 1, 1,
    ]  # fmt: skip
    assert Place(holds_osds=True).links == {}


# --- the whole, with an engine that gives what it is told


class Told:
    """Stands for :class:`RunOnce`: each run of fio gives the next median."""

    def __init__(self, *medians: float) -> None:
        self.left = list(medians)

    def __call__(self, **_world: object) -> Told:
        return self

    def periodic(self, probe, *, force, progress) -> ProbeResult:
        p50 = self.left.pop(0)
        operation = OperationResult(operation="read", latency={"mean": p50, "p50": p50}, iops=1 / p50)
        identity = probe.identity
        return ProbeResult(
            probe=identity.probe, layer="disk", device_class=identity.device_class, workload=identity.workload,
            config_hash=identity.config_hash, tool="fio", tool_version="3.33", started=0.0, duration=1.0,
            outcome=Outcome.SUCCESS, operations=(operation,),
        )  # fmt: skip


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, engine: Told, **more: object) -> recording.Recording:
    config = Config(probes=(FioConfig(name="fio", workload="randread-4k-qd1-j1", device_class="hdd"),))
    roots = Roots.under(folder)
    plan = make_plan(config, storage=folder, roots=roots, environment={})
    node = Node(None, config, roots, folder / "state", "stor01", plan, ())
    monkeypatch.setattr(node_module, "RunOnce", engine)
    monkeypatch.setattr(recording, "read_fingerprint", lambda *_args, **_more: Fingerprint(kernel="6.12"))
    request = Request(runs=3, force=bool(more.pop("force", False)))
    return recording.record_here(node, request, stopping=threading.Event(), **more)


def test_a_restless_host_is_refused_and_force_writes_what_was_measured_with_a_note(tmp_path, monkeypatch):
    said: list[str] = []
    with pytest.raises(BaselineError, match=r"run 2 of 3 had a median of 50 ms; .*Nothing was written") as refused:
        record(tmp_path, monkeypatch, Told(0.008, 0.05, 0.008))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "state/baseline.yaml").exists()
    done = record(tmp_path, monkeypatch, Told(), force=True, say=said.append)
    assert said == ["continuing with 3 finished runs of an earlier recording; --restart measures them again"]
    assert any("accepted by --force: fio, randread-4k-qd1-j1 read: run 2 of 3" in note for note in done.file.notes)
    assert {path.name for path in (tmp_path / "state").iterdir()} == {
        ".plumbline-storage",
        "record.lock",
        "baseline.yaml",
    }


def test_figures_that_cannot_be_true_are_refused_and_force_writes_the_reason_into_the_file(tmp_path, monkeypatch):
    with pytest.raises(
        BaselineError, match=r"p50 100 µs; even the fastest rotating disk takes 2 ms .*Nothing was written"
    ):
        record(tmp_path, monkeypatch, Told(0.0001, 0.0001, 0.0001))
    done = record(tmp_path, monkeypatch, Told(), force=True)
    text = done.path.read_text()
    assert "accepted by --force: disk hdd randread-4k-qd1-j1 read: p50 100 µs" in " ".join(text.split())


def test_restart_measures_anew_and_replace_keeps_the_old_file(tmp_path, monkeypatch):
    with pytest.raises(BaselineError):
        record(tmp_path, monkeypatch, Told(0.0001, 0.0001, 0.0001))
    done = record(tmp_path, monkeypatch, Told(0.008, 0.009, 0.008), restart=True)
    assert done.kept is None
    with pytest.raises(BaselineError, match="exists already"):
        record(tmp_path, monkeypatch, Told())
    again = record(tmp_path, monkeypatch, Told(0.007, 0.007, 0.007), replace=True)
    assert again.kept == tmp_path / "state/baseline.yaml.bak"
    assert again.records[0].entry.latency.p50 is not None
    assert again.records[0].entry.latency.p50.text == "7ms"
