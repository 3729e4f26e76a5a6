"""What an OSD says of its bench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plumbline.errors import ParseError
from plumbline.probes.rados.osd_bench import OsdBenchReport, parse_osd_bench

CEPH = Path(__file__).parents[3] / "fixtures" / "ceph-16.2"


def test_large_and_small_blocks() -> None:
    report = parse_osd_bench((CEPH / "osd-bench.json").read_text())
    assert report == OsdBenchReport(2**30, 4 << 20, 619181684.67309451, 1.734130467, 147.62441746547091)
    report = parse_osd_bench((CEPH / "osd-bench-4k.json").read_text())
    assert (report.block_bytes, report.iops) == (4096, 12438.803935198061)


@pytest.mark.parametrize(
    ("release", "report"),
    [
        ("18.2", OsdBenchReport(12288000, 4096, 124214714.43382867, 0.098925478, 30325.858016071452)),
        ("20.2", OsdBenchReport(12288000, 4096, 127834421.13441709, 0.096124345, 31209.575472269797)),
    ],
)
def test_newer_releases(release: str, report: OsdBenchReport) -> None:
    assert parse_osd_bench((CEPH.parent / f"ceph-{release}" / "osd-bench-4k.json").read_text()) == report


def test_old_releases_tell_less() -> None:
    old = '{"bytes_written":1073741824,"blocksize":4194304,"bytes_per_sec":"148000000.5"}'
    assert parse_osd_bench(old) == OsdBenchReport(2**30, 4 << 20, 148000000.5, None, None)


@pytest.mark.parametrize(
    "broken",
    ["", "[]", "null", "{}", (CEPH / "osd-bench-refused.txt").read_text(), "[" * 100_000]
    + [
        json.dumps({"bytes_written": 1, "blocksize": 1, "bytes_per_sec": rate})
        for rate in (None, 0, -1, "x", True, [], float("nan"), float("inf"))
    ],
)
def test_what_is_no_result(broken: str) -> None:
    with pytest.raises(ParseError):
        parse_osd_bench(broken)
