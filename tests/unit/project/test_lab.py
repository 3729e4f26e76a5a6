"""The lab's verdicts and its report; the rows themselves are taken by `make lab`."""

from __future__ import annotations

import pytest

from lab import report
from lab.report import Result
from lab.table import Seen, said


@pytest.mark.parametrize(
    ("truth", "figure", "tolerance", "right"),
    [
        (200, 200.0, 0, True),
        (200, 201.0, 0, False),
        (200, 201.0, 1, True),
        (0.1 + 0.2, 0.3, 0, True),
        (1.0, None, 0, False),
        (None, None, 0, False),  # nothing was looked at
        ({}, {}, 0, False),
        (set(), set(), 0, False),
        ({"rx": 256.0}, {"rx": 256.0}, 0, True),
        ({"rx": 256.0}, {"rx": 256.0, "tx": 256.0}, 0, False),
        ({"rx": 256.0, "driver": "igb"}, {"rx": 255.0, "driver": "igb"}, 1, True),
        ({"driver": "igb"}, {"driver": "igc"}, 1, False),
    ],
)
def test_both_sides_agree(truth: object, figure: object, tolerance: float, right: bool) -> None:
    assert Seen(truth, figure, tolerance).right() is right


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "none"),
        (2.0, "2"),
        (0.05123456, "0.0512346"),
        ({"b": 1.0, "a": None}, "a none, b 1"),
        ({"y", "x"}, "x, y"),
    ],
)
def test_a_value_in_words(value: object, words: str) -> None:
    assert said(value) == words


def row(**changed: str) -> Result:
    fields = {
        "group": "nvme", "device": "NVMe drive", "feature": "paths", "kernel": "6.12.57+deb13-amd64", "truth": "2",
        "figure": "2", "verdict": "right", "date": "2026-11-24",
    }  # fmt: skip
    return Result(**fields | changed)


def test_a_report_is_read_as_it_was_written() -> None:
    rows = [row(), row(feature="pulled", verdict="wrong: no answer within 300 s", truth="", figure="a|b")]

    again = report.parse(report.render(rows))

    assert again == [row(), row(feature="pulled", verdict="wrong: no answer within 300 s", truth="-", figure="a/b")]


def test_a_run_replaces_its_rows_and_keeps_those_of_other_kernels() -> None:
    before = [row(), row(kernel="7.2.1"), row(feature="pulled")]

    after = report.merged(before, [row(kernel="6.12.60", verdict="wrong")])

    assert after == [row(kernel="6.12.60", verdict="wrong"), row(kernel="7.2.1"), row(feature="pulled")]


def test_the_summary_counts_the_verdicts() -> None:
    text = report.render([row(), row(feature="a", verdict="wrong"), row(feature="b", verdict="not shown: no SMART")])

    assert "3 rows on 6.12.57+deb13-amd64: 1 right, 1 wrong, 1 not shown." in text
