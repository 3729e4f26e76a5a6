"""The documented profiles against their documents' numbers, by value: the right figure stands on the right line."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from plumbline.baseline.profiles import load_profiles
from plumbline.workloads import load_catalogue
from support.figure_ledger import Entry, read_ledger
from support.figure_values import figures, numbers, said, unlike

SEEDS = Path(__file__).parents[1] / "fixtures/seeds"
PROFILES = load_profiles(load_catalogue())
BY_VALUE = ("infn-2025", "unnoba-2020")
"""The others are checked by line (test_profile_ledgers.py)."""


def ledger_of(name):
    return read_ledger(SEEDS / f"{name}-figures.tsv")


@pytest.mark.parametrize("name", BY_VALUE)
def test_every_figure_of_the_document_has_its_number_in_the_profile(name):
    missing = unlike(PROFILES[name].profile, ledger_of(name))
    assert not missing, f"{len(missing)} figures: " + "; ".join(f"line {one.line}: {one.token}" for one in missing[:40])


def test_a_wrong_digit_is_found():
    """The proof can fail: one figure changed by one digit is missed on its line, and nothing else is."""
    profile = PROFILES["infn-2025"].profile
    first = profile.series[0]
    wrong = msgspec.structs.replace(first.points[0], throughput=type(first.points[0].throughput).parse("441.00 MB/s"))
    series = (msgspec.structs.replace(first, points=(wrong, *first.points[1:])), *profile.series[1:])
    changed = msgspec.structs.replace(profile, series=series)
    assert unlike(changed, ledger_of("infn-2025")) == [Entry(302, "440.00")]


def test_most_of_what_a_table_prints_needs_the_profile():
    """Classes excuse axes, parameters and the like; of the tables of results they excuse the block sizes only."""
    unnoba = [one for one in ledger_of("unnoba-2020") if 2682 <= one.line <= 2702 or 2961 <= one.line <= 2981]
    needed = [one for one in unnoba if not one.kind]
    assert len(needed) >= 2 * 16 * 6
    infn = [one for one in ledger_of("infn-2025") if 302 <= one.line <= 379 and "." in one.token]
    assert [one.kind for one in infn] == [""] * 88


@pytest.mark.parametrize("name", BY_VALUE)
def test_every_figure_of_the_profile_stands_in_the_document(name):
    """The other direction, only where the documents are at hand: they are not ours to ship."""
    folder = os.environ.get("PLUMBLINE_SEEDS")
    if not folder:
        pytest.skip("PLUMBLINE_SEEDS does not name the folder with the documents' texts")
    profile = PROFILES[name].profile
    lines = Path(folder, profile.document.text).read_text("utf-8").split("\n")
    invented = [
        (line, text)
        for line, around, text in figures(profile)
        if not numbers(text) <= numbers(" ".join(lines[max(line - 1 - around, 0) : line + 1 + around]))
    ]
    assert invented == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24,86 s", {"24.86"}),
        ("4.000.787.030.016 bytes", {"4000787030016"}),
        ("28K", {"28", "28000"}),
        ("19.5k, 76.3MiB/s", {"19.5", "19500", "76.3"}),
        ("52kB", {"52"}),
        ("ratio .7", {".7"}),
        ("none", set()),
    ],
)
def test_numbers(text, expected):
    assert numbers(text) == {Decimal(number) for number in expected}


def test_what_is_said_has_its_line():
    have = said(PROFILES["unnoba-2020"].profile)
    assert {Decimal("216"), Decimal("24.86")} <= have[2488]
    assert Decimal("115") in have[5023]  # the IOPS of the SSD that 10.3 gives to the HDD
    assert Decimal("24.2637") in have[3759]
    assert Decimal("1500") in have[1787]
