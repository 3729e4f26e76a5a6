"""Edges a median can be trusted with, and PromQL's own quantile."""

from __future__ import annotations

import json
import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.core.histogram import HistogramValue
from plumbline.probes.run.histogram import edge_ns, latency_edges, quantile
from support.offenders import for_every
from support.promtool import run_tests

EDGES = latency_edges()
HALF_BUCKET = 0.046
WHOLE_BUCKET = 0.092


def histogram(values: Sequence[float], edges: tuple[float, ...] = EDGES) -> HistogramValue:
    counts = [0] * (len(edges) + 1)
    for value in values:
        counts[bisect_left(edges, value)] += 1
    *cumulative, count = accumulate(counts)
    return HistogramValue(edges, cumulative, count, sum(values))


def exact(values: Sequence[float], q: float) -> float:
    """The smallest value that at least ``q`` of all values do not exceed."""
    return sorted(values)[math.ceil(q * len(values)) - 1]


class TestEdges:
    def test_begin_and_end(self) -> None:
        assert EDGES[:8] == (2e-06, 4e-06, 8e-06, 1.6e-05, 1.745e-05, 1.903e-05, 2.075e-05, 2.263e-05)
        assert EDGES[-8:] == (0.5243, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
        assert len(EDGES) == 131

    def test_print_short(self) -> None:
        assert max(len(repr(edge)) for edge in EDGES) <= 9

    def test_are_whole_nanoseconds(self) -> None:
        assert all(edge_ns(edge) / 10**9 == edge for edge in EDGES)

    def test_grow_by_9_percent_where_it_matters(self) -> None:
        fine = [edge for edge in EDGES if 1.6e-05 <= edge <= 0.5243]
        ratios = [after / before for before, after in pairwise(fine)]
        assert max(ratios) < 1 + WHOLE_BUCKET
        assert (max(ratios) - 1) / 2 < HALF_BUCKET

    def test_hold_the_bounds_exactly_and_once(self) -> None:
        edges = latency_edges((0.00021, 0.001024, 0.00021))
        assert 0.00021 in edges
        assert len(edges) == len(EDGES) + 1
        assert list(edges) == sorted(edges)

    def test_round_a_bound_to_a_nanosecond(self) -> None:
        assert 0.000123457 in latency_edges((0.0001234567891,))

    @pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan, 1e-10])
    def test_refuse_what_is_no_latency(self, bound: float) -> None:
        with pytest.raises(ValueError, match="positive number of seconds"):
            latency_edges((bound,))


class TestMedianIsTrustworthy:
    @given(st.floats(1.6001e-05, 0.52))
    def test_of_a_point(self, value: float) -> None:
        found = quantile(histogram([value] * 7), 0.5)
        assert found == pytest.approx(value, rel=HALF_BUCKET)

    @for_every("edge", [edge for edge in EDGES if 1.6e-05 < edge <= 0.5243])
    def test_of_points_on_both_sides_of_an_edge(self, edge: float) -> None:
        for value in (edge, math.nextafter(edge, 0), edge + 1e-9):
            assert quantile(histogram([min(value, 0.5243)] * 100), 0.5) == pytest.approx(value, rel=HALF_BUCKET)

    @settings(max_examples=40, deadline=None)
    @given(st.floats(3e-05, 0.2), st.floats(0.02, 2.0), st.integers(0, 2**32))
    def test_of_a_lognormal(self, median: float, sigma: float, seed: int) -> None:
        draw = random.Random(seed)
        values = [median * math.exp(draw.gauss(0, sigma)) for _ in range(2001)]
        found = quantile(histogram(values), 0.5)
        assert found == pytest.approx(exact(values, 0.5), rel=0.05)

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.floats(1.6001e-05, 0.52), min_size=1, max_size=60))
    def test_of_anything_within_one_bucket(self, values: list[float]) -> None:
        """Also where the median falls exactly between two modes, which is the worst that can be."""
        assert quantile(histogram(values), 0.5) == pytest.approx(exact(values, 0.5), rel=WHOLE_BUCKET)

    def test_the_worst_case_is_as_bad_as_documented(self) -> None:
        """49 operations in one mode, 51 in another at the end of its bucket: this is why it says 9 %, not 5."""
        low, high = 2e-05, EDGES[60]
        found = quantile(histogram([low] * 4999 + [high] * 5001), 0.5)
        assert found is not None
        assert 0.05 < abs(found - high) / high < WHOLE_BUCKET


class TestQuantile:
    VALUE = HistogramValue((0.1, 0.2, 0.4), (1, 3, 3), 4, 1.0)

    @pytest.mark.parametrize(
        ("q", "found"), [(0.25, 0.1), (0.125, 0.05), (0.5, 0.15), (0.75, 0.2), (0.76, 0.4), (1.0, 0.4)]
    )
    def test_as_prometheus(self, q: float, found: float) -> None:
        assert quantile(self.VALUE, q) == pytest.approx(found)

    def test_of_nothing_is_missing(self) -> None:
        assert quantile(HistogramValue((0.1,), (0,), 0, 0.0), 0.5) is None

    @pytest.mark.parametrize("q", [0.0, -0.1, 1.1, math.nan])
    def test_outside_its_range(self, q: float) -> None:
        with pytest.raises(ValueError, match="quantile"):
            quantile(self.VALUE, q)

    def test_agrees_with_promtool(self, tmp_path: Path) -> None:
        """The real engine, on histograms with a few observations and empty buckets."""
        draw = random.Random(7)
        series, tests = [], []
        for number in range(12):
            values = [draw.lognormvariate(math.log(0.003), 1.5) for _ in range(draw.randrange(1, 30))]
            values += [100.0] * (number % 3)
            value = histogram(values)
            rows = zip((*map(repr, value.edges), "+Inf"), (*value.cumulative, value.count), strict=True)
            series += [{"series": f'h_bucket{{n="{number}",le="{le}"}}', "values": f"{n}"} for le, n in rows]
            for q in (0.01, 0.5, 0.9, 0.99, 1.0):
                tests.append(
                    {
                        "expr": f'abs(histogram_quantile({q}, h_bucket{{n="{number}"}}) / {quantile(value, q)!r} - 1)'
                        " < bool 1e-12",
                        "eval_time": "0m",
                        "exp_samples": [{"labels": f'{{n="{number}"}}', "value": 1}],
                    }
                )
        path = tmp_path / "test.yaml"
        path.write_text(
            json.dumps({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]}), "utf-8"
        )
        assert run_tests(path) == ""
