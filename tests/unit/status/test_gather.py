"""From one collection and the probes' records to the rows of the status page."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from plumbline.baseline.book import Book, load_book
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.collectors import osd
from plumbline.collectors.registry import Parts, collectors, configured
from plumbline.config.model import BaselineConfig, Config
from plumbline.config.probes.disk import FioConfig
from plumbline.config.types import Duration
from plumbline.core.histogram import HistogramValue
from plumbline.core.roots import Roots
from plumbline.core.scheduler import splay
from plumbline.metrics.exposition import Exposition
from plumbline.metrics.snapshot import Snapshot
from plumbline.probes.run.plan import ProbingPlan, make_plan
from plumbline.probes.run.result import OperationResult, Outcome, ProbeResult
from plumbline.probes.run.schedule import Probing
from plumbline.probes.run.state import ProbeRecord, StateStore
from plumbline.sources.ceph.osd_operations import BlockedOperations
from plumbline.sources.ceph.osds import OsdReading, OsdsReading, OsdState
from plumbline.status.gather import Overview
from plumbline.status.layers import judge_layers
from plumbline.status.model import (
    Comparison,
    DiskRow,
    Loss,
    Measure,
    NicRow,
    ProbeRow,
    SoftnetRow,
    StatusModel,
    Times,
    Trend,
)
from plumbline.status.verdict import judge
from support.hosts import ixgbe_network, parts, recorded_network, tree

EMPTY = Snapshot((), ())
HOST = "storage1"
NAME = next(name for n in itertools.count() if splay(HOST, name := f"fio-{n}", 300.0) > 60)
"""A probe that does not start while a test looks."""


class Node:
    """A host's probes, with their state on disk, and its status page's model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.roots = Roots.under(folder / "nowhere")
        self.store = StateStore(folder / "state")
        self.store.open()
        self.probing = Probing(store=self.store, roots=self.roots, host=HOST, environment={})
        self.overview = Overview(host=HOST, started=1000.0)
        self.plan = ProbingPlan()

    def configure(self, **changes: object) -> None:
        settings: dict[str, object] = {"name": NAME, "workload": "randwrite-4k-qd1-j1", "device_class": "ssd"}
        config = Config(probes=(FioConfig(**settings | changes),))  # type: ignore[arg-type]
        self.plan = make_plan(config, storage=self.folder, roots=self.roots, environment={})
        self.probing.apply(self.plan, {})

    def book(self, config: BaselineConfig | None = None) -> Book:
        return load_book(
            config or BaselineConfig(),
            where="test", storage=self.store.directory, host=HOST, targets=self.plan.targets()
        )  # fmt: skip

    def finished(self, outcome: Outcome, ago_s: float, **figures: float) -> ProbeResult:
        (job,) = self.plan.periodic
        operations = (OperationResult(operation="write", latency=figures),) if figures else ()
        return ProbeResult(
            probe=NAME, layer="disk", device_class="ssd", workload=job.plan.workload.id, tool="fio", tool_version="3",
            config_hash=job.plan.config_hash, started=time.time() - ago_s - 10, duration=10.0, outcome=outcome,
            operations=operations, message="" if figures else "fio: exit status 1",
        )  # fmt: skip

    def remember(self, *results: ProbeResult) -> None:
        record = ProbeRecord()
        for result in results:
            record = record.with_result(result)
        self.store.put(NAME, record)

    def row(self, config: BaselineConfig | None = None) -> ProbeRow:
        (row,) = self.model(EMPTY, self.book(config)).probes
        return row

    def model(self, snapshot: Snapshot, book: Book | None = None, *, error: str = "") -> StatusModel:
        model = self.overview.model(snapshot, probing=self.probing, book=book or self.book(), recordable={NAME})
        return replace(model, config_error=error)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    assert made.probing.stop(10.0) == []
    made.store.close()


def collect(given: Parts, node: Node) -> Snapshot:
    given.network.refresh()
    exposition = Exposition(
        collectors(Config()),
        configured(given, Config(), node.book()),
        clock=lambda: 0.0,
        logger=logging.getLogger("test.overview"),
    )
    return exposition.scrape()


