"""The parser of fio's report is total: a finite report or ParseError."""

from __future__ import annotations

import json
import math
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plumbline.errors import ParseError
from plumbline.probes.fio.fio_output import parse_report

FIXTURES = Path(__file__).parent.parent / "fixtures" / "fio"
WHOLE = [path.read_bytes() for path in sorted(FIXTURES.glob("*.json"))]


def check(data: bytes) -> None:
    try:
        report = parse_report(data, job="plumbline")
    except ParseError:
        return
    for figures in (report.read, report.write):
        if figures is not None:
            latency = figures.latency.statistics.values() if figures.latency else ()
            for value in (figures.iops, figures.throughput, *latency, *figures.rates):
                assert math.isfinite(value)
                assert value >= 0


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A real report with a piece replaced: shorter, longer or garbled."""
    data = draw(st.sampled_from(WHOLE))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 40))
        piece = draw(
            st.one_of(
                st.binary(max_size=12),
                st.sampled_from([b"-1", b"1e400", b"nan", b"{", b"}", b"\n{\n", b"\n}\n", b"null", b'"', b"9" * 400]),
            )
        )
        data = data[:at] + piece + data[at + length :]
    return data


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NUMBER = st.integers(-2, 2**70) | st.floats() | JSON


@st.composite
def shaped(draw: st.DrawFn) -> bytes:
    """The right keys with any values."""
    times = st.fixed_dictionaries(
        {},
        optional={
            "N": NUMBER,
            "mean": NUMBER,
            "max": NUMBER,
            "percentile": st.dictionaries(st.sampled_from(["50.000000", "99.900000", "x"]), NUMBER) | JSON,
            "bins": st.dictionaries(st.text(max_size=4) | st.integers().map(str), NUMBER, max_size=3) | JSON,
        },
    )
    direction = st.fixed_dictionaries(
        {"total_ios": NUMBER, "iops": NUMBER, "bw_bytes": NUMBER}, optional={"lat_ns": times, "clat_ns": times}
    )
    job = st.fixed_dictionaries(
        {"jobname": st.just("plumbline"), "error": NUMBER, "read": direction, "write": direction},
        optional={"sync": st.fixed_dictionaries({"lat_ns": times})},
    )
    document = draw(st.fixed_dictionaries({"fio version": st.text(max_size=5), "jobs": st.lists(job, max_size=2)}))
    return json.dumps(document, indent=1).encode()


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    check(data)


@given(mutated())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
def test_mutated_reports(data: bytes) -> None:
    check(data)


@given(shaped())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_right_keys_any_values(data: bytes) -> None:
    check(data)


@given(st.integers(0, 40))
def test_deep_nesting(power: int) -> None:
    check(b"{\n" + b'"jobs":[' * (power * 100) + b"\n}")
