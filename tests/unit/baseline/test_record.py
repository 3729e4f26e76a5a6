"""Recording: statistics by hand-computed values, the order of the walk, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import Target
from plumbline.baseline.record.level import Slice
from plumbline.baseline.record.statistics import EntryRecord, RunFigures, summarise
from plumbline.baseline.record.text import format_record
from plumbline.baseline.record.walk import Measured, Progress, Step, entries_of, file_of, walk
from plumbline.baseline.record.work_file import KeptRun
from plumbline.baseline.site import Device, SiteFile, parse_site
from plumbline.config.workloads import load_catalogue
from plumbline.core.histogram import HistogramValue
from plumbline.errors import BaselineError, ProbeRefused

CATALOGUE = load_catalogue()
HEAD = SiteFile(
    schema_version=1,
    source="measured",
    name="storage1",
    host="storage1",
    recorded=datetime(2025, 11, 3, 10, 22, 41, tzinfo=UTC),
    recorded_by="ana (as root)",
    entries=(),
    kernel="6.12.0",
    tools={"plumbline": "0.1.0", "fio": "3.33"},
    devices=(Device(name="nvme0n1", device_class="nvme", model="P5510", serial="X1"),),
    fingerprint=Fingerprint(kernel="6.12.0", disks={"X1": "P5510 9CV1"}),
)


def target(workload="randread-4k-qd1-j1", operation="read", probe="canary", rate_iops=None, device="nvme0n1"):
    load = CATALOGUE.by_id[workload]
    config_hash = load.config_hash(rate_iops=rate_iops)
    return Target(probe, load.layer, "nvme", workload, operation, config_hash, rate_iops, device)


READ = target()
WRITE = target("randwrite-4k-qd1-j1-dsync", "write")
FIO = target("randwrite-4k-qd1-j1", "write", "fio", 50.0)


def figures(of: Target = READ, **more: object) -> RunFigures:
    return RunFigures(probe=of.probe, workload=of.workload, operation=of.operation, **more)


def latencies(*medians: float, of: Target = READ, **more: object) -> list[RunFigures]:
    return [figures(of, latency={"p50": p50, "p99": 2 * p50, "max": 3 * p50}, **more) for p50 in medians]


def upper_edge(histogram, q):
    """A quantile as coarse as its buckets: enough to see which operations went into it."""
    ranked = zip(histogram.edges, histogram.cumulative, strict=True)
    return next((edge for edge, below in ranked if below >= q * histogram.count), None)


def one(runs: list[RunFigures], of: Target = READ) -> EntryRecord:
    return summarise([of], {of: runs}, upper_edge)


def test_statistics_of_five_runs():
    record = one(latencies(0.0001, 0.00012, 0.0001, 0.00011, 0.00016, iops=9000.0, throughput=36864000.0))
    entry = record.entry
    assert entry.median_of_runs.text == "110us"
    assert entry.latency.seconds() == {"p50": 0.00011, "p99": 0.00022, "max": 0.00048}
    assert entry.mad_ratio == 0.09091  # deviations 10, 10, 10, 0, 50: their median is 10 of 110
    assert entry.spread_ratio == 1.6
    assert entry.tolerance_ratio == 1.455  # 160 of 110
    assert [figure.text for figure in entry.p50_of_runs] == ["100us", "120us", "100us", "110us", "160us"]
    assert (entry.iops.value, entry.throughput.value, entry.runs) == (9000.0, 36860000.0, 5)
    assert len(entry.throughput_of_runs) == 5
    assert entry.iops_of_runs == ()
    assert record.warnings == record.refusals == ()


def test_the_level_and_the_load_are_of_all_runs():
    edges = (0.0001, 0.0002, 0.0004)

    def run(number: int, load: tuple[float, float] | None) -> RunFigures:
        begin = 1000.0 + 60 * number
        made = tuple(Slice(ended=begin + 10 * place, seconds=10.0, counts={0: 20}) for place in range(1, 7))
        return figures(histogram=HistogramValue(edges, [120] * 3, 120, 0.012), slices=made, load=load)

    record = one([run(0, (10.0, 1000.0)), run(1, (40.0, 3000.0)), run(2, (20.0, 2000.0))])
    assert (dict(record.entry.level_spread.items()), record.entry.calm_seconds) == ({"1m": 0.0}, 0.0)
    assert (record.entry.load_ops_per_second, record.entry.load_bytes_per_second) == (20.0, 2000.0)
    assert record.level.measured_s == 180.0
    unknown = one([run(0, (10.0, 1000.0)), run(1, None)])
    assert (dict(unknown.entry.level_spread.items()), unknown.entry.calm_seconds) == ({}, None)
    assert unknown.entry.load_ops_per_second is None
    assert one(latencies(0.1, 0.1)).level is None


def test_tolerance_is_never_below_its_floor():
    entry = one(latencies(*[0.0001] * 5)).entry
    assert (entry.tolerance_ratio, entry.spread_ratio, entry.mad_ratio) == (1.25, 1.0, 0.0)
    assert (entry.iops, entry.throughput) == (None, None)


def test_rates_alone_have_their_spread_and_a_tolerance_for_less():
    net = target("tcp-throughput-s1", "transmit", "net/10.0.0.2", device="ens1")
    entry = one([figures(net, throughput=rate) for rate in (1e9, 1.2e9, 0.6e9, 1.1e9, 1e9)], net).entry
    assert entry.throughput.text == "1 GB/s"
    assert entry.tolerance_ratio == 1.667  # 1 of 0.6
    assert entry.spread_ratio == 2.0
    assert entry.mad_ratio == 0.1
    assert (entry.latency.seconds(), entry.p50_of_runs, entry.median_of_runs) == ({}, (), None)
    assert [each.text for each in entry.throughput_of_runs] == ["1 GB/s", "1.2 GB/s", "600 MB/s", "1.1 GB/s", "1 GB/s"]


def test_where_a_tool_tells_no_median_the_mean_stands_for_it():
    bench = target("rados-write-4m-t16", "write", "bench", device="")
    runs = [figures(bench, latency={"mean": mean, "max": 3 * mean}, throughput=4e8, iops=100) for mean in (0.1, 0.12)]
    entry = one(runs, bench).entry
    assert [each.text for each in entry.mean_of_runs] == ["100ms", "120ms"]
    assert entry.p50_of_runs == ()
    assert entry.median_of_runs.text == "110ms"
    assert entry.latency.seconds() == {"mean": 0.11, "max": 0.36}


def test_percentiles_come_from_all_runs_together():
    edges = (0.0001, 0.001, 0.01)
    rows = (([1000, 1000, 1000], 0.09), ([990, 1000, 1000], 0.1), ([960, 990, 1000], 0.2))
    entry = one([figures(histogram=HistogramValue(edges, counts, 1000, total)) for counts, total in rows]).entry
    # 3000 operations: 2950 up to 0.1 ms, 2990 up to 1 ms, 3000 up to 10 ms
    assert entry.latency.seconds() == {"mean": 0.00013, "p50": 0.0001, "p95": 0.0001, "p99": 0.001, "p999": 0.01}


def test_bins_of_all_runs_are_pooled_by_nearest_rank_and_never_above_the_maximum():
    def run(slow: int) -> RunFigures:
        statistics = {"mean": 0.0002, "p50": 0.0001, "p95": 0.5, "p99": 0.5, "p999": 0.5, "max": 0.0099}
        return figures(bins=((0.0001, 1000 - slow), (0.01, slow)), latency=statistics)

    latency = one([run(0), run(0), run(90)]).entry.latency.seconds()
    # 90 of 3000 are slow: 3 %, so the p95 is quick although that of the last run is not
    assert latency == {"mean": 0.0002, "p50": 0.0001, "p95": 0.0001, "p99": 0.0099, "p999": 0.0099, "max": 0.0099}


def test_no_percentile_with_fewer_than_three_operations_above_it():
    histogram = HistogramValue((0.0001, 0.001), [90, 100], 100, 0.05)
    entry = one([figures(histogram=histogram)] * 2).entry
    assert entry.latency.seconds() == {"mean": 0.0005, "p50": 0.0001, "p95": 0.001}


def test_what_is_comparable_is_one_entry():
    disks = [target(probe=f"raw/{name}", device=name) for name in ("sda", "sdb", "sdc")]
    runs = {disk: latencies(*[p50] * 3, of=disk) for disk, p50 in zip(disks, (0.0001, 0.00012, 0.00015), strict=True)}
    record = summarise(disks, runs, upper_edge)
    entry = record.entry
    assert (entry.targets, entry.device, entry.runs) == (("sda", "sdb", "sdc"), "", 3)
    assert [each.text for each in entry.p50_of_runs] == ["120us", "120us", "120us"]
    assert entry.tolerance_ratio == 1.25  # the slowest disk is 25 % above the median: it is within
    assert record.refusals == ()


def test_a_disk_out_of_line_with_its_peers_is_no_baseline():
    disks = [target(probe=f"raw/{name}", device=name) for name in ("sda", "sdb", "sdc")]
    runs = {disk: latencies(*[p50] * 3, of=disk) for disk, p50 in zip(disks, (0.0001, 0.0001, 0.0003), strict=True)}
    (refusal,) = summarise(disks, runs, upper_edge).refusals
    assert refusal == (
        "raw/sdc, randread-4k-qd1-j1 read: measured 300 µs; all 3 comparable targets together 100 µs: "
        "it differs too much from them"
    )


def test_iops_at_a_latency_stand_in_the_entry_and_in_no_other_figure():
    runs = [*latencies(0.0001, 0.0001), figures(iops=52000.4, sought=(0.002, 99.0), depth=31)]
    entry = one(runs).entry
    found = entry.iops_at_latency
    assert (found.target.text, found.percentile, found.iops.text, found.queue_depth) == ("2ms", 99.0, "52000 IOPS", 31)
    assert (entry.runs, entry.iops) == (2, None)


def test_a_latency_that_nothing_keeps_is_a_note():
    entry = one([*latencies(0.01, 0.01), figures(iops=80.0, sought=(0.002, 99.0), depth=0)]).entry
    assert entry.iops_at_latency is None
    assert entry.note == "even one operation at a time does not complete 99 % within 2 ms"


def test_a_run_beyond_the_limit_is_refused_by_name():
    record = one(latencies(0.0001, 0.0001, 0.00048, 0.0001, 0.0001))
    assert record.refusals == (
        "canary, randread-4k-qd1-j1 read: run 3 of 5 had a median of 480 µs; the median of all runs is 100 µs",
    )
    assert record.entry.tolerance_ratio == 4.8


def test_a_run_that_is_far_too_quick_is_no_better():
    (refusal,) = one(latencies(0.00004, 0.0001, 0.0001)).refusals
    assert "run 1 of 3 had a median of 40 µs; the median of all runs is 100 µs" in refusal


def test_a_busy_device_is_noted_and_if_mostly_busy_refused():
    quiet, busy = latencies(0.0001)[0], latencies(0.0001, disturbed="nvme0n1 was 40 % busy")[0]
    record = one([quiet, busy, quiet])
    assert record.warnings == ("canary, randread-4k-qd1-j1 read: before run 2, nvme0n1 was 40 % busy",)
    assert record.refusals == ()
    assert record.entry.note == "run 2: nvme0n1 was 40 % busy"
    assert len(one([busy, busy, quiet]).refusals) == 2


def test_runs_without_figures():
    empty = figures(histogram=HistogramValue((0.1,), [0], 0, 0.0))
    for run, message in (
        (empty, "canary, randread-4k-qd1-j1 read: run 1 completed no operation; does the device respond?"),
        (figures(), "canary, randread-4k-qd1-j1 read: run 1 completed no operation; does the device respond?"),
        (
            figures(latency={"p99": 1.0}),
            "canary, randread-4k-qd1-j1 read: the runs reported neither a latency nor a rate",
        ),
    ):
        with pytest.raises(BaselineError) as caught:
            one([run])
        assert str(caught.value) == message


# --- the walk


class Probes:
    """Steps that say when they ran, by a clock that goes as long as they last."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.now = 1000.0

    def clock(self) -> float:
        return self.now

    def step(self, name: str, layer: str, *, runs: int = 2, lasts_s: float = 10.0, error=None, last=False) -> Step:
        def measure(tell) -> Measured:
            tell("measuring", "9 IOPS")
            self.now += lasts_s
            self.ran.append(name)
            if error is not None:
                raise error
            return Measured((figures(latency={"p50": 0.001}),), "fio", "3.33")

        return Step(name, layer, "0123456789ab", runs, 5.0, measure, last)


