"""The documented profiles against the figures their documents print: none is missing (support/figure_ledger.py)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.documented import PROFILES
from support.figure_ledger import CLASSES, Entry, covered, read_ledger, tokens, uncovered, write_ledger

LEDGERS = sorted((Path(__file__).parents[2] / "fixtures/seeds").glob("*-figures.tsv"))

each_ledger = pytest.mark.parametrize("path", LEDGERS, ids=lambda path: path.name.removesuffix("-figures.tsv"))
EVERYTHING = ("series", "pictures", "left_out", "contradictions", "budgets", "settings", "methods")


def profile_of(path):
    return PROFILES[path.name.removesuffix("-figures.tsv")].profile


@each_ledger
def test_every_figure_of_the_document_is_in_the_profile(path):
    missing = uncovered(profile_of(path), read_ledger(path))
    assert not missing, f"{len(missing)} figures: " + "; ".join(f"line {one.line}: {one.token}" for one in missing[:40])


@each_ledger
def test_classes_are_known_and_lines_in_order(path):
    ledger = read_ledger(path)
    assert [one.line for one in ledger] == sorted(one.line for one in ledger)
    unknown = {one.kind for one in ledger} - {"", *CLASSES}
    assert all(re.fullmatch(r"at \d+", kind) for kind in unknown), unknown


@each_ledger
def test_a_row_taken_away_is_missed(path):
    """The proof can fail: each line that a figure needs is missed as soon as the profile has nothing there."""
    profile, ledger = profile_of(path), read_ledger(path)
    needed = {int(one.kind.removeprefix("at ")) if one.kind else one.line for one in ledger if one.kind not in CLASSES}
    assert needed <= covered(profile)
    nothing: dict[str, Any] = dict.fromkeys(EVERYTHING, ())
    bare = msgspec.structs.replace(profile, **nothing)
    lost = needed - covered(bare)
    assert {one.line if not one.kind else int(one.kind[3:]) for one in uncovered(bare, ledger)} == lost
    assert lost


@each_ledger
def test_ledger_is_the_documents(path):
    """Only where the documents are at hand: they are not ours to ship."""
    folder = os.environ.get("PLUMBLINE_SEEDS")
    if not folder:
        pytest.skip("PLUMBLINE_SEEDS does not name the folder with the documents' texts")
    text = Path(folder, profile_of(path).document.text).read_text("utf-8")
    assert [(one.line, one.token) for one in read_ledger(path)] == [(one.line, one.token) for one in tokens(text)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("4k 1062 4.15 15.06 53000 207.00 0.26", ["4k", "1062", "4.15", "15.06", "53000", "207.00", "0.26"]),
        ("1 GbE 2565 2709 182", ["1 GbE", "2565", "2709", "182"]),
        ("IOPS random rd/wr 4k: 180k/75k", ["4k", "180k/75k"]),
        ("Bandwidth rd/wr 128k: 2/1 GB/s", ["128k", "2/1 GB/s"]),
        ("se obtienen 135 milisegundos y 945 IOPS", ["135 milisegundos", "945 IOPS"]),
        ("9.40 Gbits/sec, 4.000.787.030.016 bytes", ["9.40 Gbits/sec", "4.000.787.030.016 bytes"]),
        ("about 10 razy, 11%, <65us, 21.9 GBytes", ["10 razy", "11%", "65us", "21.9 GBytes"]),
        ("rate: 56 Gb/sec (4X FOR)", ["56 Gb/sec"]),
        ("| RADOS HDD only | 1173.00 | 70.80 |", ["1173.00", "70.80"]),
        ("a chapter with 3 parts and 4 people in it", []),
        ("/dev/sda1 is MK001920GWSSE", []),
        ("Average IOPS: 98", ["98"]),
        ("write: IOPS=605, BW=2422KiB/s, lat=105 mseg", ["605", "2422KiB/s", "105 mseg"]),
        ("it began at 12:24:30 of day: four", []),
        ("where they reach 23000\nIOPS, and a latency", ["23000 IOPS"]),
        ("", []),
    ],
)
def test_scanner(line, expected):
    assert [one.token for one in tokens(f"\n{line}")] == expected
    assert all(one.line == 2 for one in tokens(f"\n{line}"))


def test_ledger_is_read_as_written(tmp_path):
    entries = [Entry(1, "4 MiB", "parameter"), Entry(2, "37 IOPS"), Entry(3, "148 MiB/s", "at 2")]
    write_ledger(tmp_path / "x-figures.tsv", entries)
    assert read_ledger(tmp_path / "x-figures.tsv") == entries
