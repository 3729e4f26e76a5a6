"""What ``rados bench`` says, of several releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.errors import ParseError
from plumbline.probes.rados.rados_bench import parse_rados_bench

FIXTURES = Path(__file__).parents[3] / "fixtures"


def text(name: str) -> str:
    return (FIXTURES / name).read_text()


@pytest.mark.parametrize(
    ("name", "operations", "duration", "mibs", "mean", "longest"),
    [
        ("ceph-16.2/rados-bench-write.json", 1388, 4.004166, 21.664938, 0.011530, 0.0678),
        ("ceph-16.2/rados-bench-write-cleanup.json", 1185, 3.005183, 24.644923, 0.010132, 0.056924),
        ("ceph-16.2/rados-bench-seq.json", 1388, 0.704340, 123.165031, 0.002015, 0.020146),
        ("ceph-16.2/rados-bench-rand.json", 7200, 3.000602, 149.969924, 0.001652, 0.036524),
        ("rados-bench/write-12-colon.json", 1388, 4.004166, 21.664938, 0.011530, 0.0678),
        ("rados-bench/write-20-numbers.json", 1388, 4.004166, 21.664938, 0.011530, 0.0678),
    ],
)
def test_totals(name: str, operations: int, duration: float, mibs: float, mean: float, longest: float) -> None:
    report = parse_rados_bench(text(name))
    assert (report.operations, report.duration_s) == (operations, duration)
    assert report.bytes_per_second == mibs * 2**20
    assert report.iops == pytest.approx(report.bytes_per_second / 65536, rel=1e-4)
    assert (report.mean_s, report.max_s) == (mean, longest)


@pytest.mark.parametrize(
    ("name", "operations", "duration", "mibs", "mean", "longest"),
    [
        ("ceph-18.2/rados-bench-write.json", 14990, 12.002956, 4.878356, 0.006402, 0.074438),
        ("ceph-18.2/rados-bench-rand.json", 15867, 4.000345, 15.493783, 0.001, 0.062995),
        ("ceph-20.2/rados-bench-write.json", 18909, 12.001748, 6.154377, 0.005075, 0.02481),
        ("ceph-20.2/rados-bench-rand.json", 21949, 4.000607, 21.431319, 0.000723, 0.012142),
    ],
)
def test_totals_of_newer_releases(
    name: str, operations: int, duration: float, mibs: float, mean: float, longest: float
) -> None:
    report = parse_rados_bench(text(name))
    assert (report.operations, report.duration_s) == (operations, duration)
    assert report.bytes_per_second == mibs * 2**20
    assert (report.mean_s, report.max_s) == (mean, longest)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("", "no JSON document"),
        ("hints = 1\n", "no JSON document"),
        (text("ceph-16.2/rados-pool-full.txt"), "total_time_run"),
        (text("ceph-16.2/rados-bench-write.json").replace('"1388"', '"0"'), "0 operations"),
        (text("ceph-16.2/rados-bench-write.json").replace("21.664938", "-nan"), "bandwidth"),
        (text("ceph-16.2/rados-bench-write.json").replace("0.011530", "-1"), "average_latency = -1"),
    ],
)
def test_what_makes_no_sense(broken: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        parse_rados_bench(broken)


def test_a_maximum_below_the_mean_is_none() -> None:
    odd = text("ceph-16.2/rados-bench-write.json").replace('"max_latency":"0.067800"', '"max_latency":"0.000001"')
    assert parse_rados_bench(odd).max_s is None
