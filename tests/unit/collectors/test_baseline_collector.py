"""Baselines as samples, value by value."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from plumbline.baseline.book import load_book, mismatched, outdated
from plumbline.baseline.fingerprint import Fingerprint
from plumbline.baseline.model import BaselineEntry, Source, Target
from plumbline.baseline.selection import select
from plumbline.collectors.baseline import (
    BUDGET,
    CHANGED,
    COLLECTOR,
    MISMATCH,
    budget_samples,
    environment_samples,
    samples,
)
from plumbline.config.model import BaselineConfig

MEASURED = BaselineEntry(
    layer="disk",
    device_class="nvme",
    workload="randread-4k-qd1-j1",
    operation="read",
    source=Source.MEASURED,
    profile="baseline",
    config_hash="0123456789ab",
    latency={"p50": 84e-6, "p99": 160e-6},
    iops=11000.0,
    throughput=45056000.0,
    tolerance_ratio=1.25,
    level_spread={"1m": 0.03, "5m": 0.0},
    calm_seconds=0.0,
    load_ops_per_second=120.0,
    load_bytes_per_second=3e6,
    measured=1762165361.0,
)
DOCUMENTED = BaselineEntry(
    layer="disk",
    device_class="nvme",
    workload="randread-4k-qd1-j1",
    operation="read",
    source=Source.DOCUMENTED,
    profile="unnoba-2020",
    config_hash="0123456789ab",
    latency={"mean": 84e-6},
)
READ = Target("canary", "disk", "nvme", "randread-4k-qd1-j1", "read", "0123456789ab")
WRITE = Target("canary", "disk", "nvme", "randwrite-4k-qd1-j1-dsync", "write", "ba9876543210")


def test_samples():
    emitted = [
        (spec.name, labels, value) for spec, labels, value in samples(select([MEASURED, DOCUMENTED], [READ, WRITE], {}))
    ]
    measured = ("disk", "nvme", "randread-4k-qd1-j1", "read", "measured", "baseline", "0123456789ab")
    documented = ("disk", "nvme", "randread-4k-qd1-j1", "read", "documented", "unnoba-2020", "0123456789ab")
    assert emitted == [
        ("plumbline_baseline_latency_seconds", (*measured, "p50"), 84e-6),
        ("plumbline_baseline_latency_seconds", (*measured, "p99"), 160e-6),
        ("plumbline_baseline_spread_ratio", (*measured, "1m"), 0.03),
        ("plumbline_baseline_spread_ratio", (*measured, "5m"), 0.0),
        ("plumbline_baseline_iops", measured, 11000.0),
        ("plumbline_baseline_throughput_bytes_per_second", measured, 45056000.0),
        ("plumbline_baseline_tolerance_ratio", measured, 1.25),
        ("plumbline_baseline_calm_seconds", measured, 0.0),
        ("plumbline_baseline_load_ops_per_second", measured, 120.0),
        ("plumbline_baseline_load_bytes_per_second", measured, 3e6),
        ("plumbline_baseline_measured_timestamp_seconds", measured, 1762165361.0),
        ("plumbline_baseline_applicable", measured, 1.0),
        ("plumbline_baseline_latency_seconds", (*documented, "mean"), 84e-6),
        ("plumbline_baseline_applicable", documented, 0.0),
        ("plumbline_baseline_missing", ("canary", "disk", "nvme", "randread-4k-qd1-j1", "read"), 0.0),
        ("plumbline_baseline_missing", ("canary", "disk", "nvme", "randwrite-4k-qd1-j1-dsync", "write"), 1.0),
    ]


CAPPED = msgspec.structs.replace(MEASURED, config_hash="aaaaaaaaaaaa")
OTHERS = msgspec.structs.replace(DOCUMENTED, config_hash="aaaaaaaaaaaa")


def mismatches(entries: list[BaselineEntry], judge: dict[str, str] | None = None) -> list[tuple[str, ...]]:
    return [labels for spec, labels, _ in samples(select(entries, [READ], judge or {})) if spec is MISMATCH]


def test_a_baseline_of_other_parameters_is_named() -> None:
    wrong = ("canary", "disk", "nvme", "randread-4k-qd1-j1", "read", "measured", "baseline")
    assert mismatches([CAPPED]) == [wrong]
    assert mismatches([CAPPED, msgspec.structs.replace(CAPPED, config_hash="bbbbbbbbbbbb")]) == [wrong]
    (sentence,) = mismatched(select([CAPPED], [READ], {}))
    assert sentence == (
        "canary: read randread-4k-qd1-j1 is not compared: the measured baseline baseline was measured with other"
        " parameters (aaaaaaaaaaaa, here 0123456789ab)"
    )


def test_what_is_compared_after_all_or_would_only_be_shown_is_no_mismatch() -> None:
    assert mismatches([CAPPED, MEASURED]) == []
    assert mismatches([OTHERS]) == []
    assert mismatches([OTHERS], {"nvme": "unnoba-2020"}) == [
        ("canary", "disk", "nvme", "randread-4k-qd1-j1", "read", "documented", "unnoba-2020")
    ]


def test_what_changed_since_it_was_measured() -> None:
    then = Fingerprint(kernel="6.1", fio="3.33", ceph="18.2.4")
    now = Fingerprint(kernel="6.12", fio="3.33", tuning="0123456789ab")
    assert list(environment_samples({"baseline": then}, now)) == [
        (CHANGED, ("measured", "baseline", "kernel"), 1.0),
        (CHANGED, ("measured", "baseline", "fio"), 0.0),
    ]
    assert list(environment_samples({"baseline": then}, Fingerprint())) == []
    assert list(outdated({"baseline": then}, now)) == [
        "baseline baseline was measured with another kernel: 6.1; now 6.12"
    ]


def test_every_sample_fits_its_spec():
    for spec, labels, _ in samples(select([MEASURED, DOCUMENTED], [READ, WRITE], {})):
        assert spec in COLLECTOR.specs
        assert len(labels) == len(spec.labels)


def test_nothing_to_say_is_no_sample():
    assert list(samples(select([MEASURED], [], {}))) == []


def budgets_of(target: Target, storage: Path) -> dict[tuple[str, ...], float]:
    book = load_book(BaselineConfig(), where="test", storage=storage, host="x", targets=[target])
    found = list(budget_samples(book.budgets))
    assert {spec for spec, _, _ in found} <= {BUDGET}
    series = {labels: value for _, labels, value in found}
    assert len(series) == len(found)
    return series


@pytest.mark.parametrize(("layer", "workload"), [("rbd", "rbd-randwrite-4k-qd1-j1"), ("rados", "rados-ops-4k")])
def test_documented_budgets_where_their_operation_is_measured(tmp_path: Path, layer: str, workload: str) -> None:
    series = budgets_of(Target("probe", layer, "ssd", workload, "write", "0123456789ab"), tmp_path)
    # slide 47: 1 GbE, 4 KiB: 2565 us = 2 x 182 + 54 + 5 x 26 + 2017
    link = ("fujitsu-2013", "1g", "rbd-write-4k-qd1-j1")
    assert {labels[3:]: value for labels, value in series.items() if labels[:3] == link} == pytest.approx(
        {
            ("network", "network"): 364e-6,
            ("device", "disk"): 54e-6,
            ("ack", "network"): 130e-6,
            ("code", "rados"): 2017e-6,
        }
    )
    # 56 Gb IPoIB, 8 KiB
    link = ("fujitsu-2013", "56g-ipoib", "rbd-write-8k-qd1-j1")
    assert sum(value for labels, value in series.items() if labels[:3] == link) == pytest.approx(1821e-6)
    assert len(series) == 2 * 5 * 4
    assert all(len(labels) == len(BUDGET.labels) for labels in series)


def test_a_node_that_measures_no_such_operation_carries_no_budget(tmp_path: Path) -> None:
    assert budgets_of(READ, tmp_path) == {}
