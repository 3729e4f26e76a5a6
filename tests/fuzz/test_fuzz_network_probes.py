"""The parsers of iperf3's report and qperf's output are total: a finite figure, or ParseError."""

from __future__ import annotations

import json
import math
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plumbline.errors import ParseError
from plumbline.probes.network.iperf3_output import parse_report
from plumbline.probes.network.qperf import parse_output
from plumbline.sources.net.netlink import Message
from plumbline.sources.net.routes import parse_route

FIXTURES = Path(__file__).parent.parent / "fixtures" / "iperf3"
WHOLE = [path.read_bytes() for path in sorted(FIXTURES.glob("*.json"))]


def check(data: bytes) -> None:
    try:
        report = parse_report(data)
    except ParseError:
        return
    assert (report.transfer is None) == bool(report.error)
    if report.transfer is not None:
        assert math.isfinite(report.transfer.bytes_per_second)
        assert report.transfer.bytes_per_second >= 0
        assert report.transfer.retransmits is None or report.transfer.retransmits >= 0


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A real report with a piece replaced."""
    data = draw(st.sampled_from(WHOLE))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        pieces = st.sampled_from([b"-1", b"1e400", b"NaN", b"{", b"}", b"null", b'"', b"9" * 400, b"true"])
        data = data[:at] + draw(st.binary(max_size=12) | pieces) + data[at + draw(st.integers(0, 40)) :]
    return data


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SUM = st.fixed_dictionaries({}, optional={"bits_per_second": JSON, "bytes": JSON, "retransmits": JSON}) | JSON
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "start": st.fixed_dictionaries({"version": JSON}) | JSON,
        "end": st.fixed_dictionaries({}, optional={"streams": JSON, "sum_sent": SUM, "sum_received": SUM}) | JSON,
        "error": JSON,
    },
)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    check(data)


@given(mutated())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
def test_mutated_reports(data: bytes) -> None:
    check(data)


@given(SHAPED)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_right_keys_any_values(document: dict[str, object]) -> None:
    check(json.dumps(document).encode())


def test_deep_nesting() -> None:
    check(b'{"end":' * 100_000)


@given(st.binary(max_size=64))
def test_any_route(data: bytes) -> None:
    try:
        assert parse_route(Message(24, 0, 1, data, 0, len(data))) >= 0
    except ParseError:
        return


@given(st.text(max_size=60) | st.from_regex(r"tcp_(lat|bw):\n    (latency|bw)  =  [0-9.e+]{1,12} (ns|bytes/sec)\n"))
@example("tcp_bw:\n    bw  =  1e40 bytes/sec\n")
def test_qperf(text: str) -> None:
    try:
        result = parse_output(text, "transmit")
    except ParseError:
        return
    assert result.leading is not None
    assert math.isfinite(result.leading[1])
    assert result.leading[1] > 0
