"""``plumbline probe``: what is picked, listed, compared and shown."""

from __future__ import annotations

import io
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from plumbline.baseline.book import Book
from plumbline.baseline.comparison import ReferenceFigure, reference_figures
from plumbline.baseline.model import BaselineEntry, Source
from plumbline.baseline.selection import select
from plumbline.checks.disk_flush import WORKLOAD
from plumbline.commands import probe_run
from plumbline.commands.probe_list import daemon_runs, list_probes, parse_flocks, print_probes, schedule_text
from plumbline.config.model import CephConfig, Config, GatesConfig
from plumbline.config.probes.ceph import (
    OsdBenchConfig,
    RadosBenchConfig,
    RadosCanaryConfig,
    RbdBenchConfig,
    RbdFioConfig,
)
from plumbline.config.probes.disk import CanaryConfig, FioConfig
from plumbline.config.types import Duration, Schedule, Size
from plumbline.core.roots import Roots
from plumbline.errors import UnknownName
from plumbline.probes.ceph.cluster import CephGuard
from plumbline.probes.run import plan as planning
from plumbline.probes.run import run_now as ondemand
from plumbline.probes.run.guard import prepare_directory
from plumbline.probes.run.model import Progress
from plumbline.probes.run.plan import ProbingPlan, make_plan
from plumbline.probes.run.result import Outcome, ProbeResult
from plumbline.probes.run.run_now import OnDemand, OperationReport, Report, check_storage
from plumbline.probes.run.single_run import RunOnce
from plumbline.probes.run.state import ProbeRecord, StateStore
from support.disks import disk_folder

NOW = 1_700_000_000.0
ENTRY = BaselineEntry(
    layer="disk", device_class="ssd", workload="w", operation="read", source=Source.SITE, profile="ours",
    config_hash="h", latency={"p50": 0.001, "p99": 0.004}, iops=1000.0, tolerance_ratio=1.3,
)  # fmt: skip


def plan(*probes: CanaryConfig | FioConfig, storage: Path = Path("/nowhere")) -> ProbingPlan:
    return make_plan(Config(probes=probes), storage=storage, roots=Roots.under(storage), environment={})


def fio(name: str, **changes: object) -> FioConfig:
    return FioConfig(name=name, workload="randwrite-4k-qd1-j1", device_class="ssd", **changes)  # type: ignore[arg-type]


# --- figures beside a baseline


def test_a_ratio_says_how_much_worse_whichever_way_a_figure_counts() -> None:
    found = reference_figures(
        ENTRY, judges=True, latency={"mean": 0.5, "p50": 0.0012, "p99": 0.008}, iops=500.0, throughput=1.0
    )
    assert found == (
        ReferenceFigure("latency.mean", 0.5),
        ReferenceFigure("latency.p50", 0.0012, 0.001, pytest.approx(1.2), True),
        ReferenceFigure("latency.p99", 0.008, 0.004, pytest.approx(2.0), False),
        ReferenceFigure("iops", 500.0, 1000.0, pytest.approx(2.0), False),
        ReferenceFigure("throughput", 1.0),
    )


def test_what_is_only_shown_judges_nothing() -> None:
    (figure,) = reference_figures(ENTRY, judges=False, latency={"p50": 0.002})
    assert (figure.ratio, figure.within) == (pytest.approx(2.0), None)
    assert reference_figures(None, judges=False, latency={"p50": 0.002}) == (ReferenceFigure("latency.p50", 0.002),)


@pytest.mark.parametrize(
    ("figure", "tolerance", "text", "style"),
    [
        (ReferenceFigure("latency.p50", 2.0, 1.0, 2.0, False), 1.3, "2.0× slower", "bold red"),
        (ReferenceFigure("latency.p50", 1.1, 1.0, 1.1, True), 1.3, "as accepted", "green"),
        (ReferenceFigure("latency.p50", 0.5, 1.0, 0.5, True), 1.3, "2.0× faster", "green"),
        (ReferenceFigure("iops", 100.0, 300.0, 3.0, None), None, "3.0× less", ""),
        (ReferenceFigure("iops", 100.0, 101.0, 1.01, None), None, "about the same", ""),
        (ReferenceFigure("iops", 100.0), None, "", ""),
    ],
)
def test_the_ratio_in_words(figure: ReferenceFigure, tolerance: float | None, text: str, style: str) -> None:
    shown = probe_run.compared(figure, tolerance)
    assert (shown.plain, shown.style) == (text, style)


