"""Recording: statistics by hand-computed values, the order of runs, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from plumbline.baseline.model import Target
from plumbline.baseline.record import Environment, Progress, RunFigures, record
from plumbline.baseline.site import Device, format_site, parse_site
from plumbline.catalogue import HistogramValue
from plumbline.errors import BaselineError
from plumbline.workloads import load_catalogue

CATALOGUE = load_catalogue()
ENVIRONMENT = Environment(
    host="storage1",
    recorded=datetime(2025, 11, 3, 10, 22, 41, 987654, tzinfo=UTC),
    kernel="6.12.0",
    tools={"plumbline": "0.1.0"},
    devices=(Device(name="nvme0n1", device_class="nvme"),),
)


def target(workload="randread-4k-qd1-j1", operation="read", probe="canary", rate_iops=None):
    config_hash = CATALOGUE.by_id[workload].config_hash(rate_iops=rate_iops)
    return Target(probe, "disk", "nvme", workload, operation, config_hash, rate_iops, "nvme0n1")


READ = target()
WRITE = target("randwrite-4k-qd1-j1-dsync", "write")
FIO = target("randwrite-4k-qd1-j1", "write", "fio", 50.0)


def upper_edge(histogram, q):
    """A quantile as coarse as its buckets: enough to see which operations went into it."""
    ranked = zip(histogram.edges, histogram.cumulative, strict=True)
    return next((edge for edge, below in ranked if below >= q * histogram.count), None)


def runs_of(*medians, **figures):
    """A measure that gives one run after the other these medians."""
    left = iter(medians)

    def measure(group, duration_s):
        p50 = next(left)
        latency = {"p50": p50, "p99": 2 * p50, "max": 3 * p50}
        return [RunFigures(one.workload, one.operation, latency=latency, **figures) for one in group]

    return measure


def test_statistics_of_five_runs():
    recorded = record(
        [READ],
        measure=runs_of(0.0001, 0.00012, 0.0001, 0.00011, 0.00016, iops=9000.0, throughput=36864000.0),
        quantile=upper_edge,
        environment=ENVIRONMENT,
    )
    (entry,) = recorded.file.entries
    assert entry.median_of_runs.text == "110us"
    assert entry.latency.seconds() == {"p50": 0.00011, "p99": 0.00022, "max": 0.00048}
    assert entry.mad_ratio == pytest.approx(0.0909091)  # deviations 10, 10, 10, 0, 50: their median is 10 of 110
    assert entry.spread_ratio == 1.6
    assert entry.tolerance_ratio == pytest.approx(1.45455)  # 160 of 110
    assert [figure.text for figure in entry.p50_of_runs] == ["100us", "120us", "100us", "110us", "160us"]
    assert (entry.iops.value, entry.throughput.value, entry.runs) == (9000.0, 36864000.0, 5)
    assert recorded.warnings == ()


def test_tolerance_is_never_below_its_floor():
    recorded = record([READ], measure=runs_of(*[0.0001] * 5), quantile=upper_edge, environment=ENVIRONMENT)
    (entry,) = recorded.file.entries
    assert (entry.tolerance_ratio, entry.spread_ratio, entry.mad_ratio) == (1.25, 1.0, 0.0)
    assert (entry.iops, entry.throughput) == (None, None)


def test_percentiles_come_from_all_runs_together():
    edges = (0.0001, 0.001, 0.01)
    quick = RunFigures(READ.workload, "read", histogram=HistogramValue(edges, [1000, 1000, 1000], 1000, 0.09))
    slow = RunFigures(READ.workload, "read", histogram=HistogramValue(edges, [990, 1000, 1000], 1000, 0.1))
    tail = RunFigures(READ.workload, "read", histogram=HistogramValue(edges, [960, 990, 1000], 1000, 0.2))
    left = iter([quick, slow, tail])
    recorded = record([READ], measure=lambda *_: [next(left)], quantile=upper_edge, environment=ENVIRONMENT, runs=3)
    (entry,) = recorded.file.entries
    # 3000 operations: 2950 up to 0.1 ms, 2990 up to 1 ms, 3000 up to 10 ms
    assert entry.latency.seconds() == {"mean": 0.00013, "p50": 0.0001, "p95": 0.0001, "p99": 0.001, "p999": 0.01}


def test_no_percentile_with_fewer_than_three_operations_above_it():
    histogram = HistogramValue((0.0001, 0.001), [90, 100], 100, 0.05)
    recorded = record(
        [READ],
        measure=lambda *_: [RunFigures(READ.workload, "read", histogram=histogram)],
        quantile=upper_edge,
        environment=ENVIRONMENT,
        runs=2,
    )
    assert recorded.file.entries[0].latency.seconds() == {"mean": 0.0005, "p50": 0.0001, "p95": 0.001}


def test_probes_take_turns_and_share_the_minute():
    calls, told = [], []

    def measure(group, duration_s):
        calls.append(([(one.probe, one.operation) for one in group], duration_s))
        return [RunFigures(one.workload, one.operation, latency={"p50": 0.001}) for one in group]

    record(
        [READ, WRITE, FIO],
        measure=measure,
        quantile=upper_edge,
        environment=ENVIRONMENT,
        runs=2,
        progress=told.append,
    )
    canary, fio = [("canary", "read"), ("canary", "write")], [("fio", "write")]
    assert calls == [(canary, 15.0), (fio, 15.0), (canary, 15.0), (fio, 15.0)]
    assert told == [
        Progress(0, 4, "canary", 1, 15.0),
        Progress(1, 4, "fio", 1, 15.0),
        Progress(2, 4, "canary", 2, 15.0),
        Progress(3, 4, "fio", 2, 15.0),
        Progress(4, 4, "fio", 2, 15.0),
    ]


def test_what_was_recorded_is_a_file_of_this_host():
    recorded = record([READ, FIO], measure=runs_of(*[0.00012345678] * 10), quantile=upper_edge, environment=ENVIRONMENT)
    text = format_site(recorded.file)
    loaded = parse_site(text, where="baseline.yaml", host="storage1", catalogue=CATALOGUE)
    assert loaded.file == recorded.file
    assert loaded.file.recorded == datetime(2025, 11, 3, 10, 22, 41, tzinfo=UTC)
    read, capped = loaded.entries
    assert (read.key, read.config_hash, read.tolerance_ratio) == (READ.key, READ.config_hash, 1.25)
    assert (capped.key, capped.config_hash) == (FIO.key, FIO.config_hash)
    assert "p50: 123.457us" in text


def test_a_run_beyond_the_limit_is_refused_by_name():
    measure = runs_of(0.0001, 0.0001, 0.00048, 0.0001, 0.0001)
    with pytest.raises(BaselineError) as caught:
        record([READ], measure=measure, quantile=upper_edge, environment=ENVIRONMENT)
    assert str(caught.value) == (
        "record: canary, randread-4k-qd1-j1 read: run 3 of 5 had a median of 480us; the median of all runs is 100us. "
        "Nothing was written: wait until this host is quiet, or accept it with --force"
    )


def test_a_run_that_is_far_too_quick_is_no_better():
    with pytest.raises(BaselineError, match="run 1 of 3 had a median of 40us; the median of all runs is 100us"):
        record([READ], measure=runs_of(0.00004, 0.0001, 0.0001), quantile=upper_edge, environment=ENVIRONMENT, runs=3)


def test_force_keeps_it_with_its_warning_and_its_wide_tolerance():
    measure = runs_of(0.0001, 0.0001, 0.00048)
    recorded = record([READ], measure=measure, quantile=upper_edge, environment=ENVIRONMENT, runs=3, force=True)
    assert recorded.records[0].outliers == (3,)
    assert recorded.file.entries[0].tolerance_ratio == 4.8
    assert len(recorded.warnings) == 1


def test_a_busy_device_is_flagged_and_if_mostly_busy_refused():
    answers = iter(["", "nvme0n1 was 40 % busy", ""])
    recorded = record(
        [READ, WRITE],
        measure=runs_of(0.0001, 0.0001, 0.0001),
        quantile=upper_edge,
        environment=ENVIRONMENT,
        runs=3,
        busy=lambda device: next(answers),  # once a run, though two targets share the device
    )
    assert recorded.warnings == (
        "canary, randread-4k-qd1-j1 read: before run 2, nvme0n1 was 40 % busy",
        "canary, randwrite-4k-qd1-j1-dsync write: before run 2, nvme0n1 was 40 % busy",
    )
    assert recorded.file.entries[0].note == "run 2: nvme0n1 was 40 % busy"
    with pytest.raises(BaselineError, match=r"before run 1, nvme0n1 was 40 % busy; .*accept it with --force"):
        record(
            [READ],
            measure=runs_of(0.0001, 0.0001, 0.0001),
            quantile=upper_edge,
            environment=ENVIRONMENT,
            runs=3,
            busy=lambda device: f"{device} was 40 % busy",
        )


def test_nothing_to_record():
    with pytest.raises(BaselineError, match="no probe measures anything here; enable one in the configuration"):
        record([], measure=runs_of(), quantile=upper_edge, environment=ENVIRONMENT)
    with pytest.raises(BaselineError, match="runs = 1: one run says nothing of its spread"):
        record([READ], measure=runs_of(), quantile=upper_edge, environment=ENVIRONMENT, runs=1)


def test_runs_without_figures():
    empty = RunFigures(READ.workload, "read", histogram=HistogramValue((0.1,), [0], 0, 0.0))
    for figures, message in (
        ([], "canary, randread-4k-qd1-j1 read: run 1 did no operation; is the device answering?"),
        ([empty], "canary, randread-4k-qd1-j1 read: run 1 did no operation; is the device answering?"),
        ([RunFigures(READ.workload, "read")], "canary, randread-4k-qd1-j1 read: run 1 gave no median latency"),
    ):
        with pytest.raises(BaselineError) as caught:
            record(
                [READ],
                measure=lambda group, seconds, figures=figures: figures,
                quantile=upper_edge,
                environment=ENVIRONMENT,
            )
        assert str(caught.value) == message