def test_a_probe_that_has_not_run(node: Node) -> None:
    node.configure()
    row = node.row()
    assert row.next_s is not None
    assert 0 <= row.next_s <= 300
    assert replace(row, next_s=None) == ProbeRow(
        probe=NAME, layer="disk", device_class="ssd", workload="randwrite-4k-qd1-j1", operation="write",
        success=None, age_s=None, baseline="documented: unnoba-2020", documented="unnoba-2020, ssd: 27,000\xa0IOPS",
    )  # fmt: skip


def test_what_no_longer_fits_between_baseline_and_node(node: Node) -> None:
    node.configure()
    (node.store.directory / "baseline.yaml").write_text(
        f"{{schema_version: 1, source: measured, host: {HOST}, recorded: 2025-11-03T08:00:00Z,"
        " fingerprint: {kernel: 6.1.0, fio: '3.33'}, entries: ["
        " {workload: randwrite-4k-qd1-j1, device_class: ssd, rate_iops: 7, latency: {p50: 1ms}}]}"
    )
    book = node.book()
    assert book.measured_on == {"baseline": Fingerprint(kernel="6.1.0", fio="3.33")}
    model = node.overview.model(
        EMPTY, probing=node.probing, book=book, fingerprint=Fingerprint(kernel="6.12.48", fio="3.33")
    )  # fmt: skip
    mismatch, kernel = model.standing
    assert mismatch.startswith(f"{NAME}: write randwrite-4k-qd1-j1 is not compared: the measured baseline baseline was")
    assert kernel == "baseline baseline was measured with another kernel: 6.1.0; now 6.12.48"
    assert {mismatch, kernel} <= set(judge(model, judge_layers(model)).notes)
    (row,) = model.probes
    assert not row.recordable


def test_a_probe_beside_the_baseline_in_force_and_beside_one_that_is_only_shown(node: Node, tmp_path: Path) -> None:
    node.configure()
    node.remember(node.finished(Outcome.SUCCESS, 100, p50=0.001, p99=0.005))
    site = tmp_path / "site.yaml"
    site.write_text(
        "schema_version: 1\nname: ours\nentries: [{workload: randwrite-4k-qd1-j1, device_class: ssd, "
        "tolerance_ratio: 1.4, latency: {p50: 0.5ms}}]\n"
    )

    row = node.row(BaselineConfig(files=(str(site),)))
    assert (row.success, row.overdue, row.message) == (True, False, "")
    assert row.age_s == pytest.approx(100, abs=5)
    assert row.p50 == Comparison(0.001, 0.0005, 1.4)
    assert row.p99 == Comparison(0.005, None, 1.4)
    assert (row.baseline, row.judges) == ("site: ours", True)

    shown = node.row()
    assert (shown.baseline, shown.judges) == ("documented: unnoba-2020", False)


def test_a_failure_keeps_the_last_good_figures_and_says_why(node: Node) -> None:
    node.configure()
    node.remember(node.finished(Outcome.SUCCESS, 200, p50=0.001), node.finished(Outcome.FAILURE, 100))
    row = node.row()
    assert (row.success, row.message) == (False, "fio: exit status 1")
    assert row.age_s == pytest.approx(100, abs=5)
    assert row.p50.measured == 0.001


def test_three_intervals_without_a_success_are_overdue(node: Node) -> None:
    node.configure(interval=Duration(3600))
    node.remember(node.finished(Outcome.SUCCESS, 3 * 3600 - 60, p50=0.001))
    assert not node.row().overdue
    node.remember(node.finished(Outcome.SUCCESS, 3 * 3600 + 60, p50=0.001))
    assert node.row().overdue


def test_a_skip_is_told_until_a_run_succeeds(node: Node) -> None:
    node.configure()
    node.store.put(NAME, ProbeRecord().with_skip("load", "the load is 9 per CPU"))
    assert node.row().message == "the load is 9 per CPU"
    node.remember(node.finished(Outcome.SUCCESS, 1, p50=0.001))
    assert node.row().message == ""


