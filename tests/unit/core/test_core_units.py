"""One formatter for the page, the terminal and the reports."""

from __future__ import annotations

import math

import pytest

from plumbline.core import words
from plumbline.core.units import base_text, degradation_text, figure_text, seconds_text, si


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.00833, "s", "8.33 ms"),
        (1e-6, "s", "1 µs"),
        (0.99999, "s", "1 s"),
        (44.2e6, "B/s", "44.2 MB/s"),
        (1_175_000_000.0, "B/s", "1.18 GB/s"),
        (28_000.0, "1/s", "28k"),
        (0.0, "B/s", "0 B/s"),
        (0.0, "1/s", "0"),
    ],
)
def test_axes_have_base_units_with_si_prefixes(value: float, unit: str, text: str) -> None:
    assert si(value, unit) == text


def test_base_units_have_no_prefix() -> None:
    assert [base_text(v, u) for v, u in ((0.00004788, "s"), (29_569_843.2, "B/s"), (37.0005, "1/s"))] == [
        "0.00004788 s", "29,569,843 B/s", "37 1/s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.000000025, "25 ns"),
        (0.000163, "163 µs"),
        (0.00099996, "1 ms"),
        (0.004721, "4.72 ms"),
        (1.5, "1.5 s"),
        (59.96, "60 s"),
        (150.0, "2 min"),
        (7200.0, "2 h"),
        (11_520.0, "3 h 12 min"),
        (86400 * 3.2, "3 d 4 h"),
        (86400 * 1200.0, "1,200 d"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert plain(seconds_text(seconds)) == text


@pytest.mark.parametrize(
    ("figure", "value", "text"),
    [
        ("latency.p50", 0.000163, "163 µs"),
        ("iops", 51_600.0, "51,600 IOPS"),
        ("iops", 37.25, "37.2 IOPS"),
        ("throughput", 512.0, "512 B/s"),
        ("throughput", 999_960.0, "1 MB/s"),
        ("throughput", 1.175e9, "1.18 GB/s"),
        ("throughput", 2e12, "2 TB/s"),
    ],
)
def test_figures(figure: str, value: float, text: str) -> None:
    assert plain(figure_text(figure, value)) == text


@pytest.mark.parametrize(
    ("figure", "ratio", "tolerance", "text"),
    [
        ("latency.p99", 1.94, 1.3, "1.9× slower"),
        ("latency.p99", 0.5, 1.3, "2.0× faster"),
        ("latency.p99", 1.2, 1.3, "as accepted"),
        ("latency.p99", 1.02, None, "about the same"),
        ("throughput", 12.2, 1.3, "12× less"),
        ("iops", 0.25, None, "4.0× more"),
        ("iops", math.inf, 1.3, "nothing"),
        ("iops", None, 1.3, ""),
    ],
)
def test_degradation_in_words(figure: str, ratio: float | None, tolerance: float | None, text: str) -> None:
    assert degradation_text(figure, ratio, tolerance) == text


def test_the_first_few_names() -> None:
    assert [words.first_few(names) for names in ((), ("a",), "abcd", "abcde")] == [
        "",
        "a",
        "a, b, c, d",
        "a, b, c, d and 1 more",
    ]
    assert words.first_few((f"sd{number}" for number in range(2000)), 2) == "sd0, sd1 and 1,998 more"
