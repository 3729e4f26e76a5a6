"""Printed figures: what is read, what is refused, and that writing loses nothing."""

from __future__ import annotations

from decimal import Decimal

import pytest

from plumbline.baseline.units import Iops, Latency, Throughput, Volume
from support.offenders import for_every


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Latency, "412us", 0.000412),
        (Latency, "412 µs", 0.000412),
        (Latency, "412 μs", 0.000412),
        (Latency, "8.33 ms", 0.00833),
        (Latency, "5 s", 5.0),
        (Latency, "930ns", 9.3e-7),
        (Throughput, "202 MB/s", 202_000_000.0),
        (Throughput, "202.00 MiB/s", 211_812_352.0),
        (Throughput, "9.40 Gb/s", 1_175_000_000.0),
        (Throughput, "941 Mb/s", 117_625_000.0),
        (Iops, "51600 IOPS", 51600.0),
        (Iops, "28K IOPS", 28000.0),
        (Iops, 51600, 51600.0),
        (Iops, 49.5, 49.5),
        (Volume, "5 GiB", 5368709120.0),
        (Volume, "4000787030016 B", 4000787030016.0),
    ],
)
def test_base_units(kind, text, value):
    assert kind.parse(text).value == value


@for_every(
    ("kind", "bad"),
    [
        (Latency, 0.000412),
        (Latency, "412"),
        (Latency, "412 m"),
        (Latency, "-1us"),
        (Latency, "1e-3s"),
        (Latency, "nan s"),
        (Latency, ""),
        (Latency, None),
        (Latency, "1,5 ms"),
        (Throughput, "202 MB"),
        (Throughput, "202 mb/s"),
        (Throughput, "202 KB/s"),
        (Iops, "28K"),
        (Iops, "28M IOPS"),
        (Iops, True),
        (Iops, float("inf")),
        (Iops, float("nan")),
        (Iops, -3),
        (Iops, 0),
        (Latency, "9" * 30 + "s"),
    ],
)
def test_refused_with_the_accepted_forms(kind, bad):
    with pytest.raises(ValueError, match="expected a figure with its unit, such as"):
        kind.parse(bad)


def test_zero_is_not_a_figure():
    with pytest.raises(ValueError, match="must be greater than 0; leave out what was not measured"):
        Latency.parse("0 us")


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Latency, 0.000412, "412us"),
        (Latency, 0.0000842155, "84.2155us"),
        (Latency, 0.00012345678901234567, "123.45678901234567us"),
        (Latency, 1.5, "1.5s"),
        (Latency, 0.02, "20ms"),
        (Latency, 3e-9, "3ns"),
        (Throughput, 211812352.0, "211.812352 MB/s"),
        (Throughput, 1e9, "1 GB/s"),
        (Throughput, 12.0, "12 B/s"),
        (Iops, 51600.0, "51600 IOPS"),
        (Iops, 49.97, "49.97 IOPS"),
    ],
)
def test_written_as_people_read_it_and_read_back(kind, value, text):
    assert kind.of(value).text == text
    assert kind.parse(text).value == value
    assert kind.parse(text) == kind.of(value)


@pytest.mark.parametrize(
    ("text", "step"),
    [("28.20 ms", "0.00001"), ("400 ms", "0.1"), ("59 ms", "0.001"), ("5 s", "1"), ("308.00 us", "0.00000001")],
)
def test_one_of_the_last_digit(text, step):
    assert Latency.parse(text).step == Decimal(step)


def test_figures_of_different_kinds_differ():
    assert Latency.parse("1 s") != Latency.parse("1s")
    assert Latency.parse("1 s") != Volume.parse("1 B")
    assert len({Iops.parse("28K IOPS"), Iops.parse("28K IOPS")}) == 1