def said(act: Callable[[Console], None]) -> str:
    stream = io.StringIO()
    act(Console(file=stream, highlight=False, markup=False, width=200))
    return stream.getvalue()


def test_a_report_for_a_person() -> None:
    figures = reference_figures(ENTRY, judges=True, latency={"p50": 0.002}, iops=900.0)
    operation = OperationReport("read", figures, {"retransmits": 119.0}, "site: ours", True, 1.3)
    report = Report(
        "fio-a", "disk", "ssd", "w", "sdb", "h", "fio", "3.33", NOW, 10.0, "success", operations=(operation,)
    )
    text = said(lambda console: probe_run.print_report(console, report))
    assert text.splitlines() == [
        "fio-a: w on disk ssd sdb, 10 s (fio 3.33)",
        "Operation  Figure       Measured  Baseline    Compared     Source",
        "read       p50          2 ms      1 ms        2.0× slower  site: ours",
        "read       iops         900 IOPS  1,000 IOPS  as accepted  site: ours",
        "read       retransmits  119",
    ]
    refused = replace(report, outcome="refused", reason="load", message="the load is 9")
    assert said(lambda console: probe_run.print_report(console, refused)) == "fio-a: refused (load): the load is 9\n"


def test_durable_writes_are_judged_beside_their_figures(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[3] / "fixtures" / "disks-storage-node"
    shutil.copytree(fixture, tmp_path, symlinks=True, dirs_exist_ok=True)
    (tmp_path / "sys/block/nvme0n1/queue/write_cache").write_text("write back\n")
    operation = OperationReport("write", (), {}, rates=(9000.0,) * 60)
    report = Report(
        "journal", "disk", "nvme", WORKLOAD, "", "h", "fio", "3.33", NOW, 60.0, "success", operations=(operation,),
        device="nvme0n1",
    )  # fmt: skip

    def lines(of: Report) -> list[str]:
        return said(lambda console: probe_run.print_flushes(console, of, Roots.under(tmp_path))).splitlines()

    written = "9,000 durable writes/s (middle half 9,000 to 9,000)"
    expected = "at most 5,000/s without power-loss protection, or write through"
    assert lines(report)[0] == f"nvme0n1: {written}; write back; expected: {expected}"
    assert "acknowledges flushes faster than flash can store them" in " ".join(lines(report))
    (line,) = lines(replace(report, device="dm-9"))
    assert line == f"write: {written}; not judged: not a disk of this host itself"
    assert lines(replace(report, operations=(replace(operation, rates=(9000.0,) * 9),))) == []
    assert lines(replace(report, workload="randwrite-4k-qd1-j1-dsync")) == []


# --- names and lists


def test_a_name_means_all_its_targets_and_each_once() -> None:
    made = plan(CanaryConfig(name="canary"), fio("a"), fio("ab"))
    one, two = (replace(probe, plan=replace(probe.plan, probe=name)) for probe, name in
                zip(made.periodic, ("a/sda", "a/sdb"), strict=True))  # fmt: skip
    several = ProbingPlan((one, two, made.periodic[1]), made.continuous)

    def picked(*names: str) -> list[str]:
        return [ondemand.name_of(item) for item in ondemand.pick(several, names)]

    assert picked("a") == ["a/sda", "a/sdb"]
    assert picked("a/sdb", "a") == ["a/sdb", "a/sda"]
    assert picked("canary", "ab") == ["canary", "ab"]
    with pytest.raises(UnknownName, match=r"there are: a/sda, a/sdb, ab, canary"):
        picked("a/")


def test_the_list_shows_what_is_remembered() -> None:
    made = plan(CanaryConfig(name="canary"), fio("a"), fio("night", at=Schedule("Sun 03:00")))
    (job, _) = made.periodic
    result = ProbeResult(
        probe="a", layer="disk", device_class="ssd", workload="w", config_hash=job.identity.config_hash, tool="fio",
        tool_version="3", started=NOW - 3600, duration=10.0, outcome=Outcome.FAILURE, message="broken",
    )  # fmt: skip
    records = {"a": ProbeRecord().with_result(result)}
    canary, _, a, night = list_probes(made, records, host="h", now=NOW, daemon=True)
    assert (canary.schedule, canary.result) == ("continuous", None)
    assert (a.result, a.message, a.finished, a.next_start) == ("failure", "broken", NOW - 3590, NOW - 3600 + 6 * 3600)
    assert (night.result, night.schedule) == (None, "Sun 03:00")
    assert night.next_start is not None
    assert NOW < night.next_start <= NOW + 7 * 86400 + 1800
    text = said(lambda console: print_probes(console, [canary, a, night], now=NOW, daemon=True))
    assert "every 6h" in text
    assert "a: broken" in text.splitlines()
    silent = list_probes(made, records, host="h", now=NOW, daemon=False)
    assert {row.next_start for row in silent} == {None}


@pytest.mark.parametrize(
    ("seconds", "text"), [(30.0, "every 30s"), (5400.0, "every 90m"), (21600.0, "every 6h"), (604800.0, "every 1w")]
)
def test_a_schedule_as_it_is_configured(seconds: float, text: str) -> None:
    assert schedule_text(fio("a", interval=Duration(seconds), timeout=Duration(15))) == text


def test_a_daemon_is_seen_by_its_lock_without_taking_it(tmp_path: Path) -> None:
    here = Roots.under(Path("/"))
    assert not daemon_runs(tmp_path, here)
    store = StateStore(tmp_path)
    store.open()
    assert daemon_runs(tmp_path, here)
    store.close()
    assert not daemon_runs(tmp_path, here)


@given(st.text())
def test_locks_are_parsed_whatever_they_say(text: str) -> None:
    parse_flocks(text)


def test_flocks_of_the_kernels_list() -> None:
    text = "1: FLOCK  ADVISORY  WRITE 3324 08:01:123456 0 EOF\n2: POSIX  ADVISORY  READ 12 00:1a:99 0 EOF\n3: -> x\n"
    assert parse_flocks(text) == {123456}


# --- running


def test_a_probe_that_loads_the_cluster_never_runs_where_its_health_is_not_known(tmp_path: Path) -> None:
    (probe,) = plan(fio("a"), storage=tmp_path).periodic

    class Loads:
        heavy, config = True, probe.config
        identity = replace(probe.identity, cluster=True)

        def run(self, run: object) -> ProbeResult:
            raise AssertionError

        clean_up = run

    once = RunOnce(
        storage=tmp_path, roots=Roots.under(Path("/")), environment={}, rules=GatesConfig(), cluster=None,
        stopping=threading.Event(),
    )  # fmt: skip
    engine = OnDemand(once, Book(select([], (), {})))
    (report,) = engine.run([Loads()], force=True)  # type: ignore[list-item]
    assert (report.outcome, report.reason) == ("refused", "unreachable")


def test_a_canary_is_looked_at_and_can_be_stopped(tmp_path_factory: pytest.TempPathFactory) -> None:
    with disk_folder(tmp_path_factory) as folder:
        check_storage(folder)  # as the command does
        made = plan(CanaryConfig(name="canary", file_size=Size(1 << 20), rate=20.0, device_class="ssd"), storage=folder)
        (job,) = made.continuous
        stopping, stages = threading.Event(), list[Progress]()
        once = RunOnce(
            storage=folder,
            roots=Roots.under(Path("/")),
            environment=os.environ,
            rules=GatesConfig(),
            cluster=None,
            stopping=stopping,
        )
        engine = OnDemand(once, Book(select([], made.targets(), {})), canary_run_s=1.5)
        (report,) = engine.run([job], progress=stages.append)
        assert (report.outcome, report.message) == ("success", "")
        assert [each.operation for each in report.operations] == ["read", "write"]
        assert {figure.name for figure in report.operations[0].figures} >= {"latency.mean", "latency.p50"}
        done = [each.done for each in stages if each.done is not None]
        assert done == sorted(done)
        assert any("p50" in each.figures for each in stages)

        threading.Timer(0.5, stopping.set).start()
        began = time.monotonic()
        engine._canary_run_s = 600.0
        assert engine.run([job])[0].outcome == "stopped"
        assert time.monotonic() - began < 60


def test_a_canary_beside_the_daemons_own_advises_nobody_to_end_it(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    with disk_folder(tmp_path_factory) as folder:
        check_storage(folder)
        made = plan(CanaryConfig(name="canary", file_size=Size(1 << 20), rate=20.0, device_class="ssd"), storage=folder)
        once = RunOnce(
            storage=folder, roots=Roots.under(Path("/")), environment=os.environ, rules=GatesConfig(), cluster=None,
            stopping=threading.Event(),
        )  # fmt: skip
        engine = OnDemand(once, Book(select([], made.targets(), {})), canary_run_s=1.5)
        with prepare_directory(folder / "canary", size_bytes=1 << 20):  # as the daemon's canary holds it
            (report,) = engine.run(list(made.continuous))
    assert (report.outcome, report.message) == ("success", "")
    assert caplog.messages == []


# --- what is recorded, and what runs side by side


def of_ceph(folder: Path) -> ProbingPlan:
    """Every kind that loads a cluster, where none is configured."""
    probes = (
        CanaryConfig(name="canary"), fio("a"), RadosCanaryConfig(name="objects", osds=("osd.1", "osd.2")),
        RadosBenchConfig(name="bench"), OsdBenchConfig(name="osd", osds=("osd.1",)), RbdFioConfig(name="rbd"),
        RbdBenchConfig(name="rbd-bench"),
    )  # fmt: skip
    return make_plan(
        Config(probes=probes, ceph=CephConfig(conf=str(folder / "ceph.conf"))),
        storage=folder, roots=Roots.under(folder), environment={}
    )  # fmt: skip


def test_a_recording_leaves_out_only_what_is_not_known_here(tmp_path: Path) -> None:
    made = of_ceph(tmp_path)
    assert {name.partition("/")[0] for name in planning.recordable(made)} == {
        "canary", "a", "objects", "bench", "osd", "rbd", "rbd-bench",
    }  # fmt: skip


def test_canaries_of_one_entry_run_together_and_all_else_alone(tmp_path: Path) -> None:
    made = of_ceph(tmp_path)
    groups = ondemand.together(ondemand.pick(made, ["rbd", "objects", "canary"]))
    assert [ondemand.group_name(group) for group in groups][0::2] == ["rbd", "canary"]
    assert [len(group) for group in groups] == [1, len([job for job in made.continuous if job.name != "canary"]), 1]


def test_without_a_cluster_disks_are_measured_and_the_cluster_is_refused(tmp_path: Path) -> None:
    made = of_ceph(tmp_path)
    with closing(CephGuard(CephConfig(conf=str(tmp_path / "ceph.conf")), GatesConfig(), host="h")) as cluster:
        once = RunOnce(
            storage=tmp_path, roots=Roots.under(Path("/")), environment=os.environ, rules=GatesConfig(),
            cluster=cluster, stopping=threading.Event(),
        )  # fmt: skip
        engine = OnDemand(once, Book(select([], made.targets(), {})), canary_run_s=1.0)
        (report,) = engine.run(ondemand.pick(made, ["rbd"]), force=True)
        assert (report.outcome, report.reason) == ("refused", "no-cluster")
        reports = engine.run(ondemand.pick(made, ["objects"]))
        assert {(each.outcome, each.reason) for each in reports} == {("refused", "unreachable")}
        assert cluster.session_pid is None
