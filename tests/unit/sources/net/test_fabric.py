"""Errors of an InfiniBand fabric, as ibqueryerrors lists them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from plumbline.commands.fabric import print_fabric
from plumbline.core.process import Completed
from plumbline.errors import ParseError, PlumblineError
from plumbline.sources.net.fabric import COMMAND, Fabric, FabricPort, parse_fabric, read_fabric

CAPTURED = (Path(__file__).parents[3] / "fixtures" / "fabric" / "two-ports.txt").read_bytes()
LESS = "Could be 12X Could be 10.0 Gbps"
TWO = Fabric(
    3,
    6,
    (
        FabricPort("node1", 1, {"SymbolErrorCounter": 17}, "switch-1", 1, LESS),
        FabricPort("switch-1", 1, {"PortRcvErrors": 5}, "node1", 1, LESS),
    ),
)
NONE = b"\n## Summary: 3 nodes checked, 0 bad nodes found\n##          6 ports checked, 0 ports have errors\n"


class Program:
    """Answers as told."""

    def __init__(self, **done: Any) -> None:
        self.done = done

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        assert tuple(argv) == COMMAND
        return Completed(tuple(argv), **{"returncode": 1, "stdout": CAPTURED, **self.done})


def test_ports_with_errors_and_what_is_at_their_other_end() -> None:
    """The sum over all ports of a switch is left out."""
    assert parse_fabric(CAPTURED) == read_fabric(Program()) == TWO


def test_several_counters_with_a_remark_and_a_port_without_a_link() -> None:
    lines = 'Errors for "a [b] \\" HCA-1"\n   GUID 0x1 port 12: [PortXmitWait == 1200 (1.2K)] [PortXmitDiscards == 3]\n'
    (port,) = parse_fabric(lines.encode() + NONE).bad
    assert port == FabricPort('a [b] \\" HCA-1', 12, {"PortXmitWait": 1200, "PortXmitDiscards": 3})


def test_a_fabric_without_errors() -> None:
    assert read_fabric(Program(returncode=0, stdout=NONE)) == Fabric(3, 6, ())


@pytest.mark.parametrize(
    ("done", "reason"),
    [
        ({"returncode": 127, "stdout": b""}, "not installed; install the package infiniband-diags"),
        ({"returncode": 255, "stdout": b"", "stderr": b"can't open UMAD port\n"}, "exit 255: can't open UMAD port"),
        ({"returncode": 1, "stdout": b"", "stderr": b"discover failed\n"}, "exit 1: discover failed"),
        ({"returncode": None, "timed_out": True}, "no answer within 120 s"),
        ({"returncode": 1, "truncated": True}, "too much output"),
        ({"returncode": 0, "stdout": b'Errors for "node1"\n'}, "has no summary"),
    ],
)
def test_why_there_is_no_answer(done: dict[str, Any], reason: str) -> None:
    with pytest.raises(PlumblineError, match=reason):
        read_fabric(Program(**done))


def test_what_a_person_sees() -> None:
    console = Console(width=160, record=True, file=None)
    print_fabric(console, TWO)
    lines = console.export_text().splitlines()
    assert lines[0] == "3 nodes, 6 ports: 2 ports with errors since the counters were cleared"
    (row,) = (line for line in lines if line.lstrip().startswith("node1"))
    assert "SymbolErrorCounter 17" in row
    assert "switch-1 port 1" in row
    assert LESS in row


@given(
    st.binary(max_size=300) | st.lists(st.sampled_from(CAPTURED.splitlines(keepends=True)), max_size=20).map(b"".join)
)
@example(CAPTURED)
def test_any_answer_is_read_or_refused(data: bytes) -> None:
    with suppress(ParseError):
        assert parse_fabric(data).nodes >= 0
