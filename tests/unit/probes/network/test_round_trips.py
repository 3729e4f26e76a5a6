"""Round trips and the search for the path MTU, against peers that a test plays."""

from __future__ import annotations

import ipaddress
import struct
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.process import ProcessRunner
from plumbline.errors import ParseError, ProbeRefused
from plumbline.probes.network import path_mtu, rtt
from plumbline.probes.network.echo import (
    Answer,
    Reply,
    TooBig,
    Unreachable,
    checksum,
    echo_request,
    is_answer,
    parse_failure,
    received_at_ns,
)
from plumbline.probes.network.path_mtu import MtuStep, biggest
from plumbline.probes.network.peer import Findings
from plumbline.probes.run.model import Progress, Run
from plumbline.probes.run.result import Outcome
from plumbline.sources.net.routes import Way


def make_run(stopping: threading.Event | None = None, seen: list[Progress] | None = None) -> Run:
    progress = (lambda _each: None) if seen is None else seen.append
    return Run(ProcessRunner({}), time.time, stopping or threading.Event(), progress=progress)


# --- round trips


def measured(replies: list[Reply | None], packets: int, **more: object) -> Findings:
    settings = {"run": make_run(), "gap_s": 0.0, "timeout_s": 60.0, "target": "stor02"} | more
    return rtt.measure(iter([None, *replies]).__next__, packets=packets, **settings)  # type: ignore[arg-type]


def test_percentiles_are_values_that_were_seen() -> None:
    found = measured([Answer(each / 1000) for each in range(100, 0, -1)], 100)
    [operation] = found.operations
    assert operation.latency == pytest.approx({"mean": 0.0505, "p50": 0.05, "p95": 0.095, "p99": 0.099, "max": 0.1})
    assert operation.loss_ratio == 0
    assert rtt.statistics([0.5]) == {"mean": 0.5, "p50": 0.5, "p95": 0.5, "p99": 0.5, "max": 0.5}


def test_the_first_packet_is_not_counted_and_lost_ones_are_no_time() -> None:
    [operation] = measured([None, Answer(0.1), Unreachable("No route to host"), Answer(0.3)], 4).operations
    assert (operation.loss_ratio, operation.latency["mean"], operation.latency["max"]) == (0.5, 0.2, 0.3)


def test_nobody_is_there() -> None:
    seen: list[Progress] = []
    found = measured([Unreachable("No route to host", "10.0.0.254")] * 10, 100, run=make_run(seen=seen))
    assert (found.outcome, found.operations) == (Outcome.FAILURE, ())
    assert found.message == "stor02: no answer to 10 packets; 10.0.0.254 reports: No route to host"
    assert seen[-1].figures == "no answer to 9 packets"


def test_one_answer_is_enough_to_go_on() -> None:
    assert measured([Answer(0.1), *[None] * 29], 30).operations[0].loss_ratio == pytest.approx(29 / 30)


def test_the_time_is_over() -> None:
    assert measured([Answer(0.1)] * 9, 100, timeout_s=1.0).outcome is Outcome.FAILURE


def test_told_to_stop() -> None:
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(ProbeRefused) as refused:
        measured([Answer(0.1)] * 3, 3, run=make_run(stopping))
    assert refused.value.reason == "stopped"


# --- packets


@pytest.mark.parametrize("data", [b"", b"x", b"plumb" * 3])
def test_an_echo_and_its_answer(data: bytes) -> None:
    request = echo_request(4, 0x1234, 7, data)
    assert request[:2] == b"\x08\x00"
    assert checksum(request) == 0
    reply = b"\0" + request[1:]
    assert is_answer(reply, 4, identifier=None, sequence=7, data=data)
    ip = b"\x46" + bytes(23)
    assert is_answer(ip + reply, 4, identifier=0x1234, sequence=7, data=data)
    assert not is_answer(ip + reply, 4, identifier=0x1235, sequence=7, data=data)
    assert not is_answer(reply, 4, identifier=None, sequence=8, data=data)
    assert not is_answer(reply, 4, identifier=None, sequence=7, data=data + b"y")
    assert not is_answer(request, 4, identifier=None, sequence=7, data=data), "our own request, as loopback shows it"
    six = echo_request(6, 1, 2, data)
    assert is_answer(b"\x81" + six[1:], 6, identifier=1, sequence=2, data=data)


