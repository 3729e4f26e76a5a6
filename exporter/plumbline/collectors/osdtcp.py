"""Samples of the TCP connections of this host's OSDs to other OSDs: a few figures for each OSD, however many peers."""

from collections.abc import Iterator

from plumbline.collectors.host import Host
from plumbline.metrics.guard import ITEM_REASONS, Collector, SkipHook
from plumbline.metrics.spec import Sample, counter, declared, gauge
from plumbline.sources.ceph.osd_connections import ConnectionsReading, OsdConnections

_OSD = ("ceph_daemon",)

CONNECTIONS = gauge(
    "plumbline_osd_connections",
    "Connections to other OSDs that sent data in the last minute; source is messenger (the OSD's own list of its"
    " cluster network) or kernel (those it made to other OSDs, heartbeats included).",
    (*_OSD, "source"),
)
RTT = gauge(
    "plumbline_osd_connection_rtt_seconds",
    "Smoothed TCP round-trip time of the OSD's connections to other OSDs: the median, and the worst, which is the one"
    " that is longest without its deviation. Delayed acknowledgements raise both.",
    (*_OSD, "statistic"),
)
DEVIATION = gauge(
    "plumbline_osd_connection_rtt_deviation_seconds",
    "Smoothed mean deviation of the TCP round-trip time: the median, and that of the worst connection.",
    (*_OSD, "statistic"),
)
RETRANSMITS = counter(
    "plumbline_osd_connection_retransmits_total",
    "TCP segments sent again on the OSD's connections to other OSDs, since the daemon first saw the OSD.",
    _OSD,
)
WORST_PEER = gauge(
    "plumbline_osd_connection_worst_peer_id",
    "Number of the OSD at the other end of the worst connection by round-trip time (rtt), or of that with the most"
    " retransmits since the reading before (retransmits); no series where there is none or it is not known.",
    (*_OSD, "figure"),
)


def samples(reading: ConnectionsReading) -> Iterator[Sample]:
    for osd in reading.osds:
        yield from _samples_of(osd)


def _samples_of(osd: OsdConnections) -> Iterator[Sample]:
    daemon = osd.daemon
    yield CONNECTIONS, (daemon, osd.source), osd.measured
    yield RETRANSMITS, (daemon,), osd.retransmits
    for spec, worst_s, median_s in (
        (RTT, osd.worst_s, osd.median_s),
        (DEVIATION, osd.worst_deviation_s, osd.median_deviation_s),
    ):
        if worst_s is not None and median_s is not None:
            yield spec, (daemon, "worst"), worst_s
            yield spec, (daemon, "median"), median_s
    for figure, far in (("rtt", osd.worst), ("retransmits", osd.losing)):
        if far is not None and far.peer is not None:
            yield WORST_PEER, (daemon, figure), far.peer


def _read(host: Host, skip: SkipHook) -> ConnectionsReading:
    reading = host.parts.osds.connections.value
    for daemon in reading.unseen:
        skip(daemon, "unreadable")
    return reading


COLLECTOR = Collector(
    "osdtcp",
    declared(globals()),
    _read,
    samples,
    skip_reasons=ITEM_REASONS,
    origin="the OSDs' admin sockets: `messenger dump` (Ceph 19.2.1 and later); before that the kernel's `sock_diag`,"
    " `/proc/PID/cgroup`",
)
