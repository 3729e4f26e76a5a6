"""The default page: what is in it, what of a family is left out, and buckets."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from plumbline.collectors import canary, latency, softnet
from plumbline.collectors.canary import _coarse
from plumbline.collectors.registry import every_spec
from plumbline.core.histogram import Coarse, HistogramValue, coarser
from plumbline.metrics.default_page import NAMES, REDUCTIONS, DefaultPage
from plumbline.metrics.snapshot import Family, Snapshot
from plumbline.metrics.spec import MetricSpec
from plumbline.probes.run.histogram import EDGES, latency_edges, quantile

SPECS = {spec.name: spec for spec in every_spec()}
BYTES = SPECS["plumbline_disk_io_bytes_total"]


def shown(*families: Family, also: Sequence[str] = ()) -> dict[str, Family]:
    return {family.spec.name: family for family in DefaultPage().of(Snapshot(families, ()), also).families}


def family(spec: MetricSpec, rows: dict[tuple[str, ...], float]) -> Family:
    return Family(spec, tuple(rows), list(rows.values()))


@pytest.mark.parametrize("name", sorted(REDUCTIONS))
def test_what_is_left_out_is_of_a_metric_that_there_is(name: str) -> None:
    labels = {label for label, _ in REDUCTIONS[name].without} | {REDUCTIONS[name].summed} - {""}
    assert labels <= set(SPECS[name].labels)


def test_families_that_nobody_reads_are_left_out_unless_asked_for() -> None:
    merged = family(SPECS["plumbline_disk_ios_merged_total"], {("sda", "read"): 3})
    assert shown(merged) == {}
    assert shown(merged, also=[merged.spec.name])[merged.spec.name] is merged


def test_volumes_and_discards_are_left_out_of_bytes() -> None:
    rows = {("sda", "read"): 1.0, ("sda", "discard"): 2.0, ("dm-0", "read"): 3.0, ("sda", "write"): 4.0}
    found = shown(family(BYTES, rows))[BYTES.name]
    assert dict(zip(found.labels, found.values, strict=True)) == {("sda", "read"): 1.0, ("sda", "write"): 4.0}
    assert shown(family(BYTES, {("dm-0", "read"): 3.0})) == {}
    whole = family(BYTES, rows)
    assert shown(whole, also=[BYTES.name])[BYTES.name] is whole


def test_time_of_disks_with_histograms_is_told_by_them() -> None:
    spec = SPECS["plumbline_disk_io_seconds_total"]
    seconds = family(spec, {("sda", "read"): 1.0, ("sdb", "read"): 2.0, ("sdb", "discard"): 2.0})
    timed = Family(latency.LATENCY, (("sda", "read"),), [HistogramValue((), (), 0, 0.0)])
    page = DefaultPage()
    for families, devices in (((seconds,), {"sda", "sdb"}), ((seconds, timed), {"sdb"}), ((seconds,), {"sda", "sdb"})):
        found = {each.spec: each for each in page.of(Snapshot(families, ())).families}
        assert {labels[0] for labels in found[spec].labels} == devices


def test_cpus_are_summed() -> None:
    page = DefaultPage()
    for rows, total in (
        ({("0",): 1, ("1",): 4}, 5),
        ({("0",): 1, ("1",): 6}, 7),
        ({("0",): 1, ("1",): 6, ("2",): 1}, 8),
    ):
        (found,) = page.of(Snapshot((family(softnet.DROPPED, rows),), ())).families
        assert (found.spec.labels, found.labels, found.values) == ((), ((),), [total])


def test_slow_operations_are_summed_over_osds_by_stage() -> None:
    spec = SPECS["plumbline_osd_slow_operations"]
    rows = {("osd.0", "queue"): 1.0, ("osd.0", "store"): 2.0, ("osd.1", "queue"): 4.0}
    found = shown(family(spec, rows))[spec.name]
    assert (found.spec.labels, found.labels, found.values) == (("stage",), (("queue",), ("store",)), [5.0, 2.0])


def test_flushes_are_left_out_of_the_queue() -> None:
    value = HistogramValue((), (), 3, 0.1)
    (found,) = shown(Family(latency.QUEUE, (("sda", "flush"), ("sda", "read")), [value, value])).values()
    assert (found.labels, found.values) == ((("sda", "read"),), [value])


def test_a_coarse_histogram_counts_the_same_operations() -> None:
    edges = (1.0, 2.0, 4.0, 8.0)
    coarse = Coarse.of(edges, lambda edge: edge in (2, 8))
    value = HistogramValue(edges, (1, 3, 3, 7), 9, 31.5, coarse)
    assert coarser(value) == HistogramValue((2.0, 8.0), [3, 7], 9, 31.5)
    plain = HistogramValue(edges, (1, 3, 3, 7), 9, 31.5)
    assert coarser(plain) is plain
    found = shown(Family(latency.LATENCY, (("sda", "read"),), [value]))[latency.LATENCY.name]
    assert found.values == [coarser(value)]
    whole = shown(Family(latency.LATENCY, (("sda", "read"),), [value]), also=[f"{latency.LATENCY.name}_bucket"])
    assert whole[latency.LATENCY.name].values == [value]


@pytest.mark.parametrize("bound", [60e-6, 0.00012, 0.0021, 0.045])
def test_a_canary_has_every_edge_where_its_baseline_lies(bound: float) -> None:
    """A bound is the p99 times the tolerance; medians down to a sixteenth of it are told as finely as ever."""
    edges = latency_edges((bound,))
    coarse = _coarse(edges, (bound,))
    assert coarse is not None
    assert bound in coarse.edges
    assert len(coarse.edges) < 0.55 * len(edges)
    for median in (bound / 12, bound / 4, bound / 1.5, bound, 1.9 * bound):
        cumulative = [100 * (edge >= median) for edge in edges]
        value = HistogramValue(edges, cumulative, 100, 1.0, coarse)
        assert quantile(coarser(value), 0.5) == pytest.approx(quantile(value, 0.5), rel=0.05)
    wide = [later / earlier for earlier, later in zip(coarse.edges, coarse.edges[1:], strict=False) if earlier >= 16e-6]
    assert max(wide) < 17


def test_a_canary_without_a_baseline_keeps_every_edge() -> None:
    assert _coarse(EDGES, ()) is None
    assert canary.LATENCY.name in SPECS


def test_the_list_names_metrics_that_there_are() -> None:
    assert {name for name in NAMES if name not in SPECS} == {name for name in NAMES if re.match("process_", name)}