def failure(code: int, origin: int, info: int, offender: bytes = b"") -> list[tuple[int, int, bytes]]:
    return [(0, 11, struct.pack("=IBBBBII", code, origin, 3, 4, 0, info, 0) + offender)]


def test_what_the_error_queue_says() -> None:
    hop = struct.pack("=HH4s8x", 2, 0, bytes([10, 0, 0, 254]))
    assert parse_failure(failure(90, 2, 1500, hop)) == TooBig(1500, "10.0.0.254")
    assert parse_failure(failure(90, 1, 9000, hop)) == TooBig(9000, ""), "this host itself"
    assert parse_failure(failure(113, 2, 0, hop)) == Unreachable("No route to host", "10.0.0.254")
    assert parse_failure([(1, 35, b"")]) is None
    with pytest.raises(ParseError, match="an error of 3 bytes"):
        parse_failure([(41, 25, b"abc")])
    assert received_at_ns([(1, 35, struct.pack("@ll", 1, 5))]) == 1_000_000_005
    assert received_at_ns([]) is None


@given(st.binary(max_size=80), st.sampled_from([4, 6]), st.none() | st.integers(0, 65535), st.binary(max_size=8))
def test_any_bytes_are_an_answer_or_not(packet: bytes, version: int, identifier: int | None, data: bytes) -> None:
    assert is_answer(packet, version, identifier=identifier, sequence=1, data=data) in (True, False)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 41]), st.sampled_from([11, 25, 35]), st.binary(max_size=40)), max_size=3)
)
def test_any_ancillary_data(ancillary: list[tuple[int, int, bytes]]) -> None:
    received_at_ns(ancillary)
    try:
        parse_failure(ancillary)
    except ParseError:
        return


# --- path MTU


@given(st.integers(576, 9000), st.integers(576, 65535), st.none() | st.integers(0, 70000), st.booleans())
def test_the_search_finds_every_size(real: int, high: int, hint: int | None, honest: bool) -> None:
    """Whatever routers claim: a hint is only a guess."""
    asked: list[int] = []

    def ask(size: int) -> MtuStep:
        asked.append(size)
        return MtuStep(size <= real, None if size <= real else (real if honest else hint))

    assert biggest(576, max(576, high), ask) == min(real, max(576, high))
    assert len(asked) <= (6 if honest else 24)


@pytest.mark.parametrize(("real", "packets"), [(9000, 1), (1500, 3), (8996, 17), (1400, 12)])
def test_the_search_takes_few_packets(real: int, packets: int) -> None:
    asked: list[int] = []

    def ask(size: int) -> MtuStep:
        asked.append(size)
        return MtuStep(size <= real)

    assert biggest(576, 9000, ask) == real
    assert len(asked) <= packets


def searched(carries: int, *, hop: str = "", mtu: int = 9000, timeout_s: float = 60.0, lossy: bool = False) -> Findings:
    count = 0

    def exchange(data_bytes: int, _wait_s: float) -> Reply | None:
        nonlocal count
        count += 1
        if data_bytes + 28 > carries:
            return TooBig(carries, hop) if hop else None
        return None if lossy and count % 3 else Answer(0.0001)

    return path_mtu.measure(
        exchange,
        run=make_run(),
        address=ipaddress.ip_address("10.0.0.2"),
        way=Way("ens2f0", mtu, 10000),
        timeout_s=timeout_s,
        target="stor02",
    )


def test_the_whole_way_carries_what_the_port_does() -> None:
    found = searched(9000)
    assert (found.operations[0].mtu_bytes, found.message) == (9000, "")


def test_less_than_the_port_is_a_result_with_a_remark() -> None:
    silent, said = searched(1500), searched(1500, hop="10.0.0.254")
    assert silent.operations[0].mtu_bytes == said.operations[0].mtu_bytes == 1500
    assert silent.outcome is said.outcome is Outcome.SUCCESS
    assert silent.message.endswith("no router reports it: a switch drops larger packets")
    assert said.message == "ens2f0 has an MTU of 9000, the path carries 1500: reported by 10.0.0.254"


def test_two_lost_packets_of_three_do_not_mislead() -> None:
    assert searched(1500, lossy=True).operations[0].mtu_bytes == 1500


def test_nobody_answers_and_no_time() -> None:
    assert searched(100).message == "stor02: no answer to packets of 576 bytes"
    assert searched(1500, timeout_s=0.0).outcome is Outcome.TIMEOUT
