"""InfiniBand and RoCE ports as metrics; data in bytes, rates in bits per second."""

from __future__ import annotations

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, known
from plumbline.sources.net.infiniband import ERRORS, WAIT, InfinibandPort, InfinibandReading

_PORT = ("device", "port")
_LINK_COUNTERS = ("link_downed", "link_error_recovery")

INFO = gauge(
    "plumbline_infiniband_info",
    "The port's adapter; link_layer Ethernet is RoCE; netdev is the network interface on the port.",
    (*_PORT, "link_layer", "firmware", "board", "netdev"),
)
PORT_STATE = gauge(
    "plumbline_infiniband_port_state",
    "Logical state: 0 no change, 1 down, 2 initialize (no subnet manager yet), 3 armed, 4 active, 5 active deferred.",
    _PORT,
)
PHYSICAL_STATE = gauge(
    "plumbline_infiniband_physical_state",
    "Physical state: 1 sleep, 2 polling (no link partner), 3 disabled, 4 training, 5 link up, 6 error recovery,"
    " 7 phy test.",
    _PORT,
)
RATE = gauge("plumbline_infiniband_rate_bits_per_second", "Active lanes × speed of the port, as negotiated.", _PORT)
BYTES = counter("plumbline_infiniband_bytes_total", "Data received and transmitted.", (*_PORT, "direction"))
PACKETS = counter("plumbline_infiniband_packets_total", "Packets received and transmitted.", (*_PORT, "direction"))
LINK_DOWNED = counter(
    "plumbline_infiniband_link_downed_total", "Times the link failed to recover and went down.", _PORT
)
LINK_RECOVERIES = counter(
    "plumbline_infiniband_link_error_recovery_total", "Times the link recovered from an error.", _PORT
)
PORT_ERRORS = counter(
    "plumbline_infiniband_errors_total",
    "Errors by the kernel's name of the counter (symbol_error: bad symbols on a lane, a cable). These counters are"
    " narrow and stay at their maximum until reset.",
    (*_PORT, "error"),
)
TRANSMIT_WAIT = counter(
    "plumbline_infiniband_transmit_wait_ticks_total",
    "Ticks in which the port had data to send and no credit to send it: congestion.",
    _PORT,
)
EVENTS = counter(
    "plumbline_infiniband_hw_events_total",
    "The adapter's own counters of loss, retransmission and congestion, by their name in hw_counters.",
    (*_PORT, "event"),
)
IPOIB_CONNECTED = gauge(
    "plumbline_nic_ipoib_connected", "IPoIB mode: 1 connected (MTU up to 65520), 0 datagram.", ("device",)
)
SPECS = declared(globals())

_BITS_PER_MEGABIT = 1_000_000


def samples(reading: InfinibandReading) -> Iterator[Sample]:
    """About 20 samples per port, 40 with RoCE counters."""
    for port in reading.ports:
        yield from _port_samples(port)
    for netdev, connected in reading.ipoib_connected.items():
        yield IPOIB_CONNECTED, (netdev,), 1 if connected else 0


def _port_samples(port: InfinibandPort) -> Iterator[Sample]:
    labels = (port.device, port.port)
    yield INFO, (*labels, port.link_layer, port.firmware, port.board, port.netdev), 1
    yield from known(labels, (PORT_STATE, port.state), (PHYSICAL_STATE, port.physical_state))
    if port.rate_mbps is not None:
        yield RATE, labels, port.rate_mbps * _BITS_PER_MEGABIT
    counters = port.counters
    for direction, word in (("receive", "rcv"), ("transmit", "xmit")):
        octets, packets = port.octets(f"port_{word}_data"), counters.get(f"port_{word}_packets")
        yield from known((*labels, direction), (BYTES, octets), (PACKETS, packets))
    yield from known(
        labels,
        (LINK_DOWNED, counters.get("link_downed")),
        (LINK_RECOVERIES, counters.get("link_error_recovery")),
        (TRANSMIT_WAIT, counters.get(WAIT)),
    )
    for name in ERRORS:
        if name in counters and name not in _LINK_COUNTERS:
            yield PORT_ERRORS, (*labels, name), counters[name]
    for name, count in port.events.items():
        yield EVENTS, (*labels, name), count


def _read(host: Host, skip: SkipHook) -> InfinibandReading:
    reading = host.parts.infiniband()
    for port, reason in reading.skipped:
        skip(port, reason)
    return reading


COLLECTOR = Collector(
    "infiniband",
    SPECS,
    _read,
    samples,
    skip_reasons=ITEM_REASONS,
    origin="`/sys/class/infiniband`",
    sized_by=("InfiniBand or RoCE adapter",),
)
