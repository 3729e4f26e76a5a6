"""Pressure stall information, from the files to the samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.collectors import pressure as metrics
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.pressure import Pressure, parse_pressure, read_pressure

FIXTURE = Path(__file__).parents[2] / "fixtures" / "pressure-linux-6.18"


def test_each_resource_in_seconds() -> None:
    got = [(spec.name, *labels, value) for spec, labels, value in metrics.samples(read_pressure(Roots.under(FIXTURE)))]
    assert got == [
        ("plumbline_pressure_waiting_seconds_total", "cpu", 7255.880872),
        ("plumbline_pressure_stalled_seconds_total", "cpu", 0),
        ("plumbline_pressure_waiting_seconds_total", "io", 2416.325958),
        ("plumbline_pressure_stalled_seconds_total", "io", 1022.283316),
        ("plumbline_pressure_stalled_seconds_total", "irq", 0.078205),
        ("plumbline_pressure_waiting_seconds_total", "memory", 0),
        ("plumbline_pressure_stalled_seconds_total", "memory", 0),
    ]


def test_cpu_has_no_full_line_before_linux_5_13() -> None:
    text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nnew thing=1\n"
    assert parse_pressure(text, "cpu", source="cpu") == Pressure("cpu", 12, None)


def test_a_line_without_a_total() -> None:
    with pytest.raises(ParseError, match=r"^cpu:2: not a pressure line: 'full avg10=0\.00'"):
        parse_pressure("some total=1\nfull avg10=0.00\n", "cpu", source="cpu")


def test_a_kernel_without_it(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="CONFIG_PSI"):
        read_pressure(Roots.under(tmp_path))
