"""``/proc/net/snmp`` and ``netstat``: pairs of lines whose names differ by kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.collectors.tcp import samples
from plumbline.core.roots import Roots
from plumbline.errors import ParseError, Unavailable
from plumbline.sources.kernel.tcp import TcpReading, parse_tcp, read_tcp

FIXTURES = Path(__file__).parents[3] / "fixtures"
SNMP = b"Ip: Forwarding\nIp: 2\nTcp: RtoAlgorithm MaxConn CurrEstab InSegs OutSegs RetransSegs\nTcp: 1 -1 7 100 90 3\n"
NETSTAT = b"TcpExt: PruneCalled ListenOverflows ListenDrops\nTcpExt: 4 5 6\nIpExt: InOctets\nIpExt: 9\n"


def test_a_recording() -> None:
    assert read_tcp(Roots.under(FIXTURES / "net-virtio-guest")) == TcpReading(
        segments_received=198067,
        segments_sent=140571,
        segments_retransmitted=16,
        checksum_errors=0,
        established=0,
        retransmission_timeouts=2,
        syn_retransmissions=0,
        sack_recoveries=0,
        out_of_order_queued=15,
        listen_overflows=0,
        listen_drops=0,
        receive_queue_collapsed=0,
        receive_queue_pruned=0,
        receive_queue_drops=0,
        out_of_order_drops=0,
        backlog_drops=0,
        memory_pressures=0,
    )


def test_an_old_kernel_counts_less_and_what_it_does_not_count_is_no_series() -> None:
    reading = parse_tcp(SNMP, NETSTAT, source="net")
    assert (reading.segments_received, reading.listen_drops, reading.sack_recoveries) == (100, 6, None)
    assert [(spec.name, labels, value) for spec, labels, value in samples(reading)] == [
        ("plumbline_tcp_segments_total", ("receive",), 100),
        ("plumbline_tcp_segments_total", ("transmit",), 90),
        ("plumbline_tcp_segments_retransmitted_total", (), 3),
        ("plumbline_tcp_listen_overflows_total", (), 5),
        ("plumbline_tcp_listen_drops_total", (), 6),
        ("plumbline_tcp_receive_queue_prunes_total", (), 4),
        ("plumbline_tcp_established_connections", (), 7),
    ]


def test_every_counter_becomes_a_sample() -> None:
    reading = TcpReading(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)
    assert {(spec.name[14:], labels): value for spec, labels, value in samples(reading)} == {
        ("segments_total", ("receive",)): 1,
        ("segments_total", ("transmit",)): 2,
        ("segments_retransmitted_total", ()): 3,
        ("checksum_errors_total", ()): 4,
        ("established_connections", ()): 5,
        ("retransmission_timeouts_total", ()): 6,
        ("syn_retransmissions_total", ()): 7,
        ("sack_recoveries_total", ()): 8,
        ("segments_out_of_order_total", ()): 9,
        ("listen_overflows_total", ()): 10,
        ("listen_drops_total", ()): 11,
        ("receive_queue_segments_collapsed_total", ()): 12,
        ("receive_queue_prunes_total", ()): 13,
        ("receive_drops_total", ("receive_queue",)): 14,
        ("receive_drops_total", ("out_of_order",)): 15,
        ("receive_drops_total", ("backlog",)): 16,
        ("memory_pressures_total", ()): 17,
    }


@pytest.mark.parametrize(
    ("snmp", "netstat", "reason"),
    [
        (b"", NETSTAT, r"net/snmp: 0 lines Tcp:, expected two"),
        (SNMP + b"Tcp: 1\n", NETSTAT, r"net/snmp: 3 lines Tcp:"),
        (b"Tcp: InSegs OutSegs\nTcp: 1\n", NETSTAT, r"net/snmp: Tcp: 2 names for 1 values"),
        (b"Tcp: InSegs\nTcp: x\n", NETSTAT, r"net/snmp: InSegs is b'x', not a counter"),
        (b"Tcp: InSegs\nTcp: -1\n", NETSTAT, r"net/snmp: InSegs is b'-1'"),
        (SNMP, b"TcpExt: ListenDrops\n", r"net/netstat: 1 lines TcpExt:"),
        (SNMP, b"TcpExt: ListenDrops\nTcpExt: 1.5\n", r"net/netstat: ListenDrops is b'1.5'"),
    ],
)
def test_malformed(snmp: bytes, netstat: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_tcp(snmp, netstat, source="net")


def test_a_kernel_without_tcp(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"net/snmp: No such file"):
        read_tcp(Roots.under(tmp_path))
