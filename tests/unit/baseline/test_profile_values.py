"""The documented profiles against their documents' numbers, by value: the right figure stands on the right line."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from support.documented import PROFILES
from support.figure_ledger import Entry, read_ledger
from support.figure_values import figures, invented, numbers, printed, said, unlike

SEEDS = Path(__file__).parents[2] / "fixtures/seeds"
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


# Typed from the document: numbers in sentences, their unit on another line or behind other words. Line 2702 is the
# digit that the scan lost.
PROSE = {
    "infn-2025": {},
    "unnoba-2020": {
        2481: (13, 5),
        2702: (11,),
        2711: (120,),
        2715: ("5.25",),
        2755: (52000,),
        2757: (27000,),
        3107: (53000,),
        3149: (82000,),
        3639: (115,),
        4332: (136,),
        4367: (157, 631),
        4541: (916,),
        4602: (945,),
        4641: (22000,),
        4936: (20, 0),
        4957: (400,),
        4977: (175,),
        5000: (54000,),
        5001: (73000, 92000),
        5003: (81000,),
        5007: (53000,),
        5062: (621,),
    },
}


def printed_in(name):
    prose = {line: {Decimal(number) for number in given} for line, given in PROSE[name].items()}
    return printed(ledger_of(name), prose)


@pytest.mark.parametrize("name", BY_VALUE)
def test_every_figure_of_the_profile_stands_in_the_ledger(name):
    """The other direction: no row has a number that its line of the document does not print."""
    assert invented(PROFILES[name].profile, printed_in(name)) == []


def a_digit_more(figure):
    """The same figure with a 7 behind its last digit: 195 → 1957, which no other cell of its line is."""
    last = max(place for place, char in enumerate(figure.text.split()[0]) if char.isdigit())
    return type(figure).parse(f"{figure.text[: last + 1]}7{figure.text[last + 1 :]}")


def wrong_points(point):
    for name in ("iops", "throughput"):
        if getattr(point, name):
            yield name, msgspec.structs.replace(point, **{name: a_digit_more(getattr(point, name))})
    for statistic, figure in point.latency.items():
        latency = msgspec.structs.replace(point.latency, **{statistic: a_digit_more(figure)})
        yield statistic, msgspec.structs.replace(point, latency=latency)


@pytest.mark.parametrize("name", BY_VALUE)
def test_every_wrong_figure_is_found(name):
    """The proof can fail: each figure of each row, with a digit more, stands nowhere on its line."""
    profile, known = PROFILES[name].profile, printed_in(name)
    alive, tried = [], 0
    for series in profile.series:
        for point in series.points:
            for what, wrong in wrong_points(point):
                tried += 1
                alone = msgspec.structs.replace(series, points=(wrong,))
                if not invented(msgspec.structs.replace(profile, series=(alone,)), known):
                    alive.append((point.line, what))
    assert tried > len(profile.series)
    assert alive == []


@pytest.mark.parametrize("name", BY_VALUE)
def test_every_figure_of_the_profile_stands_in_the_document(name):
    """As above, only where the documents are at hand: they are not ours to ship."""
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
