"""iperf3's report: real ones of each kind, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.errors import ParseError
from plumbline.probes.network.iperf3_output import Transfer, parse_report

FIXTURES = Path(__file__).parents[3] / "fixtures" / "iperf3"


def report(name: str):
    return parse_report((FIXTURES / name).read_bytes())


@pytest.mark.parametrize(
    ("name", "transfer"),
    [
        ("transmit-s1.json", Transfer(191467142.1660543 / 8, 5466, 1)),
        ("transmit-s4.json", Transfer(186097358.80178085 / 8, 8477, 4)),
        ("receive-s1.json", Transfer(95822746.9010656 / 8, 4084, 1)),
        ("receive-s4.json", Transfer(95904405.30550554 / 8, 1150, 4)),
        ("transmit-s2-capped.json", Transfer(16775068.79119473 / 8, 256, 2)),
        ("older-no-retransmits.json", Transfer(191467142.1660543 / 8, None, 1)),
        ("newer.json", Transfer(95904405.30550554 / 8, 1150, 4)),
    ],
)
def test_what_arrived_and_what_was_sent_again(name: str, transfer: Transfer) -> None:
    found = report(name)
    assert (found.transfer, found.error) == (transfer, "")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("refused.json", "unable to connect to server: Connection refused"),
        ("unreachable.json", "unable to connect to server: Connection timed out"),
        ("busy.json", "the server is busy running a test. try again later"),
        ("gone.json", "control socket has closed unexpectedly"),
        ("not-iperf3.json", "received an unknown control message"),
        ("server-terminated.json", "the server has terminated"),
        ("terminated.json", "interrupt - the client has terminated"),
    ],
)
def test_an_error_is_no_result_whatever_figures_stand_beside_it(name: str, error: str) -> None:
    found = report(name)
    assert (found.transfer, found.error) == (None, error)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"iperf3: error - unrecognized option", "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "no end"),
        (b'{"end": {}}', "no sum_received"),
        (b'{"end": {"sum_received": {"bits_per_second": "7"}}}', "is no number"),
        (b'{"end": {"sum_received": {"bits_per_second": -1}}}', "bits_per_second is -1"),
        (b'{"end": {"sum_received": {"bits_per_second": NaN}}}', "NaN is not a number"),
        (b'{"end": {"sum_received": {"bits_per_second": true}}}', "is no number"),
    ],
)
def test_what_is_no_report(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_report(data)


@pytest.mark.parametrize("value", ["-1", "null", '"7"', "1.5", "true"])
def test_retransmits_that_the_sender_does_not_know(value: str) -> None:
    sums = f'"sum_received": {{"bits_per_second": 8}}, "sum_sent": {{"retransmits": {value}}}'
    data = f'{{"end": {{{sums}}}}}'
    assert parse_report(data.encode()).transfer == Transfer(1.0, None, 0)