def test_layers_go_bottom_up_and_the_runs_of_a_layer_take_turns():
    probes, told = Probes(), list[Progress]()
    steps = [
        probes.step("rbd", "rbd"),
        probes.step("canary", "disk"),
        probes.step("search", "disk", runs=1, last=True),
        probes.step("fio", "disk"),
        probes.step("rtt", "network"),
    ]
    walked = walk(steps, clock=probes.clock, progress=told.append)
    assert probes.ran == ["rtt", "rtt", "canary", "fio", "canary", "fio", "search", "rbd", "rbd"]
    assert [run.step for run in walked.runs] == ["rtt", "rtt", "canary", "canary", "fio", "fio", "search", "rbd", "rbd"]
    starts = [each for each in told if not each.stage]
    assert [(each.done, each.total) for each in starts] == [(n, 9) for n in range(10)]
    assert (starts[2].layer, starts[2].step, starts[2].run, starts[2].runs) == ("disk", "canary", 1, 2)
    # guessed at first, 9 runs of 5 s; then as long as they took: the second rtt at 10 s, the rest still at 5
    assert [each.left_s for each in starts[:3]] == [45.0, 45.0, 35.0]
    assert starts[-1].left_s == 0
    assert ("measuring", "9 IOPS") in {(each.stage, each.figures) for each in told}


