"""Whatever the labels and values: the reference parsers read from our pages what prometheus_client writes itself."""

from __future__ import annotations

import logging
import math
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from plumbline.core.histogram import HistogramValue
from plumbline.metrics.exposition import Exposition, Snapshot
from plumbline.metrics.rendering import Format, Renderer
from plumbline.metrics.spec import Kind, MetricSpec, Sample
from support.fake_collectors import fake
from support.prometheus_bridge import PrometheusClientBridge

COUNTER = MetricSpec("plumbline_things_total", Kind.COUNTER, 'Things "counted"\\.', ("device", "cause"))
GAUGE = MetricSpec("plumbline_level_ratio", Kind.GAUGE, "A level.", ("device",))
BARE = MetricSpec("plumbline_bare", Kind.GAUGE, "Without labels.")
HISTOGRAM = MetricSpec("plumbline_latency_seconds", Kind.HISTOGRAM, "A latency.", ("device",))
SPECS = (COUNTER, GAUGE, BARE, HISTOGRAM)

Read: TypeAlias = dict[tuple[str, tuple[tuple[str, str], ...]], float]

# prometheus_client reads with universal newlines and strips lines, so that these would end one; Go splits at \n only
_MISREAD = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
texts = st.text(st.characters(exclude_characters=_MISREAD), max_size=12)
anything = st.text(max_size=12)  # with surrogates
numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats())
counts = st.one_of(st.integers(0, 2**63), st.floats(0, exclude_min=False, allow_nan=False, allow_infinity=False))


@st.composite
def histograms(draw: st.DrawFn) -> HistogramValue:
    edges = sorted(draw(st.sets(st.floats(1e-9, 1e9), max_size=5)))
    cumulative = sorted(draw(st.lists(st.integers(0, 2**40), min_size=len(edges), max_size=len(edges))))
    count = (cumulative[-1] if cumulative else 0) + draw(st.integers(0, 9))
    return HistogramValue(tuple(edges), cumulative, count, draw(st.floats(0, 1e9)))


@st.composite
def samples(draw: st.DrawFn, words: st.SearchStrategy[str] = texts) -> list[Sample]:
    rows: list[Sample] = [
        *((COUNTER, key, value) for key, value in draw(st.dictionaries(st.tuples(words, words), counts)).items()),
        *((GAUGE, (key,), value) for key, value in draw(st.dictionaries(words, numbers)).items()),
        *((HISTOGRAM, (key,), value) for key, value in draw(st.dictionaries(words, histograms(), max_size=3)).items()),
        *((BARE, (), value) for value in draw(st.lists(numbers, max_size=1))),
    ]
    return draw(st.permutations(rows))


def exposition(rows: list[Sample]) -> Exposition:
    collector = fake("fuzz", SPECS, lambda _skip: rows)
    return Exposition([collector], None, clock=lambda: 0.0, logger=logging.getLogger("test"))


def read(families: list[Metric]) -> tuple[Read, dict[str, tuple[str, str]]]:
    values = {
        (sample.name, tuple(sorted(sample.labels.items()))): float(sample.value)
        for family in families
        for sample in family.samples
    }
    assert len(values) == sum(len(family.samples) for family in families)
    return values, {family.name: (family.type, family.documentation) for family in families}


def same(ours: Read, theirs: Read) -> None:
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        other = theirs[key]
        assert value == other or (math.isnan(value) and math.isnan(other)), key


def pages(rows: list[Sample]) -> tuple[Snapshot, str, str]:
    snapshot = exposition(rows).scrape()
    renderer = Renderer()
    return (
        snapshot,
        renderer.render(snapshot, Format.TEXT).decode(),
        renderer.render(snapshot, Format.OPENMETRICS).decode(),
    )


@settings(deadline=None)
@given(samples())
def test_our_pages_say_what_prometheus_client_says(rows: list[Sample]) -> None:
    _, text, openmetrics = pages(rows)
    registry = CollectorRegistry()
    registry.register(PrometheusClientBridge(exposition(rows)))
    for ours, theirs, parse in (
        (text, generate_latest(registry), parse_text),
        (openmetrics, generate_openmetrics(registry), parse_openmetrics),  # type: ignore[no-untyped-call]
    ):
        our_values, our_families = read(list(parse(ours)))
        their_values, their_families = read(list(parse(theirs.decode())))  # type: ignore[no-untyped-call]
        assert our_families == their_families
        same(our_values, their_values)


@settings(deadline=None)
@given(samples(anything))
def test_any_text_becomes_well_formed_lines(rows: list[Sample]) -> None:
    snapshot, text, openmetrics = pages(rows)
    health = snapshot.collectors[0]
    assert health.success or "appears twice" in health.reason  # "\udcff" beside r"\xff"
    expected = sum(
        sum(len(value.edges) + 3 for value in family.values if isinstance(value, HistogramValue))
        if family.spec is HISTOGRAM
        else len(family.values)
        for family in snapshot.families
    )
    for page in (text, openmetrics):
        lines = page.removesuffix("# EOF\n").split("\n")
        assert lines.pop() == ""
        assert sum(not line.startswith("#") for line in lines) == expected


@settings(deadline=None, max_examples=30)
@given(st.lists(samples(), min_size=2, max_size=4))
def test_a_renderer_with_memory_says_what_one_without_says(rounds: list[list[Sample]]) -> None:
    renderer = Renderer()
    for rows in rounds:
        snapshot = exposition(rows).scrape()
        for form in Format:
            assert renderer.render(snapshot, form) == Renderer().render(snapshot, form)
