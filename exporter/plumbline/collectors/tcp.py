"""TCP counters as metrics."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import Collector
from plumbline.metrics.spec import MetricSpec, Sample, counter, declared, gauge
from plumbline.sources.kernel.tcp import TcpReading, read_tcp


def _counter(name: str, text: str, *labels: str) -> MetricSpec:
    return counter(f"plumbline_tcp_{name}_total", text, labels)


SEGMENTS = _counter(
    "segments", "TCP segments; sent ones without retransmissions, received ones after GRO merging.", "direction"
)
RETRANSMITTED = _counter("segments_retransmitted", "Retransmitted TCP segments.")
TIMEOUTS = _counter("retransmission_timeouts", "Expired retransmission timers: 200 ms or more.")
SYN_RETRANSMISSIONS = _counter("syn_retransmissions", "Retransmitted SYN and SYN-ACK segments.")
SACK_RECOVERIES = _counter("sack_recoveries", "Times a loss was repaired by selective acknowledgement.")
OUT_OF_ORDER = _counter("segments_out_of_order", "Segments that arrived before an earlier one.")
CHECKSUM_ERRORS = _counter("checksum_errors", "TCP segments received with a wrong checksum.")
LISTEN_OVERFLOWS = _counter("listen_overflows", "Connection requests that found the accept queue full.")
LISTEN_DROPS = _counter("listen_drops", "Connection requests dropped, for a full accept queue or any other reason.")
COLLAPSED = _counter(
    "receive_queue_segments_collapsed", "Segments merged because a receive buffer was full; costs CPU."
)
PRUNED = _counter("receive_queue_prunes", "Times a socket's receive buffer exceeded its limit and was pruned.")
DROPS = _counter(
    "receive_drops",
    "Losses behind the NIC: segments (receive_queue, backlog), or times that the queue was discarded (out_of_order).",
    "queue",
)
MEMORY_PRESSURES = _counter("memory_pressures", "Times TCP's memory went above the middle value of net.ipv4.tcp_mem.")
ESTABLISHED = gauge("plumbline_tcp_established_connections", "Currently open TCP connections.")


def samples(reading: TcpReading) -> Iterator[Sample]:
    for spec, labels, value in (
        (SEGMENTS, ("receive",), reading.segments_received),
        (SEGMENTS, ("transmit",), reading.segments_sent),
        (RETRANSMITTED, (), reading.segments_retransmitted),
        (TIMEOUTS, (), reading.retransmission_timeouts),
        (SYN_RETRANSMISSIONS, (), reading.syn_retransmissions),
        (SACK_RECOVERIES, (), reading.sack_recoveries),
        (OUT_OF_ORDER, (), reading.out_of_order_queued),
        (CHECKSUM_ERRORS, (), reading.checksum_errors),
        (LISTEN_OVERFLOWS, (), reading.listen_overflows),
        (LISTEN_DROPS, (), reading.listen_drops),
        (COLLAPSED, (), reading.receive_queue_collapsed),
        (PRUNED, (), reading.receive_queue_pruned),
        (DROPS, ("receive_queue",), reading.receive_queue_drops),
        (DROPS, ("out_of_order",), reading.out_of_order_drops),
        (DROPS, ("backlog",), reading.backlog_drops),
        (MEMORY_PRESSURES, (), reading.memory_pressures),
        (ESTABLISHED, (), reading.established),
    ):
        if value is not None:
            yield spec, labels, value


COLLECTOR: Collector[Host, TcpReading] = Collector(
    "tcp",
    declared(globals()),
    lambda host, _skip: read_tcp(host.parts.roots),
    samples,
    origin="`/proc/net/snmp`, `/proc/net/netstat`",
    sized_by=("node: TCP",),
)