def test_each_finished_run_is_kept_at_once_and_none_is_made_twice():
    probes, kept = Probes(), list[KeptRun]()
    steps = [probes.step("fio", "disk", runs=3), probes.step("rtt", "network", runs=3)]
    walk(steps, clock=probes.clock, keep=kept.append)
    assert [run.step for run in kept] == ["rtt"] * 3 + ["fio"] * 3
    assert kept[0].finished == 1010.0
    probes.ran.clear()
    walk(steps, kept=kept[:4], clock=probes.clock)
    assert probes.ran == ["fio", "fio"]
    walked = walk(steps, kept=kept * 2, clock=probes.clock)
    assert len(walked.runs) == 6  # more than were asked for are not used


def test_what_fails_leaves_the_others_alone():
    probes = Probes()
    broken = probes.step("rtt", "network", error=BaselineError("rtt", "no answer"))
    walked = walk([broken, probes.step("fio", "disk")], clock=probes.clock)
    assert probes.ran == ["rtt", "fio", "fio"]
    assert {name: str(error) for name, error in walked.failed.items()} == {"rtt": "rtt: no answer"}


def test_a_stop_ends_the_walk_and_keeps_what_is_finished():
    probes, kept = Probes(), list[KeptRun]()
    stopped = probes.step("fio", "disk", error=ProbeRefused("stopped", "stopped"))
    with pytest.raises(ProbeRefused, match="stopped"):
        walk([stopped, probes.step("rtt", "network")], clock=probes.clock, keep=kept.append)
    assert [run.step for run in kept] == ["rtt", "rtt"]


