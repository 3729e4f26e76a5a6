"""What our queries read of Ceph, held against the pages that Ceph 16.2, 18.2 and 20.2 served, by each producer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from deploy.prometheus import keeplist

from support.ceph_pages import EXPORTER, MANAGER, WITH_COUNTERS, every_captured
from support.ceph_schema import METRICS, OF_EXPORTER, STATE, Metric
from support.metrics import ROOT

CAPTURED = {
    where: {name: frozenset(label for label, _ in labels) for name, labels in page}
    for where, page in every_captured().items()
}
"""(release, producer) → metric → labels."""


def lies(name: str, metric: Metric) -> list[str]:
    """Where the row says something else than the captured pages."""
    found = []
    for (release, producer), page in CAPTURED.items():
        if (name in page) != metric.written(release, producer):
            found.append(f"{name}: Ceph {release}, {producer}: {'has it' if name in page else 'does not have it'}")
        elif name in page and page[name] != metric.labels_in(release):
            found.append(f"{name}: Ceph {release}, {producer}: has the labels {sorted(page[name])}")
    return found


def test_each_producer_is_captured() -> None:
    assert CAPTURED.keys() == {
        (16, WITH_COUNTERS), (18, MANAGER), (18, WITH_COUNTERS), (20, MANAGER), (20, WITH_COUNTERS), (20, EXPORTER),
    }  # fmt: skip


def test_each_sample_of_a_metric_has_the_same_labels() -> None:
    for where, page in every_captured().items():
        for name, labels in page:
            if name in METRICS:
                assert {label for label, _ in labels} == CAPTURED[where][name], (where, name)


def test_every_metric_that_is_read_has_a_row_and_no_other() -> None:
    read = set(keeplist.names(ROOT)["ceph"])
    assert METRICS.keys() == read


def test_rows_are_true() -> None:
    assert [lie for name, metric in METRICS.items() for lie in lies(name, metric)] == []


@pytest.mark.parametrize(
    ("name", "change", "where"),
    [
        ("ceph_osd_up", {"labels": frozenset({"osd"})}, "Ceph 16, manager with counters: has the labels"),
        ("ceph_osd_up", {"since": 18}, "Ceph 16, manager with counters: has it"),
        ("ceph_osd_op_w_latency_sum", {"producers": STATE}, "Ceph 20, ceph-exporter: has it"),
        ("ceph_osd_op_w_latency_sum", {"producers": OF_EXPORTER}, "Ceph 18, manager with counters: has it"),
        ("ceph_bluestore_commit_lat_sum", {"until": 20}, "Ceph 20, ceph-exporter: does not have it"),
        ("ceph_bluestore_txc_commit_lat_sum", {"since": 16}, "Ceph 16, manager with counters: does not have it"),
        ("ceph_pool_metadata", {"later": {}}, "Ceph 20, manager: has the labels"),
        ("ceph_pool_metadata", {"later": {"application": 18}}, "Ceph 18, manager: has the labels"),
        ("ceph_rbd_read_latency_sum", {"uncaptured": {}}, "Ceph 16, manager with counters: does not have it"),
        ("ceph_osd_up", {"uncaptured": {20: "files"}}, "Ceph 20, manager: has it"),
    ],
)
def test_a_row_that_lies_is_noticed(name: str, change: dict[str, object], where: str) -> None:
    found = lies(name, replace(METRICS[name], **change))  # type: ignore[arg-type]
    assert any(where in lie for lie in found), found
