"""One formatter for the page, the terminal and the reports."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import pytest

import plumbline
from plumbline.core import words
from plumbline.core.units import base_text, degradation_text, figure_text, seconds_text, si, size_text


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


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (4096, "4 KiB"),
        (1_920_383_410_176, "1.75 TiB"),
        (42.5e12, "38.7 TiB"),
        (-3 * 2**40, "-3 TiB"),
        (1023.9 * 2**30, "1 TiB"),
        (5e21, "4337 EiB"),
    ],
)
def test_an_amount_of_data_is_in_binary_units_as_on_the_dashboards(size: float, text: str) -> None:
    assert size_text(size) == text


def test_no_command_or_report_prints_an_amount_of_data_in_decimal_units() -> None:
    """What Grafana shows beside it is in binary ones."""
    code = Path(plumbline.__file__).parent
    wrong = [
        f"{path.relative_to(code)}:{call.lineno}"
        for path in code.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("si")
        if any(isinstance(given, ast.Constant) and given.value in ("B", "bytes") for given in call.args)
    ]
    assert wrong == []
    pages = Path(__file__).parents[3] / "dashboards" / "out"
    texts = [page.read_text("utf-8") for page in pages.glob("plumbline-*.json")]
    assert {unit for text in texts for unit in re.findall(r'"unit": "(\w*bytes|\w*Bps)"', text)} == {"bytes", "Bps"}