def test_failed_runs_skips_and_the_next_start_are_shown(node: Node) -> None:
    node.configure(interval=Duration(3600))
    good, old, new = (
        node.finished(Outcome.SUCCESS, 900, p50=0.001),
        node.finished(Outcome.FAILURE, 600),
        node.finished(Outcome.TIMEOUT, 300),
    )
    record = ProbeRecord().with_result(old).with_result(new).with_result(good).with_skip("load", "busy")
    node.store.put(NAME, record)
    shown = node.model(EMPTY)
    assert [(row.probe, row.outcome, row.message) for row in shown.failures] == [
        (NAME, "timeout", "fio: exit status 1"),
        (NAME, "failure", "fio: exit status 1"),
    ]
    assert shown.failures[0].age_s == pytest.approx(300, abs=5)
    assert shown.probes[0].skipped == {"load": 1}
    assert shown.probes[0].stuck_s is None


def test_figures_of_other_parameters_are_of_another_experiment(node: Node) -> None:
    node.configure(rate_iops=50.0)
    node.remember(node.finished(Outcome.SUCCESS, 1, p50=0.001))
    assert node.row().success is True
    node.configure(rate_iops=40.0)
    row = node.row()
    assert (row.success, row.age_s, row.p50, row.overdue) == (None, None, Comparison(None), False)


def test_the_last_runs_are_a_trend_beside_the_baseline(node: Node, tmp_path: Path) -> None:
    node.configure()
    node.remember(*(node.finished(Outcome.SUCCESS, 900 - ago, p50=0.001 * (ago + 1)) for ago in range(3)))
    site = tmp_path / "site.yaml"
    site.write_text(
        "schema_version: 1\nname: ours\nentries: [{workload: randwrite-4k-qd1-j1, device_class: ssd, "
        "latency: {p50: 0.5ms}}]\n"
    )
    row = node.row(BaselineConfig(files=(str(site),)))
    assert row.trend == Trend("p50, last 3 runs", (0.001, 0.002, 0.003), 0.0005, Measure.LATENCY)
    assert row.p50 == Comparison(
        0.003, 0.0005, 1.5
    )  # what does not say how far it strays gets the default, as alerts do
    node.configure(rate_iops=50.0)
    assert node.row().trend is None


def test_one_run_is_no_trend(node: Node) -> None:
    node.configure()
    node.remember(node.finished(Outcome.SUCCESS, 100, p50=0.001))
    assert node.row().trend is None


def test_a_probe_that_tells_a_rate_alone(node: Node) -> None:
    node.configure()
    runs = [
        replace(
            node.finished(Outcome.SUCCESS, ago, p50=1.0),
            operations=(OperationResult(operation="write", throughput=1e9 / ago),),
        )
        for ago in (200, 100)
    ]
    node.remember(*runs)
    row = node.row()
    assert row.rate is not None
    assert (row.rate.measured, row.rate.measure) == (1e7, Measure.THROUGHPUT)
    assert row.trend is not None
    assert (row.trend.of, row.trend.values) == ("throughput, last 2 runs", (5e6, 1e7))


