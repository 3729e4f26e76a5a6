"""InfiniBand and RoCE ports as metrics; data in bytes, rates in bits per second."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge, known
from plumbline.sources.net.infiniband import ERRORS, WAIT, InfinibandReading

_PORT = ("device", "port")
_LINK_COUNTERS = ("link_downed", "link_error_recovery")

INFO = gauge(
    "plumbline_infiniband_info",
    "The port's adapter; link_layer Ethernet is RoCE; netdev is its network interface.",
    (*_PORT, "link_layer", "firmware", "board", "netdev"),
)
PORT_STATE = gauge(
    "plumbline_infiniband_port_state",
    "Logical state: 0 no change, 1 down, 2 initialize (no subnet manager), 3 armed, 4 active, 5 active deferred.",
    _PORT,
)
PHYSICAL_STATE = gauge(
    "plumbline_infiniband_physical_state",
    "Physical state: 1 sleep, 2 polling (no link partner), 3 disabled, 4 training, 5 link up, 6 error"
    " recovery, 7 phy test.",
    _PORT,
)
RATE = gauge("plumbline_infiniband_rate_bytes_per_second", "Active lanes × speed of the port, as negotiated.", _PORT)
BYTES = counter("plumbline_infiniband_bytes_total", "Data received and transmitted.", (*_PORT, "direction"))
PACKETS = counter("plumbline_infiniband_packets_total", "Packets received and transmitted.", (*_PORT, "direction"))
LINK_DOWNED = counter(
    "plumbline_infiniband_link_downs_total", "How often the link failed to recover and went down.", _PORT
)
LINK_RECOVERIES = counter(
    "plumbline_infiniband_link_error_recoveries_total", "How often the link recovered from an error.", _PORT
)
PORT_ERRORS = counter(
    "plumbline_infiniband_errors_total",
    "Errors by kernel counter name (symbol_error: bad symbols on a lane, a cable). These counters are narrow"
    " and stay at their maximum until reset.",
    (*_PORT, "error"),
)
TRANSMIT_WAIT = counter(
    "plumbline_infiniband_transmit_waits_total",
    "Ticks of the port's clock in which it had data to send and no credit to send it: congestion.",
    _PORT,
)
EVENTS = counter(
    "plumbline_infiniband_hw_events_total",
    "The adapter's own counters of loss, retransmission and congestion, as named in hw_counters.",
    (*_PORT, "event"),
)
IPOIB_CONNECTED = gauge(
    "plumbline_nic_ipoib_connected_mode_enabled", "IPoIB mode: 1 connected (MTU up to 65520), 0 datagram.", ("device",)
)

_BYTES_PER_MEGABIT = 125_000


def samples(reading: InfinibandReading) -> Iterator[Sample]:
    for port in reading.ports:
        labels = (port.device, port.port)
        yield INFO, (*labels, port.link_layer, port.firmware, port.board, port.netdev), 1
        yield from known(labels, (PORT_STATE, port.state), (PHYSICAL_STATE, port.physical_state))
        if port.rate_mbps is not None:
            yield RATE, labels, port.rate_mbps * _BYTES_PER_MEGABIT
        counters = port.counters
        for direction, word in (("receive", "rx"), ("transmit", "tx")):
            yield from known((*labels, direction), (BYTES, port.octets(word)), (PACKETS, port.packets(word)))
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
    for netdev, connected in reading.ipoib_connected.items():
        yield IPOIB_CONNECTED, (netdev,), 1 if connected else 0


def _read(host: Host, skip: SkipHook) -> InfinibandReading:
    reading = host.parts.latest(InfinibandReading)
    for port, reason in reading.skipped:
        skip(port, reason)
    return reading


COLLECTOR = Collector(
    "infiniband",
    declared(globals()),
    _read,
    samples,
    skip_reasons=ITEM_REASONS,
    origin="`/sys/class/infiniband`",
    sized_by=("InfiniBand or RoCE adapter",),
)