# --- the file


def kept_of(*runs: RunFigures) -> Iterator[KeptRun]:
    for run in runs:
        yield KeptRun(step=run.probe, parameters="", finished=0.0, figures=(run,))


def test_what_was_recorded_is_a_file_of_this_host_that_a_person_can_read():
    net = target("tcp-throughput-s1", "transmit", "net/10.0.0.2", device="ens1")
    runs = [
        *latencies(*[0.00012345678] * 5),
        *latencies(*[0.0002] * 5, of=FIO),
        *(figures(net, throughput=1.1767e9) for _ in range(5)),
    ]
    records = entries_of([READ, WRITE, FIO, net], list(kept_of(*runs)), upper_edge)
    assert [record.layer for record in records] == ["network", "disk", "disk"]  # WRITE was not measured
    file = file_of(HEAD, records, ["left out: mtu: no figure"])
    text = format_record(file)
    loaded = parse_site(text, where="baseline.yaml", host="storage1")
    assert loaded.file == file
    assert loaded.file.recorded == datetime(2025, 11, 3, 10, 22, 41, tzinfo=UTC)
    throughput, read, capped = loaded.entries
    assert throughput.throughput == 1.177e9
    assert (read.key, read.config_hash, read.tolerance_ratio) == (READ.key, READ.config_hash, 1.25)
    assert (capped.key, capped.config_hash) == (FIO.key, FIO.config_hash)
    lines = text.splitlines()
    assert lines[0] == "# Baseline of storage1, recorded 2025-11-03 10:22 UTC by ana (as root)."
    sections = [line for line in lines if line.startswith("# ---")]
    assert sections == [
        "# --- network: between this host and its peers (1 figure set, 5 runs each)",
        "# --- disk: the disks of this host, raw and in Plumbline's own files (2 figure sets, 5 runs each)",
    ]
    for line in (
        "tools: {plumbline: 0.1.0, fio: '3.33'}",
        "- 'left out: mtu: no figure'",
        "- {name: nvme0n1, device_class: nvme, model: P5510, serial: X1}",
        "  throughput: 1.177 GB/s",
        "  latency: {p50: 123.5us, p99: 246.9us, max: 370.4us}",
    ):
        assert line in lines
    assert "latency: {}" not in text
    assert max(map(len, lines)) <= 130


def test_nothing_to_write():
    with pytest.raises(BaselineError, match="no probe measures anything on this host; enable one in the configuration"):
        file_of(HEAD, [], [])