def test_osds_with_their_last_minutes_and_disks(node: Node, tmp_path: Path) -> None:
    def reading(daemon: str, count: int, **changes: object) -> OsdReading:
        writes = HistogramValue(edges=(0.001, 0.002), cumulative=(0, count), count=count, sum=0.0015 * count)
        return replace(
            OsdReading(daemon, f"/run/{daemon}.asok", OsdState.ANSWERS, latencies={"write": writes}),
            **changes,  # type: ignore[arg-type]
        )

    def snapshot(*osds: OsdReading) -> Snapshot:
        itself = replace(osd.COLLECTOR, read=lambda _host, _skip: OsdsReading(osds))
        return Exposition([itself], None, clock=lambda: 0.0, logger=logging.getLogger("test.overview")).scrape()

    node.overview.remember(snapshot(reading("osd.10", 100), reading("osd.9", 5)))
    blocked = BlockedOperations(by_stage={"queue": 2, "store": 1}, oldest_s=45.0)
    model = node.model(
        snapshot(
            reading("osd.10", 300, blocked=blocked), reading("osd.9", 5), OsdReading("osd.11", "/x", OsdState.ENDED)
        )
    )
    assert [row.daemon for row in model.osds] == ["osd.9", "osd.10", "osd.11"]
    idle, busy, gone = model.osds
    assert [times for times in busy.times if times.operation == "write"] == [Times("write", 200, 0.0015, 0.00199)]
    assert [times.count for times in idle.times] == [0]
    assert (busy.blocked, busy.blocked_age_s, busy.blocked_stage) == (3, 45.0, "queue")
    assert (gone.answer, gone.times, gone.blocked) == (OsdState.ENDED, (), None)


def test_the_hosts_own_figures(node: Node, tmp_path: Path) -> None:
    roots = tree(tmp_path / "host", "disks-storage-node", "net-software-links")
    model = node.model(collect(parts(roots, ixgbe_network()), node))

    assert model.nics == (
        NicRow(
            device="eth0", driver="ixgbe", up=True, speed_bytes_per_second=1.25e9, mtu_bytes=9000, rx_ring=(512, 4096),
            losses=(
                Loss("drops", "receive", "fifo", 2538, None),
                Loss("errors", "receive", "crc", 67302, None),
                Loss("errors", "receive", "length", 80264, None),
            ),
        ),
        NicRow(device="lo", driver="loopback", up=True, mtu_bytes=65536),
    )  # fmt: skip
    assert model.softnet == SoftnetRow(cpus=2, processed=97328, dropped=0, time_squeeze=0)
    disks = {row.device: row for row in model.disks}
    assert disks["nvme0n1"].model == "INTEL SSDPE2KX020T8"
    assert (disks["nvme0n1"].device_class, disks["nvme0n1"].size_bytes) == ("nvme", 1920383410176)
    assert disks["sdb"].read_mean_s == pytest.approx(given_seconds("sdb", roots) / (disks["sdb"].reads or 0))
    assert isinstance(disks["dm-1"], DiskRow)
    assert model.window_s is None
    assert (model.host, model.started_ts, model.config_error) == (HOST, 1000.0, "")
    assert {health.name for health in model.collectors} >= {"softnet", "link", "disk"}


def given_seconds(disk: str, roots: Roots) -> float:
    """The milliseconds spent reading, the fourth counter, as seconds."""
    lines = (line.split() for line in (roots.proc / "diskstats").read_text().splitlines())
    return next(int(words[6]) / 1000 for words in lines if words[2] == disk)


def test_what_has_grown_in_the_last_minutes(node: Node, tmp_path: Path) -> None:
    roots = tree(tmp_path / "host", "disks-virtio-vm", "net-virtio-guest")
    given = parts(roots, recorded_network("net-virtio-guest"))
    node.overview.remember(collect(given, node))
    stat = roots.proc / "net" / "softnet_stat"
    first, *rest = stat.read_text().splitlines()
    words = first.split()
    words[1], words[2] = "00000005", "00000007"
    stat.write_text("\n".join([" ".join(words), *rest]) + "\n")

    model = node.model(collect(given, node), error="plumbline.yaml: probs: no such key")

    assert model.softnet is not None
    assert (model.softnet.dropped, model.softnet.dropped_grew) == (5, 5)
    assert (model.softnet.time_squeeze, model.softnet.time_squeeze_grew) == (7, 7)
    assert model.window_s is not None
    assert model.config_error == "plumbline.yaml: probs: no such key"


def test_nothing_collected_is_an_empty_page(node: Node) -> None:
    model = node.model(EMPTY)
    assert (model.probes, model.disks, model.nics, model.softnet, model.collectors) == ((), (), (), None, ())
